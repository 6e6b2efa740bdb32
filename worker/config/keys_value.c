/* Values of keys. The table at the end has the functions of each type. */
#include "keys_value.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fail.h"
#include "keys_list.h"
#include "text.h"

/* Where the value of a key is. The table of keys promises that the type is right. */
static void *field(const config_key *key, const void *item)
{
    return (char *)(uintptr_t)item + key->offset;
}

static const struct {
    const char *word;
    bool value;
} truths[] = {
    { "true", true }, { "false", false }, { "yes", true }, { "no", false },
    { "on", true },   { "off", false },   { "1", true },   { "0", false },
};

static bool parse_bool(const config_key *key, void *item, const char *text, cb_error *e)
{
    for (size_t i = 0; i < sizeof truths / sizeof *truths; i++) {
        if (strcasecmp(truths[i].word, text) == 0) {
            *(bool *)field(key, item) = truths[i].value;
            return true;
        }
    }
    return cb_fail(e, CB_MISUSE, "it must be true or false");
}

static json_object *bool_json(const config_key *key, const void *item)
{
    return json_object_new_boolean(*(const bool *)field(key, item));
}

static bool parse_integer(const config_key *key, void *item, const char *text, cb_error *e)
{
    char *end = NULL;

    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end || (double)value < key->min || (double)value > key->max)
        return cb_fail(e, CB_MISUSE, "it must be %.0f to %.0f", key->min, key->max);
    *(int64_t *)field(key, item) = value;
    return true;
}

static json_object *integer_json(const config_key *key, const void *item)
{
    return json_object_new_int64(*(const int64_t *)field(key, item));
}

static const struct {
    const char *name;
    int64_t factor;
} size_units[] = {
    { "", 1 }, { "KiB", 1024 }, { "MiB", 1024 * 1024 }, { "GiB", 1024 * 1024 * 1024 }
};

bool size_parse(const char *text, int64_t *bytes)
{
    char *end = NULL;

    if (!*text || !strchr("0123456789", *text))
        return false;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    for (size_t i = 0; i < sizeof size_units / sizeof *size_units; i++) {
        if (strcmp(end, size_units[i].name) == 0) {
            if (errno || value > INT64_MAX / size_units[i].factor)
                return false;
            *bytes = (int64_t)value * size_units[i].factor;
            return true;
        }
    }
    return false;
}

const char *size_write(int64_t bytes, char *out, size_t size)
{
    size_t best = 0;

    for (size_t i = 0; bytes && i < sizeof size_units / sizeof *size_units; i++) {
        if (bytes % size_units[i].factor == 0)
            best = i;
    }
    snprintf(out, size, "%lld%s", (long long)(bytes / size_units[best].factor),
             size_units[best].name);
    return out;
}

static bool parse_size(const config_key *key, void *item, const char *text, cb_error *e)
{
    char least[SIZE_SIZE], most[SIZE_SIZE];
    int64_t bytes = 0;

    if (!size_parse(text, &bytes) || (double)bytes < key->min || (double)bytes > key->max)
        return cb_fail(e, CB_MISUSE, "it must be %s to %s, in bytes or as 512KiB or 1MiB",
                       size_write((int64_t)key->min, least, sizeof least),
                       size_write((int64_t)key->max, most, sizeof most));
    *(int64_t *)field(key, item) = bytes;
    return true;
}

static json_object *size_json(const config_key *key, const void *item)
{
    char text[SIZE_SIZE];
    return json_object_new_string(
        size_write(*(const int64_t *)field(key, item), text, sizeof text));
}

static bool parse_duration(const config_key *key, void *item, const char *text, cb_error *e)
{
    return list_parse_seconds(key, text, field(key, item), e);
}

static json_object *duration_json(const config_key *key, const void *item)
{
    return list_seconds_json(*(const double *)field(key, item));
}

/* Nothing is no value, where the key has no rule against it. */
static bool parse_text(const config_key *key, void *item, const char *text, cb_error *e)
{
    const char *problem = key->rule ? key->rule(text) : NULL;
    char **value = field(key, item), *copy = NULL;

    if (problem)
        return cb_fail(e, CB_MISUSE, "%s", problem);
    if (*text && !(copy = strdup(text)))
        return fail_memory(e);
    free(*value);
    *value = copy;
    return true;
}

static json_object *text_json(const config_key *key, const void *item)
{
    const char *text = *(char *const *)field(key, item);
    return text ? json_object_new_string(text) : NULL;
}

static void clear_text(const config_key *key, void *item)
{
    char **value = field(key, item);
    free(*value);
    *value = NULL;
}

/* Which choice the text is, in any case of letters; -1 and the error when it is none. */
static int find_choice(const config_key *key, const char *text, cb_error *e)
{
    char all[128] = "";

    for (int i = 0; key->choices[i]; i++) {
        if (strcasecmp(key->choices[i], text) == 0)
            return i;
        const char *link = i == 0 ? "" : key->choices[i + 1] ? ", " : " or ";
        text_append(all, sizeof all, "%s%s", link, key->choices[i]);
    }
    cb_fail(e, CB_MISUSE, "it must be %s", all);
    return -1;
}

static bool parse_choice(const config_key *key, void *item, const char *text, cb_error *e)
{
    int choice = find_choice(key, text, e);
    if (choice >= 0)
        memcpy(field(key, item), &choice, sizeof choice);
    return choice >= 0;
}

static json_object *choice_json(const config_key *key, const void *item)
{
    int choice;
    memcpy(&choice, field(key, item), sizeof choice);
    return json_object_new_string(key->choices[choice]);
}

static bool parse_word(const config_key *key, void *item, const char *text, cb_error *e)
{
    int choice = find_choice(key, text, e);
    return choice >= 0 && parse_text(key, item, key->choices[choice], e);
}

_Static_assert(sizeof(cb_level) == sizeof(int) && sizeof(log_format) == sizeof(int),
               "a choice is stored as an int");

static const struct {
    bool (*parse)(const config_key *key, void *item, const char *text, cb_error *e);
    json_object *(*json)(const config_key *key, const void *item);
    void (*clear)(const config_key *key, void *item);
} types[] = {
    [KEY_BOOL] = { parse_bool, bool_json, NULL },
    [KEY_INTEGER] = { parse_integer, integer_json, NULL },
    [KEY_SIZE] = { parse_size, size_json, NULL },
    [KEY_DURATION] = { parse_duration, duration_json, NULL },
    [KEY_DURATIONS] = { list_parse_durations, list_durations_json, list_clear_durations },
    [KEY_TEXT] = { parse_text, text_json, clear_text },
    [KEY_NAMES] = { list_parse_names, list_names_json, list_clear_names },
    [KEY_CHOICE] = { parse_choice, choice_json, NULL },
    [KEY_WORD] = { parse_word, text_json, clear_text },
};

bool key_parse(const config_key *key, void *item, const char *text, cb_error *e)
{
    return types[key->type].parse(key, item, text, e);
}

json_object *key_json(const config_key *key, const void *item)
{
    return types[key->type].json(key, item);
}

void key_clear(const config_key *key, void *item)
{
    if (types[key->type].clear)
        types[key->type].clear(key, item);
}
