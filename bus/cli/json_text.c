/* JSON as text. Payloads are never rebuilt from a parsed form: json-c would round large numbers. */
#include "json_text.h"

#include <commandbus/json.h>
#include <json-c/json_tokener.h>
#include <string.h>

#include "fail.h"
#include "json_escape.h"

#define DEEPEST 200

void json_write_string(FILE *out, const char *text)
{
    char escape[JSON_ESCAPE_SIZE];

    if (!text) {
        fputs("null", out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (json_escape((unsigned char)*text, escape))
            fputs(escape, out);
        else
            fputc(*text, out);
    }
    fputc('"', out);
}

/* Behind the string that starts at `c`. */
static const char *skip_string(const char *c)
{
    for (c++; *c && *c != '"'; c++) {
        if (*c == '\\' && c[1])
            c++;
    }
    return *c ? c + 1 : c;
}

static const char *skip_blank(const char *c)
{
    return c + strspn(c, " \t\r\n");
}

static void new_line(FILE *out, int spaces)
{
    fprintf(out, "\n%*s", spaces, "");
}

void json_write_pretty(FILE *out, const char *json, int indent)
{
    for (const char *c = skip_blank(json); *c; c = skip_blank(c)) {
        if (*c == '"') {
            const char *end = skip_string(c);
            fwrite(c, 1, (size_t)(end - c), out);
            c = end;
            continue;
        }
        const char *next = skip_blank(c + 1);
        if ((*c == '{' && *next == '}') || (*c == '[' && *next == ']')) {
            fprintf(out, "%c%c", *c, *next);
            c = next + 1;
            continue;
        }
        if (*c == '}' || *c == ']')
            new_line(out, indent -= 2);
        fputc(*c, out);
        if (*c == '{' || *c == '[')
            new_line(out, indent += 2);
        else if (*c == ',')
            new_line(out, indent);
        else if (*c == ':')
            fputc(' ', out);
        c++;
    }
}

void json_print_adopt(json_object *object)
{
    puts(json_object_to_json_string_ext(object,
                                        JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(object);
}

/* One strict JSON value in UTF-8, which the caller then owns. */
static bool parse_strictly(const char *text, size_t length, json_object **ret, cb_error *e)
{
    struct json_tokener *tokener = json_tokener_new_ex(DEEPEST);
    if (!tokener)
        return fail_memory(e);

    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    /* With the final NUL the tokener knows that the text is complete. */
    *ret = json_tokener_parse_ex(tokener, text, (int)length + 1);
    enum json_tokener_error problem = json_tokener_get_error(tokener);
    size_t at = json_tokener_get_parse_end(tokener);
    json_tokener_free(tokener);

    return problem == json_tokener_success ||
           cb_fail(e, CB_INVALID_DATA, "invalid JSON at character %zu: %s", at + 1,
                   problem == json_tokener_continue ? "it ends too early"
                                                    : json_tokener_error_desc(problem));
}

bool json_check_object(const char *text, size_t length, cb_error *e)
{
    json_object *object = NULL;

    if (!parse_strictly(text, length, &object, e))
        return false;
    bool is_object = json_object_is_type(object, json_type_object);
    json_object_put(object);
    return is_object || cb_fail(e, CB_INVALID_DATA, "this is no JSON object");
}

bool json_is_value(const char *text)
{
    return cb_json_check(text, "it", NULL);
}

bool json_unescape(char *raw)
{
    size_t length = strlen(raw);

    if (*raw != '"' || length < 2)
        return false;
    if (!memchr(raw, '\\', length)) {
        memmove(raw, raw + 1, length - 2);
        raw[length - 2] = '\0';
        return true;
    }
    json_object *string = json_tokener_parse(raw);
    size_t unescaped = (size_t)json_object_get_string_len(string);
    const char *text = json_object_get_string(string);
    bool good = text && strlen(text) == unescaped;
    if (good)
        memcpy(raw, text, unescaped + 1); /* never longer than its escaped form */
    json_object_put(string);
    return good;
}

/* Behind the value at `c`, at the comma or brace that follows or the blanks before it. */
static const char *skip_value(const char *c)
{
    int depth = 0;

    for (;;) {
        if (*c == '"')
            c = skip_string(c);
        else if (*c == '{' || *c == '[')
            depth++, c++;
        else if (*c == '}' || *c == ']')
            depth--, c++;
        else if (depth > 0 && *c)
            c++;
        else
            c += strcspn(c, ",}] \t\r\n");
        if (depth == 0 || !*c)
            return c;
    }
}

bool json_next_member(char **at, json_member *ret)
{
    char *c = *at + strspn(*at, " \t\r\n{,");

    if (*c != '"')
        return false;
    ret->key = c;
    char *key_end = c + (skip_string(c) - c);
    c = key_end + strspn(key_end, " \t\r\n:");
    ret->value = c;
    c += skip_value(c) - c;
    ret->value_length = (size_t)(c - ret->value);

    /* What ends the value is remembered by moving behind it; a closing brace ends the scan. */
    char *next = c + strspn(c, " \t\r\n");
    *at = *next == ',' ? next + 1 : next + strlen(next);
    *c = '\0';
    *key_end = '\0';
    (void)json_unescape(ret->key); /* one with a NUL stays as it is: it is unknown */
    return true;
}
