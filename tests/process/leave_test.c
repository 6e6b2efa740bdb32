/* Leaving while a command is out: nothing that was booked is left behind. DESIGN 4, 8.4; STP.10. */
#include "tour.h"

/* The deadline has passed while bookRisk waits; what its command does the test says. */
static stage open_due(cb_process_type *type, cb_deadline_action action, cb_uuid *id)
{
    *type = tour_type;
    type->deadline_action = action;
    stage s = tour_open(type);
    *id = stage_start_due(&s, "Tour", "{}", 60);
    stage_go(&s);
    return s;
}

static void settle_risk(const cb_claim *claim, cb_outcome outcome)
{
    cb_settlement item = test_outcome(cb_claim_at(claim, 0), outcome);

    item.domain = "risk";
    if (outcome == CB_SUCCESS)
        item.result = "{\"id\":7}";
    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "handlers", item));
}

#define UNDONE                                                                              \
    "STEP prepare COMPLETED, COMMAND bookRisk COMPLETED, COMPENSATION bookRisk COMPLETED, " \
    "COMPENSATION prepare COMPLETED"

Test(leave, a_queued_command_is_canceled_and_what_was_done_is_undone) /* STP.10 COMPENSATE */
{
    cb_process_type type;
    cb_uuid id;
    stage s = open_due(&type, CB_DEADLINE_COMPENSATE, &id);

    stage_pass(&s, 61);

    expect_status(&s, "COMPENSATED DEADLINE_EXCEEDED", id);
    expect_commands(&s, "risk/BookRisk CANCELED", id);
    expect_history(&s,
                   "STEP prepare COMPLETED, COMMAND bookRisk ABANDONED, "
                   "COMPENSATION prepare COMPLETED",
                   id);
    stage_close(&s);
}

Test(leave, a_success_after_the_decision_is_recorded_and_undone) /* STP.10, DESIGN 4 */
{
    cb_process_type type;
    cb_uuid id;
    stage s = open_due(&type, CB_DEADLINE_COMPENSATE, &id);
    OWNED(cb_claim) claim = stage_receive(&s, "risk");

    stage_pass(&s, 61);
    expect_status(&s, "WAITING_FOR_ASYNC DEADLINE_EXCEEDED", id);
    settle_risk(claim, CB_SUCCESS);
    stage_go(&s);
    expect_status(&s, "COMPENSATING DEADLINE_EXCEEDED", id);
    stage_serve(&s, "risk", CB_SUCCESS, NULL, NULL);
    stage_go(&s);

    expect_status(&s, "COMPENSATED DEADLINE_EXCEEDED", id);
    expect_history(&s, UNDONE, id);
    expect_state(&s, "prepare risk undo_prepare", id, "trail");
    expect_told("1", id, "DEADLINE_EXCEEDED");
    stage_close(&s);
}

Test(leave, waits_for_the_outcome_without_spinning) /* DESIGN 8.7 */
{
    cb_process_type type;
    cb_uuid id;
    stage s = open_due(&type, CB_DEADLINE_TSQ, &id);
    OWNED(cb_claim) claim = stage_receive(&s, "risk");
    stage_wait(&s, 40);
    test_exec(bus.conn, "UPDATE commandbus.process SET next_wait_timeout_at = wake_at");
    test_exec(bus.conn, "UPDATE commandbus.process_history SET timeout_at = commandbus.now() "
                        "WHERE status = 'WAITING'");
    test_exec(bus.conn, "UPDATE commandbus.process SET wake_at = commandbus.now()");
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ COMMAND_STEP_TIMEOUT", id);

    tour_cancel(id, true);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_ASYNC CANCELED", id);
    stage_wait(&s, 30); /* now its deadline passes, which does not matter any more */
    cr_expect_leq(stage_go(&s), 1);

    expect_told("0", id, "DEADLINE_EXCEEDED");
    settle_risk(claim, CB_BUSINESS_RULE);
    stage_go(&s);
    expect_status(&s, "CANCELED CANCELED", id);
    stage_close(&s);
}

Test(leave, without_an_answer_a_person_is_asked) /* DESIGN 4 OUTCOME_UNKNOWN */
{
    cb_process_type type;
    cb_uuid id;
    stage s = open_due(&type, CB_DEADLINE_COMPENSATE, &id);
    OWNED(cb_claim) claim = stage_receive(&s, "risk");

    stage_pass(&s, 61);
    stage_wait(&s, 119);
    cr_expect_eq(stage_go(&s), 0);
    stage_wait(&s, 2);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ OUTCOME_UNKNOWN", id);
    expect_value(bus.conn, "t",
                 "SELECT error_message LIKE '%' || $2 || '%' FROM commandbus.process "
                 "WHERE process_id = $1",
                 id.text, cb_claim_at(claim, 0)->command_id.text);

    settle_risk(claim, CB_SUCCESS); /* late, but it is known now */
    stage_go(&s);
    stage_serve(&s, "risk", CB_SUCCESS, NULL, NULL);
    stage_go(&s);
    expect_status(&s, "COMPENSATED DEADLINE_EXCEEDED", id);
    expect_history(&s, UNDONE, id);
    stage_close(&s);
}

Test(leave, a_retry_of_that_waits_once_more) /* STP.12 */
{
    cb_process_type type;
    cb_uuid id;
    stage s = open_due(&type, CB_DEADLINE_COMPENSATE, &id);
    OWNED(cb_claim) claim = stage_receive(&s, "risk");
    stage_pass(&s, 61);
    stage_wait(&s, 121);
    stage_go(&s);

    tour_retry(id);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_ASYNC DEADLINE_EXCEEDED", id);
    stage_wait(&s, 121);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ OUTCOME_UNKNOWN", id);
    settle_risk(claim, CB_BUSINESS_RULE);
    stage_go(&s);
    expect_status(&s, "COMPENSATED DEADLINE_EXCEEDED", id);
    stage_close(&s);
}

Test(leave, a_cancel_of_that_leaves_it_and_records_a_late_success) /* DESIGN 4 LATE_REPLY */
{
    cb_process_type type;
    cb_uuid id;
    stage s = open_due(&type, CB_DEADLINE_COMPENSATE, &id);
    OWNED(cb_claim) claim = stage_receive(&s, "risk");
    stage_pass(&s, 61);
    stage_wait(&s, 121);
    stage_go(&s);

    tour_cancel(id, true); /* whoever does that has looked */
    stage_go(&s);
    expect_status(&s, "CANCELED CANCELED", id);
    settle_risk(claim, CB_SUCCESS);
    stage_go(&s);

    expect_told("1", id, "LATE_REPLY");
    expect_value(bus.conn, "1", "SELECT count(*) FROM pgmq.a_payments__replies");
    stage_close(&s);
}

/* Somebody has its message locked while the process leaves it, so that it cannot be taken back. */
Test(leave, a_queued_command_that_was_locked_is_taken_back_later) /* DESIGN 4, 8.4 */
{
    cb_process_type type;
    cb_uuid id;
    stage s = open_due(&type, CB_DEADLINE_COMPENSATE, &id);
    stage_wait(&s, 61);
    test_exec(bus.conn, "BEGIN; SELECT FROM pgmq.q_risk__commands FOR UPDATE");
    stage_go(&s);
    test_exec(bus.conn, "COMMIT");
    expect_commands(&s, "risk/BookRisk PENDING", id);

    stage_wait(&s, 121);
    stage_go(&s);

    expect_commands(&s, "risk/BookRisk CANCELED", id);
    expect_status(&s, "COMPENSATED DEADLINE_EXCEEDED", id);
    stage_close(&s);
}

Test(leave, a_command_in_the_tsq_is_decided_there) /* DESIGN 4, STP.12 */
{
    cb_process_type type;
    cb_uuid id;
    stage s = open_due(&type, CB_DEADLINE_COMPENSATE, &id);
    OWNED(cb_claim) claim = stage_receive(&s, "risk");
    stage_pass(&s, 61);

    settle_risk(claim, CB_PERMANENT);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ OUTCOME_UNKNOWN", id);
    tour_retry(id); /* and with it the command */
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_ASYNC DEADLINE_EXCEEDED", id);
    expect_commands(&s, "risk/BookRisk PENDING", id);
    tour_book(&s, "risk");
    stage_go(&s);
    stage_serve(&s, "risk", CB_SUCCESS, NULL, NULL);
    stage_go(&s);

    expect_status(&s, "COMPENSATED DEADLINE_EXCEEDED", id);
    expect_history(&s,
                   "STEP prepare COMPLETED, COMMAND bookRisk COMPLETED, OPERATOR RETRY "
                   "COMPLETED, COMPENSATION bookRisk COMPLETED, COMPENSATION prepare COMPLETED",
                   id);
    stage_close(&s);
}

Test(leave, to_fail_also_waits_for_the_outcome) /* STP.10 FAIL */
{
    cb_process_type type;
    cb_uuid id;
    stage s = open_due(&type, CB_DEADLINE_FAIL, &id);
    OWNED(cb_claim) claim = stage_receive(&s, "risk");

    stage_pass(&s, 61);
    expect_status(&s, "WAITING_FOR_ASYNC DEADLINE_EXCEEDED", id);
    settle_risk(claim, CB_SUCCESS);
    stage_go(&s);

    expect_status(&s, "FAILED DEADLINE_EXCEEDED", id);
    expect_history(&s, "STEP prepare COMPLETED, COMMAND bookRisk COMPLETED", id);
    expect_state(&s, "7", id, "risk_id");
    stage_close(&s);
}

Test(leave, a_reply_that_came_with_the_deadline_is_not_lost) /* STP.10 */
{
    cb_process_type type;
    cb_uuid id;
    stage s = open_due(&type, CB_DEADLINE_COMPENSATE, &id);

    tour_book(&s, "risk");
    stage_pass(&s, 61); /* both in one claim */
    stage_serve(&s, "risk", CB_SUCCESS, NULL, NULL);
    stage_go(&s);

    expect_status(&s, "COMPENSATED DEADLINE_EXCEEDED", id);
    expect_history(&s, UNDONE, id);
    stage_close(&s);
}

Test(leave, a_step_whose_worker_was_lost_is_looked_at_first) /* DESIGN 4, STP.10 */
{
    cb_process_type type = tour_type;
    type.deadline_action = CB_DEADLINE_COMPENSATE;
    stage s = tour_open(&type);
    cb_uuid id = stage_start_due(&s, "Tour", "{}", 60);
    s.kit.crash_after = 1; /* prepare is STARTED */
    stage_go(&s);
    stage_wait(&s, 61);
    stage_restart(&s);

    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ OUTCOME_UNKNOWN", id);
    tour_cancel(id, true);
    stage_go(&s);

    expect_status(&s, "CANCELED CANCELED", id);
    expect_history(&s, "STEP prepare ABANDONED, OPERATOR CANCEL COMPLETED", id);
    cr_expect_str_empty(tour_calls);
    stage_close(&s);
}
