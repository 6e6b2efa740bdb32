/* What a claim is about. A wake-up is only a hint: what is done follows from what is recorded and what has
 * arrived, so that a process woken for nothing goes back to sleep as it was. */
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "json_build.h"

enum {
    MOST_UNSETTLED_CLAIMS = 10
};

/* As it was: nothing but what is already noted changes. */
static void stay(cb_process *p)
{
    p->outcome.status = process_status_named(p->claim.row->status);
    p->outcome.timers.retry_at = p->claim.row->retry_ms;
    p->outcome.timers.timeout_at = p->claim.row->wait_timeout_ms;
    p->outcome.timers.wake =
        p->outcome.status == STATUS_WAITING_FOR_TSQ || process_status_is_end(p->outcome.status)
            ? WAKE_NEVER
            : WAKE_TIMERS;
}

/* ---- forward ---- */

static void complete(cb_process *p)
{
    if (!p->inbox.responses_taken)
        responses_take(p, 0);
    if (p->replay.left || !state_accept(p))
        return;
    run_hook(p, "on_completed", run_type(p)->on_completed);
    p->state.changed = true;
    run_end(p, STATUS_COMPLETED);
}

static void forward(cb_process *p)
{
    p->outcome.status = STATUS_EXECUTING;
    record_set_text(&p->outcome.error_code, NULL);
    record_set_text(&p->outcome.error_message, NULL);
    record_set_text(&p->outcome.wait, NULL);
    run_execute(p, FORWARD);
    switch (p->replay.left) {
    case NOT_LEFT:
        complete(p);
        break;
    case LEFT_YIELDING:
        p->outcome.status = STATUS_PENDING;
        p->outcome.timers.wake = WAKE_NOW;
        break;
    case LEFT_BUSINESS:
        leave_begin(p, LEAVING_TO_COMPENSATE, STATUS_COMPENSATED, p->outcome.error_code,
                    p->outcome.error_message, false);
        break;
    case LEFT_DEADLINE:
        leave_for_deadline(p);
        break;
    case LEFT_FRONTIER: /* a record that was given up: nothing would ever wake it */
        p->replay.left = NOT_LEFT;
        run_park(p, PARKED_NON_DETERMINISTIC, "it was given up before, and cannot go forward");
        break;
    case LEFT_WAITING:
    case LEFT_RETRYING:
    case LEFT_PARKED:
    case LEFT_LOST:
        break;
    }
}

/* Woken too early, or by a worker that died after it had been. */
static bool must_wait_for_retry(const cb_process *p)
{
    return p->claim.row->retry_ms > run_now_ms(p) &&
           (p->outcome.status == STATUS_WAITING_FOR_RETRY ||
            p->outcome.status == STATUS_COMPENSATING || p->outcome.status == STATUS_EXECUTING);
}

static void wait_for_retry(cb_process *p)
{
    stay(p);
    if (p->outcome.status == STATUS_EXECUTING)
        p->outcome.status = STATUS_WAITING_FOR_RETRY;
}

/* The deadline goes before a retry: it would wake the process again at once and for ever. */
static void go_on(cb_process *p)
{
    if (p->leaving.way == LEAVING_NOT && run_is_overdue(p))
        leave_for_deadline(p);
    else if (must_wait_for_retry(p))
        wait_for_retry(p);
    else if (p->leaving.way != LEAVING_NOT)
        leave_go_on(p);
    else
        forward(p);
}

/* ---- the troubleshooting queue ---- */

/* The record whose command it waits for. */
static record *waiting_record(cb_process *p)
{
    for (size_t i = p->history.n; i > 0; i--) {
        record *r = &p->history.records[i - 1];
        if (r->status == RECORD_WAITING && r->command_id.text[0])
            return r;
    }
    return NULL;
}

/* A final reply to what it was parked for goes on without an operator. */
static bool reply_resumes(cb_process *p)
{
    static const bool waits_for_reply[PARKING_CODES + 1] = {
        [PARKED_COMMAND_IN_TSQ] = true,
        [PARKED_COMMAND_STEP_TIMEOUT] = true,
        [PARKED_OUTCOME_UNKNOWN] = true,
        [PARKED_COMPENSATION_FAILED] = true,
    };
    parking_code code = parking_code_named(p->claim.row->error_code);
    const record *r = waiting_record(p);
    bool final = false;
    const inbox_item *reply = r ? command_reply(p, r, &final) : NULL;

    if (!final || (reply_is_our_cancel(reply) && p->leaving.way == LEAVING_NOT &&
                   code != PARKED_OUTCOME_UNKNOWN))
        return false;
    return waits_for_reply[code];
}

static inbox_item *operator_request(cb_process *p)
{
    for (size_t i = 0; i < p->inbox.n; i++) {
        if (p->inbox.items[i].kind == INBOX_OPERATOR && !p->inbox.items[i].consumed)
            return &p->inbox.items[i];
    }
    return NULL;
}

static record *record_request(cb_process *p, inbox_item *request)
{
    record *r = run_append(p, KIND_OPERATOR, request->name);

    request->consumed = true;
    if (!r)
        return NULL;
    r->status = RECORD_COMPLETED;
    r->result = json_object_get(request->payload);
    return r;
}

static bool asked_for(const inbox_item *request, const char *key)
{
    json_object *value = NULL;

    return json_object_object_get_ex(request->payload, key, &value) &&
           json_object_get_boolean(value);
}

/* True when the operator was told that nobody knows how the last attempt ended. Who decides about something
 * else, a deadline or a settle that was refused, has not decided that it may run twice. */
static bool knows_of_lost_attempt(const inbox_item *request)
{
    static const bool tells_of_it[PARKING_CODES + 1] = {
        [PARKED_RETRIES_EXHAUSTED_CRASH_RECOVERY] = true,
        [PARKED_OUTCOME_UNKNOWN] = true,
        [PARKED_COMPENSATION_FAILED] = true,
    };

    return tells_of_it[parking_code_named(reply_text(request, "error_code"))];
}

/* Attempts are counted anew, and a wait gets its whole time again. Who lets a process that leaves go on has found out
 * what became of its step; who has it tried again on the way forward has not. */
static void begin_anew(const cb_process *p, record *r, const inbox_item *request)
{
    if (!r || (r->status == RECORD_STARTED && !knows_of_lost_attempt(request)))
        return;
    r->in_doubt = p->leaving.way != LEAVING_NOT ? r->in_doubt && !knows_of_lost_attempt(request)
                                                : r->in_doubt || r->status == RECORD_STARTED;
    r->attempts = r->kind == KIND_COMMAND || r->command_id.text[0] ? r->attempts : 0;
    record_set_timeout(r, 0); /* whoever waits gives it its time */
    if (r->status == RECORD_WAITING)
        record_set_text(&r->error_code, NULL); /* not given up any more */
    if (r->status == RECORD_STARTED)
        r->status = RECORD_RETRY;
}

static void retry(cb_process *p, inbox_item *request)
{
    record *r = NULL;

    if (!record_request(p, request)) {
        run_park(p, PARKED_PERMANENT_FAILURE, "no memory for its records");
        return;
    }
    for (size_t i = p->history.n; i > 0 && !r; i--) {
        if (p->history.records[i - 1].kind == KIND_COMPENSATION &&
            record_is_open(&p->history.records[i - 1]))
            r = &p->history.records[i - 1];
    }
    begin_anew(p, r ? r : run_open_record(p), request);
    p->outcome.status = STATUS_PENDING;
    go_on(p);
}

/* Whoever cancels or completes has looked: a step whose end nobody knows does not hold it up, nor does a
 * command once its outcome was waited for in vain. */
static bool is_forced(cb_process *p, const inbox_item *request)
{
    parking_code code = parking_code_named(reply_text(request, "error_code"));
    const record *open = run_open_record(p);

    return code == PARKED_OUTCOME_UNKNOWN || (open && open->kind == KIND_STEP);
}

/* A command in the troubleshooting queue was canceled together with the decision: its end is known. */
static void end_canceled(cb_process *p, record *r)
{
    if (!r || r->status != RECORD_WAITING || r->command_status != COMMAND_CANCELED)
        return;
    command_consume(p, r);
    r->status = RECORD_FAILED;
    r->dirty = true;
    record_set_text(&r->error_code, "CANCELED");
    record_set_text(&r->error_message, "canceled with the decision about its process");
}

/* The compensation that is begun is tried anew, also one whose command is canceled by now. */
static void begin_compensation_anew(cb_process *p, const inbox_item *request)
{
    for (size_t i = 0; i < p->history.n; i++) {
        record *r = &p->history.records[i];
        if (r->kind != KIND_COMPENSATION || !record_is_open(r))
            continue;
        end_canceled(p, r);
        begin_anew(p, r, request);
    }
}

static void cancel(cb_process *p, inbox_item *request)
{
    bool forced = is_forced(p, request), undo = asked_for(request, "run_compensations");
    const char *reason = reply_text(request, "reason");

    record_request(p, request);
    if (undo)
        begin_compensation_anew(p, request);
    leave_begin(p, undo ? LEAVING_TO_COMPENSATE : LEAVING_TO_END, STATUS_CANCELED,
                process_status_names[STATUS_CANCELED], reason, forced);
}

/* False: the overrides are no state. */
static bool override(cb_process *p, const inbox_item *request, record *r, cb_error *e)
{
    json_object *overrides = NULL;

    if (!json_object_object_get_ex(request->payload, "overrides", &overrides) || !overrides)
        return true;
    if (!state_override(p, overrides, e))
        return false;
    r->patch = json_object_get(overrides);
    return true;
}

/* It stays where it is; but a command that was canceled with the decision is none to wait for any more. */
static void refuse_overrides(cb_process *p, const char *why)
{
    record *waiting = waiting_record(p);
    bool canceled = waiting && waiting->command_status == COMMAND_CANCELED;

    stay(p);
    if (canceled)
        end_canceled(p, waiting);
    run_fail_text(p,
                  canceled || !p->claim.row->error_code
                      ? parking_code_names[PARKED_PERMANENT_FAILURE]
                      : p->claim.row->error_code,
                  "the overrides do not fit the state: %s%s (before: %s)", why,
                  canceled ? "; its command is canceled" : "",
                  p->claim.row->error_message ? p->claim.row->error_message : "");
}

static void complete_by_operator(cb_process *p, inbox_item *request)
{
    cb_error e = { .message = "no memory" };
    bool forced = is_forced(p, request);
    record *r = record_request(p, request);

    if (r && override(p, request, r, &e))
        leave_begin(p, LEAVING_TO_END, STATUS_COMPLETED, NULL, NULL, forced);
    else
        refuse_overrides(p, e.message);
}

static void obey(cb_process *p, inbox_item *request)
{
    switch (request->request) {
    case REQUEST_RETRY:
        retry(p, request);
        break;
    case REQUEST_CANCEL:
        cancel(p, request);
        break;
    case REQUEST_COMPLETE:
        complete_by_operator(p, request);
        break;
    case REQUESTS:
        request->consumed = true;
        stay(p);
        break;
    }
}

/* ---- what is left in the inbox ---- */

/* Replies that nobody waits for: late, doubled, or of a command that this process never sent. */
static void sort_out_replies(cb_process *p)
{
    const record *waiting = waiting_record(p);

    for (size_t i = 0; i < p->inbox.n; i++) {
        inbox_item *item = &p->inbox.items[i];
        if (item->consumed || item->kind != INBOX_REPLY || (waiting && reply_is_to(item, waiting)))
            continue;
        json_object *details = json_object_new_object();
        put_text(details, "command_id", reply_text(item, "command_id"));
        put_text(details, "outcome", item->name);
        put(details, "final", json_object_new_boolean(reply_is_final(item)));
        put_int(details, "seq", item->seq); /* settle_processes keeps all of it */
        run_event(p, "LATE_REPLY", NULL, details);
        item->consumed = true;
    }
}

void run_decide_unreadable(cb_process *p, parking_code code, const char *why)
{
    inbox_item *request = operator_request(p);

    if (process_status_is_end(p->outcome.status)) {
        stay(p);
        return;
    }
    if (request)
        request->consumed = true;
    if (request && request->request == REQUEST_CANCEL && !asked_for(request, "run_compensations")) {
        /* For this nothing of it has to be understood. What it owes stays to be seen. */
        const char *reason = reply_text(request, "reason");
        run_fail_text(p, "CANCELED", "%s", reason ? reason : "");
        run_end(p, STATUS_CANCELED);
        return;
    }
    /* Answered by parking it again: the next decision must not be refused because of this one. */
    run_park(p, code, "it cannot be read: %s", why);
}

/* Whatever it was claimed for: also an operator's request is not tried for ever. */
static void park_as_deadly(cb_process *p, inbox_item *request)
{
    if (request)
        (void)record_request(p, request);
    run_park(p, PARKED_RETRIES_EXHAUSTED_CRASH_RECOVERY,
             "it was claimed %d times in a row and no worker came back with an outcome: it seems "
             "to end its workers",
             p->claim.row->unsettled);
}

/* At its end nothing can be parked: a response that ends workers is recorded, but not applied. */
static void take_late(cb_process *p, inbox_item *request, bool deadly)
{
    responses_take_late(p, !deadly);
    if (request)
        request->consumed = true;
    stay(p);
}

void run_decide(cb_process *p)
{
    inbox_item *request = operator_request(p);
    bool deadly = p->claim.row->unsettled >= MOST_UNSETTLED_CLAIMS;

    if (process_status_is_end(p->outcome.status)) {
        take_late(p, request, deadly);
    } else if (deadly) {
        park_as_deadly(p, request);
    } else if (request) {
        obey(p, request);
    } else if (p->outcome.status == STATUS_WAITING_FOR_TSQ && !reply_resumes(p)) {
        stay(p);
    } else {
        go_on(p);
    }
    if (p->replay.left != LEFT_LOST)
        sort_out_replies(p);
}
