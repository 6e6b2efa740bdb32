/* Waits: until a condition on the state holds. */
#include "engine.h"

/* Parks the process if the condition does more than to ask. */
static bool holds(cb_process *p, cb_condition_fn *condition, const char *name)
{
    whereabouts was = function_enter(p, name);
    bool yes = condition(p->state);

    if (!function_return(p, was))
        return yes;
    run_park(p, "PERMANENT_FAILURE", "wait '%s': %s", name, p->stray ? p->stray : "");
    return false;
}

cb_flow cb_wait_with(cb_process *p, const char *name, const cb_wait_options *options)
{
    record *r = NULL;
    entry at = call_enter(p, KIND_WAIT, name, &r);

    if (at == PASSED)
        return CB_NEXT;
    if (at == REFUSED)
        return CB_LEAVE;
    if (p->purpose != FORWARD)
        return call_leave(p, LEFT_FRONTIER);
    r = call_open(p, r, KIND_WAIT, name);
    if (!r)
        return CB_LEAVE;
    if (holds(p, options->condition, r->name))
        return call_complete(p, r) ? CB_NEXT : CB_LEAVE;
    if (p->left)
        return CB_LEAVE;
    r->status = RECORD_WAITING;
    if (r->timeout_at > 0 && run_now_ms(p) >= r->timeout_at) {
        run_event(p, "WAIT_TIMEOUT", name, NULL);
        run_wait_for(p, r);
        return run_park(p, "WAIT_TIMEOUT", "Wait condition '%s' timed out", name);
    }
    if (r->timeout_at == 0)
        r->timeout_ms =
            options->timeout_ms > 0 ? options->timeout_ms : type_wait_timeout_ms(p->type);
    p->status = "WAITING_FOR_ASYNC";
    run_wait_for(p, r);
    return call_leave(p, LEFT_WAITING);
}
