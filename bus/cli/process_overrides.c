/* State fields given as --set field=value, as one JSON object. */
#include "process_overrides.h"

#include "fail.h"
#include "json_text.h"
#include "nearest.h"

#include <commandbus/process_query.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A mistyped field would be kept beside the right one, and nobody would notice. */
static bool unknown_field(json_object *state, const char *name, cb_error *e)
{
    nearest_word nearest = { .word = name, .length = strlen(name) };

    json_object_object_foreach(state, known, value)
    {
        (void)value;
        nearest_offer(&nearest, known);
    }
    cb_fail(e, CB_INVALID_DATA, "the state has no field '%.80s': nothing was changed", name);
    return fail_hint(e, "%s%s%sTo add a new one say --overrides.",
                     nearest.best ? "Did you mean " : "", nearest.best ? nearest.best : "",
                     nearest.best ? "? " : "");
}

/* Writes one member. The value is written as it was given: a number keeps all its digits. */
static bool write_field(FILE *out, json_object *state, const char *item, bool first, cb_error *e)
{
    const char *equals = strchr(item, '=');
    json_object *now = NULL;
    char name[256];

    if (!equals || equals == item || (size_t)(equals - item) >= sizeof name)
        return cb_fail(e, CB_MISUSE, "--set wants FIELD=VALUE, not '%.80s'", item);
    snprintf(name, sizeof name, "%.*s", (int)(equals - item), item);
    if (!json_object_object_get_ex(state, name, &now))
        return unknown_field(state, name, e);
    if (!first)
        fputc(',', out);
    json_write_string(out, name);
    fputc(':', out);
    if (json_object_is_type(now, json_type_string) || !json_is_value(equals + 1))
        json_write_string(out, equals + 1);
    else
        fputs(equals + 1, out);
    return true;
}

static bool write_fields(json_object *state, const arg_list *set, char **ret, cb_error *e)
{
    size_t size = 0;
    bool good = true;
    FILE *out = open_memstream(ret, &size);

    if (!out)
        return fail_memory(e);
    fputc('{', out);
    for (size_t i = 0; i < set->n && good; i++)
        good = write_field(out, state, set->items[i], i == 0, e);
    fputc('}', out);
    fclose(out);
    return good;
}

bool process_overrides(cb_db *db, const char *process_id, const arg_list *set, char **ret,
                       cb_error *e)
{
    OWNED(cb_rows) rows = NULL;

    if (!cb_process_show(db, process_id, &rows, e))
        return false;
    if (cb_rows_count(rows) == 0)
        return cb_fail(e, CB_PROCESS_NOT_FOUND, "there is no process %s", process_id);
    json_object *state = json_tokener_parse(cb_rows_get(rows, 0, "state"));
    bool good = write_fields(state, set, ret, e);
    json_object_put(state);
    return good;
}
