/* cb_version: code that changes while processes run. */
#include <string.h>

#include "engine.h"

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
    entry at = call_enter(p, KIND_VERSION, change, &r);
    if (at == PASSED)
        return within(p, r, min, max);
    if (at == REFUSED || !(r = call_open(p, r, KIND_VERSION, change)))
        return min;
    r->result = json_object_new_int(max);
    call_complete(p, r);
    return max;
}
