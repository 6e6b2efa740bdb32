/* Waits: until a condition on the state holds, or a response has come. Responses: each a record of
 * its own, applied at the frontier. */
#include <stdio.h>

#include "process_run.h"

/* ---- responses ---- */

/* False: refused by its function, or nobody takes it; the state is as before. */
static bool response_apply(cb_process *p, const inbox_item *item, record *r)
{
    if (run_type(p)->manager)
        return manager_accepts(p, item, r); /* kept for its step */
    cb_response_fn *take = type_response(run_type(p), item->name);

    if (!take) {
        record_set_text(&r->error_code, "UNKNOWN_RESPONSE");
        record_set_text(&r->error_message, "the process type has no response of this name");
        return false;
    }
    cb_error e = { .message = "the response function refused the payload" };
    whereabouts was = function_enter(p, r->name);
    bool taken = take(p->state.now, item->payload);
    if (!function_return(p, was) && taken && cb_fields_valid(run_type(p)->state, p->state.now, &e))
        return true;
    state_restore(p);
    record_set_text(&r->error_code, "RESPONSE_REFUSED");
    record_set_text(&r->error_message, e.message);
    return false;
}

static bool response_skip(record *r)
{
    record_set_text(&r->error_code, "RESPONSE_REFUSED");
    record_set_text(&r->error_message, "the worker that took it did not come back with an outcome");
    return false;
}

/* A record of its own, with what the code had changed before it as its opening. */
static void response_take(cb_process *p, inbox_item *item, int during, bool apply)
{
    json_object *opening = state_take_changes(p);
    record *r = p->replay.left ? NULL : run_append(p, KIND_RESPONSE, item->name);

    if (!r) {
        json_object_put(opening);
        if (!p->replay.left)
            run_park(p, PARKED_PERMANENT_FAILURE, "out of memory for its records");
        return;
    }
    r->opening = opening;
    r->during = during;
    if (item->response_id)
        (void)cb_uuid_parse(item->response_id, &r->response_id);
    r->result = json_object_get(item->payload);
    bool applied = apply ? response_apply(p, item, r) : response_skip(r);
    r->status = applied ? RECORD_COMPLETED : RECORD_FAILED;
    r->patch = state_take_changes(p);
    if (p->replay.left) { /* parked: it is there for the retry */
        record_done(r);
        p->history.n--;
        return;
    }
    item->consumed = true;
    p->replay.cursor = p->history.n;
}

void responses_take(cb_process *p, int during)
{
    p->inbox.responses_taken = true;
    for (size_t i = 0; i < p->inbox.n && !p->replay.left; i++) {
        if (p->inbox.items[i].kind == INBOX_RESPONSE && !p->inbox.items[i].consumed)
            response_take(p, &p->inbox.items[i], during, true);
    }
}

void responses_take_late(cb_process *p, bool apply)
{
    for (size_t i = 0; i < p->inbox.n; i++) {
        inbox_item *item = &p->inbox.items[i];
        if (item->kind != INBOX_RESPONSE || item->consumed)
            continue;
        response_take(p, item, 0, apply);
        if (p->replay
                .left) { /* it would make the process too large, which cannot be parked any more */
            p->replay.left = NOT_LEFT;
            record_set_text(&p->outcome.error_code, p->claim.row->error_code);
            record_set_text(&p->outcome.error_message, p->claim.row->error_message);
            response_take(p, item, 0, false);
        }
        run_event(p, "LATE_ASYNC_RESPONSE", item->name, NULL);
    }
}

/* ---- waits ---- */

static cb_flow timed_out(cb_process *p, record *r, const catcher *by)
{
    OWNED(json_object) failure = NULL;
    char message[300];

    snprintf(message, sizeof message, "Wait condition '%s' timed out", r->name);
    if (failure_may_be_taken(p, by))
        failure =
            failure_new(CB_FAILURE_TIMEOUT, parking_code_names[PARKED_WAIT_TIMEOUT], message, NULL);
    if (failure && failure_ask(p, by, failure) == TAKE_IT)
        return failure_take(p, r, by, failure);
    run_wait_for(p, r);
    return run_park(p, PARKED_WAIT_TIMEOUT, "%s", message);
}

cb_flow wait_step(cb_process *p, const wait_call *c)
{
    record *r = NULL;
    call_entry at = call_enter(p, KIND_WAIT, c->name, &r);

    catcher by = { c->caught, c->step };
    if (at == PASSED)
        return failure_pass(p, r, &by);
    if (at == REFUSED)
        return CB_LEAVE;
    if (p->replay.purpose != FORWARD)
        return call_leave(p, LEFT_FRONTIER);
    r = call_open(p, r, KIND_WAIT, c->name);
    if (!r)
        return CB_LEAVE;
    if (c->holds(p, c, r)) {
        if (!call_complete(p, r))
            return CB_LEAVE;
        run_waited(p, r);
        return CB_NEXT;
    }
    if (p->replay.left)
        return CB_LEAVE;
    r->status = RECORD_WAITING;
    if (r->timeout_at > 0 && run_now_ms(p) >= r->timeout_at) {
        run_event(p, "WAIT_TIMEOUT", c->name, NULL);
        return timed_out(p, r, &by);
    }
    if (r->timeout_at == 0)
        record_set_timeout(r,
                           c->timeout_ms > 0 ? c->timeout_ms : type_wait_timeout_ms(p->claim.type));
    p->outcome.status = STATUS_WAITING_FOR_ASYNC;
    run_wait_for(p, r);
    return call_leave(p, LEFT_WAITING);
}

/* Parks the process if the condition does more than to ask. */
static bool condition_holds(cb_process *p, const wait_call *c, record *r)
{
    whereabouts was = function_enter(p, r->name);
    bool yes = c->condition(p->state.now);

    if (!function_return(p, was))
        return yes;
    run_park(p, PARKED_PERMANENT_FAILURE, "wait '%s': %s", c->name,
             p->guard.stray ? p->guard.stray : "");
    return false;
}

cb_flow cb_wait_with(cb_process *p, const char *name, const cb_wait_options *options)
{
    return wait_step(p, &(wait_call){ .name = name,
                                      .holds = condition_holds,
                                      .condition = options->condition,
                                      .timeout_ms = options->timeout_ms,
                                      .caught = options->catch });
}
