/* Side effects and versions: what is not the same twice is made once and recorded. */
#include <commandbus/uuid.h>
#include <stdlib.h>
#include <string.h>

#include "fields_types.h"
#include "process_run.h"

/* Into the record goes a copy: the maker may have kept the value, to change it later. Gives what is
 * wrong. */
static const char *make_value(cb_process *p, record *r, json_object *(*make)(cb_process *, void *),
                              void *arg)
{
    whereabouts was = function_enter(p, r->name);
    OWNED(json_object) value = make(p, arg);

    if (function_return(p, was))
        return "made a call of p";
    if (!value)
        return "returned no value";
    json_object_put(r->result);
    r->result = NULL;
    return field_json_keep(value, 0, &r->result);
}

/* Gives the recorded value (borrowed from the record), or makes it by make(arg) and records it. */
static cb_flow recorded(cb_process *p, const char *name, json_object *(*make)(cb_process *, void *),
                        void *arg, json_object **ret)
{
    record *r = NULL;
    call_entry at = call_enter(p, KIND_SIDE_EFFECT, name, &r);

    if (at == REFUSED)
        return CB_LEAVE;
    if (at == PASSED) {
        *ret = r->result;
        return CB_NEXT;
    }
    if (p->replay.purpose != FORWARD)
        return call_leave(p, LEFT_FRONTIER);
    r = call_open(p, r, KIND_SIDE_EFFECT, name);
    if (!r)
        return CB_LEAVE;
    const char *wrong = make_value(p, r, make, arg);
    if (wrong)
        return run_park(p, PARKED_PERMANENT_FAILURE, "side effect '%s' %s", name, wrong);
    if (!size_add_value(p, r->result)) {
        record_drop_result(r);
        return CB_LEAVE;
    }
    *ret = r->result;
    return call_complete(p, r) ? CB_NEXT : CB_LEAVE;
}

static cb_flow wrong_type(cb_process *p, const char *name, const char *wanted)
{
    return run_park(p, PARKED_NON_DETERMINISTIC,
                    "side effect '%s' was recorded as something other than %s", name, wanted);
}

typedef struct {
    cb_make_string_fn *string;
    cb_make_json_fn *json;
    void *arg;
} maker;

static json_object *make_string(cb_process *p, void *arg)
{
    const maker *m = arg;
    char *text = m->string(m->arg);
    json_object *value = text ? json_object_new_string(text) : NULL;

    (void)p;
    free(text);
    return value;
}

static json_object *make_json(cb_process *p, void *arg)
{
    const maker *m = arg;

    (void)p;
    return m->json(m->arg);
}

static json_object *make_uuid(cb_process *p, void *arg)
{
    (void)p;
    (void)arg;
    return json_object_new_string(cb_uuid_new().text);
}

static json_object *make_time(cb_process *p, void *arg)
{
    (void)arg;
    return json_object_new_int64(run_now_ms(p));
}

cb_flow cb_side_effect_string(cb_process *p, const char *name, cb_make_string_fn *make, void *arg,
                              char **ret)
{
    maker m = { .string = make, .arg = arg };
    json_object *value = NULL;

    CB_DO(recorded(p, name, make_string, &m, &value));
    if (!json_object_is_type(value, json_type_string))
        return wrong_type(p, name, "a string");
    *ret = strdup(json_object_get_string(value));
    return *ret ? CB_NEXT
                : run_park(p, PARKED_PERMANENT_FAILURE, "out of memory for side effect '%s'", name);
}

cb_flow cb_side_effect_json(cb_process *p, const char *name, cb_make_json_fn *make, void *arg,
                            json_object **ret)
{
    maker m = { .json = make, .arg = arg };
    json_object *value = NULL;

    CB_DO(recorded(p, name, make_json, &m, &value));
    *ret = NULL; /* a copy: what the code does with it must not change what is recorded */
    return json_object_deep_copy(value, ret, NULL) == 0
               ? CB_NEXT
               : run_park(p, PARKED_PERMANENT_FAILURE, "out of memory for side effect '%s'", name);
}

cb_flow cb_side_effect_uuid(cb_process *p, const char *name, cb_uuid *ret)
{
    json_object *value = NULL;

    CB_DO(recorded(p, name, make_uuid, NULL, &value));
    if (!json_object_is_type(value, json_type_string) ||
        !cb_uuid_parse(json_object_get_string(value), ret))
        return wrong_type(p, name, "a UUID");
    return CB_NEXT;
}

cb_flow cb_side_effect_time(cb_process *p, const char *name, int64_t *ret)
{
    json_object *value = NULL;

    CB_DO(recorded(p, name, make_time, NULL, &value));
    if (!json_object_is_type(value, json_type_int))
        return wrong_type(p, name, "a moment");
    *ret = json_object_get_int64(value);
    return CB_NEXT;
}

/* ---- cb_version: code that changes while processes run ---- */

/* What this process chose when it came by before. */
static const record *chosen(const cb_process *p, const char *change)
{
    for (size_t i = 0; i < p->replay.cursor && i < p->history.n; i++) {
        const record *r = &p->history.records[i];
        if (r->kind == KIND_VERSION && strcmp(r->name, change) == 0)
            return r;
    }
    return NULL;
}

/* The record that comes next is this change's, or there is none at all; else it went by before. */
static bool is_next(const cb_process *p, const char *change)
{
    for (size_t i = p->replay.cursor; i < p->history.n; i++) {
        const record *r = &p->history.records[i];
        if (r->kind == KIND_VERSION)
            return strcmp(r->name, change) == 0;
        if (r->kind != KIND_RESPONSE && r->kind != KIND_OPERATOR && r->kind != KIND_COMPENSATION)
            return false;
    }
    return p->replay.purpose == FORWARD;
}

static int within(cb_process *p, const record *r, int min, int max)
{
    int version = json_object_get_int(r->result);

    if (version >= min && version <= max)
        return version;
    run_park(p, PARKED_NON_DETERMINISTIC,
             "change '%s' was recorded as %d, but this code knows %d to %d: processes of that time "
             "need the code of that time",
             r->name, version, min, max);
    return min; /* one that the code knows, until it leaves */
}

int cb_version(cb_process *p, const char *change, int min, int max)
{
    record *r = NULL;

    if (!change || !call_is_in_order(p, change))
        return min;
    const record *before = chosen(p, change);
    if (before)
        return within(p, before, min, max);
    if (!is_next(p, change))
        return min;
    call_entry at = call_enter(p, KIND_VERSION, change, &r);
    if (at == PASSED)
        return within(p, r, min, max);
    if (at == REFUSED || !(r = call_open(p, r, KIND_VERSION, change)))
        return min;
    r->result = json_object_new_int(max);
    call_complete(p, r);
    return max;
}
