/* Checks JSON text without building anything. By hand and not by json-c's tokener, which takes
 * more than RFC 8259 (NaN, numbers like 01), lets \u0000 pass and costs an allocation for every
 * value. */
#include "json_check.h"

#include <commandbus/json.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "json_keys.h"
#include "utf8.h"

/* ---- numbers against the types of C: `token` is a number as JSON writes it, `length` bytes of
 * a longer text that ends in a NUL. Most are short, and nothing needs to be converted for them
 * ---- */

static bool token_has(const char *token, size_t length, char c)
{
    return memchr(token, c, length) != NULL;
}

static bool has_exponent(const char *token, size_t length)
{
    return token_has(token, length, 'e') || token_has(token, length, 'E');
}

/* Is it finite as a double, whatever the locale? */
static bool number_is_finite(const char *token, size_t length)
{
    const size_t always_finite = 300; /* digits */

    if (length <= always_finite && !has_exponent(token, length))
        return true;

    /* The decimal point is the locale's for strtod. No memory for one is no reason to refuse. */
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c == (locale_t)0)
        return true;
    bool finite = isfinite(strtod_l(token, NULL, c));
    freelocale(c);
    return finite;
}

/* True also for what is no integer by its form (1.0, 1e2). */
static bool number_fits_64_bits(const char *token, size_t length)
{
    const size_t always_fits = 18; /* digits, or one less and a sign */

    if (length <= always_fits || token_has(token, length, '.') || has_exponent(token, length))
        return true;
    errno = 0;
    if (*token == '-')
        (void)strtoll(token, NULL, 10);
    else
        (void)strtoull(token, NULL, 10);
    return errno != ERANGE;
}

/* ---- the text ---- */

typedef struct {
    const unsigned char *start;
    const unsigned char *at;
    const char *problem;        /* set by the first thing that is wrong; `at` is then where */
    const unsigned char *twice; /* the key that is the problem */
    bool no_memory;
    json_numbers numbers;
    int depth;
    json_keys keys;
} scanner;

static bool scan_value(scanner *s);

static bool wrong(scanner *s, const char *problem)
{
    if (!s->problem)
        s->problem = problem;
    return false;
}

static void skip_space(scanner *s)
{
    while (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r')
        s->at++;
}

static bool scan_word(scanner *s, const char *word)
{
    size_t length = strlen(word);

    if (strncmp((const char *)s->at, word, length) != 0)
        return wrong(s, "expected a value");
    s->at += length;
    return true;
}

static bool is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

static bool scan_digits(scanner *s)
{
    if (!is_digit(*s->at))
        return wrong(s, "expected a digit");
    while (is_digit(*s->at))
        s->at++;
    return true;
}

static bool scan_number_token(scanner *s)
{
    if (*s->at == '-')
        s->at++;
    if (s->at[0] == '0' && is_digit(s->at[1]))
        return wrong(s, "a number may not begin with 0");
    if (!scan_digits(s))
        return false;
    if (*s->at == '.') {
        s->at++;
        if (!scan_digits(s))
            return false;
    }
    if (*s->at != 'e' && *s->at != 'E')
        return true;
    s->at++;
    if (*s->at == '+' || *s->at == '-')
        s->at++;
    return scan_digits(s);
}

static bool scan_number(scanner *s)
{
    const char *token = (const char *)s->at;

    if (!scan_number_token(s))
        return false;
    if (s->numbers == JSON_NUMBERS_ANY)
        return true;
    size_t length = (size_t)((const char *)s->at - token);
    if (s->numbers == JSON_NUMBERS_HELD && !number_fits_64_bits(token, length))
        return wrong(s, "an integer beyond 64 bits");
    return number_is_finite(token, length) || wrong(s, "a number beyond the range of a double");
}

/* The four digits after \u; -1 when there are not four. */
static int code_unit(const unsigned char *hex)
{
    int value = 0;

    for (int i = 0; i < 4; i++) {
        unsigned char c = hex[i];
        if (is_digit(c))
            value = value * 16 + (c - '0');
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            value = value * 16 + ((c | 0x20) - 'a' + 10);
        else
            return -1;
    }
    return value;
}

static bool scan_unicode_escape(scanner *s)
{
    int unit = code_unit(s->at + 2);

    if (unit < 0)
        return wrong(s, "\\u needs four hexadecimal digits");
    if (unit == 0)
        return wrong(s, "\\u0000 cannot be stored");
    if (unit >= 0xDC00 && unit <= 0xDFFF)
        return wrong(s, "a low surrogate without its high one");
    if (unit >= 0xD800 && unit <= 0xDBFF) {
        int low = s->at[6] == '\\' && s->at[7] == 'u' ? code_unit(s->at + 8) : -1;
        if (low < 0xDC00 || low > 0xDFFF)
            return wrong(s, "a high surrogate without its low one");
        s->at += 6;
    }
    s->at += 6;
    return true;
}

static bool scan_escape(scanner *s)
{
    if (s->at[1] == 'u')
        return scan_unicode_escape(s);
    if (s->at[1] == '\0' || !strchr("\"\\/bfnrt", s->at[1]))
        return wrong(s, "an unknown escape");
    s->at += 2;
    return true;
}

static bool scan_string(scanner *s)
{
    s->at++;
    while (*s->at != '"') {
        if (*s->at == '\\') {
            if (!scan_escape(s))
                return false;
            continue;
        }
        if (*s->at == '\0')
            return wrong(s, "a string does not end");
        if (*s->at < 0x20)
            return wrong(s, "a control character must be escaped");
        size_t length = utf8_length((const char *)s->at);
        if (length == 0)
            return wrong(s, "bytes that are no UTF-8");
        s->at += length;
    }
    s->at++;
    return true;
}

static bool scan_member(scanner *s)
{
    const unsigned char *key = s->at;

    if (*s->at != '"')
        return wrong(s, "expected a key in double quotes");
    if (!scan_string(s))
        return false;
    if (!json_keys_add(&s->keys, key)) {
        s->no_memory = true;
        return wrong(s, "out of memory");
    }
    skip_space(s);
    if (*s->at != ':')
        return wrong(s, "expected ':'");
    s->at++;
    return scan_value(s);
}

/* What stands between brackets: items separated by commas. */
static bool scan_items(scanner *s, unsigned char end, bool (*scan_item)(scanner *),
                       const char *expected)
{
    if (++s->depth > JSON_MAX_DEPTH)
        return wrong(s, "nested deeper than 32 levels");
    s->at++;
    skip_space(s);
    if (*s->at != end) {
        for (;;) {
            skip_space(s);
            if (!scan_item(s))
                return false;
            skip_space(s);
            if (*s->at != ',')
                break;
            s->at++;
        }
        if (*s->at != end)
            return wrong(s, expected);
    }
    s->at++;
    s->depth--;
    return true;
}

/* Each key once. */
static bool scan_object(scanner *s)
{
    size_t from = s->keys.n;

    if (!scan_items(s, '}', scan_member, "expected ',' or '}'"))
        return false;
    s->twice = json_keys_end(&s->keys, from);
    return !s->twice || wrong(s, "a key is there twice");
}

static bool scan_value(scanner *s)
{
    skip_space(s);
    switch (*s->at) {
    case '{':
        return scan_object(s);
    case '[':
        return scan_items(s, ']', scan_value, "expected ',' or ']'");
    case '"':
        return scan_string(s);
    case 't':
        return scan_word(s, "true");
    case 'f':
        return scan_word(s, "false");
    case 'n':
        return scan_word(s, "null");
    default:
        return *s->at == '-' || is_digit(*s->at) ? scan_number(s) : wrong(s, "expected a value");
    }
}

bool json_check(const char *text, json_kind kind, const char *what, cb_error *e)
{
    return json_check_numbers(text, kind, JSON_NUMBERS_ANY, what, e);
}

/* The key as it is written, or its beginning: a key is no secret, a value may be. */
static bool fail_twice(const scanner *s, const char *what, cb_error *e)
{
    char key[64];
    size_t n = 0;

    while (s->twice[n + 1] != '"' && n < sizeof key - 1) {
        n += s->twice[n + 1] == '\\'; /* and what it escapes */
        n++;
    }
    n = n < sizeof key - 1 ? n : sizeof key - 1;
    memcpy(key, s->twice + 1, n);
    key[n] = '\0';
    utf8_trim(key);
    cb_fail(e, CB_INVALID_DATA, "%s has a duplicate key '%s' at byte %zu", what, key,
            (size_t)(s->twice - s->start) + 1);
    return fail_hint(e, "Say it once: which of the two counts is anybody's guess.");
}

static bool scan_text(scanner *s, bool *is_object)
{
    skip_space(s);
    *is_object = *s->at == '{';
    if (!scan_value(s))
        return false;
    skip_space(s);
    return *s->at == '\0' || wrong(s, "something follows the value");
}

bool json_check_numbers(const char *text, json_kind kind, json_numbers numbers, const char *what,
                        cb_error *e)
{
    const unsigned char *bytes = (const unsigned char *)text;
    bool is_object = false;
    scanner s;

    s.start = s.at = bytes;
    s.problem = NULL;
    s.twice = NULL;
    s.no_memory = false;
    s.numbers = numbers;
    s.depth = 0;
    json_keys_init(&s.keys);
    scan_text(&s, &is_object);
    json_keys_done(&s.keys);
    if (s.no_memory)
        return fail_memory(e);
    if (s.twice)
        return fail_twice(&s, what, e);
    if (s.problem) {
        cb_fail(e, CB_INVALID_DATA, "%s is not valid JSON: %s at byte %zu", what, s.problem,
                (size_t)(s.at - s.start) + 1);
        return fail_hint(e, "Correct %s and try again; nothing was changed.", what);
    }
    if (kind == JSON_OBJECT && !is_object) {
        cb_fail(e, CB_INVALID_DATA, "%s must be a JSON object", what);
        return fail_hint(e, "Write it in braces, such as {\"amount\": \"10.00\"}.");
    }
    return true;
}

bool cb_json_check(const char *text, const char *what, cb_error *e)
{
    return json_check(text, JSON_ANY, what, e);
}

bool cb_json_check_object(const char *text, const char *what, cb_error *e)
{
    return json_check_numbers(text, JSON_OBJECT, JSON_NUMBERS_HELD, what, e);
}

/* What json-c 0.16 takes, measured: an object 792 bytes, a member of it some 100, an array 152
 * and so on. */
enum {
    OBJECT_BYTES = 800,
    ARRAY_BYTES = 160,
    VALUE_BYTES = 88,
};

size_t cb_json_memory(const char *text)
{
    size_t bytes = 0;
    bool in_string = false;

    for (const char *c = text; *c; c++) {
        bytes += in_string;
        if (in_string && *c == '\\' && c[1])
            c++;
        else if (*c == '"')
            in_string = !in_string;
        else if (!in_string && *c == '{')
            bytes += OBJECT_BYTES + VALUE_BYTES;
        else if (!in_string && *c == '[')
            bytes += ARRAY_BYTES + VALUE_BYTES;
        else if (!in_string && (*c == ',' || *c == ':'))
            bytes += VALUE_BYTES;
    }
    return bytes;
}
