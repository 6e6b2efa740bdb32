/* The state of a run: what changed since the last record, and back to it. */
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "fail.h"
#include "fields_types.h"
#include "process_run.h"

bool state_patch(cb_process *p, json_object *patch)
{
    cb_error e = { 0 };

    if (!patch || cb_fields_patch(run_type(p)->state, p->state.now, patch, &e))
        return true;
    run_park(p, PARKED_NON_DETERMINISTIC, "a record does not fit the state: %s", e.message);
    return false;
}

bool state_keep(cb_process *p)
{
    if (cb_fields_copy(run_type(p)->state, p->state.recorded, p->state.now))
        return true;
    run_park(p, PARKED_PERMANENT_FAILURE, "out of memory for its state");
    return false;
}

void state_restore(cb_process *p)
{
    if (!cb_fields_copy(run_type(p)->state, p->state.now, p->state.recorded))
        run_park(p, PARKED_PERMANENT_FAILURE, "out of memory for its state");
}

/* One that the code does not know and the state has. */
static bool is_unknown_field(const cb_process *p, const char *name)
{
    return p->state.unknown && !field_named(run_type(p)->state, name) &&
           json_object_object_get_ex(p->state.unknown, name, NULL);
}

/* What is misspelt would else be ignored, in nested structs and in items of lists too. `whose`:
 * for people. */
static bool names_exist(const cb_process *p, const cb_fields *fields, const char *whose,
                        json_object *overrides, cb_error *e);

static bool names_in_value_exist(const cb_process *p, const cb_field *field, json_object *value,
                                 cb_error *e)
{
    if (!field->fields)
        return true;
    if (json_object_is_type(value, json_type_object))
        return names_exist(p, field->fields, field->name, value, e);
    if (!json_object_is_type(value, json_type_array))
        return true;
    for (size_t i = 0; i < json_object_array_length(value); i++) {
        json_object *item = json_object_array_get_idx(value, i);
        if (json_object_is_type(item, json_type_object) &&
            !names_exist(p, field->fields, field->name, item, e))
            return false;
    }
    return true;
}

static bool names_exist(const cb_process *p, const cb_fields *fields, const char *whose,
                        json_object *overrides, cb_error *e)
{
    bool is_top = fields == run_type(p)->state;

    json_object_object_foreach(overrides, name, value)
    {
        const cb_field *field = field_named(fields, name);
        if (!field && !(is_top && is_unknown_field(p, name)))
            return cb_fail(e, CB_INVALID_DATA, "%.100s has no field '%.100s'", whose, name);
        if (field && !names_in_value_exist(p, field, value, e))
            return false;
    }
    return true;
}

bool state_override(cb_process *p, json_object *overrides, cb_error *e)
{
    const cb_fields *fields = run_type(p)->state;

    if (!names_exist(p, fields, "it", overrides, e) ||
        !cb_fields_patch(fields, p->state.now, overrides, e))
        return false;
    json_object_object_foreach(overrides, key, value)
    {
        if (is_unknown_field(p, key))
            json_object_object_add(p->state.unknown, key, json_object_get(value));
    }
    p->state.changed = true;
    return cb_fields_copy(fields, p->state.recorded, p->state.now) || fail_memory(e);
}

json_object *state_take_changes(cb_process *p)
{
    json_object *changes = NULL;

    if (!cb_fields_diff(run_type(p)->state, p->state.recorded, p->state.now, &changes)) {
        cb_error e = { .message = "out of memory" };
        if (cb_fields_valid(run_type(p)->state, p->state.now, &e))
            snprintf(e.message, sizeof e.message, "out of memory");
        state_restore(p);
        run_park(p, PARKED_PERMANENT_FAILURE, "the code left a state that cannot be kept: %s",
                 e.message);
        return NULL;
    }
    if (changes && !size_add_changes(p, changes)) {
        json_object_put(changes);
        return NULL;
    }
    if (changes) {
        p->state.changed = true;
        state_keep(p);
    }
    return changes;
}

bool state_accept(cb_process *p)
{
    json_object_put(state_take_changes(p));
    return !p->replay.left;
}
