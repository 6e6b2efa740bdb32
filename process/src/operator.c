/* Operators' decisions about a parked process: retry, cancel, complete. Each is a record, with what
 * the operator was told when it was made. */
#include "process_run.h"

bool operator_asks(const inbox_item *request, const char *key)
{
    json_object *value = NULL;

    return json_object_object_get_ex(request->payload, key, &value) &&
           json_object_get_boolean(value);
}

record *operator_record(cb_process *p)
{
    inbox_item *request = p->claim.request;
    record *r = run_append(p, KIND_OPERATOR, request->name);

    request->consumed = true;
    if (!r)
        return NULL;
    r->status = RECORD_COMPLETED;
    r->result = json_object_get(request->payload);
    return r;
}

/* ---- beginning anew ---- */

/* True when the operator was told that nobody knows how the last attempt ended. Whoever decides
 * about something else, a deadline or a settle that was refused, has not decided that it may run
 * twice. */
static bool knows_of_lost_attempt(const inbox_item *request)
{
    static const bool tells_of_it[PARKING_CODES + 1] = {
        [PARKED_RETRIES_EXHAUSTED_CRASH_RECOVERY] = true,
        [PARKED_OUTCOME_UNKNOWN] = true,
        [PARKED_COMPENSATION_FAILED] = true,
    };

    return tells_of_it[parking_code_named(reply_text(request, "error_code"))];
}

/* Attempts are counted anew, and a wait gets its whole time again. Whoever lets a process that
 * leaves go on has found out what became of its step; whoever has it tried again on the way forward
 * has not. */
static void begin_anew(const cb_process *p, record *r)
{
    bool knows = knows_of_lost_attempt(p->claim.request);

    if (!r || (r->status == RECORD_STARTED && !knows))
        return;
    r->in_doubt = p->leaving.way != LEAVING_NOT ? r->in_doubt && !knows
                                                : r->in_doubt || r->status == RECORD_STARTED;
    r->attempts = r->kind == KIND_COMMAND || r->command_id.text[0] ? r->attempts : 0;
    record_set_timeout(r, 0); /* whoever waits gives it its time */
    if (r->status == RECORD_WAITING)
        record_set_text(&r->error_code, NULL); /* not given up any more */
    if (r->status == RECORD_STARTED)
        r->status = RECORD_RETRY;
}

bool operator_retries(cb_process *p)
{
    record *r = NULL;

    if (!operator_record(p)) {
        run_park(p, PARKED_PERMANENT_FAILURE, "out of memory for its records");
        return false;
    }
    for (size_t i = p->history.n; i > 0 && !r; i--) {
        record *last = &p->history.records[i - 1];
        if (last->kind == KIND_COMPENSATION && record_is_open(last))
            r = last;
    }
    begin_anew(p, r ? r : run_open_record(p));
    p->outcome.status = STATUS_PENDING;
    return true;
}

/* ---- ending it ---- */

/* Whoever cancels or completes has looked: a step whose end nobody knows does not hold it up, nor
 * does a command once its outcome was waited for in vain. */
static bool is_forced(cb_process *p)
{
    parking_code code = parking_code_named(reply_text(p->claim.request, "error_code"));
    const record *open = run_open_record(p);

    return code == PARKED_OUTCOME_UNKNOWN || (open && open->kind == KIND_STEP);
}

/* A command in the troubleshooting queue was canceled together with the decision: its end is
 * known. */
static void end_canceled(cb_process *p, record *r)
{
    if (r->status != RECORD_WAITING || r->command_status != COMMAND_CANCELED)
        return;
    command_consume(p, r);
    r->status = RECORD_FAILED;
    r->dirty = true;
    record_set_text(&r->error_code, "CANCELED");
    record_set_text(&r->error_message, "canceled with the decision about its process");
}

/* The compensation that is begun is tried anew, also one whose command is canceled by now. */
static void begin_compensation_anew(cb_process *p)
{
    for (size_t i = 0; i < p->history.n; i++) {
        record *r = &p->history.records[i];
        if (r->kind != KIND_COMPENSATION || !record_is_open(r))
            continue;
        end_canceled(p, r);
        begin_anew(p, r);
    }
}

bool operator_cancels(cb_process *p)
{
    bool forced = is_forced(p), undo = operator_asks(p->claim.request, "run_compensations");

    (void)operator_record(p);
    if (undo)
        begin_compensation_anew(p);
    leave_begin(p, undo ? LEAVING_TO_COMPENSATE : LEAVING_TO_END, STATUS_CANCELED,
                process_status_names[STATUS_CANCELED], reply_text(p->claim.request, "reason"),
                forced);
    return true;
}

/* False: the overrides do not fit the state. */
static bool override(cb_process *p, record *r, cb_error *e)
{
    json_object *overrides = NULL;

    if (!json_object_object_get_ex(p->claim.request->payload, "overrides", &overrides) ||
        !overrides)
        return true;
    if (!state_override(p, overrides, e))
        return false;
    r->patch = json_object_get(overrides);
    return true;
}

/* It stays where it is; but a command that was canceled with the decision is not waited for any
 * more. */
static void refuse_overrides(cb_process *p, const char *why)
{
    const cb_process_row *row = p->claim.row;
    record *waiting = run_waiting_record(p);
    bool canceled = waiting && waiting->command_status == COMMAND_CANCELED;

    run_stay(p);
    if (canceled)
        end_canceled(p, waiting);
    run_fail_text(p,
                  canceled || !row->error_code ? parking_code_names[PARKED_PERMANENT_FAILURE]
                                               : row->error_code,
                  "the overrides do not fit the state: %s%s (before: %s)", why,
                  canceled ? "; its command is canceled" : "",
                  row->error_message ? row->error_message : "");
}

bool operator_completes(cb_process *p)
{
    cb_error e = { .message = "out of memory" };
    bool forced = is_forced(p);
    record *r = operator_record(p);

    if (!r || !override(p, r, &e)) {
        refuse_overrides(p, e.message);
        return false;
    }
    leave_begin(p, LEAVING_TO_END, STATUS_COMPLETED, NULL, NULL, forced);
    return true;
}
