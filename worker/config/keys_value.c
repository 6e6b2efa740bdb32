/* Values of keys: from text, to JSON, freed. The table at the end has the functions of each
 * type. */
#include "keys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "duration.h"
#include "fail.h"
#include "text.h"

#define LONGEST_LIST 100
#define SPACES       " \t\r\n"

/* Where the value of a key is. The table of keys promises that the type is right. */
static void *value_field(const config_key *key, const void *item)
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

static bool value_parse_bool(const config_key *key, void *item, const char *text, cb_error *e)
{
    for (size_t i = 0; i < sizeof truths / sizeof *truths; i++) {
        if (strcasecmp(truths[i].word, text) == 0) {
            *(bool *)value_field(key, item) = truths[i].value;
            return true;
        }
    }
    return cb_fail(e, CB_MISUSE, "it must be true or false");
}

static json_object *value_bool_json(const config_key *key, const void *item)
{
    return json_object_new_boolean(*(const bool *)value_field(key, item));
}

static bool value_parse_integer(const config_key *key, void *item, const char *text, cb_error *e)
{
    char *end = NULL;

    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end || (double)value < key->min || (double)value > key->max)
        return cb_fail(e, CB_MISUSE, "it must be %.0f to %.0f", key->min, key->max);
    *(int64_t *)value_field(key, item) = value;
    return true;
}

static json_object *value_integer_json(const config_key *key, const void *item)
{
    return json_object_new_int64(*(const int64_t *)value_field(key, item));
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

static bool value_parse_size(const config_key *key, void *item, const char *text, cb_error *e)
{
    char least[SIZE_SIZE], most[SIZE_SIZE];
    int64_t bytes = 0;

    if (!size_parse(text, &bytes) || (double)bytes < key->min || (double)bytes > key->max)
        return cb_fail(e, CB_MISUSE, "it must be %s to %s, in bytes or as 512KiB or 1MiB",
                       size_write((int64_t)key->min, least, sizeof least),
                       size_write((int64_t)key->max, most, sizeof most));
    *(int64_t *)value_field(key, item) = bytes;
    return true;
}

static json_object *value_size_json(const config_key *key, const void *item)
{
    char text[SIZE_SIZE];
    return json_object_new_string(
        size_write(*(const int64_t *)value_field(key, item), text, sizeof text));
}

static int64_t value_milliseconds(double seconds)
{
    return (int64_t)(seconds * 1000 + 0.5);
}

static bool value_out_of_range(const config_key *key, cb_error *e)
{
    char least[DURATION_SIZE], most[DURATION_SIZE];
    return cb_fail(e, CB_MISUSE, "it must be %s to %s",
                   duration_format(value_milliseconds(key->min), least, sizeof least),
                   duration_format(value_milliseconds(key->max), most, sizeof most));
}

static bool value_parse_seconds(const config_key *key, const char *text, double *seconds,
                                cb_error *e)
{
    const char *why = NULL;
    int64_t ms = 0;

    if (!duration_parse(text, key->bare_seconds, &ms, &why))
        return *text == '-' ? value_out_of_range(key, e)
                            : cb_fail(e, CB_MISUSE, "invalid duration; %s", why);
    double value = (double)ms / 1000;
    if (value < key->min || value > key->max)
        return value_out_of_range(key, e);
    if (key->whole_seconds && ms % 1000 != 0)
        return cb_fail(e, CB_MISUSE, "it must be whole seconds");
    *seconds = value;
    return true;
}

static json_object *value_seconds_json(double seconds)
{
    char text[DURATION_SIZE];
    return json_object_new_string(duration_format(value_milliseconds(seconds), text, sizeof text));
}

static bool value_parse_duration(const config_key *key, void *item, const char *text, cb_error *e)
{
    return value_parse_seconds(key, text, value_field(key, item), e);
}

static json_object *value_duration_json(const config_key *key, const void *item)
{
    return value_seconds_json(*(const double *)value_field(key, item));
}

/* Nothing is no value, where the key has no rule against it. */
static bool value_parse_text(const config_key *key, void *item, const char *text, cb_error *e)
{
    const char *problem = key->rule ? key->rule(text) : NULL;
    char **value = value_field(key, item), *copy = NULL;

    if (problem)
        return cb_fail(e, CB_MISUSE, "%s", problem);
    if (*text && !(copy = strdup(text)))
        return fail_memory(e);
    free(*value);
    *value = copy;
    return true;
}

static json_object *value_text_json(const config_key *key, const void *item)
{
    const char *text = *(char *const *)value_field(key, item);
    return text ? json_object_new_string(text) : NULL;
}

static void value_clear_text(const config_key *key, void *item)
{
    char **value = value_field(key, item);
    free(*value);
    *value = NULL;
}

/* Which choice the text is, in any case of letters; -1 and the error when it is none. */
static int value_find_choice(const config_key *key, const char *text, cb_error *e)
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

static bool value_parse_choice(const config_key *key, void *item, const char *text, cb_error *e)
{
    int choice = value_find_choice(key, text, e);
    if (choice >= 0)
        memcpy(value_field(key, item), &choice, sizeof choice);
    return choice >= 0;
}

static json_object *value_choice_json(const config_key *key, const void *item)
{
    int choice;
    memcpy(&choice, value_field(key, item), sizeof choice);
    return json_object_new_string(key->choices[choice]);
}

static bool value_parse_word(const config_key *key, void *item, const char *text, cb_error *e)
{
    int choice = value_find_choice(key, text, e);
    return choice >= 0 && value_parse_text(key, item, key->choices[choice], e);
}

/* ---- lists, written "10, 60, 300" or "[10, 60, 300]" ---- */

static size_t *list_count(const config_key *key, const void *item)
{
    return (size_t *)(void *)((char *)(uintptr_t)item + key->count);
}

typedef struct {
    char *copy;                        /* the text, cut into entries */
    const char *entries[LONGEST_LIST]; /* into copy */
    size_t n;
} list_entries;

static void list_entries_done(list_entries *list)
{
    free(list->copy);
}

static char *list_trim(char *text)
{
    text += strspn(text, SPACES);
    for (size_t n = strlen(text); n && strchr(SPACES, text[n - 1]); n--)
        text[n - 1] = '\0';
    return text;
}

static bool list_split(const char *text, list_entries *list, cb_error *e)
{
    *list = (list_entries){ .copy = strdup(text) };
    if (!list->copy)
        return fail_memory(e);

    char *rest = list_trim(list->copy);
    size_t length = strlen(rest);
    if (length >= 2 && rest[0] == '[' && rest[length - 1] == ']') {
        rest[length - 1] = '\0';
        rest = list_trim(rest + 1);
    }
    while (rest && *rest) {
        if (list->n == LONGEST_LIST)
            return cb_fail(e, CB_MISUSE, "it must have %d entries at most", LONGEST_LIST);
        list->entries[list->n++] = list_trim(strsep(&rest, ","));
    }
    return true;
}

static void list_clear_durations(const config_key *key, void *item)
{
    double **values = value_field(key, item);
    free(*values);
    *values = NULL;
    *list_count(key, item) = 0;
}

static bool list_parse_durations(const config_key *key, void *item, const char *text, cb_error *e)
{
    __attribute__((cleanup(list_entries_done))) list_entries list;
    double values[LONGEST_LIST];

    if (!list_split(text, &list, e))
        return false;
    for (size_t i = 0; i < list.n; i++) {
        if (!value_parse_seconds(key, list.entries[i], &values[i], e))
            return false;
    }
    double *copy = malloc(sizeof *copy * (list.n + 1));
    if (!copy)
        return fail_memory(e);
    memcpy(copy, values, sizeof *copy * list.n);
    list_clear_durations(key, item);
    *(double **)value_field(key, item) = copy;
    *list_count(key, item) = list.n;
    return true;
}

static json_object *list_durations_json(const config_key *key, const void *item)
{
    const double *values = *(double *const *)value_field(key, item);
    json_object *array = json_object_new_array();

    for (size_t i = 0; i < *list_count(key, item); i++)
        json_object_array_add(array, value_seconds_json(values[i]));
    return array;
}

static void list_clear_names(const config_key *key, void *item)
{
    char ***names = value_field(key, item);

    for (size_t i = 0; i < *list_count(key, item); i++)
        free((*names)[i]);
    free(*names);
    *names = NULL;
    *list_count(key, item) = 0;
}

static bool list_parse_names(const config_key *key, void *item, const char *text, cb_error *e)
{
    __attribute__((cleanup(list_entries_done))) list_entries list;

    if (!list_split(text, &list, e))
        return false;
    if (list.n == 0)
        return cb_fail(e, CB_MISUSE, "it must have one name at least");
    for (size_t i = 0; i < list.n; i++) {
        const char *problem = key->rule(list.entries[i]);
        if (problem)
            return cb_fail(e, CB_MISUSE, "%s", problem);
        for (size_t j = 0; j < i; j++) {
            if (strcmp(list.entries[i], list.entries[j]) == 0)
                return cb_fail(e, CB_MISUSE, "it names %s twice", list.entries[i]);
        }
    }
    list_clear_names(key, item);
    char **names = calloc(list.n, sizeof *names);
    *(char ***)value_field(key, item) = names;
    for (size_t i = 0; names && i < list.n; i++) {
        if (!(names[i] = strdup(list.entries[i])))
            break;
        ++*list_count(key, item);
    }
    return *list_count(key, item) == list.n || fail_memory(e);
}

static json_object *list_names_json(const config_key *key, const void *item)
{
    char *const *names = *(char **const *)value_field(key, item);
    json_object *array = json_object_new_array();

    for (size_t i = 0; i < *list_count(key, item); i++)
        json_object_array_add(array, json_object_new_string(names[i]));
    return array;
}

/* ---- the table ---- */

_Static_assert(sizeof(cb_level) == sizeof(int) && sizeof(log_format) == sizeof(int),
               "a choice is stored as an int");

static const struct {
    bool (*parse)(const config_key *key, void *item, const char *text, cb_error *e);
    json_object *(*json)(const config_key *key, const void *item);
    void (*clear)(const config_key *key, void *item);
} value_types[] = {
    [KEY_BOOL] = { value_parse_bool, value_bool_json, NULL },
    [KEY_INTEGER] = { value_parse_integer, value_integer_json, NULL },
    [KEY_SIZE] = { value_parse_size, value_size_json, NULL },
    [KEY_DURATION] = { value_parse_duration, value_duration_json, NULL },
    [KEY_DURATIONS] = { list_parse_durations, list_durations_json, list_clear_durations },
    [KEY_TEXT] = { value_parse_text, value_text_json, value_clear_text },
    [KEY_NAMES] = { list_parse_names, list_names_json, list_clear_names },
    [KEY_CHOICE] = { value_parse_choice, value_choice_json, NULL },
    [KEY_WORD] = { value_parse_word, value_text_json, value_clear_text },
};

bool key_parse(const config_key *key, void *item, const char *text, cb_error *e)
{
    return value_types[key->type].parse(key, item, text, e);
}

json_object *key_json(const config_key *key, const void *item)
{
    return value_types[key->type].json(key, item);
}

void key_clear(const config_key *key, void *item)
{
    if (value_types[key->type].clear)
        value_types[key->type].clear(key, item);
}
