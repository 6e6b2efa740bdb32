/* Command steps: sent with the settle that suspends, resumed by the reply. One for both ways to write a
 * process; how data is built and taken is the driver's: cb_command_step below, or manager.c. */
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "json_build.h"
#include "size.h"

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

/* 0: until the deadline of the process, if it has one. The type's timeout is for its responses: a queue that
 * is deep slows processes down, it does not end them. */
static int64_t wait_ms(const command_call *c)
{
    return c->options.wait_timeout_ms > 0 ? c->options.wait_timeout_ms : 0;
}

static cb_flow wait_for_reply(cb_process *p, const record *r)
{
    p->status = type_reply_status(p->type->type);
    run_wait_for(p, r);
    return call_leave(p, LEFT_WAITING);
}

static cb_flow send(cb_process *p, record *r, const command_call *c)
{
    const cb_command_options *o = &c->options;
    cb_error e = { .message = "its function refuses" };
    json_object *data;

    if (!o->domain || !o->command_type)
        return run_park(p, "PERMANENT_FAILURE",
                        "command step '%s' does not know where to go: set command-steps.%s.domain "
                        "and .command-type, then retry",
                        c->name, c->name);
    if (!(data = c->form->request(p, c, &e)))
        return run_park(p, "PERMANENT_FAILURE",
                        "the request of command step '%s' cannot be built: %s", c->name, e.message);
    if (!record_set_text(&r->domain, o->domain) ||
        !record_set_text(&r->command_type, o->command_type) ||
        !command_send(p, r, "command", data, o->max_attempts, o->timeout_seconds))
        return run_park(p, "PERMANENT_FAILURE", "no memory for command step '%s'", c->name);
    record_set_timeout(r, wait_ms(c));
    return wait_for_reply(p, r);
}

static bool is_undone(const command_call *c)
{
    return c->options.compensate || c->options.compensate_command;
}

static void register_owed(cb_process *p, const record *r, const command_call *c)
{
    if (is_undone(c))
        saga_owe(p, r, c->options.compensate, &(cb_step_options){ 0 });
}

/* The code cannot take what has come: the record stays open and the reply where it is, for better code. */
static cb_flow not_taken(cb_process *p, const record *r, const char *what, const cb_error *e)
{
    state_restore(p);
    return run_park(p, "PERMANENT_FAILURE", "command step '%s': %s: %s; command %s is COMPLETED",
                    r->name, what, e->message, r->command_id.text);
}

static cb_flow succeeded(cb_process *p, record *r, const command_call *c, const inbox_item *reply)
{
    cb_error e = { .message = "its function refuses" };

    json_object_put(r->result);
    r->result = json_object_get(reply_result(reply));
    if (!c->form->take(p, c, r->result, &e)) {
        state_restore(p);
        /* On the way back it is not the result that counts, but that there is something to undo. */
        if (p->purpose != REBUILD)
            return not_taken(p, r, "its result is not what the code takes", &e);
    }
    OWNED(json_object) owes = is_undone(c) ? c->form->undo(p, c, r, &e) : NULL;
    if (is_undone(c) && !owes)
        return not_taken(p, r, "what undoes it cannot be built", &e);
    if ((owes && !size_add_value(p, owes)) || !call_complete(p, r)) {
        record_drop_result(r); /* parked; the reply is there for the retry */
        return CB_LEAVE;
    }
    r->owes = json_object_take(&owes);
    run_waited(p, r);
    command_consume(p, r);
    register_owed(p, r, c);
    return p->left ? CB_LEAVE : CB_NEXT;
}

/* The command has ended without a success. */
static cb_flow ended(cb_process *p, record *r, const command_call *c, inbox_item *reply)
{
    const char *code = reply_text(reply, "error_code"), *type = reply_text(reply, "error_type");
    const char *message = reply_text(reply, "error_message"), *reason = reply_text(reply, "reason");
    bool canceled = strcmp(reply->name, "CANCELED") == 0;

    run_waited(p, r);
    r->status = RECORD_FAILED;
    r->dirty = true;
    record_set_text(&r->error_code, canceled ? "CANCELED" : code ? code : "FAILED");
    record_set_text(&r->error_message, canceled ? reason : message);
    command_consume(p, r);
    if (p->purpose != FORWARD) {
        r->status = RECORD_ABANDONED;
        return call_leave(p, LEFT_FRONTIER);
    }
    if (canceled && reply_is_our_cancel(reply))
        return send(p, r, c); /* it timed out, and an operator wants it tried again */
    if (canceled || (type && strcmp(type, "BUSINESS_RULE") == 0)) {
        run_fail_text(p, r->error_code, "%s", r->error_message ? r->error_message : "");
        return call_leave(p, LEFT_BUSINESS);
    }
    return run_park(p, "PERMANENT_FAILURE", "command step '%s': command %s failed: %s: %s", c->name,
                    r->command_id.text, r->error_code, message ? message : "no message");
}

/* `code` is why, or NULL: its reply has not come. */
static cb_flow in_tsq(cb_process *p, const record *r, const command_call *c, const char *code)
{
    run_wait_for(p, r);
    return run_park(p, "COMMAND_IN_TSQ",
                    "command step '%s': command %s of domain '%s' is in the troubleshooting queue: "
                    "%s",
                    c->name, r->command_id.text, r->domain, code ? code : "");
}

static cb_flow still_out(cb_process *p, record *r, const command_call *c)
{
    if (p->purpose != FORWARD)
        return call_leave(p, LEFT_FRONTIER);
    bool overdue = r->timeout_at > 0 && run_now_ms(p) >= r->timeout_at;
    if (overdue && command_has_ended(r)) {
        command_await_lost(p, r);
        return wait_for_reply(p, r);
    }
    if (overdue && command_is_in_tsq(r, NULL))
        return in_tsq(p, r, c, NULL);
    if (overdue) {
        command_cancel(p, r);
        run_event(p, "WAIT_TIMEOUT", c->name, NULL);
        run_wait_for(p, r);
        return run_park(p, "COMMAND_STEP_TIMEOUT",
                        "command step '%s' got no final reply in time from command %s", c->name,
                        r->command_id.text);
    }
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
    if (final && strcmp(reply->name, "SUCCESS") == 0) {
        r->dirty = true;
        return succeeded(p, r, c, reply);
    }
    if (final)
        return ended(p, r, c, reply);
    if (p->purpose != FORWARD)
        return call_leave(p, LEFT_FRONTIER);
    command_consume(p, r);
    if (!command_is_in_tsq(r, reply))
        return still_out(p, r, c);
    return in_tsq(p, r, c, reply_text(reply, "error_code"));
}

cb_flow command_step(cb_process *p, command_call *c)
{
    record *r = NULL;
    entry at = call_enter(p, KIND_COMMAND, c->name, &r);

    if (at == REFUSED)
        return CB_LEAVE;
    if (at == PASSED) {
        register_owed(p, r, c);
        return CB_NEXT;
    }
    command_route(p, c);
    if (at == OPEN && r->status == RECORD_WAITING)
        return look_for_reply(p, r, c);
    if (p->purpose != FORWARD)
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
    bool built = request(p->state, data);
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
    bool taken = !c->options.take || c->options.take(p->state, result);
    return !function_return(p, was) && taken;
}

/* What undoes it, with its data: decided now that its result is known. NULL: cannot be built. */
static json_object *undo_by_function(cb_process *p, const command_call *c, const record *r,
                                     cb_error *e)
{
    (void)e;
    const cb_command_options *o = &c->options;
    json_object *owes = json_object_new_object(), *data;

    if (!owes || o->compensate) {
        if (owes)
            put(owes, "inline", json_object_new_boolean(true));
        return owes;
    }
    data = o->compensate_request ? build(p, o->compensate_request, c->name)
           : json_object_is_type(r->result, json_type_object) ? json_object_get(r->result)
                                                              : json_object_new_object();
    if (!data) {
        json_object_put(owes);
        return NULL;
    }
    put_text(owes, "domain", r->domain);
    put_text(owes, "command_type", o->compensate_command);
    put(owes, "data", data);
    return owes;
}

cb_flow cb_command_step_with(cb_process *p, const char *name, const cb_command_options *options)
{
    static const command_form by_functions = { request_by_function, take_by_function,
                                               undo_by_function };
    command_call c = { .name = name, .route = name, .options = *options, .form = &by_functions };

    return command_step(p, &c);
}
