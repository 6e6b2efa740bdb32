/* One process, taken apart for those who print it. */
#include "process_view.h"

#include "moment.h"

#include <string.h>

static json_object *array_of(const cb_rows *rows, const char *column)
{
    const char *text = cb_rows_get(rows, 0, column);
    json_object *array = text ? json_tokener_parse(text) : NULL;

    return array ? array : json_object_new_array();
}

void process_view_open(process_view *v, const cb_rows *rows)
{
    *v = (process_view){
        .rows = rows,
        .records = array_of(rows, "records"),
        .attempts = array_of(rows, "attempts"),
        .inbox = array_of(rows, "inbox"),
        .events = array_of(rows, "events"),
        .owed = array_of(rows, "owed"),
    };
    (void)moment_parse(cb_rows_get(rows, 0, "now"), &v->now);
}

void process_view_done(process_view *v)
{
    json_object_put(v->records);
    json_object_put(v->attempts);
    json_object_put(v->inbox);
    json_object_put(v->events);
    json_object_put(v->owed);
}

const char *process_text(const process_view *v, const char *column)
{
    return cb_rows_get(v->rows, 0, column);
}

bool process_is(const process_view *v, const char *column, const char *value)
{
    const char *text = process_text(v, column);

    return text && strcmp(text, value) == 0;
}

bool process_until(const process_view *v, const char *column, double *seconds)
{
    if (!moment_parse(process_text(v, column), seconds))
        return false;
    *seconds -= v->now;
    return true;
}

json_object *json_member_of(json_object *object, const char *key)
{
    json_object *member = NULL;

    return json_object_object_get_ex(object, key, &member) ? member : NULL;
}

const char *json_member_text(json_object *object, const char *key)
{
    json_object *member = json_member_of(object, key);

    return member ? json_object_get_string(member) : NULL;
}

const char *json_member_shown(json_object *object, const char *key)
{
    const char *text = json_member_text(object, key);

    return text ? text : "-";
}

static bool is_open(json_object *record)
{
    const char *status = json_member_shown(record, "status");

    return strcmp(status, "STARTED") == 0 || strcmp(status, "RETRY") == 0 ||
           strcmp(status, "WAITING") == 0;
}

json_object *process_open_record(const process_view *v)
{
    json_object *failed = NULL;

    for (size_t i = json_object_array_length(v->records); i-- > 0;) {
        json_object *record = json_object_array_get_idx(v->records, i);
        if (is_open(record))
            return record;
        if (!failed && json_member_of(record, "command") &&
            strcmp(json_member_shown(record, "status"), "FAILED") == 0)
            failed = record;
    }
    return failed;
}

json_object *process_record(const process_view *v, int ordinal)
{
    for (size_t i = 0; i < json_object_array_length(v->records); i++) {
        json_object *record = json_object_array_get_idx(v->records, i);
        if (json_object_get_int(json_member_of(record, "ordinal")) == ordinal)
            return record;
    }
    return NULL;
}
