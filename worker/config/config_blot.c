/* URLs and settings for people to see: without what opens the door. */
#include "config_blot.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define STARS  "***"
#define SPACES " \t\r\n"

typedef struct {
    char *text;
    size_t n;
} blotted;

static void add(blotted *out, const char *text, size_t n)
{
    memcpy(out->text + out->n, text, n);
    out->n += n;
}

/* Any scheme: a handler set has URLs of its own. */
static const char *after_scheme(const char *url)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-";
    size_t length = strspn(url, letters);

    return length > 0 && strncmp(url + length, "://", 3) == 0 ? url + length + 3 : NULL;
}

static bool has_word(const char *name, size_t length, const char *const words[])
{
    for (size_t w = 0; words[w]; w++) {
        size_t n = strlen(words[w]);
        for (size_t i = 0; i + n <= length; i++) {
            if (strncasecmp(name + i, words[w], n) == 0)
                return true;
        }
    }
    return false;
}

/* password, sslpassword and the like: any parameter whose name could mean a secret. */
static bool is_secret(const char *name, size_t length)
{
    static const char *const words[] = { "pass", "secret", "token", "%", NULL };

    return has_word(name, length, words);
}

bool config_blots_name(const char *name)
{
    static const char *const words[] = { "key", "credential", NULL };
    size_t length = strlen(name);

    return is_secret(name, length) || has_word(name, length, words);
}

/* "a=1&b=2": the values of secret parameters go. */
static void blot_parameters(const char *at, blotted *out)
{
    while (*at) {
        size_t name = strcspn(at, "=&"), all = strcspn(at, "&");
        if (name < all && is_secret(at, name)) {
            add(out, at, name + 1);
            add(out, STARS, strlen(STARS));
        } else {
            add(out, at, all);
        }
        at += all;
        if (*at)
            add(out, at++, 1);
    }
}

/* user:password@host. A password may hold an unescaped @, / or ? by mistake, so that it ends at the
 * last @ of the whole URL. */
static void blot_url(const char *url, const char *rest, blotted *out)
{
    const char *at = strrchr(rest, '@'), *colon = strchr(rest, ':');

    add(out, url, (size_t)(rest - url));
    if (at && colon && colon < at) {
        add(out, rest, (size_t)(colon + 1 - rest));
        add(out, STARS, strlen(STARS));
        rest = at;
    }
    size_t before = strcspn(rest, "?");
    add(out, rest, before);
    if (rest[before]) {
        add(out, "?", 1);
        blot_parameters(rest + before + 1, out);
    }
}

/* The end of a value of key=value conninfo, quoted or not. */
static const char *skip_value(const char *at)
{
    bool quoted = *at == '\'';

    for (at += quoted; *at && (quoted ? *at != '\'' : !strchr(SPACES, *at)); at++) {
        if (*at == '\\' && at[1])
            at++;
    }
    return quoted && *at ? at + 1 : at;
}

/* host=db password='x y'. */
static void blot_conninfo(const char *at, blotted *out)
{
    while (*at) {
        size_t spaces = strspn(at, SPACES), name = strcspn(at + spaces, SPACES "=");
        const char *value = at + spaces + name;

        value += strspn(value, SPACES);
        value += *value == '=';
        value += strspn(value, SPACES);
        const char *end = skip_value(value);
        if (is_secret(at + spaces, name)) {
            add(out, at, (size_t)(value - at));
            add(out, STARS, strlen(STARS));
        } else {
            add(out, at, (size_t)(end - at));
        }
        at = end;
    }
}

char *config_blot(const char *url)
{
    /* At worst each parameter is an empty secret, p=, that becomes three letters longer. */
    blotted out = { .text = malloc(4 * strlen(url) + sizeof STARS) };
    const char *rest = after_scheme(url);

    if (!out.text)
        return NULL;
    if (rest)
        blot_url(url, rest, &out);
    else
        blot_conninfo(url, &out);
    out.text[out.n] = '\0';
    return out.text;
}
