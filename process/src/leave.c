/* Leaving the way forward: for a failure of the business, a deadline, an operator. A command that
 * is out is not left behind: nobody has received it, then it is canceled; else its outcome is
 * waited for, and a success is recorded and undone like any other. */
#include <stdlib.h>

#include "json_build.h"
#include "process_run.h"

/* ---- where it leaves to, in its row ---- */

static const char *member_text(json_object *from, const char *key)
{
    json_object *value = NULL;

    return json_object_object_get_ex(from, key, &value) ? json_object_get_string(value) : NULL;
}

static bool member_flag(json_object *from, const char *key)
{
    json_object *value = NULL;

    return json_object_object_get_ex(from, key, &value) && json_object_get_boolean(value);
}

static bool way_has_end(leaving_way way, process_status end)
{
    return end == STATUS_CANCELED ||
           (process_status_is_end(end) &&
            (way == LEAVING_TO_COMPENSATE) == (end == STATUS_COMPENSATED));
}

bool leaving_read(json_object *from, leaving *to)
{
    int way = name_index(member_text(from, "to"), leaving_way_names, WAYS_OF_LEAVING);
    int end = name_index(member_text(from, "end"), process_status_names, STATUSES);

    *to = (leaving){ 0 };
    if (!from)
        return true;
    if (way == WAYS_OF_LEAVING || way == LEAVING_NOT || end == STATUSES ||
        !way_has_end((leaving_way)way, (process_status)end) ||
        !record_set_text(&to->code, member_text(from, "code")) ||
        !record_set_text(&to->message, member_text(from, "message"))) {
        to->unreadable = json_object_get(from);
        return false;
    }
    to->way = (leaving_way)way;
    to->end = (process_status)end;
    to->forced = member_flag(from, "forced");
    to->asked = member_flag(from, "asked");
    return true;
}

json_object *leaving_write(const leaving *l)
{
    if (l->way == LEAVING_NOT)
        return json_object_get(l->unreadable);
    json_object *o = json_object_new_object();
    if (!o)
        return NULL;
    put_text(o, "to", leaving_way_names[l->way]);
    put_text(o, "end", process_status_names[l->end]);
    put_text(o, "code", l->code);
    put_text(o, "message", l->message);
    if (l->forced)
        put(o, "forced", json_object_new_boolean(true));
    if (l->asked)
        put(o, "asked", json_object_new_boolean(true));
    return o;
}

void leaving_done(leaving *l)
{
    free(l->code);
    free(l->message);
    json_object_put(l->unreadable);
    *l = (leaving){ 0 };
}

void leaving_tell(cb_process *p)
{
    record_set_text(&p->outcome.error_code, p->leaving.code);
    record_set_text(&p->outcome.error_message, p->leaving.message);
}

void leave_begin(cb_process *p, leaving_way way, process_status end, const char *code,
                 const char *message, bool forced)
{
    leaving l = { .way = way, .end = end, .forced = forced };

    record_set_text(&l.code, code);
    record_set_text(&l.message, message);
    leaving_done(&p->leaving);
    p->leaving = l;
    p->replay.left = NOT_LEFT;
}

/* ---- a command that is out ---- */

static bool is_out(const record *r)
{
    return r && r->kind == KIND_COMMAND && r->status == RECORD_WAITING;
}

static void outcome_unknown(cb_process *p, const record *r, const char *why)
{
    run_wait_for(p, r);
    run_park(
        p, PARKED_OUTCOME_UNKNOWN, "on the way to %s, the outcome of %s '%s'%s%s is unknown: %s",
        process_status_names[p->leaving.end], r->kind == KIND_COMMAND ? "command step" : "step",
        r->name, r->kind == KIND_COMMAND ? ", command " : "",
        r->kind == KIND_COMMAND ? r->command_id.text : "", why);
}

static void wait_for_outcome(cb_process *p, record *r)
{
    if (!p->leaving.asked) {
        command_cancel(p, r);
        p->leaving.asked = true;
        r->timeout_at = 0;
    }
    if (r->timeout_at == 0)
        record_set_timeout(r, outcome_wait_ms);
    p->outcome.status = type_reply_status(run_type(p));
    leaving_tell(p);
    run_wait_for(p, r);
}

static bool is_in_tsq(cb_process *p, const record *r)
{
    bool final;
    const inbox_item *reply = command_reply(p, r, &final);

    if (reply && !final)
        command_consume(p, r);
    return command_is_in_tsq(r, reply);
}

/* True when nothing is out any more. */
static bool outcome_is_known(cb_process *p, record *r)
{
    if (!is_out(r))
        return true;
    if (p->leaving.forced) {
        command_cancel(p, r); /* if nobody has received it yet, nobody is to */
        return true;
    }
    bool overdue = p->leaving.asked && r->timeout_at > 0 && run_now_ms(p) >= r->timeout_at;
    if (is_in_tsq(p, r)) {
        outcome_unknown(p, r, "it is in the troubleshooting queue; decide about it there");
    } else if (overdue && command_has_ended(r)) {
        command_await_lost(p, r);
        wait_for_outcome(p, r);
    } else if (overdue) {
        command_cancel(p, r); /* somebody may have had it locked when we asked first */
        outcome_unknown(p, r, "it was received, but sent no final reply");
    } else {
        wait_for_outcome(p, r);
    }
    return false;
}

/* ---- what was begun ---- */

/* Nobody comes back to it. True unless a person has to look at it first. */
static bool abandon(cb_process *p, record *r)
{
    if (!r || r->status == RECORD_FAILED)
        return true;
    bool begun = r->status == RECORD_STARTED;
    if (r->kind == KIND_STEP && (begun || r->in_doubt) && !p->leaving.forced) {
        outcome_unknown(p, r,
                        begun ? "it was started, and its worker was lost"
                              : "an attempt of it may have succeeded, and none is known to have");
        return false;
    }
    r->status = RECORD_ABANDONED;
    r->dirty = true;
    return true;
}

/* ---- going on ---- */

static bool has_final_reply(cb_process *p, const record *r)
{
    bool final = false;

    return is_out(r) && command_reply(p, r, &final) && final;
}

/* What an operator has set by hand stands, whatever a reply brings after it. */
static bool keep_overrides(cb_process *p)
{
    cb_error e;

    for (size_t i = 0; i < p->history.n; i++) {
        const record *r = &p->history.records[i];
        if (r->kind == KIND_OPERATOR && r->patch && !state_override(p, r->patch, &e)) {
            run_park(p, PARKED_PERMANENT_FAILURE, "the overrides do not fit the state: %s",
                     e.message);
            return false;
        }
    }
    return true;
}

/* The code does not come by to take it: at least what became of the command is recorded. */
static void end_by_reply(cb_process *p, record *r)
{
    bool final;
    const inbox_item *reply = command_reply(p, r, &final);

    if (reply->outcome == REPLY_SUCCESS) {
        json_object_put(r->result);
        r->result = json_object_get(reply_result(reply));
    }
    r->status = reply->outcome == REPLY_SUCCESS ? RECORD_COMPLETED : RECORD_ABANDONED;
    r->dirty = true;
    command_consume(p, r);
}

/* Learns from the code what is to be undone, and has it take a reply that has come. */
static bool rebuild(cb_process *p)
{
    record *open = run_open_record(p);
    bool undo = p->leaving.way == LEAVING_TO_COMPENSATE;
    cb_error e;

    if (!undo && !has_final_reply(p, open))
        return true;
    run_execute(p, REBUILD);
    if (p->replay.left == LEFT_LOST || (undo && p->replay.left == LEFT_PARKED))
        return false;
    if (undo)
        return true;
    /* Its end does not depend on the code: what that says now is no reason to stay. */
    if (p->replay.left == LEFT_PARKED && is_out(open))
        end_by_reply(p, open);
    if (p->replay.left == LEFT_PARKED && !run_latest_state(p, &e))
        return false;
    p->replay.left = NOT_LEFT;
    return keep_overrides(p);
}

/* It ends before everything is undone: nobody waits for the reply of a compensation any more. */
static void abandon_compensations(cb_process *p)
{
    for (size_t i = 0; i < p->history.n; i++) {
        record *r = &p->history.records[i];
        if (r->kind != KIND_COMPENSATION || !record_is_open(r))
            continue;
        if (r->status == RECORD_WAITING)
            command_cancel(p, r);
        r->status = RECORD_ABANDONED;
        r->dirty = true;
    }
}

bool leave_finish(cb_process *p)
{
    const cb_process_type *type = run_type(p);
    process_status end = p->leaving.end;

    p->replay.left = NOT_LEFT;
    abandon_compensations(p);
    responses_take(p, 0);
    p->state.changed = true;
    leaving_tell(p);
    if (end == STATUS_COMPLETED)
        run_hook(p, "on_completed", type->on_completed);
    else if (end == STATUS_CANCELED)
        run_hook(p, "on_canceled", type->on_canceled);
    run_end(p, end);
    return true;
}

bool leave_rebuild(cb_process *p)
{
    p->outcome.deadline_spent = true; /* it is on its way already: nothing is to wake it for that */
    if (!rebuild(p))
        return false;
    p->replay.left = NOT_LEFT;
    p->state.changed = true;
    return true;
}

bool leave_learn_outcome(cb_process *p)
{
    return outcome_is_known(p, run_open_record(p)) && abandon(p, run_open_record(p));
}

bool leave_for_deadline(cb_process *p)
{
    static const char text[] = "the deadline has passed";
    const char *code = parking_code_names[PARKED_DEADLINE_EXCEEDED];
    cb_deadline_action action = type_deadline_action(p->claim.type, p->state.now);

    p->outcome.deadline_spent = true;
    p->replay.left = NOT_LEFT;
    run_event(p, "DEADLINE_EXCEEDED", p->outcome.step, NULL);
    if (action == CB_DEADLINE_COMPENSATE)
        leave_begin(p, LEAVING_TO_COMPENSATE, STATUS_COMPENSATED, code, text, false);
    else if (action == CB_DEADLINE_FAIL)
        leave_begin(p, LEAVING_TO_END, STATUS_FAILED, code, text, false);
    else
        run_park(p, PARKED_DEADLINE_EXCEEDED, "%s", text);
    return p->replay.left == NOT_LEFT;
}
