/* What a claim is about. A wake-up is only a hint: what is done follows from what is recorded and
 * what has arrived, so that a process woken for nothing goes back to sleep as it was. */
#include "json_build.h"
#include "process_run.h"

enum {
    MOST_UNSETTLED_CLAIMS = 10
};

/* ---- the transitions ---- */

/* Where a claim stands. */
typedef enum {
    UNREADABLE, /* its row cannot be loaded */
    CLAIMED,
    GOING_ON, /* nobody has to decide about it */
    EXECUTED, /* execute() was left */
    LEAVING,  /* it does not go forward any more */
    REBUILT,  /* and what there is to undo is known */
    RESOLVED, /* and how its last call has ended */
    SETTLED,
} stage;

typedef bool condition(cb_process *p);
/* False: the claim is to be settled as it stands now. */
typedef bool action(cb_process *p);

static condition has_ended, ends_its_workers, has_request, is_parked;
static condition is_to_retry, is_to_cancel, is_to_complete, is_to_be_dropped;
static condition is_past_deadline, is_before_retry, is_leaving;
static condition is_through, is_declined, is_at_deadline, is_given_up, yields;
static condition is_to_compensate;

static action drop_unread, park_unread, take_late, park_deadly, ignore_request;
static action wait_for_retry, go_forward, complete, leave_declined, park_given_up, give_back;

#define ELSE NULL

/* What a claim may do next: the first row that holds for where it stands. `act` NULL: nothing to
 * do. */
/* clang-format off */
static const struct {
    stage at;
    condition *when;
    action *act;
    stage then;
} transitions[] = {
    { UNREADABLE, has_ended,        run_stay,            SETTLED },
    { UNREADABLE, is_to_be_dropped, drop_unread,         SETTLED },
    { UNREADABLE, ELSE,             park_unread,         SETTLED },

    { CLAIMED,    has_ended,        take_late,           SETTLED },
    { CLAIMED,    ends_its_workers, park_deadly,         SETTLED },
    { CLAIMED,    is_to_retry,      operator_retries,    GOING_ON },
    { CLAIMED,    is_to_cancel,     operator_cancels,    LEAVING },
    { CLAIMED,    is_to_complete,   operator_completes,  LEAVING },
    { CLAIMED,    has_request,      ignore_request,      SETTLED },
    { CLAIMED,    is_parked,        run_stay,            SETTLED },
    { CLAIMED,    ELSE,             NULL,                GOING_ON },

    /* The deadline goes before a retry: it would wake the process again at once and for ever. */
    { GOING_ON,   is_past_deadline, leave_for_deadline,  LEAVING },
    { GOING_ON,   is_before_retry,  wait_for_retry,      SETTLED },
    { GOING_ON,   is_leaving,       NULL,                LEAVING },
    { GOING_ON,   ELSE,             go_forward,          EXECUTED },

    { EXECUTED,   is_through,       complete,            SETTLED },
    { EXECUTED,   is_declined,      leave_declined,      LEAVING },
    { EXECUTED,   is_at_deadline,   leave_for_deadline,  LEAVING },
    { EXECUTED,   is_given_up,      park_given_up,       SETTLED },
    { EXECUTED,   yields,           give_back,           SETTLED },
    { EXECUTED,   ELSE,             NULL,                SETTLED }, /* it waits, is parked … */

    { LEAVING,    ELSE,             leave_rebuild,       REBUILT },
    { REBUILT,    ELSE,             leave_learn_outcome, RESOLVED },
    { RESOLVED,   is_to_compensate, run_compensate,      SETTLED },
    { RESOLVED,   ELSE,             leave_finish,        SETTLED },
};
/* clang-format on */

static stage move_on(cb_process *p, stage at)
{
    size_t i = 0;

    while (transitions[i].at != at || (transitions[i].when && !transitions[i].when(p)))
        i++; /* the last row of a stage always holds */
    return !transitions[i].act || transitions[i].act(p) ? transitions[i].then : SETTLED;
}

/* ---- what cannot be read ---- */

static bool has_ended(cb_process *p)
{
    return process_status_is_end(p->outcome.status);
}

/* For this nothing of it has to be understood. */
static bool is_to_be_dropped(cb_process *p)
{
    return is_to_cancel(p) && !operator_asks(p->claim.request, "run_compensations");
}

/* What it would have to undo stays to be seen. */
static bool drop_unread(cb_process *p)
{
    const char *reason = reply_text(p->claim.request, "reason");

    p->claim.request->consumed = true;
    run_fail_text(p, process_status_names[STATUS_CANCELED], "%s", reason ? reason : "");
    run_end(p, STATUS_CANCELED);
    return true;
}

/* A request is answered by parking it again: the next decision must not be refused because of this
 * one. */
static bool park_unread(cb_process *p)
{
    if (p->claim.request)
        p->claim.request->consumed = true;
    run_park(p, p->claim.unreadable_code, "it cannot be read: %s", p->claim.unreadable);
    return true;
}

/* ---- what ended, or ends its workers ---- */

static bool ends_its_workers(cb_process *p)
{
    return p->claim.row->unsettled >= MOST_UNSETTLED_CLAIMS;
}

/* At its end nothing can be parked: a response that ends workers is recorded, but not applied. */
static bool take_late(cb_process *p)
{
    responses_take_late(p, !ends_its_workers(p));
    if (p->claim.request)
        p->claim.request->consumed = true;
    return run_stay(p);
}

/* Whatever it was claimed for: also an operator's request is not tried for ever. */
static bool park_deadly(cb_process *p)
{
    if (p->claim.request)
        (void)operator_record(p);
    run_park(p, PARKED_RETRIES_EXHAUSTED_CRASH_RECOVERY,
             "claimed %d times in a row, and no worker came back with an outcome: it seems "
             "to kill its workers",
             p->claim.row->unsettled);
    return true;
}

/* ---- the troubleshooting queue ---- */

static bool has_request(cb_process *p)
{
    return p->claim.request != NULL;
}

static bool is_to_retry(cb_process *p)
{
    return has_request(p) && p->claim.request->request == REQUEST_RETRY;
}

static bool is_to_cancel(cb_process *p)
{
    return has_request(p) && p->claim.request->request == REQUEST_CANCEL;
}

static bool is_to_complete(cb_process *p)
{
    return has_request(p) && p->claim.request->request == REQUEST_COMPLETE;
}

/* One that we do not know. */
static bool ignore_request(cb_process *p)
{
    p->claim.request->consumed = true;
    return run_stay(p);
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
    const record *r = run_waiting_record(p);
    bool final = false;
    const inbox_item *reply = r ? command_reply(p, r, &final) : NULL;

    if (!final || (reply_is_our_cancel(reply) && !is_leaving(p) && code != PARKED_OUTCOME_UNKNOWN))
        return false;
    return waits_for_reply[code];
}

static bool is_parked(cb_process *p)
{
    return p->outcome.status == STATUS_WAITING_FOR_TSQ && !reply_resumes(p);
}

/* ---- going on ---- */

static bool is_leaving(cb_process *p)
{
    return p->leaving.way != LEAVING_NOT;
}

static bool is_past_deadline(cb_process *p)
{
    return !is_leaving(p) && run_is_overdue(p);
}

/* Woken too early, or by a worker that died after it had been. */
static bool is_before_retry(cb_process *p)
{
    return p->claim.row->retry_ms > run_now_ms(p) &&
           (p->outcome.status == STATUS_WAITING_FOR_RETRY ||
            p->outcome.status == STATUS_COMPENSATING || p->outcome.status == STATUS_EXECUTING);
}

static bool wait_for_retry(cb_process *p)
{
    run_stay(p);
    if (p->outcome.status == STATUS_EXECUTING)
        p->outcome.status = STATUS_WAITING_FOR_RETRY;
    return true;
}

static bool go_forward(cb_process *p)
{
    p->outcome.status = STATUS_EXECUTING;
    record_set_text(&p->outcome.error_code, NULL);
    record_set_text(&p->outcome.error_message, NULL);
    record_set_text(&p->outcome.wait, NULL);
    run_execute(p, FORWARD);
    return true;
}

/* ---- how execute() was left ---- */

static bool is_through(cb_process *p)
{
    return p->replay.left == NOT_LEFT;
}

static bool complete(cb_process *p)
{
    if (!p->inbox.responses_taken)
        responses_take(p, 0);
    if (p->replay.left || !state_accept(p))
        return false;
    run_hook(p, "on_completed", run_type(p)->on_completed);
    p->state.changed = true;
    run_end(p, STATUS_COMPLETED);
    return true;
}

static bool is_declined(cb_process *p)
{
    return p->replay.left == LEFT_BUSINESS;
}

static bool leave_declined(cb_process *p)
{
    leave_begin(p, LEAVING_TO_COMPENSATE, STATUS_COMPENSATED, p->outcome.error_code,
                p->outcome.error_message, false);
    return true;
}

static bool is_at_deadline(cb_process *p)
{
    return p->replay.left == LEFT_DEADLINE;
}

/* At a record that was given up: nothing would ever wake it. */
static bool is_given_up(cb_process *p)
{
    return p->replay.left == LEFT_FRONTIER;
}

static bool park_given_up(cb_process *p)
{
    p->replay.left = NOT_LEFT;
    run_park(p, PARKED_NON_DETERMINISTIC, "the process was abandoned before and cannot go forward");
    return true;
}

static bool yields(cb_process *p)
{
    return p->replay.left == LEFT_YIELDING;
}

static bool give_back(cb_process *p)
{
    p->outcome.status = STATUS_PENDING;
    p->outcome.timers.wake = WAKE_NOW;
    return true;
}

static bool is_to_compensate(cb_process *p)
{
    return p->leaving.way == LEAVING_TO_COMPENSATE;
}

/* ---- a claim ---- */

static inbox_item *find_request(cb_process *p)
{
    for (size_t i = 0; i < p->inbox.n; i++) {
        inbox_item *item = &p->inbox.items[i];
        if (item->kind == INBOX_OPERATOR && !item->consumed)
            return item;
    }
    return NULL;
}

/* Replies that nobody waits for: late, doubled, or of a command that this process never sent. */
static void sort_out_replies(cb_process *p)
{
    const record *waiting = run_waiting_record(p);

    for (size_t i = 0; i < p->inbox.n; i++) {
        inbox_item *item = &p->inbox.items[i];
        if (item->consumed || item->kind != INBOX_REPLY || (waiting && reply_is_to(item, waiting)))
            continue;
        json_object *details = json_object_new_object();
        put_text(details, "command_id", reply_text(item, "command_id"));
        put_text(details, "outcome", item->name);
        put(details, "final", json_object_new_boolean(reply_is_final(item)));
        put_int(details, "seq", item->seq); /* the settle keeps all of it */
        run_event(p, "LATE_REPLY", NULL, details);
        item->consumed = true;
    }
}

void run_decide(cb_process *p)
{
    stage at = p->claim.unreadable ? UNREADABLE : CLAIMED;

    p->claim.request = find_request(p);
    while (at != SETTLED)
        at = move_on(p, at);
    if (!p->claim.unreadable && p->replay.left != LEFT_LOST)
        sort_out_replies(p);
}
