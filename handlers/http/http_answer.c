/* From answers to outcomes, by tables. */
#include "http_answer.h"

#include <commandbus/json.h>
#include <json-c/json_tokener.h>
#include <stdio.h>
#include <string.h>

enum {
    DEEPEST = 32,
    LONGEST_CODE = 64,
    LONGEST_WAIT = 3600 /* of a Retry-After, in seconds */
};

/* The first that fits. */
static const struct {
    long from, to;
    cb_outcome outcome;
} meanings[] = {
    { 200, 299, CB_SUCCESS },       { 408, 408, CB_TRANSIENT }, /* the request came too slowly */
    { 422, 422, CB_BUSINESS_RULE }, { 425, 425, CB_TRANSIENT }, /* too early */
    { 429, 429, CB_TRANSIENT },     { 500, 599, CB_TRANSIENT }, { 0, 999, CB_PERMANENT },
};

static const struct {
    CURLcode reason;
    const char *code;
} failures[] = {
    { CURLE_OPERATION_TIMEDOUT, "CALL_TIMEOUT" },
    { CURLE_COULDNT_CONNECT, "API_UNREACHABLE" },
    { CURLE_COULDNT_RESOLVE_HOST, "API_UNREACHABLE" },
    { CURLE_PEER_FAILED_VERIFICATION, "API_NOT_TRUSTED" },
    { CURLE_ABORTED_BY_CALLBACK, "LEASE_LOST" },
};

static cb_outcome meaning_of(long status)
{
    size_t i = 0;

    while (i < CB_COUNT(meanings) - 1 && (status < meanings[i].from || status > meanings[i].to))
        i++;
    return meanings[i].outcome;
}

/* NULL unless it is an object that can be read as it was meant: see cb_json_check_object. */
static json_object *parse(const http_answer *a)
{
    json_tokener *tokener = json_tokener_new_ex(DEEPEST + 1); /* values inside too */
    json_object *json = NULL;

    if (!tokener)
        return NULL;
    if (!memchr(a->body, '\0', a->size) && cb_json_check_object(a->body, "the answer", NULL))
        json =
            json_tokener_parse_ex(tokener, a->body, (int)a->size + 1); /* with its NUL: the end */
    json_tokener_free(tokener);
    return json;
}

/* Only what looks like a code: it goes into replies and lists. What the API says in words does not,
 * for nobody knows which account numbers are in it. */
static const char *code_of(json_object *json, long status, char code[LONGEST_CODE + 1])
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    json_object *value = NULL;

    snprintf(code, LONGEST_CODE + 1, "HTTP_%ld", status);
    if (json && json_object_object_get_ex(json, "code", &value) &&
        json_object_is_type(value, json_type_string)) {
        const char *text = json_object_get_string(value);
        size_t n = strspn(text, letters);
        if (n > 0 && n <= LONGEST_CODE && !text[n])
            strcpy(code, text);
    }
    return code;
}

cb_outcome http_answer_invalid(cb_context *ctx, const char *path, const char *why)
{
    return cb_permanent(ctx, "RESPONSE_INVALID", "POST %s: %s", path, why);
}

cb_outcome http_answer_outcome(cb_context *ctx, const http_answer *a, json_object **ret)
{
    static const char said[] = "POST %s was answered with %ld";
    OWNED(json_object) json = parse(a);
    char code[LONGEST_CODE + 1];
    long wait = a->retry_after < LONGEST_WAIT ? a->retry_after : LONGEST_WAIT;

    code_of(json, a->status, code);
    switch (meaning_of(a->status)) {
    case CB_SUCCESS:
        if (!json)
            return http_answer_invalid(ctx, a->path, "the answer is not a JSON object");
        *ret = json_object_take(&json);
        return CB_SUCCESS;
    case CB_BUSINESS_RULE:
        return cb_business_rule(ctx, code, said, a->path, a->status);
    case CB_TRANSIENT:
        return wait > 0 ? cb_transient_after(ctx, (double)wait, code, said, a->path, a->status)
                        : cb_transient(ctx, code, said, a->path, a->status);
    default:
        return cb_permanent(ctx, code, said, a->path, a->status);
    }
}

cb_outcome http_no_answer(cb_context *ctx, const char *path, CURLcode reason)
{
    const char *code = "CALL_FAILED";

    for (size_t i = 0; i < CB_COUNT(failures); i++) {
        if (failures[i].reason == reason)
            code = failures[i].code;
    }
    return cb_transient(ctx, code, "POST %s: %s", path, curl_easy_strerror(reason));
}
