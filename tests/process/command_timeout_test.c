/* Command steps that get no reply in time, and what is sent again when. RL.2, DESIGN 4. */
#include "tour.h"

static void expect_parked(stage *s, cb_uuid id)
{
    expect_status(s, "WAITING_FOR_TSQ COMMAND_STEP_TIMEOUT", id);
    expect_told(s, "1", id, "WAIT_TIMEOUT");
}

Test(command_timeout, a_command_in_the_queue_is_canceled_in_the_same_transaction) /* DESIGN 4 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");

    stage_wait(&s, 599);
    cr_expect_eq(stage_go(&s), 0);
    stage_wait(&s, 2);
    cr_expect(stage_step(&s)); /* one settle */

    expect_parked(&s, id);
    expect_commands(&s, "risk/BookRisk CANCELED", id);
    expect_value(s.rig.sql, "0", "SELECT count(*) FROM pgmq.q_risk__commands");
    stage_go(&s); /* its own CANCELED is no decision */
    expect_parked(&s, id);
    cr_expect_eq(stage_go(&s), 0);
    stage_close(&s);
}

Test(command_timeout, a_retry_then_sends_a_new_one) /* send_no, STP.12 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    stage_wait(&s, 601);
    stage_go(&s);

    tour_retry(&s, id);
    stage_go(&s);

    cb_uuid second = cb_uuid_derived(&id, "command/bookRisk/2");
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_record(&s, second.text, id, "COMMAND", "bookRisk", "command_id::text");
    expect_record(&s, "2 ", id, "COMMAND", "bookRisk",
                  "send_no || ' ' || coalesce(error_code, '')");
    tour_book(&s, "risk");
    stage_go(&s);
    expect_commands(&s, "risk/BookRisk CANCELED, risk/BookRisk COMPLETED, fx/BookFx PENDING", id);
    stage_close(&s);
}

Test(command_timeout, a_retry_that_comes_before_the_cancel_is_delivered_does_the_same) /* send_no */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    stage_wait(&s, 601);
    cr_expect(stage_step(&s));
    test_exec(s.rig.sql, "UPDATE pgmq.q_payments__replies SET vt = vt + interval '1 hour'");

    tour_retry(&s, id);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_record(&s, "1", id, "COMMAND", "bookRisk", "send_no::text"); /* not known to be over */
    test_exec(s.rig.sql, "UPDATE pgmq.q_payments__replies SET vt = vt - interval '1 hour'");
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
    expect_parked(&s, id);
    expect_commands(&s, "risk/BookRisk IN_PROGRESS", id);

    cb_settlement late = test_outcome(c, CB_SUCCESS);
    late.domain = "risk";
    late.result = "{\"id\":7}";
    expect_verdict(CB_SETTLED, test_settle_one(s.rig.db, "handlers", late));
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_column(&s, "bookFx", id, "current_wait");
    stage_close(&s);
}

Test(command_timeout, a_retry_while_the_command_runs_only_gives_it_new_time) /* one live command */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    OWNED(cb_claim) claim = stage_receive(&s, "risk");

    stage_wait(&s, 601);
    stage_go(&s);
    tour_retry(&s, id);
    stage_go(&s);

    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_commands(&s, "risk/BookRisk IN_PROGRESS", id);
    expect_record(&s, "1", id, "COMMAND", "bookRisk", "send_no::text");
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
    expect_verdict(CB_SETTLED, test_settle_one(s.rig.db, "handlers", broken));
    stage_go(&s);
    expect_parked(&s, id);

    tour_retry(&s, id);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ COMMAND_IN_TSQ", id);
    tour_retry(&s, id);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_commands(&s, "risk/BookRisk PENDING", id);
    stage_close(&s);
}
