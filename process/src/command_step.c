/* Command steps: sent with the settle that suspends, resumed by the reply. One for both ways to
 * write a process; how data is built and taken is the driver's: cb_command_step below, or
 * manager.c. */
#include <stdlib.h>
#include <string.h>

#include "json_build.h"
#include "process_run.h"

void command_route(const cb_process *p, command_call *c)
{
    const cb_step_route *r = types_route(p->types, c->route);
    cb_command_options *o = &c->options;

    if (!r)
        return;
    o->domain = r->domain ? r->domain : o->domain;
    o->command_type = r->command_type ? r->command_type : o->command_type;
    o->timeout_seconds = r->timeout_seconds > 0 ? r->timeout_seconds : o->timeout_seconds;
    o->max_attempts = r->max_attempts > 0 ? r->max_attempts : o->max_attempts;
    o->wait_timeout_ms = r->wait_timeout_ms != 0 ? r->wait_timeout_ms : o->wait_timeout_ms;
}

/* 0: until the deadline of the process, if it has one. The type's timeout is for its responses: a
 * queue that is deep slows processes down, it does not end them. */
static int64_t wait_ms(const command_call *c)
{
    return c->options.wait_timeout_ms > 0 ? c->options.wait_timeout_ms : 0;
}

static cb_flow wait_for_reply(cb_process *p, const record *r)
{
    p->outcome.status = type_reply_status(run_type(p));
    run_wait_for(p, r);
    return call_leave(p, LEFT_WAITING);
}

static cb_flow send(cb_process *p, record *r, const command_call *c)
{
    const cb_command_options *o = &c->options;
    cb_error e = { .message = "its function refused" };
    json_object *data;

    if (!o->domain || !o->command_type)
        return run_park(p, PARKED_PERMANENT_FAILURE,
                        "command step '%s' has no destination: set command-steps.%s.domain "
                        "and .command-type, then retry",
                        c->name, c->name);
    if (!(data = c->form->request(p, c, &e)))
        return run_park(p, PARKED_PERMANENT_FAILURE,
                        "the request of command step '%s' cannot be built: %s", c->name, e.message);
    if (!record_set_text(&r->domain, o->domain) ||
        !record_set_text(&r->command_type, o->command_type) ||
        !command_send(p, r, "command", data, o->max_attempts, o->timeout_seconds))
        return run_park(p, PARKED_PERMANENT_FAILURE, "out of memory for command step '%s'",
                        c->name);
    record_set_timeout(r, wait_ms(c));
    return wait_for_reply(p, r);
}

static bool is_undone(const command_call *c)
{
    return c->options.compensate || c->options.compensate_command;
}

static void register_compensation(cb_process *p, const record *r, const command_call *c)
{
    if (is_undone(c))
        compensation_register(p, r, c->options.compensate, &(cb_step_options){ 0 });
}

/* The code cannot take what has come: the record stays open and the reply where it is, for better
 * code. */
static cb_flow not_taken(cb_process *p, const record *r, const char *what, const cb_error *e)
{
    state_restore(p);
    return run_park(p, PARKED_PERMANENT_FAILURE,
                    "command step '%s': %s: %s; command %s is COMPLETED", r->name, what, e->message,
                    r->command_id.text);
}

static cb_flow succeeded(cb_process *p, record *r, const command_call *c, const inbox_item *reply)
{
    cb_error e = { .message = "its function refused" };

    json_object_put(r->result);
    r->result = json_object_get(reply_result(reply));
    if (!c->form->take(p, c, r->result, &e)) {
        state_restore(p);
        /* On the way back it is not the result that counts, but that there is something to undo. */
        if (p->replay.purpose != REBUILD)
            return not_taken(p, r, "the code refused its result", &e);
    }
    OWNED(json_object) undo = is_undone(c) ? c->form->undo(p, c, r, &e) : NULL;
    if (is_undone(c) && !undo)
        return not_taken(p, r, "its compensation cannot be built", &e);
    if ((undo && !size_add_value(p, undo)) || !call_complete(p, r)) {
        record_drop_result(r); /* parked; the reply is there for the retry */
        return CB_LEAVE;
    }
    r->compensation = json_object_take(&undo);
    run_waited(p, r);
    command_consume(p, r);
    register_compensation(p, r, c);
    return p->replay.left ? CB_LEAVE : CB_NEXT;
}

/* ---- failures ---- */

/* The code of a record whose timeout the code would take. */
#define TIMED_OUT parking_code_names[PARKED_COMMAND_STEP_TIMEOUT]

static catcher catcher_of(const command_call *c)
{
    return (catcher){ c->options.catch, c->step };
}

/* What its handler, or whoever gave up on it, has said. */
static json_object *failure_of_error(const cb_process *p, const inbox_item *reply)
{
    const char *type = reply_text(reply, "error_type"), *code = reply_text(reply, "error_code");
    cb_failure_kind kind = type && strcmp(type, "BUSINESS_RULE") == 0 ? CB_FAILURE_BUSINESS_RULE
                           : type && strcmp(type, "TRANSIENT") == 0   ? CB_FAILURE_EXHAUSTED
                                                                    : failure_of_permanent(p, code);

    return failure_new(kind, code ? code : "FAILED", reply_text(reply, "error_message"),
                       reply->payload);
}

static json_object *failure_of_timeout(const inbox_item *reply)
{
    return failure_new(CB_FAILURE_TIMEOUT, TIMED_OUT, "there was no final reply in time",
                       reply ? reply->payload : NULL);
}

/* Of a final reply without a success. */
static json_object *failure_of_reply(const cb_process *p, const inbox_item *reply)
{
    if (reply_is_our_cancel(reply))
        return failure_of_timeout(reply);
    if (reply->outcome == REPLY_CANCELED && !reply_is_of_failure(reply))
        return failure_new(CB_FAILURE_CANCELED, "CANCELED", reply_text(reply, "reason"),
                           reply->payload);
    return failure_of_error(p, reply);
}

/* It has timed out, its code would take that, and it was asked to be canceled: its final reply
 * decides. */
static bool is_given_up(const record *r)
{
    return parking_code_named(r->error_code) == PARKED_COMMAND_STEP_TIMEOUT;
}

/* Nobody takes it: the business says no, or a person looks at it. */
static cb_flow not_caught(cb_process *p, const record *r, const cb_caught *failure, verdict said)
{
    bool undo = failure->kind == CB_FAILURE_BUSINESS_RULE || failure->kind == CB_FAILURE_CANCELED;

    if (undo && said == LEAVE_IT) {
        run_fail_text(p, r->error_code, "%s", failure->message);
        return call_leave(p, LEFT_BUSINESS);
    }
    return run_park(p,
                    failure->kind == CB_FAILURE_TIMEOUT ? PARKED_COMMAND_STEP_TIMEOUT
                                                        : PARKED_PERMANENT_FAILURE,
                    "command step '%s': command %s failed: %s: %s", r->name, r->command_id.text,
                    failure->code, *failure->message ? failure->message : "no message");
}

/* The command has ended without a success. */
static cb_flow ended(cb_process *p, record *r, const command_call *c, inbox_item *reply)
{
    OWNED(json_object) failure = failure_of_reply(p, reply);
    catcher by = catcher_of(c);
    verdict said = LEAVE_IT;
    bool again = reply_is_our_cancel(reply) && !is_given_up(r);

    run_waited(p, r);
    if (!failure)
        return run_park(p, PARKED_PERMANENT_FAILURE, "out of memory for command step '%s'",
                        c->name);
    if (p->replay.purpose == FORWARD && !again && failure_is_known(failure_text(failure, "code")))
        said = failure_ask(p, &by, failure);
    if (said == TAKE_IT) {
        cb_flow flow = failure_take(p, r, &by, failure);
        if (flow == CB_NEXT)
            command_consume(p, r); /* else parked; the reply is there for the retry */
        return flow;
    }
    cb_caught view = failure_view(failure);
    r->status = p->replay.purpose == FORWARD ? RECORD_FAILED : RECORD_ABANDONED;
    r->dirty = true;
    record_set_text(&r->error_code, view.kind == CB_FAILURE_TIMEOUT ? "CANCELED" : view.code);
    record_set_text(&r->error_message, view.kind == CB_FAILURE_TIMEOUT ? reply_text(reply, "reason")
                                       : *view.message                 ? view.message
                                                                       : NULL);
    command_consume(p, r);
    if (p->replay.purpose != FORWARD)
        return call_leave(p, LEFT_FRONTIER);
    if (again)
        return send(p, r, c); /* it timed out, and an operator wants it tried again */
    return not_caught(p, r, &view, said);
}

/* `code` is why, or NULL: its reply has not come. */
static cb_flow in_tsq(cb_process *p, const record *r, const command_call *c, const char *code)
{
    run_wait_for(p, r);
    return run_park(p, PARKED_COMMAND_IN_TSQ,
                    "command step '%s': command %s of domain '%s' is in the troubleshooting queue: "
                    "%s",
                    c->name, r->command_id.text, r->domain, code ? code : "");
}

static bool is_overdue(const cb_process *p, const record *r)
{
    return r->timeout_at > 0 && run_now_ms(p) >= r->timeout_at;
}

/* For what was just asked for: nothing else would wake it if that were lost. The record keeps
 * its own timeout. */
static cb_flow wait_for_answer(cb_process *p, const record *r)
{
    cb_flow flow = wait_for_reply(p, r);
    int64_t left = r->timeout_at - run_now_ms(p);

    if (left <= 0 || left > lost_reply_ms) {
        p->outcome.timers.timeout_at = 0;
        p->outcome.timers.timeout_ms = lost_reply_ms;
    }
    return flow;
}

/* In the troubleshooting queue an operator may still complete or retry it. So before its failure
 * is taken the command is ended there; whoever decides first wins, and its final reply tells who
 * that was. */
static cb_flow failed_for_now(cb_process *p, record *r, const command_call *c, inbox_item *reply)
{
    const char *code = reply_text(reply, "error_code");
    OWNED(json_object) failure = failure_is_known(code) ? failure_of_error(p, reply) : NULL;
    catcher by = catcher_of(c);
    verdict said = failure ? failure_ask(p, &by, failure) : PARK_IT;
    bool declined = failure && failure_view(failure).kind == CB_FAILURE_BUSINESS_RULE;

    command_consume(p, r);
    if (said == PARK_IT || (said == LEAVE_IT && !declined))
        return in_tsq(p, r, c, code);
    command_end_failed(p, r, reply);
    return wait_for_answer(p, r);
}

static cb_flow timed_out(cb_process *p, record *r, const command_call *c)
{
    catcher by = catcher_of(c);
    OWNED(json_object) failure = failure_may_be_taken(p, &by) ? failure_of_timeout(NULL) : NULL;

    command_cancel(p, r);
    if (is_given_up(r)) {
        run_wait_for(p, r);
        return run_park(p, PARKED_OUTCOME_UNKNOWN,
                        "the outcome of command step '%s', command %s, is unknown: it was "
                        "received, but sent no final reply in time",
                        c->name, r->command_id.text);
    }
    run_event(p, "WAIT_TIMEOUT", c->name, NULL);
    if (failure && failure_ask(p, &by, failure) == TAKE_IT) {
        record_set_text(&r->error_code, TIMED_OUT);
        record_set_timeout(r, outcome_wait_ms);
        return wait_for_reply(p, r);
    }
    run_wait_for(p, r);
    return run_park(p, PARKED_COMMAND_STEP_TIMEOUT,
                    "command step '%s' got no final reply in time from command %s", c->name,
                    r->command_id.text);
}

/* Whether somebody may want to know what its command in the troubleshooting queue said. */
static bool asks_for_failures(const cb_process *p, const command_call *c)
{
    catcher by = catcher_of(c);

    return run_type(p)->classify || failure_may_be_taken(p, &by);
}

static cb_flow still_out(cb_process *p, record *r, const command_call *c)
{
    if (p->replay.purpose != FORWARD)
        return call_leave(p, LEFT_FRONTIER);
    bool overdue = is_overdue(p, r);
    if (overdue && command_has_ended(r)) {
        command_await_lost(p, r);
        return wait_for_reply(p, r);
    }
    if (command_is_in_tsq(r, NULL) && asks_for_failures(p, c)) {
        command_cancel(p, r); /* brings the reply that was lost */
        return wait_for_answer(p, r);
    }
    if (overdue && command_is_in_tsq(r, NULL))
        return in_tsq(p, r, c, NULL);
    if (overdue)
        return timed_out(p, r, c);
    if (r->timeout_at == 0 && r->timeout_ms == 0 && wait_ms(c) > 0)
        record_set_timeout(r, wait_ms(c)); /* an operator has given it new time */
    return wait_for_reply(p, r);
}

static cb_flow look_for_reply(cb_process *p, record *r, const command_call *c)
{
    bool final;
    inbox_item *reply = command_reply(p, r, &final);

    if (!reply)
        return still_out(p, r, c);
    if (final && reply->outcome == REPLY_SUCCESS) {
        r->dirty = true;
        return succeeded(p, r, c, reply);
    }
    if (final)
        return ended(p, r, c, reply);
    if (p->replay.purpose != FORWARD)
        return call_leave(p, LEFT_FRONTIER);
    if (command_is_in_tsq(r, reply))
        return failed_for_now(p, r, c, reply);
    command_consume(p, r);
    return still_out(p, r, c);
}

cb_flow command_step(cb_process *p, command_call *c)
{
    record *r = NULL;
    call_entry at = call_enter(p, KIND_COMMAND, c->name, &r);

    if (at == REFUSED)
        return CB_LEAVE;
    if (at == PASSED) {
        catcher by = catcher_of(c);
        register_compensation(p, r, c);
        return failure_pass(p, r, &by);
    }
    command_route(p, c);
    if (at == OPEN && r->status == RECORD_WAITING)
        return look_for_reply(p, r, c);
    if (p->replay.purpose != FORWARD)
        return call_leave(p, LEFT_FRONTIER);
    r = call_open(p, r, KIND_COMMAND, c->name);
    return r ? send(p, r, c) : CB_LEAVE;
}

/* ---- cb_command_step: by functions of JSON ---- */

/* Calls one of the functions that build data; NULL when it refuses. */
static json_object *build(cb_process *p, cb_request_fn *request, const char *name)
{
    json_object *data = json_object_new_object();

    if (!data || !request)
        return data;
    whereabouts was = function_enter(p, name);
    bool built = request(p->state.now, data);
    if (!function_return(p, was) && built)
        return data;
    json_object_put(data);
    return NULL;
}

static json_object *request_by_function(cb_process *p, const command_call *c, cb_error *e)
{
    (void)e;
    return build(p, c->options.request, c->name);
}

static bool take_by_function(cb_process *p, const command_call *c, json_object *result, cb_error *e)
{
    (void)e;
    whereabouts was = function_enter(p, c->name);
    bool taken = !c->options.take || c->options.take(p->state.now, result);
    return !function_return(p, was) && taken;
}

/* What undoes it, with its data: decided now that its result is known. NULL: cannot be built. */
static json_object *undo_by_function(cb_process *p, const command_call *c, const record *r,
                                     cb_error *e)
{
    (void)e;
    const cb_command_options *o = &c->options;
    json_object *undo = json_object_new_object(), *data;

    if (!undo || o->compensate) {
        if (undo)
            put(undo, "inline", json_object_new_boolean(true));
        return undo;
    }
    data = o->compensate_request ? build(p, o->compensate_request, c->name)
           : json_object_is_type(r->result, json_type_object) ? json_object_get(r->result)
                                                              : json_object_new_object();
    if (!data) {
        json_object_put(undo);
        return NULL;
    }
    put_text(undo, "domain", r->domain);
    put_text(undo, "command_type", o->compensate_command);
    put(undo, "data", data);
    return undo;
}

cb_flow cb_command_step_with(cb_process *p, const char *name, const cb_command_options *options)
{
    static const command_form by_functions = { request_by_function, take_by_function,
                                               undo_by_function };
    command_call c = { .name = name, .route = name, .options = *options, .form = &by_functions };

    return command_step(p, &c);
}
