/* execute() over the records: what is recorded is passed, not done again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_build.h"
#include "process_run.h"
#include "utf8.h"

enum {
    MOST_UNSETTLED = 1000 /* records of local steps that are not durable yet */
};

/* ---- names that were called: open addressing, at most half full ---- */

static uint64_t name_hash(const char *name)
{
    uint64_t h = 14695981039346656037u; /* FNV-1a */

    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 1099511628211u;
    return h;
}

/* Where the name is, or would be. */
static const char **name_place(const name_set *set, const char *name)
{
    size_t i = name_hash(name) & (set->room - 1);

    while (set->slots[i] && strcmp(set->slots[i], name) != 0)
        i = (i + 1) & (set->room - 1);
    return &set->slots[i];
}

static bool name_set_grow(name_set *set)
{
    name_set bigger = { .room = set->room ? 2 * set->room : 32, .n = set->n };

    bigger.slots = calloc(bigger.room, sizeof *bigger.slots);
    if (!bigger.slots)
        return false;
    for (size_t i = 0; i < set->room; i++) {
        if (set->slots[i])
            *name_place(&bigger, set->slots[i]) = set->slots[i];
    }
    free(set->slots);
    *set = bigger;
    return true;
}

static bool name_set_has(const name_set *set, const char *name)
{
    return set->n > 0 && *name_place(set, name);
}

/* One that is not there yet. False without memory. */
static bool name_set_add(name_set *set, const char *name)
{
    if (2 * set->n >= set->room && !name_set_grow(set))
        return false;
    *name_place(set, name) = name;
    set->n++;
    return true;
}

static void name_set_clear(name_set *set)
{
    if (set->n > 0)
        memset(set->slots, 0, set->room * sizeof *set->slots);
    set->n = 0;
}

/* ---- records ---- */

static bool pass_responses_during(cb_process *p, int ordinal);

/* What is recorded: the base that changes of the code are told from has it too. */
static bool patch_both(cb_process *p, json_object *patch)
{
    return state_patch(p, patch) &&
           cb_fields_patch(run_type(p)->state, p->state.recorded, patch, &(cb_error){ 0 });
}

/* Responses, operators' decisions and compensations stand between the calls; what they changed is
 * applied where they stand. What the code has changed before is not recorded by that. */
static bool pass_between(cb_process *p, const record *r)
{
    p->replay.cursor++;
    return patch_both(p, r->opening) &&
           (r->kind != KIND_COMPENSATION || pass_responses_during(p, r->ordinal)) &&
           patch_both(p, r->patch);
}

/* The next record that a call must match; NULL: none, the frontier. */
static record *next_call_record(cb_process *p)
{
    while (p->replay.cursor < p->history.n) {
        record *r = &p->history.records[p->replay.cursor];
        if (r->kind != KIND_RESPONSE && r->kind != KIND_OPERATOR && r->kind != KIND_COMPENSATION)
            return r;
        if (!pass_between(p, r))
            return NULL;
    }
    return NULL;
}

/* Those that arrived while the record was open were applied before it got its end. */
static bool pass_responses_during(cb_process *p, int ordinal)
{
    while (p->replay.cursor < p->history.n) {
        const record *r = &p->history.records[p->replay.cursor];
        if (r->kind != KIND_OPERATOR && (r->kind != KIND_RESPONSE || r->during != ordinal))
            break;
        if (!pass_between(p, r))
            return false;
    }
    return true;
}

static bool pass(cb_process *p, const record *r)
{
    p->replay.cursor++;
    if (!state_patch(p, r->opening) || !pass_responses_during(p, r->ordinal))
        return false;
    if (record_is_open(r))
        return state_keep(p);
    p->figures.replayed++;
    return state_patch(p, r->patch) && state_keep(p);
}

/* What to do about code that has gone another way. */
static const char *cure(const cb_process *p)
{
    return run_type(p)->manager
               ? "revert the change, or let it depend on a field that only new processes have"
               : "revert the change, or put it behind cb_version()";
}

static cb_flow diverged(cb_process *p, const record *r, record_kind kind, const char *name)
{
    return run_park(p, PARKED_NON_DETERMINISTIC,
                    "record %d is %s '%s', but the code calls %s '%s': %s", r->ordinal,
                    record_kind_names[r->kind], r->name, record_kind_names[kind], name, cure(p));
}

/* ---- calls ---- */

whereabouts function_enter(cb_process *p, const char *name)
{
    p->guard.function = name;
    p->guard.misused = false;
    return atomic_exchange(&p->guard.where, IN_STEP);
}

bool function_return(cb_process *p, whereabouts was)
{
    atomic_store(&p->guard.where, was);
    p->guard.function = NULL;
    return p->guard.misused;
}

cb_flow call_leave(cb_process *p, departure why)
{
    if (!p->replay.left)
        p->replay.left = why;
    return CB_LEAVE;
}

bool call_is_in_order(cb_process *p, const char *name)
{
    whereabouts where = atomic_load(&p->guard.where);

    if (!pthread_equal(p->guard.thread, pthread_self())) {
        atomic_store(&p->guard.from_abroad, true);
        return false;
    }
    if (where == OUTSIDE) {
        run_stray(p, "'%.100s' was called outside execute(), where p is not valid", name);
        return false;
    }
    if (where == IN_STEP) {
        p->guard.misused = true;
        run_stray(p, "'%.100s' was called inside step '%.100s': calls belong in execute()", name,
                  p->guard.function ? p->guard.function : "");
        return false;
    }
    return !p->replay.left;
}

static bool is_named(cb_process *p, const char *name)
{
    if (!name || !*name || strlen(name) > 200 || !utf8_is_valid(name)) {
        run_park(p, PARKED_PERMANENT_FAILURE, "invalid name '%.50s…': use 1 to 200 bytes of UTF-8",
                 name ? name : "");
        return false;
    }
    if (name_set_has(&p->replay.called, name)) {
        run_park(p, PARKED_PERMANENT_FAILURE,
                 "'%s' was called twice: names are unique within a process", name);
        return false;
    }
    return true;
}

static bool remember(cb_process *p, const record *r)
{
    if (name_set_add(&p->replay.called, r->name))
        return true;
    run_park(p, PARKED_PERMANENT_FAILURE, "out of memory for its names");
    return false;
}

/* The frontier: nothing more is recorded. What has arrived is seen here, and the deadline is. */
static call_entry reach_frontier(cb_process *p, record *open)
{
    int ordinal = open ? open->ordinal : 0;

    if (p->replay.purpose == CHECK)
        return call_leave(p, LEFT_FRONTIER), REFUSED;
    if (p->replay.purpose == REBUILD)
        return open ? OPEN : (call_leave(p, LEFT_FRONTIER), REFUSED);
    if (!p->inbox.responses_taken)
        responses_take(p, ordinal);
    if (!p->replay.left && p->history.n - p->history.n_settled > MOST_UNSETTLED &&
        !run_checkpoint(p))
        return REFUSED;
    if (!p->replay.left && run_is_overdue(p))
        call_leave(p, LEFT_DEADLINE);
    return p->replay.left ? REFUSED : open ? OPEN : NEW;
}

call_entry call_enter(cb_process *p, record_kind kind, const char *name, record **r)
{
    if (!call_is_in_order(p, name ? name : "") || !is_named(p, name))
        return REFUSED;
    failure_forget(p);
    record *found = next_call_record(p);
    if (p->replay.left)
        return REFUSED;
    if (!found)
        return reach_frontier(p, NULL);
    if (found->kind != kind || strcmp(found->name, name) != 0)
        return diverged(p, found, kind, name), REFUSED;
    if (!pass(p, found) || !remember(p, found))
        return REFUSED;
    *r = found;
    if (!record_is_open(found))
        return found->status != RECORD_ABANDONED ? PASSED : (call_leave(p, LEFT_FRONTIER), REFUSED);
    int ordinal = found->ordinal;
    call_entry at = reach_frontier(p, found);
    *r = run_at(p, ordinal); /* responses may have moved it */
    return at;
}

record *call_open(cb_process *p, record *r, record_kind kind, const char *name)
{
    if (!r && !p->replay.left && !size_add(p, RECORD_BYTES + strlen(name)))
        return NULL; /* parked */
    json_object *opening = state_take_changes(p);

    if (!r) {
        r = p->replay.left ? NULL : run_append(p, kind, name);
        if (r)
            r->status = RECORD_RETRY; /* not begun */
        p->replay.cursor = p->history.n;
        if (!r || !remember(p, r)) {
            json_object_put(opening);
            if (!p->replay.left)
                run_park(p, PARKED_PERMANENT_FAILURE, "out of memory for its records");
            return NULL;
        }
    }
    if (opening) {
        json_object_put(r->opening);
        r->opening = opening;
    }
    r->dirty = true;
    return p->replay.left ? NULL : r;
}

bool call_complete(cb_process *p, record *r)
{
    json_object *patch = state_take_changes(p);

    r->dirty = true;
    if (p->replay.left) {
        json_object_put(patch);
        return false;
    }
    json_object_put(r->patch);
    r->patch = patch;
    r->status = RECORD_COMPLETED;
    record_set_text(&r->error_code, NULL);
    record_set_text(&r->error_message, NULL);
    return true;
}

/* ---- execute() ---- */

static bool start_over(cb_process *p)
{
    cb_error e = { 0 };

    p->replay.cursor = p->replay.compensations.n = 0;
    p->replay.left = NOT_LEFT;
    name_set_clear(&p->replay.called);
    failure_forget(p);
    if (!run_first_state(p, &e)) {
        run_park(p, PARKED_PERMANENT_FAILURE, "its first state cannot be read: %s", e.message);
        return false;
    }
    return state_keep(p);
}

/* It ended, or gave up, with records left over: it has gone another way than it did then. */
static void check_left_over(cb_process *p)
{
    const record *r;

    if (p->replay.left && p->replay.left != LEFT_BUSINESS && p->replay.left != LEFT_FRONTIER)
        return;
    departure left = p->replay.left;
    p->replay.left = NOT_LEFT;
    r = next_call_record(p);
    if (p->replay.left)
        return;
    if (r)
        run_park(p, PARKED_NON_DETERMINISTIC, "record %d is %s '%s', but the code %s before it: %s",
                 r->ordinal, record_kind_names[r->kind], r->name,
                 left == LEFT_BUSINESS ? "fails" : "ends", cure(p));
    else
        p->replay.left = left;
}

/* What followed the frontier: the state is then the latest. */
static void pass_rest(cb_process *p)
{
    departure left = p->replay.left;

    p->replay.left = NOT_LEFT;
    while (p->replay.cursor < p->history.n && !p->replay.left)
        (void)pass_between(p, &p->history.records[p->replay.cursor]);
    if (!p->replay.left && state_keep(p))
        p->replay.left = left;
}

void run_execute(cb_process *p, purpose why)
{
    p->replay.purpose = why;
    if (!start_over(p))
        return;
    atomic_store(&p->guard.where, IN_EXECUTE);
    const cb_process_type *type = run_type(p);
    cb_flow flow = type->manager ? manager_execute(p) : type->execute(p, p->state.now);
    atomic_store(&p->guard.where, OUTSIDE);
    check_left_over(p);
    if (!p->replay.left && flow != CB_DONE)
        run_park(p, PARKED_PERMANENT_FAILURE,
                 "execute() returned %d without a reason: end with CB_DONE, fail with "
                 "cb_business_failure()",
                 (int)flow);
    if (why == FORWARD && p->replay.left && p->replay.left != LEFT_LOST)
        state_restore(p); /* what the code did after it was told to leave */
    if (why == REBUILD && (!p->replay.left || p->replay.left == LEFT_FRONTIER)) {
        state_restore(p); /* the same: nobody records it any more */
        pass_rest(p);
    }
}
