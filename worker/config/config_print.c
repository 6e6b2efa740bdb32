/* --check-config: the effective configuration, where each value came from, and the limits it gives.
 * Passwords are redacted. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "config_store.h"
#include "text.h"

#define STARS  "***"
#define SPACES " \t\r\n"

/* ---- URLs and settings without what opens the door ---- */

typedef struct {
    char *text;
    size_t n;
} redacted;

static void redact_add(redacted *out, const char *text, size_t n)
{
    memcpy(out->text + out->n, text, n);
    out->n += n;
}

/* Any scheme: a handler set has URLs of its own. */
static const char *redact_scheme(const char *url)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-";
    size_t length = strspn(url, letters);

    return length > 0 && strncmp(url + length, "://", 3) == 0 ? url + length + 3 : NULL;
}

static bool redact_has_word(const char *name, size_t length, const char *const words[])
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
static bool redact_is_secret(const char *name, size_t length)
{
    static const char *const words[] = { "pass", "secret", "token", "%", NULL };

    return redact_has_word(name, length, words);
}

/* Whether a setting of that name is to be hidden as a whole. */
static bool redact_hides(const char *name)
{
    static const char *const words[] = { "key", "credential", NULL };
    size_t length = strlen(name);

    return redact_is_secret(name, length) || redact_has_word(name, length, words);
}

/* "a=1&b=2": the values of secret parameters go. */
static void redact_parameters(const char *at, redacted *out)
{
    while (*at) {
        size_t name = strcspn(at, "=&"), all = strcspn(at, "&");
        if (name < all && redact_is_secret(at, name)) {
            redact_add(out, at, name + 1);
            redact_add(out, STARS, strlen(STARS));
        } else {
            redact_add(out, at, all);
        }
        at += all;
        if (*at)
            redact_add(out, at++, 1);
    }
}

/* user:password@host. A password may hold an unescaped @, / or ? by mistake, so that it ends at the
 * last @ of the whole URL. */
static void redact_url(const char *url, const char *rest, redacted *out)
{
    const char *at = strrchr(rest, '@'), *colon = strchr(rest, ':');

    redact_add(out, url, (size_t)(rest - url));
    if (at && colon && colon < at) {
        redact_add(out, rest, (size_t)(colon + 1 - rest));
        redact_add(out, STARS, strlen(STARS));
        rest = at;
    }
    size_t before = strcspn(rest, "?");
    redact_add(out, rest, before);
    if (rest[before]) {
        redact_add(out, "?", 1);
        redact_parameters(rest + before + 1, out);
    }
}

/* The end of a value of key=value conninfo, quoted or not. */
static const char *redact_skip_value(const char *at)
{
    bool quoted = *at == '\'';

    for (at += quoted; *at && (quoted ? *at != '\'' : !strchr(SPACES, *at)); at++) {
        if (*at == '\\' && at[1])
            at++;
    }
    return quoted && *at ? at + 1 : at;
}

/* host=db password='x y'. */
static void redact_conninfo(const char *at, redacted *out)
{
    while (*at) {
        size_t spaces = strspn(at, SPACES), name = strcspn(at + spaces, SPACES "=");
        const char *value = at + spaces + name;

        value += strspn(value, SPACES);
        value += *value == '=';
        value += strspn(value, SPACES);
        const char *end = redact_skip_value(value);
        if (redact_is_secret(at + spaces, name)) {
            redact_add(out, at, (size_t)(value - at));
            redact_add(out, STARS, strlen(STARS));
        } else {
            redact_add(out, at, (size_t)(end - at));
        }
        at = end;
    }
}

char *config_redact(const char *url)
{
    /* At worst each parameter is an empty secret, p=, that becomes three letters longer. */
    redacted out = { .text = malloc(4 * strlen(url) + sizeof STARS) };
    const char *rest = redact_scheme(url);

    if (!out.text)
        return NULL;
    if (rest)
        redact_url(url, rest, &out);
    else
        redact_conninfo(url, &out);
    out.text[out.n] = '\0';
    return out.text;
}

/* ---- rows ---- */

/* One row; `overruled` is why the value has no effect, or NULL. */
typedef struct {
    const char *path;
    const config_key *key;
    json_object *value;
    const char *origin;
    const char *overruled;
} config_row;

typedef void row_fn(const config_row *row, void *arg);

static const char *print_origin(const config *c, const config_key *key, const char *item)
{
    const config_said *said = config_who(c, key, item);
    const config_said *file = strcmp(key->path, "database.url") == 0
                                  ? config_who_said(c, "database.url-file", NULL)
                              : strcmp(key->path, "database.listen-url") == 0
                                  ? config_who_said(c, "database.listen-url-file", NULL)
                                  : NULL;

    if (file && (!said || file->layer > said->layer))
        return file->key->path;
    if (!said && key->fallback && config_who_said(c, key->fallback, NULL))
        return key->fallback;
    return said ? said->origin : "default";
}

/* Nobody has said it, and what then counts is not the configuration's to know. */
static bool print_is_left_open(const config *c, const config_key *key, const char *name)
{
    return !key->initial && key->type != KEY_TEXT && key->type != KEY_NAMES &&
           !config_who(c, key, name);
}

/* The value as it may be seen. What a set's settings are we do not know: their names tell. */
static json_object *print_value(const config_key *key, const char *name, const void *item)
{
    json_object *value = key_json(key, item);
    const char *setting = key_section(key)->is_open && name ? strchr(name, '.') : NULL;

    if (!key->secret || !value)
        return value;
    char *seen =
        setting && redact_hides(setting) ? NULL : config_redact(json_object_get_string(value));
    json_object_put(value);
    value = json_object_new_string(seen ? seen : STARS);
    free(seen);
    return value;
}

/* Every key of every item, in the order of the table. */
static void print_each_row(const config *c, row_fn *fn, void *arg)
{
    for (size_t s = 0; s < n_config_sections; s++) {
        const config_section *section = &config_sections[s];
        for (size_t i = 0; i < config_count(c, section); i++) {
            const void *item = config_at(c, section, i);
            const char *name = config_item_name(section, item);
            for (const config_key *key = config_keys; key < config_keys + n_config_keys; key++) {
                char path[KEY_PATH_SIZE];
                if (key_section(key) != section)
                    continue;
                json_object *value =
                    print_is_left_open(c, key, name) ? NULL : print_value(key, name, item);
                const config_said *said = config_who(c, key, name);
                fn(&(config_row){ key_path(key, name, path, sizeof path), key, value,
                                  print_origin(c, key, name), said ? said->overruled : NULL },
                   arg);
                json_object_put(value);
            }
        }
    }
}

/* ---- as text ---- */

typedef struct {
    FILE *out;
    int path, value; /* widths */
} print_table;

static void print_write_text(json_object *value, const config_key *key, char *out, size_t size)
{
    if (!value) {
        snprintf(out, size, "(%s)", key->without);
    } else if (json_object_is_type(value, json_type_array)) {
        snprintf(out, size, "[");
        for (size_t i = 0; i < json_object_array_length(value); i++)
            text_append(out, size, "%s%s", i ? ", " : "",
                        json_object_get_string(json_object_array_get_idx(value, i)));
        text_append(out, size, "]");
    } else {
        snprintf(out, size, "%s", json_object_get_string(value));
    }
    /* A value is one line and nothing to a terminal: what it holds beside letters is ?. */
    for (; *out; out++) {
        if (iscntrl((unsigned char)*out))
            *out = '?';
    }
}

static void print_measure_row(const config_row *row, void *arg)
{
    print_table *t = arg;
    char text[512];

    print_write_text(row->value, row->key, text, sizeof text);
    if ((int)strlen(row->path) > t->path)
        t->path = (int)strlen(row->path);
    /* A long URL does not push the origins of all others out of sight. */
    if ((int)strlen(text) > t->value && strlen(text) <= 40)
        t->value = (int)strlen(text);
}

static void print_row(const config_row *row, void *arg)
{
    const print_table *t = arg;
    char text[512];

    print_write_text(row->value, row->key, text, sizeof text);
    fprintf(t->out, "%-*s  %-*s  %s%s%s\n", t->path, row->path, t->value, text, row->origin,
            row->overruled ? "; ignored: " : "", row->overruled ? row->overruled : "");
}

static void print_limits(const config *c, FILE *out)
{
    fputc('\n', out);
    for (size_t i = 0; i < c->n_domains; i++) {
        const config_domain *d = &c->domains[i];
        if (!d->enabled)
            continue;
        if (!c->command_handlers) {
            fprintf(out, "%s: no calls, for features.command-handlers is off\n", d->name);
            continue;
        }
        fprintf(out, "%s: %lld calls in flight per instance × replicas; ", d->name,
                (long long)d->concurrent_messages);
        if (d->fleet_limit)
            fprintf(out, "fleet-limit %lld over the fleet\n", (long long)d->fleet_limit);
        else
            fprintf(out, "no fleet-limit%s\n", d->fleet_limit_is_set ? "" : " said here");
    }
}

/* ---- as JSON ---- */

static void print_add_json(const config_row *row, void *arg)
{
    json_object *o = json_object_new_object();

    json_object_object_add(o, "key", json_object_new_string(row->path));
    json_object_object_add(o, "value", json_object_get(row->value));
    if (!row->value)
        json_object_object_add(o, "without", json_object_new_string(row->key->without));
    json_object_object_add(o, "origin", json_object_new_string(row->origin));
    if (row->overruled)
        json_object_object_add(o, "ignored", json_object_new_string(row->overruled));
    json_object_array_add(arg, o);
}

static json_object *print_limits_json(const config *c)
{
    json_object *limits = json_object_new_array();

    for (size_t i = 0; i < c->n_domains; i++) {
        const config_domain *d = &c->domains[i];
        if (!d->enabled)
            continue;
        json_object *limit = json_object_new_object(), *sets = json_object_new_array();
        json_object_object_add(limit, "domain", json_object_new_string(d->name));
        json_object_object_add(limit, "concurrent_messages",
                               json_object_new_int64(d->concurrent_messages));
        json_object_object_add(limit, "fleet_limit",
                               d->fleet_limit_is_set ? json_object_new_int64(d->fleet_limit)
                                                     : NULL);
        for (size_t h = 0; h < d->n_handlers; h++)
            json_object_array_add(sets, json_object_new_string(d->handlers[h]));
        json_object_object_add(limit, "handlers", sets);
        json_object_array_add(limits, limit);
    }
    return limits;
}

static json_object *print_features_json(const config *c)
{
    const config_section *section = section_find("features");
    json_object *features = json_object_new_object();

    for (const config_key *key = config_keys; key < config_keys + n_config_keys; key++) {
        if (key_section(key) == section)
            json_object_object_add(features, key_leaf(key), key_json(key, c));
    }
    return features;
}

static void print_json(const config *c, FILE *out)
{
    json_object *all = json_object_new_object(), *keys = json_object_new_array();

    print_each_row(c, print_add_json, keys);
    json_object_object_add(all, "keys", keys);
    json_object_object_add(all, "limits", print_limits_json(c));
    json_object_object_add(all, "profile", json_object_new_string(c->profile));
    json_object_object_add(all, "features", print_features_json(c));
    fprintf(out, "%s\n", json_object_to_json_string_ext(all, JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(all);
}

void config_print(const config *c, bool json, int fd)
{
    int copy = dup(fd);
    FILE *out = copy < 0 ? NULL : fdopen(copy, "w");

    if (!out) {
        if (copy >= 0)
            close(copy);
        return;
    }
    if (json) {
        print_json(c, out);
    } else {
        print_table t = { .out = out };
        print_each_row(c, print_measure_row, &t);
        print_each_row(c, print_row, &t);
        print_limits(c, out);
    }
    fclose(out);
}
