/* The state of a run: what changed since the last record, and back to it. */
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "engine.h"
#include "fields_types.h"

bool state_patch(cb_process *p, json_object *patch)
{
    cb_error e = { 0 };

    if (!patch || cb_fields_patch(p->type->type->state, p->state, patch, &e))
        return true;
    run_park(p, "NON_DETERMINISTIC", "a record does not fit the state: %s", e.message);
    return false;
}

bool state_keep(cb_process *p)
{
    if (cb_fields_copy(p->type->type->state, p->base, p->state))
        return true;
    run_park(p, "PERMANENT_FAILURE", "no memory for its state");
    return false;
}

void state_restore(cb_process *p)
{
    if (!cb_fields_copy(p->type->type->state, p->state, p->base))
        run_park(p, "PERMANENT_FAILURE", "no memory for its state");
}

/* True for a field of the code, or one that it does not know and the state has. */
static bool is_field(const cb_process *p, const char *name)
{
    const cb_fields *fields = p->type->type->state;

    for (size_t i = 0; i < fields->n_fields; i++) {
        if (strcmp(fields->fields[i].name, name) == 0)
            return true;
    }
    return p->unknown && json_object_object_get_ex(p->unknown, name, NULL);
}

bool state_override(cb_process *p, json_object *overrides, cb_error *e)
{
    const cb_fields *fields = p->type->type->state;

    json_object_object_foreach(overrides, name, ignored)
    {
        (void)ignored;
        if (!is_field(p, name))
            return cb_fail(e, CB_INVALID_DATA, "it has no field '%.100s'", name);
    }
    if (!cb_fields_patch(fields, p->state, overrides, e))
        return false;
    json_object_object_foreach(overrides, key, value)
    {
        if (p->unknown && json_object_object_get_ex(p->unknown, key, NULL))
            json_object_object_add(p->unknown, key, json_object_get(value));
    }
    p->state_changed = true;
    return cb_fields_copy(fields, p->base, p->state) || cb_fail(e, CB_MEMORY, "no memory");
}

json_object *state_take_changes(cb_process *p)
{
    json_object *changes = NULL;

    if (!cb_fields_diff(p->type->type->state, p->base, p->state, &changes)) {
        cb_error e = { .message = "no memory" };
        if (cb_fields_valid(p->type->type->state, p->state, &e))
            snprintf(e.message, sizeof e.message, "no memory");
        state_restore(p);
        run_park(p, "PERMANENT_FAILURE", "the state that the code has left cannot be kept: %s",
                 e.message);
        return NULL;
    }
    if (changes && !size_add_changes(p, changes)) {
        json_object_put(changes);
        return NULL;
    }
    if (changes) {
        p->state_changed = true;
        state_keep(p);
    }
    return changes;
}

bool state_accept(cb_process *p)
{
    json_object_put(state_take_changes(p));
    return !p->left;
}
