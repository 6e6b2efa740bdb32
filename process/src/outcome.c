/* How a run ends: the words for it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_build.h"
#include "process_run.h"
#include "utf8.h"

enum {
    LONGEST_ERROR = 1000
};

static void vfail_text(cb_process *p, const char *code, const char *fmt, va_list args)
    CB_PRINTF(3, 0);

static void vfail_text(cb_process *p, const char *code, const char *fmt, va_list args)
{
    char text[LONGEST_ERROR + 1];

    vsnprintf(text, sizeof text, fmt, args); /* the arguments may be the texts we replace */
    utf8_trim(text);
    utf8_repair(text); /* in whatever encoding the code got it */
    char *code_copy = strdup(code);
    if (code_copy)
        utf8_repair(code_copy);
    free(p->outcome.error_code);
    p->outcome.error_code = code_copy;
    record_set_text(&p->outcome.error_message, text);
}

void run_fail_text(cb_process *p, const char *code, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vfail_text(p, code, fmt, args);
    va_end(args);
}

void outcome_done(run_outcome *o)
{
    free(o->step);
    free(o->wait);
    free(o->error_code);
    free(o->error_message);
    cb_process_item_free(o->item);
    commands_drop(&o->commands, 0);
    free(o->commands.items);
    json_object_put(o->cancels);
    json_object_put(o->events);
    *o = (run_outcome){ 0 };
}

cb_flow run_park(cb_process *p, parking_code code, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vfail_text(p, parking_code_names[code], fmt, args);
    va_end(args);
    p->outcome.status = STATUS_WAITING_FOR_TSQ;
    p->outcome.timers = (run_timers){ .wake = WAKE_NEVER };
    return call_leave(p, LEFT_PARKED);
}

void run_event(cb_process *p, const char *event, const char *name, json_object *details_adopted)
{
    json_object *o = json_object_new_object();

    if (!o) {
        json_object_put(details_adopted);
        return;
    }
    put_text(o, "event", event);
    put_text(o, "name", name);
    if (details_adopted)
        put(o, "details", details_adopted);
    json_object_array_add(p->outcome.events, o);
}

void run_stray(cb_process *p, const char *fmt, ...)
{
    va_list args;
    char *text = NULL;

    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) < 0)
        text = NULL;
    va_end(args);
    free(p->guard.stray);
    p->guard.stray = text;
    p->guard.stray_told = false;
}

void run_wait_for(cb_process *p, const record *r)
{
    record_set_text(&p->outcome.wait, r->name);
    record_set_text(&p->outcome.step, r->name);
    p->outcome.timers = (run_timers){ .wake = WAKE_TIMERS,
                                      .timeout_ms = r->timeout_ms,
                                      .timeout_at = r->timeout_at };
}

void run_waited(cb_process *p, record *r)
{
    int64_t ms = run_now_ms(p) - r->since;

    if (r->since > 0 && p->claim.host->waited)
        p->claim.host->waited(p->claim.host_arg, r->kind == KIND_COMMAND, r->name, ms > 0 ? ms : 0);
    r->since = 0;
}

void run_hook(cb_process *p, const char *name, cb_hook_fn *hook)
{
    size_t sent = p->outcome.commands.n;
    size_t told = json_object_array_length(p->outcome.events);
    cb_error e = { 0 };

    if (!hook)
        return;
    p->state.changed = true;
    whereabouts was = function_enter(p, name);
    p->guard.in_hook = true;
    hook(p, p->state.now);
    p->guard.in_hook = false;
    (void)function_return(p, was);
    if (cb_fields_valid(run_type(p)->state, p->state.now, &e)) {
        if (size_state_fits(p))
            return;
        cb_fail(&e, CB_PAYLOAD_TOO_LARGE, "it has %zu bytes", p->size.state);
    }
    run_stray(p, "%s left a state that cannot be kept, so it was undone: %s", name, e.message);
    state_restore(p);
    commands_drop(&p->outcome.commands, sent);
    json_object_array_del_idx(p->outcome.events, told,
                              json_object_array_length(p->outcome.events) - told);
}

void run_end(cb_process *p, process_status status)
{
    p->outcome.status = status;
    record_set_text(&p->outcome.wait, NULL);
    record_set_text(&p->outcome.step, NULL);
    leaving_done(&p->leaving);
    p->outcome.timers = (run_timers){ .wake = WAKE_NEVER };
}

bool run_stay(cb_process *p)
{
    const cb_process_row *row = p->claim.row;
    process_status status = process_status_named(row->status);
    bool sleeps = status == STATUS_WAITING_FOR_TSQ || process_status_is_end(status);

    p->outcome.status = status;
    p->outcome.timers.retry_at = row->retry_ms;
    p->outcome.timers.timeout_at = row->wait_timeout_ms;
    p->outcome.timers.wake = sleeps ? WAKE_NEVER : WAKE_TIMERS;
    return true;
}

cb_flow cb_business_failure(cb_process *p, const char *code, const char *fmt, ...)
{
    va_list args;

    if (!call_is_in_order(p, code ? code : "cb_business_failure"))
        return CB_LEAVE;
    if (p->replay.purpose != FORWARD)
        return call_leave(p, LEFT_FRONTIER);
    va_start(args, fmt);
    vfail_text(p, code && *code ? code : "BUSINESS_FAILURE", fmt, args);
    va_end(args);
    return call_leave(p, LEFT_BUSINESS);
}

const char *cb_process_id(const cb_process *p)
{
    return p->claim.row ? p->claim.row->process_id.text : "";
}
