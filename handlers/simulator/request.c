/* Reading requests. */
#include "request.h"

#include <commandbus/date.h>
#include <json-c/json_tokener.h>
#include <string.h>

enum {
    DEEPEST = 8
};

static bool refuse(answer *refused, const char *name, const char *what)
{
    *refused = answer_refusal(400, "INVALID_DATA", "\"%s\" must be %s", name, what);
    return false;
}

bool request_read(request *r, answer *refused)
{
    json_tokener *tokener = json_tokener_new_ex(DEEPEST);

    if (r->body_size == 0)
        r->json = json_object_new_object();
    else if (tokener)
        r->json = json_tokener_parse_ex(tokener, r->body, (int)r->body_size + 1);
    if (tokener)
        json_tokener_free(tokener);
    if (json_object_is_type(r->json, json_type_object))
        return true;
    *refused = answer_refusal(400, "INVALID_DATA", "the body must be a JSON object");
    return false;
}

bool request_text(const request *r, const char *name, const char **ret, answer *refused)
{
    json_object *value = NULL;

    json_object_object_get_ex(r->json, name, &value);
    int length =
        json_object_is_type(value, json_type_string) ? json_object_get_string_len(value) : 0;
    if (length < 1 || length > LONGEST_TEXT ||
        strlen(json_object_get_string(value)) != (size_t)length)
        return refuse(refused, name, "a text of 1 to 200 bytes");
    *ret = json_object_get_string(value);
    return true;
}

bool request_uuid(const request *r, const char *name, cb_uuid *ret, answer *refused)
{
    const char *text;

    if (!request_text(r, name, &text, refused))
        return false;
    return cb_uuid_parse(text, ret) || refuse(refused, name, "a UUID");
}

bool request_money(const request *r, const char *amount, const char *currency, cb_money *ret,
                   answer *refused)
{
    const char *number, *code;
    cb_error e = { 0 };

    if (!request_text(r, amount, &number, refused) || !request_text(r, currency, &code, refused))
        return false;
    if (cb_currency_exponent(code) < 0)
        return refuse(refused, currency, "a currency of ISO 4217");
    return (cb_money_parse(number, code, ret, &e) && ret->minor > 0) ||
           refuse(refused, amount, "an amount above 0 with the digits of its currency");
}

bool request_day(const request *r, const char *name, answer *refused)
{
    const char *text;

    if (!request_text(r, name, &text, refused))
        return false;
    return cb_date_parse(text, &(cb_date){ 0 }) ||
           refuse(refused, name, "a day such as 2030-01-31");
}

uint64_t request_hash(const request *r)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (size_t i = 0; i < r->body_size; i++)
        hash = (hash ^ (unsigned char)r->body[i]) * 0x100000001b3u;
    for (const char *c = r->id; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    return hash;
}
