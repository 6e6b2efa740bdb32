/* Command steps that get no reply in time, and what is sent again when. RL.2, RL.8, DESIGN 4. */
#include "tour.h"

static void expect_timed_out(stage *s, cb_uuid id)
{
    expect_status(s, "WAITING_FOR_TSQ COMMAND_STEP_TIMEOUT", id);
    expect_told("1", id, "WAIT_TIMEOUT");
}

Test(command_timeout, a_command_in_the_queue_is_canceled_in_the_same_transaction) /* DESIGN 4 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");

    stage_wait(&s, 599);
    cr_expect_eq(stage_go(&s), 0);
    stage_wait(&s, 2);
    cr_expect(stage_step(&s)); /* one settle */

    expect_timed_out(&s, id);
    expect_commands(&s, "risk/BookRisk CANCELED", id);
    expect_value(bus.conn, "0", "SELECT count(*) FROM pgmq.q_risk__commands");
    stage_go(&s); /* its own CANCELED is not a decision */
    expect_timed_out(&s, id);
    cr_expect_eq(stage_go(&s), 0);
    stage_close(&s);
}

Test(command_timeout, a_retry_then_sends_a_new_one) /* send_no, STP.12 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    stage_wait(&s, 601);
    stage_go(&s);

    tour_retry(id);
    stage_go(&s);

    cb_uuid second = cb_uuid_derived(&id, "command/bookRisk/2");
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_record(second.text, id, "COMMAND", "bookRisk", "command_id::text");
    expect_record("2 ", id, "COMMAND", "bookRisk", "send_no || ' ' || coalesce(error_code, '')");
    tour_book(&s, "risk");
    stage_go(&s);
    expect_commands(&s, "risk/BookRisk CANCELED, risk/BookRisk COMPLETED, fx/BookFx PENDING", id);
    stage_close(&s);
}

Test(command_timeout, a_retry_that_comes_before_the_cancel_is_read_does_the_same) /* send_no */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    stage_wait(&s, 601);
    cr_expect(stage_step(&s));
    expect_value(bus.conn, "REPLY CANCELED",
                 "SELECT concat_ws(' ', kind, name) FROM commandbus.process_inbox");

    tour_retry(id);
    stage_go(&s);

    expect_commands(&s, "risk/BookRisk CANCELED, risk/BookRisk PENDING", id);
    stage_close(&s);
}

Test(command_timeout, of_a_command_that_was_received_waits_for_its_late_success) /* DESIGN 4 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    OWNED(cb_claim) claim = stage_receive(&s, "risk");
    const cb_command *c = cb_claim_at(claim, 0);

    stage_wait(&s, 601);
    stage_go(&s);
    expect_timed_out(&s, id);
    expect_commands(&s, "risk/BookRisk IN_PROGRESS", id);

    cb_settlement late = test_outcome(c, CB_SUCCESS);
    late.domain = "risk";
    late.result = "{\"id\":7}";
    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "handlers", late));
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_process("bookFx", id, "current_wait");
    stage_close(&s);
}

Test(command_timeout, a_retry_while_the_command_runs_only_gives_it_new_time) /* one live command */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    OWNED(cb_claim) claim = stage_receive(&s, "risk");

    stage_wait(&s, 601);
    stage_go(&s);
    tour_retry(id);
    stage_go(&s);

    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_commands(&s, "risk/BookRisk IN_PROGRESS", id);
    expect_record("1", id, "COMMAND", "bookRisk", "send_no::text");
    stage_wait(&s, 599);
    cr_expect_eq(stage_go(&s), 0);
    stage_wait(&s, 2);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ COMMAND_STEP_TIMEOUT", id);
    stage_close(&s);
}

Test(command_timeout, in_the_tsq_it_is_said_at_the_next_retry) /* RL.3, STP.12 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    OWNED(cb_claim) claim = stage_receive(&s, "risk");
    stage_wait(&s, 601);
    stage_go(&s);
    cb_settlement broken = test_outcome(cb_claim_at(claim, 0), CB_PERMANENT);
    broken.domain = "risk";
    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "handlers", broken));
    stage_go(&s);
    expect_timed_out(&s, id);

    tour_retry(id);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ COMMAND_IN_TSQ", id);
    tour_retry(id);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_commands(&s, "risk/BookRisk PENDING", id);
    stage_close(&s);
}

/* ---- without a wait timeout: a backlog is backpressure, for as long as it lasts ---- */

Test(command_timeout, without_one_a_command_waits_in_a_deep_queue_without_end) /* DESIGN 4 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_fx(&s, "{}");

    expect_process("", id, "next_wait_timeout_at");
    expect_process("", id, "wake_at");
    stage_wait(&s, 30 * 86400.0);
    cr_expect_eq(stage_go(&s), 0);
    expect_status(&s, "WAITING_FOR_ASYNC", id);

    tour_book(&s, "fx");
    stage_go(&s);
    expect_status(&s, "COMPLETED", id);
    stage_close(&s);
}

Test(command_timeout, without_one_a_command_is_waited_for_until_the_deadline) /* DESIGN 4 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = stage_start_due(&s, "Tour", "{}", 4 * 3600.0);
    stage_go(&s);
    tour_book(&s, "risk");
    stage_go(&s);
    expect_process("bookFx", id, "current_wait");

    stage_wait(&s, 4 * 3600.0 - 60);
    cr_expect_eq(stage_go(&s), 0);
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    stage_wait(&s, 61);
    stage_go(&s);

    expect_status(&s, "WAITING_FOR_TSQ DEADLINE_EXCEEDED", id);
    stage_close(&s);
}

Test(command_timeout, that_the_type_has_is_for_responses) /* process.h */
{
    cb_process_type hasty = tour_type;
    hasty.wait_timeout_ms = CB_SECONDS(5);
    stage s = tour_open(&hasty);
    cb_uuid id = tour_at_fx(&s, "{\"wait_at_last\":true}");

    stage_wait(&s, 3600);
    cr_expect_eq(stage_go(&s), 0);
    tour_book(&s, "fx");
    stage_go(&s);
    expect_process("go", id, "current_wait");
    stage_wait(&s, 6);
    stage_go(&s);

    expect_status(&s, "WAITING_FOR_TSQ WAIT_TIMEOUT", id);
    stage_close(&s);
}

Test(command_timeout, taken_away_by_the_configuration_ends_with_the_next_retry) /* command-steps */
{
    const cb_process_type *type = &tour_type;
    const cb_step_route endless[] = { { .step = "bookRisk", .wait_timeout_ms = -1 } };
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    OWNED(cb_claim) claim = stage_receive(&s, "risk");
    stage_wait(&s, 601);
    stage_go(&s);
    expect_timed_out(&s, id);

    stage_release(&s, &type, 1, endless, 1);
    tour_retry(id);
    stage_go(&s);
    stage_wait(&s, 86400);
    stage_respond(&s, id, "note", "{\"word\":\"late\"}"); /* whatever wakes it */
    cr_expect_eq(stage_go(&s), 1);

    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_record("none", id, "COMMAND", "bookRisk", "coalesce(timeout_at::text, 'none')");
    stage_close(&s);
}

Test(command_timeout, a_command_that_undoes_waits_in_a_deep_queue_too) /* STP.8 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_fx(&s, "{\"decline\":true}");
    tour_book(&s, "fx");
    stage_go(&s);
    expect_commands(&s, "risk/BookRisk COMPLETED, fx/BookFx COMPLETED, risk/ReleaseRisk PENDING",
                    id);

    stage_wait(&s, 86400);
    cr_expect_eq(stage_go(&s), 0);
    expect_status(&s, "COMPENSATING DECLINED", id);
    stage_serve(&s, "risk", CB_SUCCESS, "{}", NULL);
    stage_go(&s);

    expect_status(&s, "COMPENSATED DECLINED", id);
    stage_close(&s);
}

Test(command_timeout, without_one_the_deadline_still_leaves_no_command_behind) /* DESIGN 8.9 */
{
    cb_process_type due = tour_type;
    due.deadline_action = CB_DEADLINE_COMPENSATE;
    stage s = tour_open(&due);
    cb_uuid id = stage_start_due(&s, "Tour", "{}", 7200);
    stage_go(&s);
    tour_book(&s, "risk");
    stage_go(&s);
    OWNED(cb_claim) claim = stage_receive(&s, "fx");

    stage_wait(&s, 7201);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_ASYNC DEADLINE_EXCEEDED", id);
    stage_wait(&s, 121);
    stage_go(&s);

    expect_status(&s, "WAITING_FOR_TSQ OUTCOME_UNKNOWN", id);
    stage_close(&s);
}

Test(command_timeout, without_one_a_long_wait_is_seen_by_doctor_and_metrics) /* PM.6 */
{
    stage s = tour_open(&tour_type);
    tour_at_fx(&s, "{}");
    stage_wait(&s, 3700);

    expect_value(bus.conn, "LONG_REPLY Tour 1",
                 "SELECT concat_ws(' ', problem, process_type, processes) "
                 "FROM commandbus.process_problems()");
    expect_value(bus.conn, "Tour WAITING_FOR_ASYNC 1 t",
                 "SELECT concat_ws(' ', process_type, status, processes, "
                 "oldest_reply_seconds >= 3700) FROM commandbus.process_figures()");
    stage_close(&s);
}
