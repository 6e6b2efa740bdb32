/* Compensation: undoing what has completed, in reverse order, one record at a time. What undoes a
 * record is stored with it when it completes; its compensation is a record of its own, of the same
 * name. */
#include <stdlib.h>
#include <string.h>

#include "json_build.h"
#include "process_run.h"

void compensation_register(cb_process *p, const record *r, cb_step_fn *run,
                           const cb_step_options *options)
{
    compensation_list *list = &p->replay.compensations;

    if (!r->compensation)
        return;
    if (list->n == list->room) {
        size_t room = list->room ? 2 * list->room : 16;
        compensation_call *more = realloc(list->items, room * sizeof *more);
        if (!more) {
            run_park(p, PARKED_PERMANENT_FAILURE, "out of memory for its compensations");
            return;
        }
        list->items = more;
        list->room = room;
    }
    list->items[list->n++] = (compensation_call){ r->ordinal, run, *options };
}

/* NULL: the code does not undo the record. */
static const compensation_call *find_registered(const cb_process *p, int ordinal)
{
    const compensation_list *list = &p->replay.compensations;

    for (size_t i = list->n; i > 0; i--) {
        if (list->items[i - 1].ordinal == ordinal)
            return &list->items[i - 1];
    }
    return NULL;
}

/* The compensation of a record, begun or done; NULL: not begun. */
static record *compensation_of(cb_process *p, int ordinal)
{
    for (size_t i = p->history.n; i > 0; i--) {
        record *r = &p->history.records[i - 1];
        if (r->kind == KIND_COMPENSATION && r->during == ordinal)
            return r;
    }
    return NULL;
}

/* The compensation that was begun and has no end: its ordinal, or 0. */
static int open_compensation(const cb_process *p)
{
    for (size_t i = p->history.n; i > 0; i--) {
        const record *r = &p->history.records[i - 1];
        if (r->kind == KIND_COMPENSATION)
            return record_is_open(r) ? r->ordinal : 0;
    }
    return 0;
}

static record *last_uncompensated(cb_process *p)
{
    for (size_t i = p->history.n; i > 0; i--) {
        record *r = &p->history.records[i - 1];
        if (!r->compensation || r->status != RECORD_COMPLETED || r->kind == KIND_COMPENSATION)
            continue;
        const record *undo = compensation_of(p, r->ordinal);
        if (!undo || undo->status != RECORD_COMPLETED)
            return r;
    }
    return NULL;
}

static bool is_inline(const record *r)
{
    return json_object_object_get_ex(r->compensation, "inline", NULL);
}

/* The list that replay has built and the list of the records must be the same. */
bool compensations_agree(cb_process *p)
{
    size_t compensated = 0;

    for (size_t i = 0; i < p->history.n; i++) {
        const record *r = &p->history.records[i];
        if (!r->compensation || r->kind == KIND_COMPENSATION || r->status != RECORD_COMPLETED)
            continue;
        const compensation_call *call = find_registered(p, r->ordinal);
        if (!call || is_inline(r) != (call->run != NULL)) {
            run_park(p, PARKED_NON_DETERMINISTIC,
                     "record %d, '%s', has a compensation that the code does not have", r->ordinal,
                     r->name);
            return false;
        }
        compensated++;
    }
    if (compensated != p->replay.compensations.n) {
        run_park(p, PARKED_NON_DETERMINISTIC,
                 "the code compensates %zu records, but %zu have a compensation",
                 p->replay.compensations.n, compensated);
        return false;
    }
    return true;
}

static cb_flow compensation_failed(cb_process *p, const record *undo, const char *why)
{
    record_set_text(&p->outcome.step, undo->name);
    return run_park(p, PARKED_COMPENSATION_FAILED, "the compensation of '%s' failed: %s: %s",
                    undo->name, undo->error_code ? undo->error_code : "",
                    undo->error_message ? undo->error_message : why);
}

/* ---- by a function ---- */

/* True: it is undone, the next one. */
static bool compensate_by_function(cb_process *p, record *undo, const compensation_call *call)
{
    cb_step_options options = call->options;
    int ordinal = undo->ordinal;

    options.local = false;
    options.compensate = NULL;
    if (step_is_exhausted_by_crash(undo, &options)) {
        compensation_failed(p, undo, "it was started, and its outcome is unknown");
        return false;
    }
    tried how = step_try(p, ordinal, call->run, &options, "compensate");
    undo = run_at(p, ordinal);
    switch (how) {
    case TRIED_DONE:
        return true;
    case TRIED_AGAIN:
        p->outcome.timers.wake = WAKE_TIMERS;
        record_set_text(&p->outcome.step, undo->name);
        return false;
    case TRIED_YIELDED:
        p->outcome.timers.retry_ms = run_is_stopping(p) ? 0 : step_pause_ms;
        p->outcome.timers.wake = p->outcome.timers.retry_ms ? WAKE_TIMERS : WAKE_NOW;
        return false;
    case TRIED_LOST:
        p->replay.left = LEFT_LOST;
        return false;
    case TRIED_DECLINED:
    case TRIED_EXHAUSTED:
    case TRIED_TOO_LATE:
    case TRIED_FAILED:
        break;
    }
    compensation_failed(p, undo, "no message");
    return false;
}

/* ---- by a command ---- */

static void wait_for_compensation(cb_process *p, const record *undo)
{
    run_wait_for(p, undo);
    p->outcome.status = STATUS_COMPENSATING;
}

/* A member of what undoes a record; 0 for a number that was not said. */
static json_object *member(const record *r, const char *key)
{
    json_object *value = NULL;

    json_object_object_get_ex(r->compensation, key, &value);
    return value;
}

/* 0: without end. A queue that is only deep is no reason to ask a person to undo it. */
static int64_t wait_ms(const record *r)
{
    return json_object_get_int64(member(r, "wait_timeout_ms"));
}

static void send_compensation(cb_process *p, record *undo, const record *r)
{
    if (!record_set_text(&undo->domain, json_object_get_string(member(r, "domain"))) ||
        !record_set_text(&undo->command_type, json_object_get_string(member(r, "command_type"))) ||
        !command_send(p, undo, "compensate", json_object_get(member(r, "data")),
                      json_object_get_int(member(r, "max_attempts")),
                      json_object_get_int(member(r, "timeout_seconds")))) {
        compensation_failed(p, undo, "out of memory");
        return;
    }
    record_set_timeout(undo, wait_ms(r));
    wait_for_compensation(p, undo);
}

static void take_error(record *undo, const inbox_item *reply)
{
    bool canceled = reply->outcome == REPLY_CANCELED;

    record_set_text(&undo->error_code, canceled ? "CANCELED" : reply_text(reply, "error_code"));
    record_set_text(&undo->error_message, reply_text(reply, canceled ? "reason" : "error_message"));
    undo->dirty = true;
}

static void await_compensation(cb_process *p, record *undo, const record *r)
{
    bool overdue = undo->timeout_at > 0 && run_now_ms(p) >= undo->timeout_at;
    if (overdue && command_has_ended(undo)) {
        command_await_lost(p, undo);
    } else if (overdue) {
        compensation_failed(p, undo, "its command sent no final reply in time");
        return;
    }
    if (undo->timeout_at == 0 && undo->timeout_ms == 0 && wait_ms(r) > 0)
        record_set_timeout(undo, wait_ms(r)); /* new time, by an operator */
    wait_for_compensation(p, undo);
}

/* True: it is undone, the next one. */
static bool compensate_by_command(cb_process *p, record *undo, const record *r)
{
    bool final;

    if (undo->status != RECORD_WAITING) {
        send_compensation(p, undo, r);
        return false;
    }
    inbox_item *reply = command_reply(p, undo, &final);
    if (reply && !final && !command_is_in_tsq(undo, reply)) {
        command_consume(p, undo);
        reply = NULL;
    }
    if (!reply) {
        await_compensation(p, undo, r);
        return false;
    }
    if (final && reply->outcome == REPLY_SUCCESS) {
        json_object_put(undo->result);
        undo->result = json_object_get(reply_result(reply));
        if (run_type(p)->manager)
            manager_take_undone(p, r->compensation, undo->result);
        if (!call_complete(p, undo)) {
            record_drop_result(undo); /* parked; the reply is there for the retry */
            return false;
        }
        command_consume(p, undo);
        return true;
    }
    take_error(undo, reply);
    command_consume(p, undo);
    if (final)
        undo->status = RECORD_FAILED;
    run_wait_for(p, undo);
    compensation_failed(p, undo,
                        final ? "no message" : "its command is in the troubleshooting queue");
    return false;
}

/* ---- all of them ---- */

static bool compensate_record(cb_process *p, record *r)
{
    int ordinal = r->ordinal;
    record *undo = compensation_of(p, ordinal);

    if (!undo) {
        undo = run_append(p, KIND_COMPENSATION, r->name); /* moves r */
        if (!undo) {
            run_park(p, PARKED_COMPENSATION_FAILED, "out of memory");
            return false;
        }
        undo->status = RECORD_RETRY;
        undo->during = ordinal;
    }
    r = run_at(p, ordinal);
    return is_inline(r) ? compensate_by_function(p, undo, find_registered(p, ordinal))
                        : compensate_by_command(p, undo, r);
}

bool run_compensate(cb_process *p)
{
    record *r;

    p->outcome.phase = PHASE_COMPENSATING;
    p->outcome.status = STATUS_COMPENSATING;
    p->replay.left = NOT_LEFT;
    p->outcome.timers.retry_ms = p->outcome.timers.retry_at = 0;
    leaving_tell(p);
    record_set_text(&p->outcome.wait, NULL);
    if (!compensations_agree(p))
        return false;
    responses_take(p, open_compensation(p));
    while (!p->replay.left && (r = last_uncompensated(p))) {
        if (!compensate_record(p, r))
            return false;
    }
    if (p->replay.left)
        return false;
    const cb_process_type *type = run_type(p);
    bool canceled = p->leaving.end == STATUS_CANCELED;
    run_hook(p, canceled ? "on_canceled" : "on_compensated",
             canceled ? type->on_canceled : type->on_compensated);
    run_end(p, canceled ? STATUS_CANCELED : STATUS_COMPENSATED);
    return true;
}
