/* Values that are lists: durations and names. Written "10, 60, 300" or "[10, 60, 300]". */
#include "keys_list.h"

#include <stdlib.h>
#include <string.h>

#include "duration.h"
#include "fail.h"

#define LONGEST_LIST 100
#define SPACES       " \t\r\n"

/* Where the array of a list and its length are. */
static void *list_array(const config_key *key, const void *item)
{
    return (char *)(uintptr_t)item + key->offset;
}

static size_t *list_count(const config_key *key, const void *item)
{
    return (size_t *)(void *)((char *)(uintptr_t)item + key->count);
}

typedef struct {
    char *copy;                        /* the text, cut into entries */
    const char *entries[LONGEST_LIST]; /* into copy */
    size_t n;
} entry_list;

static void entry_list_done(entry_list *list)
{
    free(list->copy);
}

static char *trim(char *text)
{
    text += strspn(text, SPACES);
    for (size_t n = strlen(text); n && strchr(SPACES, text[n - 1]); n--)
        text[n - 1] = '\0';
    return text;
}

static bool split(const char *text, entry_list *list, cb_error *e)
{
    *list = (entry_list){ .copy = strdup(text) };
    if (!list->copy)
        return fail_memory(e);

    char *rest = trim(list->copy);
    size_t length = strlen(rest);
    if (length >= 2 && rest[0] == '[' && rest[length - 1] == ']') {
        rest[length - 1] = '\0';
        rest = trim(rest + 1);
    }
    while (rest && *rest) {
        if (list->n == LONGEST_LIST)
            return cb_fail(e, CB_MISUSE, "it must have %d entries at most", LONGEST_LIST);
        list->entries[list->n++] = trim(strsep(&rest, ","));
    }
    return true;
}

static int64_t milliseconds(double seconds)
{
    return (int64_t)(seconds * 1000 + 0.5);
}

static bool out_of_range(const config_key *key, cb_error *e)
{
    char least[DURATION_SIZE], most[DURATION_SIZE];
    return cb_fail(e, CB_MISUSE, "it must be %s to %s",
                   duration_format(milliseconds(key->min), least, sizeof least),
                   duration_format(milliseconds(key->max), most, sizeof most));
}

bool list_parse_seconds(const config_key *key, const char *text, double *seconds, cb_error *e)
{
    const char *why = NULL;
    int64_t ms = 0;

    if (!duration_parse(text, key->bare_seconds, &ms, &why))
        return *text == '-' ? out_of_range(key, e)
                            : cb_fail(e, CB_MISUSE, "invalid duration; %s", why);
    double value = (double)ms / 1000;
    if (value < key->min || value > key->max)
        return out_of_range(key, e);
    if (key->whole_seconds && ms % 1000 != 0)
        return cb_fail(e, CB_MISUSE, "it must be whole seconds");
    *seconds = value;
    return true;
}

json_object *list_seconds_json(double seconds)
{
    char text[DURATION_SIZE];
    return json_object_new_string(duration_format(milliseconds(seconds), text, sizeof text));
}

bool list_parse_durations(const config_key *key, void *item, const char *text, cb_error *e)
{
    __attribute__((cleanup(entry_list_done))) entry_list list;
    double values[LONGEST_LIST];

    if (!split(text, &list, e))
        return false;
    for (size_t i = 0; i < list.n; i++) {
        if (!list_parse_seconds(key, list.entries[i], &values[i], e))
            return false;
    }
    double *copy = malloc(sizeof *copy * (list.n + 1));
    if (!copy)
        return fail_memory(e);
    memcpy(copy, values, sizeof *copy * list.n);
    list_clear_durations(key, item);
    *(double **)list_array(key, item) = copy;
    *list_count(key, item) = list.n;
    return true;
}

json_object *list_durations_json(const config_key *key, const void *item)
{
    const double *values = *(double *const *)list_array(key, item);
    json_object *array = json_object_new_array();

    for (size_t i = 0; i < *list_count(key, item); i++)
        json_object_array_add(array, list_seconds_json(values[i]));
    return array;
}

void list_clear_durations(const config_key *key, void *item)
{
    double **values = list_array(key, item);
    free(*values);
    *values = NULL;
    *list_count(key, item) = 0;
}

bool list_parse_names(const config_key *key, void *item, const char *text, cb_error *e)
{
    __attribute__((cleanup(entry_list_done))) entry_list list;

    if (!split(text, &list, e))
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
    *(char ***)list_array(key, item) = names;
    for (size_t i = 0; names && i < list.n; i++) {
        if (!(names[i] = strdup(list.entries[i])))
            break;
        ++*list_count(key, item);
    }
    return *list_count(key, item) == list.n || fail_memory(e);
}

json_object *list_names_json(const config_key *key, const void *item)
{
    char *const *names = *(char **const *)list_array(key, item);
    json_object *array = json_object_new_array();

    for (size_t i = 0; i < *list_count(key, item); i++)
        json_object_array_add(array, json_object_new_string(names[i]));
    return array;
}

void list_clear_names(const config_key *key, void *item)
{
    char ***names = list_array(key, item);

    for (size_t i = 0; i < *list_count(key, item); i++)
        free((*names)[i]);
    free(*names);
    *names = NULL;
    *list_count(key, item) = 0;
}
