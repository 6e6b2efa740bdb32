/* Waits: until a condition on the state holds, or a response has come. */
#include <stdio.h>

#include "engine.h"

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
    entry at = call_enter(p, KIND_WAIT, c->name, &r);

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
