/* PaymentStep when its time is over: waits, what an operator makes of them, deadlines. SIM.3,
 * SIM.4. */
#include "payer.h"

TestSuite(payment_time, .init = payer_open, .fini = payer_close);

static const struct {
    int confirmed;
    double seconds;
    const char *message;
} waits[] = {
    { 0, 5 * 60, "Wait condition 'awaitL1' timed out" },
    { 1, 5 * 60, "Wait condition 'awaitL2' timed out" },
    { 2, 3 * 3600, "Wait condition 'awaitL3' timed out" },
    { 3, 24 * 3600, "Wait condition 'awaitL4' timed out" },
};

/* SIM.3: wait timeout → TSQ, not before its time. */
Test(payment_time, every_level_has_its_time_and_then_an_operator_decides)
{
    for (size_t i = 0; i < CB_COUNT(waits); i++) {
        cb_uuid id = payer_confirmed("EUR", waits[i].confirmed);

        stage_wait(&payer, waits[i].seconds - 2);
        stage_go(&payer);
        expect_status(&payer, "WAITING_FOR_ASYNC", id);
        stage_wait(&payer, 3);
        stage_go(&payer);

        expect_status(&payer, "WAITING_FOR_TSQ WAIT_TIMEOUT", id);
        expect_value(bus.conn, waits[i].message,
                     "SELECT error_message FROM commandbus.process WHERE process_id = $1", id.text);
        expect_payment("PROCESSING", id);
    }
}

static cb_uuid time_out_payment(const char *to_currency)
{
    cb_uuid id = payer_confirmed(to_currency, 0);

    stage_wait(&payer, 5 * 60 + 1);
    stage_go(&payer);
    expect_status(&payer, "WAITING_FOR_TSQ WAIT_TIMEOUT", id);
    return id;
}

/* Wait timeout → TSQ → retry. */
Test(payment_time, an_operator_who_retries_a_wait_gives_it_its_whole_time_again)
{
    cb_uuid id = time_out_payment("EUR");

    payer_retry(id);
    expect_status(&payer, "WAITING_FOR_ASYNC", id);
    stage_wait(&payer, 4 * 60);
    for (int level = 1; level <= 4; level++)
        payer_confirm(id, level, NULL);

    expect_status(&payer, "COMPLETED", id);
    expect_payment("COMPLETE", id);
}

/* Wait timeout → TSQ → cancel with compensations. */
Test(payment_time, an_operator_who_cancels_has_everything_released)
{
    cb_uuid id = time_out_payment("USD");

    payer_cancel(id, true);
    payer_release("fx", "ReleaseFx");
    payer_release("risk", "ReleaseRisk");

    expect_status(&payer, "CANCELED CANCELED", id);
    expect_payment("CANCELLED", id);
}

/* Wait timeout → TSQ → cancel without compensations: CANCELLED too, as S1 section 11 has it. */
Test(payment_time, an_operator_who_cancels_without_compensations_leaves_a_cancelled_payment)
{
    cb_uuid id = time_out_payment("USD");

    payer_cancel(id, false);

    expect_status(&payer, "CANCELED CANCELED", id);
    expect_payment("CANCELLED", id);
    expect_state(&payer, "CANCELLED", id, "status");
    expect_nothing_waits();
}

/* Wait timeout → TSQ → complete. */
Test(payment_time, an_operator_who_completes_leaves_a_complete_payment)
{
    cb_uuid id = time_out_payment("EUR");

    payer_complete(id, "{\"l4Reference\": \"BY-HAND\"}");

    expect_status(&payer, "COMPLETED", id);
    expect_payment("COMPLETE", id);
    expect_state(&payer, "BY-HAND", id, "l4Reference");
}

Test(payment_time, an_approval_that_nobody_gives_times_out_after_two_hours)
{
    cb_uuid id = payer_start("PaymentStep", "EUR", 0);
    payer_risk("PENDING");

    stage_wait(&payer, 2 * 3600 - 5);
    stage_go(&payer);
    expect_status(&payer, "WAITING_FOR_ASYNC", id);
    stage_wait(&payer, 6);
    stage_go(&payer);

    expect_status(&payer, "WAITING_FOR_TSQ WAIT_TIMEOUT", id);
}

/* SIM.3: deadline COMPENSATE before submit. */
Test(payment_time, past_its_deadline_and_not_submitted_it_is_undone)
{
    cb_uuid id = payer_start("PaymentStep", "USD", 60);
    payer_risk("APPROVED");

    stage_wait(&payer, 61);
    stage_go(&payer);
    payer_release("risk", "ReleaseRisk");

    expect_status(&payer, "COMPENSATED DEADLINE_EXCEEDED", id);
    expect_payment("CANCELLED", id);
    /* Nobody had received it: it is not booked. */
    expect_commands(&payer,
                    "risk/BookRisk COMPLETED, fx/BookFx CANCELED, risk/ReleaseRisk COMPLETED", id);
}

/* SIM.3: TSQ after it, also while nobody knows yet. */
Test(payment_time, past_its_deadline_and_submitted_it_waits_for_a_person)
{
    cb_uuid out = payer_start("PaymentStep", "EUR", 60);
    payer_risk("APPROVED");
    OWNED(cb_claim) claim = stage_receive(&payer, "payments"); /* its handler runs */

    stage_wait(&payer, 61);
    stage_go(&payer);
    const cb_command *c = cb_claim_at(claim, 0);
    cb_settlement paid = { .domain = "payments",
                           .command_id = c->command_id,
                           .lease_no = c->lease_no,
                           .outcome = CB_SUCCESS,
                           .result = "{\"reference\": \"PAY-1\"}" };
    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "handlers", paid));
    stage_go(&payer);
    expect_status(&payer, "WAITING_FOR_TSQ DEADLINE_EXCEEDED", out);
    expect_value(bus.conn, "0",
                 "SELECT count(*) FROM commandbus.command_metadata WHERE correlation_id = $1 AND "
                 "command_type LIKE 'Release%'",
                 out.text);
    expect_value(bus.conn, "FORWARD", "SELECT phase FROM commandbus.process WHERE process_id = $1",
                 out.text);

    cb_uuid in = payer_submitted("USD", 60);
    stage_wait(&payer, 61);
    stage_go(&payer);
    expect_status(&payer, "WAITING_FOR_TSQ DEADLINE_EXCEEDED", in);
    expect_payment("PROCESSING", in);
}
