/* PaymentStep and its operators: commands in the troubleshooting queue, decisions at odd moments,
 * answers that come too late or twice. SIM.3, SIM.4, STP.12, RL.3. */
#include "payer.h"

TestSuite(payment_operator, .init = payer_open, .fini = payer_close);

/* A payment whose submission got no answer. */
static cb_uuid unanswered(const char *to_currency)
{
    cb_uuid id = payer_start("PaymentStep", to_currency, 0);

    payer_risk("APPROVED");
    if (strcmp(to_currency, "EUR") != 0)
        payer_fx();
    payer_serve("payments", "SubmitPayment", CB_TRANSIENT, NULL, "TIMEOUT");
    expect_status(&payer, "WAITING_FOR_TSQ COMMAND_IN_TSQ", id);
    return id;
}

/* What an operator says about the payment's command in the troubleshooting queue; then the process
 * goes on. */
static void decide_by_sql(cb_uuid id, const char *sql)
{
    free(test_value(bus.conn, sql, id.text, NULL));
    stage_go(&payer);
}

#define OF_THE_COMMAND                                                         \
    "FROM commandbus.command_metadata WHERE correlation_id = $1 AND status = " \
    "'IN_TROUBLESHOOTING_QUEUE'"

/* The gateway has it: somebody looked. */
Test(payment_operator, completing_a_submission_lets_the_payment_wait_for_the_network)
{
    cb_uuid id = unanswered("EUR");

    decide_by_sql(id, "SELECT commandbus.tsq_complete(domain, command_id, 'ada', 'it is there', "
                      "'{\"reference\": \"PAY-9\"}') " OF_THE_COMMAND);
    expect_status(&payer, "WAITING_FOR_ASYNC", id);
    expect_state(&payer, "PAY-9", id, "submissionReference");
    for (int level = 1; level <= 4; level++)
        payer_confirm(id, level, NULL);

    expect_status(&payer, "COMPLETED", id);
    expect_payment("COMPLETE", id);
}

/* The gateway has it not: it is tried again, by whoever decides about the command or about the
 * process. */
Test(payment_operator, retrying_a_submission_sends_it_again)
{
    for (int by_process = 0; by_process <= 1; by_process++) {
        cb_uuid id = unanswered("EUR");

        if (by_process)
            payer_retry(id);
        else
            decide_by_sql(
                id,
                "SELECT commandbus.tsq_retry(domain, command_id, 'ada', 'again') " OF_THE_COMMAND);
        payer_submit();

        expect_status(&payer, "WAITING_FOR_ASYNC", id);
        expect_commands(&payer, "risk/BookRisk COMPLETED, payments/SubmitPayment COMPLETED", id);
    }
}

/* The gateway has it not, and is not to have it. */
Test(payment_operator, canceling_a_submission_releases_everything)
{
    for (int by_process = 0; by_process <= 1; by_process++) {
        cb_uuid id = unanswered("USD");

        if (by_process)
            payer_cancel(id, true);
        else
            decide_by_sql(id, "SELECT commandbus.tsq_cancel(domain, command_id, 'ada', "
                              "'never arrived') " OF_THE_COMMAND);
        payer_release("fx", "ReleaseFx");
        payer_release("risk", "ReleaseRisk");

        expect_value(bus.conn, by_process ? "CANCELED" : "COMPENSATED",
                     "SELECT status FROM commandbus.process WHERE process_id = $1", id.text);
        expect_payment("CANCELLED", id);
        expect_value(bus.conn, "CANCELED",
                     "SELECT status FROM commandbus.command_metadata WHERE correlation_id = $1 AND "
                     "command_type = 'SubmitPayment'",
                     id.text);
    }
    expect_nothing_waits();
}

/* An operator who completes a booking without its reference would leave it behind: the process does
 * not take it. */
Test(payment_operator, a_booking_completed_by_hand_needs_its_reference)
{
    cb_uuid id = payer_start("PaymentStep", "EUR", 0);
    payer_serve("risk", "BookRisk", CB_PERMANENT, NULL, "RESPONSE_INVALID");
    expect_status(&payer, "WAITING_FOR_TSQ COMMAND_IN_TSQ", id);

    decide_by_sql(id, "SELECT commandbus.tsq_complete(domain, command_id, 'ada', "
                      "'booked', NULL) " OF_THE_COMMAND);

    expect_status(&payer, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);
    expect_commands(&payer, "risk/BookRisk COMPLETED", id);
    /* It is owed all the same, and the release that cannot name it fails where people see it. */
    payer_cancel(id, true);
    payer_serve("risk", "ReleaseRisk", CB_PERMANENT, NULL, "INVALID_DATA");
    expect_status(&payer, "WAITING_FOR_TSQ COMPENSATION_FAILED", id);
    payer_cancel(id, false);
    expect_status(&payer, "CANCELED CANCELED", id);
    expect_payment("CANCELLED", id);
}

/* Nobody has received it: nobody is to. */
Test(payment_operator, canceling_before_a_submission_was_received_takes_it_back)
{
    cb_uuid id = payer_start("PaymentStep", "EUR", 60);
    payer_risk("APPROVED");
    stage_wait(&payer, 61);
    stage_go(&payer);
    expect_status(&payer, "WAITING_FOR_TSQ DEADLINE_EXCEEDED", id);

    payer_cancel(id, true);
    payer_release("risk", "ReleaseRisk");

    expect_status(&payer, "CANCELED CANCELED", id);
    expect_commands(&payer,
                    "risk/BookRisk COMPLETED, payments/SubmitPayment CANCELED, risk/ReleaseRisk "
                    "COMPLETED",
                    id);
    expect_payment("CANCELLED", id);
    expect_nothing_waits();
}

/* SIM.3: the approval's wait, and what an operator makes of it. */
Test(payment_operator, an_approval_that_timed_out_can_still_be_given_or_given_up)
{
    cb_uuid again = payer_start("PaymentStep", "EUR", 0);
    payer_risk("PENDING");
    cb_uuid given_up = payer_start("PaymentStep", "EUR", 0);
    payer_risk("PENDING");
    stage_wait(&payer, 2 * 3600 + 1);
    stage_go(&payer);
    expect_status(&payer, "WAITING_FOR_TSQ WAIT_TIMEOUT", again);
    expect_status(&payer, "WAITING_FOR_TSQ WAIT_TIMEOUT", given_up);

    stage_respond(&payer, again, "riskApproval", "{\"status\": \"APPROVED\"}");
    payer_retry(again);
    expect_commands(&payer, "risk/BookRisk COMPLETED, payments/SubmitPayment PENDING", again);
    payer_cancel(given_up, true);
    payer_release("risk", "ReleaseRisk");
    expect_status(&payer, "CANCELED CANCELED", given_up);
    expect_payment("CANCELLED", given_up);
}

/* SIM.3: COMPENSATE before submit, also while a person thinks; a decision that comes after it
 * changes nothing. */
Test(payment_operator, a_decision_after_the_deadline_does_not_bring_a_payment_back)
{
    cb_uuid id = payer_start("PaymentStep", "EUR", 60);
    payer_risk("PENDING");
    stage_wait(&payer, 61);
    stage_go(&payer);

    stage_respond(&payer, id, "riskApproval", "{\"status\": \"APPROVED\"}");
    stage_go(&payer);
    payer_release("risk", "ReleaseRisk");
    stage_respond(&payer, id, "L1", "{\"reference\": \"L1-REF-0BADCAFE\"}");
    stage_go(&payer);

    expect_status(&payer, "COMPENSATED DEADLINE_EXCEEDED", id);
    expect_payment("CANCELLED", id);
    expect_commands(&payer, "risk/BookRisk COMPLETED, risk/ReleaseRisk COMPLETED", id);
    expect_nothing_waits();
}

/* DESIGN 8.4: what was booked while the payment was given up is released too. */
Test(payment_operator, a_booking_that_succeeds_after_the_deadline_is_released)
{
    cb_uuid id = payer_start("PaymentStep", "USD", 60);
    payer_risk("APPROVED");
    OWNED(cb_claim) claim = stage_receive(&payer, "fx"); /* its handler runs */
    stage_wait(&payer, 61);
    stage_go(&payer);

    const cb_command *c = cb_claim_at(claim, 0);
    cb_settlement booked = { .domain = "fx",
                             .command_id = c->command_id,
                             .lease_no = c->lease_no,
                             .outcome = CB_SUCCESS,
                             .result = CONTRACT };
    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "handlers", booked));
    stage_go(&payer);
    payer_release("fx", "ReleaseFx");
    payer_release("risk", "ReleaseRisk");

    expect_status(&payer, "COMPENSATED DEADLINE_EXCEEDED", id);
    expect_payment("CANCELLED", id);
    expect_nothing_waits();
}

/* A release that fails parks the payment; nothing else of it is released before, and nothing
 * twice. */
Test(payment_operator, a_release_that_fails_waits_for_an_operator_who_has_it_tried_again)
{
    cb_uuid id = payer_confirmed("USD", 0);
    payer_confirm(id, 1, "{\"error\": \"AC04\"}");

    payer_serve("fx", "ReleaseFx", CB_PERMANENT, NULL, "HTTP_404");
    expect_status(&payer, "WAITING_FOR_TSQ COMPENSATION_FAILED", id);
    expect_payment("PROCESSING", id);
    payer_retry(id);
    payer_release("fx", "ReleaseFx");
    payer_release("risk", "ReleaseRisk");

    expect_status(&payer, "COMPENSATED L1_ERROR", id);
    expect_payment("CANCELLED", id);
    expect_nothing_waits();
}
