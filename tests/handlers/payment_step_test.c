/* PaymentStep: the ways that a payment goes when nobody says no. SIM.3, SIM.4. */
#include "payer.h"

TestSuite(payment_step, .init = payer_open, .fini = payer_close);

#define BOOKED_RISK "STEP updateStatusProcessing COMPLETED, COMMAND bookRisk COMPLETED"

/* SIM.3, SIM.4 */
Test(payment_step, approved_and_in_one_currency_needs_no_fx_and_ends_complete)
{
    cb_uuid id = payer_start("PaymentStep", "EUR", 0);
    expect_status(&payer, "WAITING_FOR_ASYNC", id);
    expect_payment("PROCESSING", id);

    payer_risk("APPROVED");
    payer_submit();
    for (int level = 1; level <= 4; level++)
        payer_confirm(id, level, NULL);

    expect_status(&payer, "COMPLETED", id);
    expect_payment("COMPLETE", id);
    expect_commands(&payer, "risk/BookRisk COMPLETED, payments/SubmitPayment COMPLETED", id);
    expect_history(&payer,
                   BOOKED_RISK ", COMMAND submitPayment COMPLETED, "
                               "WAIT awaitL1 COMPLETED, RESPONSE L1 COMPLETED, "
                               "WAIT awaitL2 COMPLETED, RESPONSE L2 COMPLETED, "
                               "WAIT awaitL3 COMPLETED, RESPONSE L3 COMPLETED, "
                               "WAIT awaitL4 COMPLETED, RESPONSE L4 COMPLETED, "
                               "STEP updateStatusComplete COMPLETED",
                   id);
    expect_state(&payer, "true", id, "riskApproved");
    expect_state(&payer, "false", id, "fxRequired");
    expect_state(&payer, "L4-REF-0BADCAFE", id, "l4Reference");
    expect_state(&payer, "COMPLETE", id, "status");
    expect_nothing_waits();
}

/* SIM.3: what the commands carry, how often they may run, where the amounts come from. */
Test(payment_step, in_two_currencies_books_fx_and_submits_what_the_contract_says)
{
    cb_uuid id = payer_submitted("USD", 0);

    expect_data("amount=100.00 creditAccount=ACC-2 currency=EUR debitAccount=ACC-1", id,
                "BookRisk");
    expect_data("amount=100.00 fromCurrency=EUR toCurrency=USD valueDate=2099-01-05", id, "BookFx");
    expect_data(submission("PROCESS_STEP", id), id, "SubmitPayment");
    expect_value(
        bus.conn, "BookFx 2, BookRisk 3, SubmitPayment 1",
        "SELECT string_agg(command_type || ' ' || max_attempts, ', ' ORDER BY command_type) "
        "FROM commandbus.command_metadata WHERE correlation_id = $1",
        id.text);
    expect_state(&payer, "FX-1", id, "fxContractId");
    expect_state(&payer, "1.0837", id, "fxRate");
    expect_state(&payer, "108.37", id, "creditAmount");
    expect_state(&payer, "PAY-1", id, "submissionReference");
}

/* SIM.3: pending → approved. The person's row and the answer to the process are one. */
Test(payment_step, pending_waits_for_a_person_and_goes_on_when_approved)
{
    cb_uuid id = payer_start("PaymentStep", "EUR", 0);
    payer_risk("PENDING");
    expect_status(&payer, "WAITING_FOR_ASYNC", id);
    expect_value(
        bus.conn, "awaitRiskApproval 02:00:00",
        "SELECT concat_ws(' ', current_wait, date_trunc('minute', next_wait_timeout_at - "
        "commandbus.now() + interval '30 s')) FROM commandbus.process WHERE process_id = $1",
        id.text);
    free(test_value(bus.conn,
                    "INSERT INTO payments.pending_approval (process_id, command_id) VALUES ($1, "
                    "gen_random_uuid()) RETURNING 1",
                    id.text, NULL));

    expect_value(bus.conn, "t", "SELECT payments.resolve_approval($1, true, 'ada')", id.text);
    expect_value(bus.conn, "f", "SELECT payments.resolve_approval($1, false, 'bob')", id.text);
    stage_go(&payer);

    expect_value(bus.conn, "APPROVED ada t",
                 "SELECT concat_ws(' ', status, resolved_by, resolved_at IS NOT NULL) FROM "
                 "payments.pending_approval WHERE process_id = $1",
                 id.text);
    expect_state(&payer, "true", id, "riskApproved");
    expect_state(&payer, "APPROVED", id, "riskStatus");
    payer_submit();
    for (int level = 1; level <= 4; level++)
        payer_confirm(id, level, NULL);
    expect_status(&payer, "COMPLETED", id);
}

Test(payment_step, a_decision_that_comes_before_the_booking_is_not_lost)
{
    cb_uuid id = payer_start("PaymentStep", "EUR", 0);

    stage_respond(&payer, id, "riskApproval", "{\"status\": \"APPROVED\"}");
    stage_go(&payer);
    payer_risk("PENDING");

    expect_commands(&payer, "risk/BookRisk COMPLETED, payments/SubmitPayment PENDING", id);
    expect_state(&payer, "true", id, "riskApproved");
}

/* Neither says anything that could be taken for a yes or a no. */
Test(payment_step, an_invalid_decision_is_refused_and_the_first_valid_one_counts)
{
    cb_uuid id = payer_start("PaymentStep", "EUR", 0);
    payer_risk("PENDING");

    static const char *const none[] = { "{}", "{\"status\": \"PENDING\"}", "{\"status\": \"NONE\"}",
                                        "{\"status\": true}", "[]" };
    for (size_t i = 0; i < CB_COUNT(none); i++) {
        bool accepted;
        cb_error e = { 0 };
        cr_expect_not(
            cb_process_respond(bus.db, id.text, "riskApproval", none[i], NULL, &accepted, &e));
        cr_expect_eq(e.code, CB_INVALID_DATA, "%s: %s", none[i], e.message);
    }
    /* Nor would the process itself take one for a yes, from wherever it came. */
    test_exec(bus.conn, "UPDATE commandbus.process_type SET responses = NULL");
    for (size_t i = 0; i < CB_COUNT(none); i++)
        stage_respond(&payer, id, "riskApproval", none[i]);
    stage_go(&payer);
    expect_status(&payer, "WAITING_FOR_ASYNC", id);

    stage_respond(&payer, id, "riskApproval", "{\"status\": \"APPROVED\"}");
    stage_respond(&payer, id, "riskApproval", "{\"status\": \"DECLINED\"}");
    stage_go(&payer);
    expect_state(&payer, "APPROVED", id, "riskStatus");
}

/* STP.11 for this type: all at once, and before their waits. */
Test(payment_step, confirmations_that_come_all_at_once_and_early_are_each_applied_once)
{
    cb_uuid id = payer_start("PaymentStep", "EUR", 0);
    payer_risk("APPROVED");

    for (int level = 4; level >= 1; level--)
        payer_confirm(id, level, NULL);
    payer_confirm(id, 1, "{\"error\": \"LATE\"}"); /* one outcome a wait: the first */
    payer_submit();

    expect_status(&payer, "COMPLETED", id);
    expect_state(&payer, "L1-REF-0BADCAFE", id, "l1Reference");
    expect_value(
        bus.conn, "t",
        "SELECT state ->> 'l1ErrorCode' IS NULL FROM commandbus.process WHERE process_id = $1",
        id.text);
}
