/* JSON as text, and files of it by lines. Payloads are never rebuilt from a parsed form: json-c
 * would round large numbers. */
#include "json_text.h"

#include "fail.h"
#include "json_escape.h"

#include <commandbus/json.h>
#include <errno.h>
#include <json-c/json_tokener.h>
#include <stdlib.h>
#include <string.h>

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
static const char *json_skip_string(const char *c)
{
    for (c++; *c && *c != '"'; c++) {
        if (*c == '\\' && c[1])
            c++;
    }
    return *c ? c + 1 : c;
}

static const char *json_skip_blank(const char *c)
{
    return c + strspn(c, " \t\r\n");
}

static void json_new_line(FILE *out, int spaces)
{
    fprintf(out, "\n%*s", spaces, "");
}

void json_write_pretty(FILE *out, const char *json, int indent)
{
    for (const char *c = json_skip_blank(json); *c; c = json_skip_blank(c)) {
        if (*c == '"') {
            const char *end = json_skip_string(c);
            fwrite(c, 1, (size_t)(end - c), out);
            c = end;
            continue;
        }
        const char *next = json_skip_blank(c + 1);
        if ((*c == '{' && *next == '}') || (*c == '[' && *next == ']')) {
            fprintf(out, "%c%c", *c, *next);
            c = next + 1;
            continue;
        }
        if (*c == '}' || *c == ']')
            json_new_line(out, indent -= 2);
        fputc(*c, out);
        if (*c == '{' || *c == '[')
            json_new_line(out, indent += 2);
        else if (*c == ',')
            json_new_line(out, indent);
        else if (*c == ':')
            fputc(' ', out);
        c++;
    }
}

void json_put_int(json_object *to, const char *name, int64_t value)
{
    json_object_object_add(to, name, json_object_new_int64(value));
}

void json_put_bool(json_object *to, const char *name, bool value)
{
    json_object_object_add(to, name, json_object_new_boolean(value));
}

void json_put_text(json_object *to, const char *name, const char *value)
{
    json_object_object_add(to, name, value ? json_object_new_string(value) : NULL);
}

void json_print_adopt(json_object *object)
{
    puts(json_object_to_json_string_ext(object,
                                        JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(object);
}

/* One strict JSON value in UTF-8, which the caller then owns. */
static bool json_parse_strictly(const char *text, size_t length, json_object **ret, cb_error *e)
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

    if (!json_parse_strictly(text, length, &object, e))
        return false;
    bool is_object = json_object_is_type(object, json_type_object);
    json_object_put(object);
    return is_object || cb_fail(e, CB_INVALID_DATA, "this is not a JSON object");
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
static const char *json_skip_value(const char *c)
{
    int depth = 0;

    for (;;) {
        if (*c == '"')
            c = json_skip_string(c);
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
    char *key_end = c + (json_skip_string(c) - c);
    c = key_end + strspn(key_end, " \t\r\n:");
    ret->value = c;
    c += json_skip_value(c) - c;
    ret->value_length = (size_t)(c - ret->value);

    /* What ends the value is remembered by moving behind it; a closing brace ends the scan. */
    char *next = c + strspn(c, " \t\r\n");
    *at = *next == ',' ? next + 1 : next + strlen(next);
    *c = '\0';
    *key_end = '\0';
    (void)json_unescape(ret->key); /* one with a NUL stays as it is: it is unknown */
    return true;
}

#define LONGEST_LINE     ((size_t)2 << 20) /* bytes */
#define LARGEST_ARGUMENT ((size_t)64 << 20)

static bool text_open(const char *path, FILE **ret, cb_error *e)
{
    FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (!in)
        return cb_fail(e, CB_INVALID_DATA, "cannot open %s: %s", path, strerror(errno));
    *ret = in;
    return true;
}

/* Bytes up to `stop` (EOF for all), at most `most`. *ended tells whether there was nothing left. */
static bool text_read_up_to(FILE *in, int stop, size_t most, char **ret, size_t *length,
                            bool *ended, cb_error *e)
{
    char *text = NULL;
    size_t used = 0, size = 0;
    int c;

    while ((c = getc_unlocked(in)) != EOF && c != stop) {
        if (used + 2 > size) {
            char *larger = realloc(text, size = size ? size * 2 : 256);
            if (!larger) {
                free(text);
                return fail_memory(e);
            }
            text = larger;
        }
        text[used++] = (char)c;
        if (used > most || c == '\0') {
            free(text);
            return c ? cb_fail(e, CB_PAYLOAD_TOO_LARGE, "longer than %zu bytes", most)
                     : cb_fail(e, CB_INVALID_DATA, "there is a NUL byte in it");
        }
    }
    if (ferror(in)) {
        free(text);
        return cb_fail(e, CB_INVALID_DATA, "cannot be read: %s", strerror(errno));
    }
    *ended = c == EOF && used == 0;
    if (!text && !(text = malloc(1)))
        return fail_memory(e);
    text[used] = '\0';
    *length = used;
    *ret = text;
    return true;
}

/* The next line that is not blank; *line is the caller's, and NULL at the end of the file.
 * *number is that of the line before. */
static bool jsonl_next(FILE *in, char **line, size_t *length, size_t *number, cb_error *e)
{
    bool ended = false, blank = true;
    char *text = NULL;

    while (blank) {
        if (!text_read_up_to(in, '\n', LONGEST_LINE, &text, length, &ended, e))
            return false;
        ++*number;
        blank = !ended && text[strspn(text, " \t\r")] == '\0';
        if (blank || ended) {
            free(text);
            text = NULL;
        }
    }
    if (text && text[*length - 1] == '\r')
        text[--*length] = '\0';
    *line = text;
    return true;
}

bool jsonl_each(const char *path, jsonl_take_fn *take, void *arg, cb_error *e)
{
    FILE *in = NULL;
    char *line = NULL;
    size_t length = 0, number = 0;
    bool good = true;

    if (!text_open(path, &in, e))
        return false;
    do {
        if (!jsonl_next(in, &line, &length, &number, e)) {
            good = cb_fail_while(e, "reading line %zu of %s", number + 1,
                                 in == stdin ? "stdin" : path);
        } else if (line && !take(arg, line, length, number, e)) {
            free(line);
            good = cb_fail_while(e, "reading line %zu", number);
        }
    } while (good && line);
    if (in != stdin)
        fclose(in);
    return good;
}

bool read_text_file(const char *path, size_t most, char **ret, cb_error *e)
{
    FILE *in = NULL;
    size_t length = 0;
    bool ended = false;

    if (!text_open(path, &in, e))
        return false;
    bool good = text_read_up_to(in, EOF, most, ret, &length, &ended, e);
    if (in != stdin)
        fclose(in);
    return good || cb_fail_while(e, "reading %s", path);
}

bool read_text_argument(const char *text, const char **ret, char **owned, cb_error *e)
{
    *ret = text;
    if (!text || (*text != '@' && strcmp(text, "-") != 0))
        return true;
    if (!read_text_file(*text == '@' ? text + 1 : text, LARGEST_ARGUMENT, owned, e))
        return false;
    *ret = *owned;
    return true;
}
