/* Undoing: what the records owe, in reverse order, one at a time. */
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "json_build.h"

void saga_owe(cb_process *p, const record *r, cb_step_fn *run, const cb_step_options *options)
{
    if (!r->owes)
        return;
    if (p->replay.compensations.n == p->replay.compensations.room) {
        size_t room = p->replay.compensations.room ? 2 * p->replay.compensations.room : 16;
        owed *more = realloc(p->replay.compensations.items, room * sizeof *more);
        if (!more) {
            run_park(p, PARKED_PERMANENT_FAILURE, "no memory for what it owes");
            return;
        }
        p->replay.compensations.items = more;
        p->replay.compensations.room = room;
    }
    p->replay.compensations.items[p->replay.compensations.n++] =
        (owed){ r->ordinal, run, *options };
}

static const owed *find_owed(const cb_process *p, int ordinal)
{
    for (size_t i = p->replay.compensations.n; i > 0; i--) {
        if (p->replay.compensations.items[i - 1].ordinal == ordinal)
            return &p->replay.compensations.items[i - 1];
    }
    return NULL;
}

/* The compensation of a record, begun or done; NULL: not begun. */
static record *payment_of(cb_process *p, int ordinal)
{
    for (size_t i = p->history.n; i > 0; i--) {
        record *r = &p->history.records[i - 1];
        if (r->kind == KIND_COMPENSATION && r->during == ordinal)
            return r;
    }
    return NULL;
}

/* The compensation that was begun and has no end: its ordinal, or 0. */
static int open_payment(const cb_process *p)
{
    for (size_t i = p->history.n; i > 0; i--) {
        const record *r = &p->history.records[i - 1];
        if (r->kind == KIND_COMPENSATION)
            return record_is_open(r) ? r->ordinal : 0;
    }
    return 0;
}

static record *last_unpaid(cb_process *p)
{
    for (size_t i = p->history.n; i > 0; i--) {
        record *r = &p->history.records[i - 1];
        if (!r->owes || r->status != RECORD_COMPLETED || r->kind == KIND_COMPENSATION)
            continue;
        const record *payment = payment_of(p, r->ordinal);
        if (!payment || payment->status != RECORD_COMPLETED)
            return r;
    }
    return NULL;
}

static bool is_inline(const record *r)
{
    return json_object_object_get_ex(r->owes, "inline", NULL);
}

/* The list that replay has built and the list of the records must be the same. */
bool saga_agrees(cb_process *p)
{
    size_t owing = 0;

    for (size_t i = 0; i < p->history.n; i++) {
        const record *r = &p->history.records[i];
        if (!r->owes || r->kind == KIND_COMPENSATION || r->status != RECORD_COMPLETED)
            continue;
        const owed *o = find_owed(p, r->ordinal);
        if (!o || is_inline(r) != (o->run != NULL)) {
            run_park(p, PARKED_NON_DETERMINISTIC,
                     "record %d, '%s', owes a compensation that the code does not have", r->ordinal,
                     r->name);
            return false;
        }
        owing++;
    }
    if (owing != p->replay.compensations.n) {
        run_park(p, PARKED_NON_DETERMINISTIC,
                 "the code would undo %zu records, but %zu owe something",
                 p->replay.compensations.n, owing);
        return false;
    }
    return true;
}

static cb_flow failed(cb_process *p, const record *payment, const char *why)
{
    record_set_text(&p->outcome.step, payment->name);
    return run_park(p, PARKED_COMPENSATION_FAILED, "the compensation of '%s' failed: %s: %s",
                    payment->name, payment->error_code ? payment->error_code : "",
                    payment->error_message ? payment->error_message : why);
}

/* ---- by a function ---- */

/* True: paid, the next one. */
static bool pay_inline(cb_process *p, record *payment, const owed *o)
{
    cb_step_options options = o->options;
    int ordinal = payment->ordinal;

    options.local = false;
    options.compensate = NULL;
    if (step_is_exhausted_by_crash(payment, &options)) {
        failed(p, payment, "it was begun, and nobody knows how it ended");
        return false;
    }
    tried how = step_try(p, ordinal, o->run, &options, "compensate");
    payment = run_at(p, ordinal);
    switch (how) {
    case TRIED_DONE:
        return true;
    case TRIED_AGAIN:
        p->outcome.timers.wake = WAKE_TIMERS;
        record_set_text(&p->outcome.step, payment->name);
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
    failed(p, payment, "no message");
    return false;
}

/* ---- by a command ---- */

static void wait_for_payment(cb_process *p, const record *payment)
{
    run_wait_for(p, payment);
    p->outcome.status = STATUS_COMPENSATING;
}

/* What a record owes, member by member; 0 for a number that was not said. */
static json_object *member(const record *r, const char *key)
{
    json_object *value = NULL;

    json_object_object_get_ex(r->owes, key, &value);
    return value;
}

/* 0: without end. A queue that is only deep is no reason to ask a person to undo it. */
static int64_t wait_ms(const record *r)
{
    return json_object_get_int64(member(r, "wait_timeout_ms"));
}

static void send_payment(cb_process *p, record *payment, const record *r)
{
    if (!record_set_text(&payment->domain, json_object_get_string(member(r, "domain"))) ||
        !record_set_text(&payment->command_type,
                         json_object_get_string(member(r, "command_type"))) ||
        !command_send(p, payment, "compensate", json_object_get(member(r, "data")),
                      json_object_get_int(member(r, "max_attempts")),
                      json_object_get_int(member(r, "timeout_seconds")))) {
        failed(p, payment, "no memory");
        return;
    }
    record_set_timeout(payment, wait_ms(r));
    wait_for_payment(p, payment);
}

static void take_error(record *payment, const inbox_item *reply)
{
    bool canceled = reply->outcome == REPLY_CANCELED;

    record_set_text(&payment->error_code, canceled ? "CANCELED" : reply_text(reply, "error_code"));
    record_set_text(&payment->error_message,
                    reply_text(reply, canceled ? "reason" : "error_message"));
    payment->dirty = true;
}

static void payment_is_out(cb_process *p, record *payment, const record *r)
{
    bool overdue = payment->timeout_at > 0 && run_now_ms(p) >= payment->timeout_at;
    if (overdue && command_has_ended(payment)) {
        command_await_lost(p, payment);
    } else if (overdue) {
        failed(p, payment, "its command has sent no final reply in time");
        return;
    }
    if (payment->timeout_at == 0 && payment->timeout_ms == 0 && wait_ms(r) > 0)
        record_set_timeout(payment, wait_ms(r)); /* new time, by an operator */
    wait_for_payment(p, payment);
}

/* True: paid, the next one. */
static bool pay_by_command(cb_process *p, record *payment, const record *r)
{
    bool final;

    if (payment->status != RECORD_WAITING) {
        send_payment(p, payment, r);
        return false;
    }
    inbox_item *reply = command_reply(p, payment, &final);
    if (reply && !final && !command_is_in_tsq(payment, reply)) {
        command_consume(p, payment);
        reply = NULL;
    }
    if (!reply) {
        payment_is_out(p, payment, r);
        return false;
    }
    if (final && reply->outcome == REPLY_SUCCESS) {
        json_object_put(payment->result);
        payment->result = json_object_get(reply_result(reply));
        if (run_type(p)->manager)
            manager_take_undone(p, r->owes, payment->result);
        if (!call_complete(p, payment)) {
            record_drop_result(payment); /* parked; the reply is there for the retry */
            return false;
        }
        command_consume(p, payment);
        return true;
    }
    take_error(payment, reply);
    command_consume(p, payment);
    if (final)
        payment->status = RECORD_FAILED;
    run_wait_for(p, payment);
    failed(p, payment, final ? "no message" : "its command is in the troubleshooting queue");
    return false;
}

/* ---- all of them ---- */

static bool pay(cb_process *p, record *r)
{
    int ordinal = r->ordinal;
    record *payment = payment_of(p, ordinal);

    if (!payment) {
        payment = run_append(p, KIND_COMPENSATION, r->name); /* moves r */
        if (!payment) {
            run_park(p, PARKED_COMPENSATION_FAILED, "no memory");
            return false;
        }
        payment->status = RECORD_RETRY;
        payment->during = ordinal;
    }
    r = run_at(p, ordinal);
    return is_inline(r) ? pay_inline(p, payment, find_owed(p, ordinal))
                        : pay_by_command(p, payment, r);
}

bool saga_go_on(cb_process *p)
{
    record *r;

    p->outcome.phase = PHASE_COMPENSATING;
    p->outcome.status = STATUS_COMPENSATING;
    p->replay.left = NOT_LEFT;
    p->outcome.timers.retry_ms = p->outcome.timers.retry_at = 0;
    leaving_tell(p);
    record_set_text(&p->outcome.wait, NULL);
    if (!saga_agrees(p))
        return true;
    responses_take(p, open_payment(p));
    while (!p->replay.left && (r = last_unpaid(p))) {
        if (!pay(p, r))
            return true;
    }
    if (p->replay.left)
        return true;
    const cb_process_type *type = run_type(p);
    bool canceled = p->leaving.end == STATUS_CANCELED;
    run_hook(p, canceled ? "on_canceled" : "on_compensated",
             canceled ? type->on_canceled : type->on_compensated);
    run_end(p, canceled ? STATUS_CANCELED : STATUS_COMPENSATED);
    return true;
}
