/* PaymentStep: every way that a payment can go, and what is left of it. SIM.3, SIM.4. */
#include "payer.h"

#include <stdio.h>

static stage s;

static void open_stage(void)
{
    s = payer_open();
}

static void close_stage(void)
{
    payer_close(&s);
}

TestSuite(payment_step, .init = open_stage, .fini = close_stage);

#define BOOKED_RISK "STEP updateStatusProcessing COMPLETED, COMMAND bookRisk COMPLETED"

/* SIM.3, SIM.4 */
Test(payment_step, approved_and_in_one_currency_needs_no_fx_and_ends_complete)
{
    cb_uuid id = payer_start(&s, "PaymentStep", "EUR", 0);
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_payment(&s, "PROCESSING", id);

    payer_risk(&s, "APPROVED");
    payer_submit(&s);
    for (int level = 1; level <= 4; level++)
        payer_confirm(&s, id, level, NULL);

    expect_status(&s, "COMPLETED", id);
    expect_payment(&s, "COMPLETE", id);
    expect_commands(&s, "risk/BookRisk COMPLETED, payments/SubmitPayment COMPLETED", id);
    expect_history(&s,
                   BOOKED_RISK ", COMMAND submitPayment COMPLETED, "
                               "WAIT awaitL1 COMPLETED, RESPONSE L1 COMPLETED, "
                               "WAIT awaitL2 COMPLETED, RESPONSE L2 COMPLETED, "
                               "WAIT awaitL3 COMPLETED, RESPONSE L3 COMPLETED, "
                               "WAIT awaitL4 COMPLETED, RESPONSE L4 COMPLETED, "
                               "STEP updateStatusComplete COMPLETED",
                   id);
    expect_state(&s, "true", id, "riskApproved");
    expect_state(&s, "false", id, "fxRequired");
    expect_state(&s, "L4-REF-0BADCAFE", id, "l4Reference");
    expect_state(&s, "COMPLETE", id, "status");
    expect_nothing_waits(&s);
}

/* SIM.3: what the commands carry, how often they may run, where the amounts come from. */
Test(payment_step, in_two_currencies_books_fx_and_submits_what_the_contract_says)
{
    cb_uuid id = payer_submitted(&s, "USD", 0);

    expect_data(&s, "amount=100.00 creditAccount=ACC-2 currency=EUR debitAccount=ACC-1", id,
                "BookRisk");
    expect_data(&s, "amount=100.00 fromCurrency=EUR toCurrency=USD valueDate=2099-01-05", id,
                "BookFx");
    expect_data(&s,
                "amount=108.37 creditAccount=ACC-2 currency=USD debitAccount=ACC-1 "
                "executionModel=PROCESS_STEP valueDate=2099-01-05",
                id, "SubmitPayment");
    expect_value(
        s.rig.sql, "BookFx 2, BookRisk 3, SubmitPayment 1",
        "SELECT string_agg(command_type || ' ' || max_attempts, ', ' ORDER BY command_type) "
        "FROM commandbus.command_metadata WHERE correlation_id = $1",
        id.text);
    expect_state(&s, "FX-1", id, "fxContractId");
    expect_state(&s, "1.0837", id, "fxRate");
    expect_state(&s, "108.37", id, "creditAmount");
    expect_state(&s, "PAY-1", id, "submissionReference");
}

/* SIM.3: pending → approved. The person's row and the answer to the process are one. */
Test(payment_step, pending_waits_for_a_person_and_goes_on_when_approved)
{
    cb_uuid id = payer_start(&s, "PaymentStep", "EUR", 0);
    payer_risk(&s, "PENDING");
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_value(
        s.rig.sql, "awaitRiskApproval 02:00:00",
        "SELECT concat_ws(' ', current_wait, date_trunc('minute', next_wait_timeout_at - "
        "commandbus.now() + interval '30 s')) FROM commandbus.process WHERE process_id = $1",
        id.text);
    free(test_value(s.rig.sql,
                    "INSERT INTO payments.pending_approval (process_id, command_id) VALUES ($1, "
                    "gen_random_uuid()) RETURNING 1",
                    id.text, NULL));

    expect_value(s.rig.sql, "t", "SELECT payments.resolve_approval($1, true, 'ada')", id.text);
    expect_value(s.rig.sql, "f", "SELECT payments.resolve_approval($1, false, 'bob')", id.text);
    stage_go(&s);

    expect_value(s.rig.sql, "APPROVED ada t",
                 "SELECT concat_ws(' ', status, resolved_by, resolved_at IS NOT NULL) FROM "
                 "payments.pending_approval WHERE process_id = $1",
                 id.text);
    expect_state(&s, "true", id, "riskApproved");
    expect_state(&s, "APPROVED", id, "riskStatus");
    payer_submit(&s);
    for (int level = 1; level <= 4; level++)
        payer_confirm(&s, id, level, NULL);
    expect_status(&s, "COMPLETED", id);
}

/* SIM.3: pending → declined. */
Test(payment_step, pending_and_declined_by_a_person_is_undone)
{
    cb_uuid id = payer_start(&s, "PaymentStep", "USD", 0);
    payer_risk(&s, "PENDING");

    stage_respond(&s, id, "riskApproval", "{\"status\": \"DECLINED\", \"reason\": \"a mule\"}");
    stage_go(&s);
    payer_release(&s, "risk", "ReleaseRisk");

    expect_status(&s, "COMPENSATED RISK_DECLINED", id);
    expect_payment(&s, "CANCELLED", id);
    expect_state(&s, "CANCELLED", id, "status");
    expect_commands(&s, "risk/BookRisk COMPLETED, risk/ReleaseRisk COMPLETED", id);
    expect_value(s.rig.sql, "a mule",
                 "SELECT error_message FROM commandbus.process WHERE process_id = $1", id.text);
    expect_nothing_waits(&s);
}

Test(payment_step, a_decision_that_comes_before_the_booking_is_not_lost)
{
    cb_uuid id = payer_start(&s, "PaymentStep", "EUR", 0);

    stage_respond(&s, id, "riskApproval", "{\"status\": \"APPROVED\"}");
    stage_go(&s);
    payer_risk(&s, "PENDING");

    expect_commands(&s, "risk/BookRisk COMPLETED, payments/SubmitPayment PENDING", id);
    expect_state(&s, "true", id, "riskApproved");
}

/* Neither says anything that could be taken for a yes or a no. */
Test(payment_step, a_decision_that_is_none_is_refused_and_the_first_one_counts)
{
    cb_uuid id = payer_start(&s, "PaymentStep", "EUR", 0);
    payer_risk(&s, "PENDING");

    stage_respond(&s, id, "riskApproval", "{}");
    stage_respond(&s, id, "riskApproval", "{\"status\": \"PENDING\"}");
    stage_respond(&s, id, "riskApproval", "{\"status\": true}");
    stage_respond(&s, id, "riskApproval", "[]");
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_ASYNC", id);

    stage_respond(&s, id, "riskApproval", "{\"status\": \"APPROVED\"}");
    stage_respond(&s, id, "riskApproval", "{\"status\": \"DECLINED\"}");
    stage_go(&s);
    expect_state(&s, "APPROVED", id, "riskStatus");
}

/* SIM.3: declined. */
Test(payment_step, declined_is_undone_and_nothing_else_was_booked)
{
    cb_uuid id = payer_start(&s, "PaymentStep", "USD", 0);

    payer_risk(&s, "DECLINED");
    payer_release(&s, "risk", "ReleaseRisk");

    expect_status(&s, "COMPENSATED RISK_DECLINED", id);
    expect_payment(&s, "CANCELLED", id);
    expect_commands(&s, "risk/BookRisk COMPLETED, risk/ReleaseRisk COMPLETED", id);
}

Test(payment_step, a_business_no_of_the_risk_api_leaves_nothing_to_release)
{
    cb_uuid id = payer_start(&s, "PaymentStep", "EUR", 0);

    payer_serve(&s, "risk", "BookRisk", CB_BUSINESS_RULE, NULL, "BIZ_ERROR");

    expect_status(&s, "COMPENSATED BIZ_ERROR", id);
    expect_payment(&s, "CANCELLED", id);
    expect_commands(&s, "risk/BookRisk FAILED", id);
}

/* SIM.3: FX fails → risk released. */
Test(payment_step, when_fx_says_no_the_risk_is_released)
{
    cb_uuid id = payer_start(&s, "PaymentStep", "USD", 0);
    payer_risk(&s, "APPROVED");

    payer_serve(&s, "fx", "BookFx", CB_BUSINESS_RULE, NULL, "BIZ_ERROR");
    expect_value(s.rig.sql, "RISK-1",
                 "SELECT data::jsonb ->> 'reference' FROM commandbus.command_metadata WHERE "
                 "correlation_id = $1 AND command_type = 'ReleaseRisk'",
                 id.text);
    payer_release(&s, "risk", "ReleaseRisk");

    expect_status(&s, "COMPENSATED BIZ_ERROR", id);
    expect_payment(&s, "CANCELLED", id);
    expect_commands(&s, "risk/BookRisk COMPLETED, fx/BookFx FAILED, risk/ReleaseRisk COMPLETED",
                    id);
}

/* SIM.3: FX in the TSQ; an operator gives it up. */
Test(payment_step, when_fx_cannot_be_booked_an_operator_decides)
{
    cb_uuid id = payer_start(&s, "PaymentStep", "USD", 0);
    payer_risk(&s, "APPROVED");

    payer_serve(&s, "fx", "BookFx", CB_PERMANENT, NULL, "PERM_ERROR");
    expect_status(&s, "WAITING_FOR_TSQ COMMAND_IN_TSQ", id);
    expect_payment(&s, "PROCESSING", id);

    payer_cancel(&s, id, true);
    payer_release(&s, "risk", "ReleaseRisk");
    expect_status(&s, "CANCELED CANCELED", id);
    expect_payment(&s, "CANCELLED", id);
}

/* Exact money: an amount that its currency cannot hold is not rounded. */
Test(payment_step, a_contract_whose_amount_is_none_of_its_currency_parks_the_payment)
{
    static const char *const contracts[] = {
        "{\"contractId\": \"FX-1\", \"rate\": \"160.25\", \"creditAmount\": \"16025.5\"}",
        "{\"contractId\": \"FX-1\", \"rate\": \"160.25\", \"creditAmount\": \"0\"}",
        "{\"contractId\": \"FX-1\", \"rate\": \"160.25\", \"creditAmount\": \"-1\"}",
        "{\"contractId\": \"FX-1\", \"rate\": \"160.25\", \"creditAmount\": 16025}",
        "{\"rate\": \"160.25\", \"creditAmount\": \"16025\"}",
        "{}",
    };

    for (size_t i = 0; i < CB_COUNT(contracts); i++) {
        cb_uuid id = payer_start(&s, "PaymentStep", "JPY", 0);
        payer_risk(&s, "APPROVED");
        payer_serve(&s, "fx", "BookFx", CB_SUCCESS, contracts[i], NULL);
        expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);
    }
}

/* SIM.3: submit fails. */
Test(payment_step, when_the_gateway_says_no_everything_is_released_in_reverse)
{
    cb_uuid id = payer_start(&s, "PaymentStep", "USD", 0);
    payer_risk(&s, "APPROVED");
    payer_fx(&s);

    payer_serve(&s, "payments", "SubmitPayment", CB_BUSINESS_RULE, NULL, "BIZ_ERROR");
    payer_release(&s, "fx", "ReleaseFx");
    payer_release(&s, "risk", "ReleaseRisk");

    expect_status(&s, "COMPENSATED BIZ_ERROR", id);
    expect_payment(&s, "CANCELLED", id);
    expect_commands(&s,
                    "risk/BookRisk COMPLETED, fx/BookFx COMPLETED, payments/SubmitPayment FAILED, "
                    "fx/ReleaseFx COMPLETED, risk/ReleaseRisk COMPLETED",
                    id);
    expect_nothing_waits(&s);
}

/* One attempt: nobody knows whether the gateway has it, so nobody sends it again. */
Test(payment_step, a_submission_without_an_answer_is_not_repeated_but_left_to_a_person)
{
    cb_uuid id = payer_start(&s, "PaymentStep", "EUR", 0);
    payer_risk(&s, "APPROVED");

    payer_serve(&s, "payments", "SubmitPayment", CB_TRANSIENT, NULL, "TIMEOUT");

    expect_status(&s, "WAITING_FOR_TSQ COMMAND_IN_TSQ", id);
    expect_commands(&s, "risk/BookRisk COMPLETED, payments/SubmitPayment IN_TROUBLESHOOTING_QUEUE",
                    id);
    expect_payment(&s, "PROCESSING", id);
}

/* SIM.3: an error in Ln is a business failure. */
Test(payment_step, an_error_of_any_level_releases_everything)
{
    for (int level = 1; level <= 4; level++) {
        cb_uuid id = payer_confirmed(&s, "USD", level - 1);
        char expected[40], field[32];

        payer_confirm(&s, id, level, "{\"error\": \"AC04\", \"message\": \"closed account\"}");
        payer_release(&s, "fx", "ReleaseFx");
        payer_release(&s, "risk", "ReleaseRisk");

        snprintf(expected, sizeof expected, "COMPENSATED L%d_ERROR", level);
        expect_status(&s, expected, id);
        snprintf(field, sizeof field, "l%dErrorCode", level);
        expect_state(&s, "AC04", id, field);
        expect_payment(&s, "CANCELLED", id);
        expect_value(s.rig.sql, "AC04: closed account",
                     "SELECT error_message FROM commandbus.process WHERE process_id = $1", id.text);
        expect_value(s.rig.sql, "1 1",
                     "SELECT count(*) FILTER (WHERE command_type = 'ReleaseFx') || ' ' || count(*) "
                     "FILTER (WHERE command_type = 'ReleaseRisk') FROM commandbus.command_metadata "
                     "WHERE correlation_id = $1",
                     id.text);
    }
    expect_nothing_waits(&s);
}

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
Test(payment_step, every_level_has_its_time_and_then_an_operator_decides)
{
    for (size_t i = 0; i < CB_COUNT(waits); i++) {
        cb_uuid id = payer_confirmed(&s, "EUR", waits[i].confirmed);

        stage_wait(&s, waits[i].seconds - 2);
        stage_go(&s);
        expect_status(&s, "WAITING_FOR_ASYNC", id);
        stage_wait(&s, 3);
        stage_go(&s);

        expect_status(&s, "WAITING_FOR_TSQ WAIT_TIMEOUT", id);
        expect_value(s.rig.sql, waits[i].message,
                     "SELECT error_message FROM commandbus.process WHERE process_id = $1", id.text);
        expect_payment(&s, "PROCESSING", id);
    }
}

static cb_uuid timed_out(const char *to_currency)
{
    cb_uuid id = payer_confirmed(&s, to_currency, 0);

    stage_wait(&s, 5 * 60 + 1);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ WAIT_TIMEOUT", id);
    return id;
}

/* Wait timeout → TSQ → retry. */
Test(payment_step, an_operator_who_retries_a_wait_gives_it_its_whole_time_again)
{
    cb_uuid id = timed_out("EUR");

    payer_retry(&s, id);
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    stage_wait(&s, 4 * 60);
    for (int level = 1; level <= 4; level++)
        payer_confirm(&s, id, level, NULL);

    expect_status(&s, "COMPLETED", id);
    expect_payment(&s, "COMPLETE", id);
}

/* Wait timeout → TSQ → cancel with compensations. */
Test(payment_step, an_operator_who_cancels_has_everything_released)
{
    cb_uuid id = timed_out("USD");

    payer_cancel(&s, id, true);
    payer_release(&s, "fx", "ReleaseFx");
    payer_release(&s, "risk", "ReleaseRisk");

    expect_status(&s, "CANCELED CANCELED", id);
    expect_payment(&s, "CANCELLED", id);
}

/* Wait timeout → TSQ → cancel without compensations: SIM.4, FAILED. */
Test(payment_step, an_operator_who_cancels_without_compensations_leaves_a_failed_payment)
{
    cb_uuid id = timed_out("USD");

    payer_cancel(&s, id, false);

    expect_status(&s, "CANCELED CANCELED", id);
    expect_payment(&s, "FAILED", id);
    expect_state(&s, "FAILED", id, "status");
    expect_nothing_waits(&s);
}

/* Wait timeout → TSQ → complete. */
Test(payment_step, an_operator_who_completes_leaves_a_complete_payment)
{
    cb_uuid id = timed_out("EUR");

    payer_complete(&s, id, "{\"l4Reference\": \"BY-HAND\"}");

    expect_status(&s, "COMPLETED", id);
    expect_payment(&s, "COMPLETE", id);
    expect_state(&s, "BY-HAND", id, "l4Reference");
}

Test(payment_step, an_approval_that_nobody_gives_times_out_after_two_hours)
{
    cb_uuid id = payer_start(&s, "PaymentStep", "EUR", 0);
    payer_risk(&s, "PENDING");

    stage_wait(&s, 2 * 3600 - 5);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    stage_wait(&s, 6);
    stage_go(&s);

    expect_status(&s, "WAITING_FOR_TSQ WAIT_TIMEOUT", id);
}

/* SIM.3: deadline COMPENSATE before submit. */
Test(payment_step, past_its_deadline_and_not_submitted_it_is_undone)
{
    cb_uuid id = payer_start(&s, "PaymentStep", "USD", 60);
    payer_risk(&s, "APPROVED");

    stage_wait(&s, 61);
    stage_go(&s);
    payer_release(&s, "risk", "ReleaseRisk");

    expect_status(&s, "COMPENSATED DEADLINE_EXCEEDED", id);
    expect_payment(&s, "CANCELLED", id);
    /* Nobody had received it: it is not booked. */
    expect_commands(&s, "risk/BookRisk COMPLETED, fx/BookFx CANCELED, risk/ReleaseRisk COMPLETED",
                    id);
}

/* SIM.3: TSQ after it, also while nobody knows yet. */
Test(payment_step, past_its_deadline_and_submitted_it_waits_for_a_person)
{
    cb_uuid out = payer_start(&s, "PaymentStep", "EUR", 60);
    payer_risk(&s, "APPROVED");
    OWNED(cb_claim) claim = stage_receive(&s, "payments"); /* its handler runs */

    stage_wait(&s, 61);
    stage_go(&s);
    const cb_command *c = cb_claim_at(claim, 0);
    cb_settlement paid = { .domain = "payments",
                           .command_id = c->command_id,
                           .lease_no = c->lease_no,
                           .outcome = CB_SUCCESS,
                           .result = "{\"reference\": \"PAY-1\"}" };
    expect_verdict(CB_SETTLED, test_settle_one(s.rig.db, "handlers", paid));
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ DEADLINE_EXCEEDED", out);
    expect_value(s.rig.sql, "0",
                 "SELECT count(*) FROM commandbus.command_metadata WHERE correlation_id = $1 AND "
                 "command_type LIKE 'Release%'",
                 out.text);
    expect_value(s.rig.sql, "FORWARD", "SELECT phase FROM commandbus.process WHERE process_id = $1",
                 out.text);

    cb_uuid in = payer_submitted(&s, "USD", 60);
    stage_wait(&s, 61);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ DEADLINE_EXCEEDED", in);
    expect_payment(&s, "PROCESSING", in);
}

/* STP.11 for this type: all at once, and before their waits. */
Test(payment_step, confirmations_that_come_all_at_once_and_early_are_each_applied_once)
{
    cb_uuid id = payer_start(&s, "PaymentStep", "EUR", 0);
    payer_risk(&s, "APPROVED");

    for (int level = 4; level >= 1; level--)
        payer_confirm(&s, id, level, NULL);
    payer_confirm(&s, id, 1, "{\"error\": \"LATE\"}"); /* one outcome a wait: the first */
    payer_confirm(&s, id, 2, "{}");
    payer_submit(&s);

    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "L1-REF-0BADCAFE", id, "l1Reference");
    expect_value(
        s.rig.sql, "t",
        "SELECT state ->> 'l1ErrorCode' IS NULL FROM commandbus.process WHERE process_id = $1",
        id.text);
}

/* What bad input gets: a code, and nothing booked. */
Test(payment_step, facts_that_are_no_payment_end_with_a_code_and_book_nothing)
{
    static const struct {
        const char *state, *code;
    } wrong[] = {
        { "{}", "MISSING_FIELD" },
        { "{\"debitAccount\": \"A\", \"creditAccount\": \"A\", \"debitAmount\": \"1.00\", "
          "\"debitCurrency\": \"EUR\", \"creditCurrency\": \"EUR\", \"valueDate\": \"2099-01-05\"}",
          "SAME_ACCOUNT" },
        { "{\"debitAccount\": \"A\", \"creditAccount\": \"B\", \"debitAmount\": \"1.001\", "
          "\"debitCurrency\": \"EUR\", \"creditCurrency\": \"EUR\", \"valueDate\": \"2099-01-05\"}",
          "INVALID_AMOUNT" },
        { "{\"debitAccount\": \"A\", \"creditAccount\": \"B\", \"debitAmount\": \"-1.00\", "
          "\"debitCurrency\": \"EUR\", \"creditCurrency\": \"EUR\", \"valueDate\": \"2099-01-05\"}",
          "INVALID_AMOUNT" },
        { "{\"debitAccount\": \"A\", \"creditAccount\": \"B\", \"debitAmount\": \"1.00\", "
          "\"originalCreditAmount\": \"9.00\", \"debitCurrency\": \"EUR\", \"creditCurrency\": \"EUR\", "
          "\"valueDate\": \"2099-01-05\"}",
          "INVALID_AMOUNT" },
        { "{\"debitAccount\": \"A\", \"creditAccount\": \"B\", \"debitAmount\": \"1.00\", "
          "\"creditAmount\": \"9.00\", \"debitCurrency\": \"EUR\", \"creditCurrency\": \"EUR\", "
          "\"valueDate\": \"2099-01-05\"}",
          "INVALID_AMOUNT" },
        { "{\"debitAccount\": \"A\", \"creditAccount\": \"B\", \"debitAmount\": \"1.00\", "
          "\"debitCurrency\": \"EUR\", \"creditCurrency\": \"XXY\", \"valueDate\": \"2099-01-05\"}",
          "UNKNOWN_CURRENCY" },
        { "{\"debitAccount\": \"A\", \"creditAccount\": \"B\", \"debitAmount\": \"1.00\", "
          "\"debitCurrency\": \"EUR\", \"creditCurrency\": \"EUR\", \"valueDate\": \"2099-02-29\"}",
          "INVALID_DATE" },
    };

    for (size_t i = 0; i < CB_COUNT(wrong); i++) {
        cb_uuid id = payer_start_with(&s, "PaymentStep", wrong[i].state);
        char expected[60];

        snprintf(expected, sizeof expected, "COMPENSATED %s", wrong[i].code);
        expect_status(&s, expected, id);
        expect_payment(&s, "none", id);
    }
    expect_nothing_waits(&s);
}

/* The payment's row may be there already, by the API: the process takes it up. SIM.4 */
Test(payment_step, a_payment_goes_from_draft_to_approved_to_processing)
{
    cb_uuid id = cb_uuid_new();
    cb_process_request_options options = { .process_id = id.text };
    cb_error e;

    expect_value(s.rig.sql, "NEW",
                 "SELECT verdict FROM payments.draft($1, 'ACC-1', 'ACC-2', 100.00, 'EUR', 'EUR', "
                 "'2099-01-05', '4 hours')",
                 id.text);
    expect_payment(&s, "DRAFT", id);
    free(test_value(s.rig.sql, "SELECT payments.mark($1, 'APPROVED')", id.text, NULL));
    expect_payment(&s, "APPROVED", id);

    cr_assert(
        cb_process_request_start(s.rig.db, "PaymentStep",
                                 "{\"debitAccount\": \"ACC-1\", \"creditAccount\": \"ACC-2\", "
                                 "\"debitAmount\": \"100.00\", \"debitCurrency\": \"EUR\", "
                                 "\"creditCurrency\": \"EUR\", \"valueDate\": \"2099-01-05\"}",
                                 &options, &id, &e),
        "%s", e.message);
    stage_go(&s);

    expect_payment(&s, "PROCESSING", id);
    free(test_value(s.rig.sql, "SELECT payments.mark($1, 'APPROVED')", id.text, NULL));
    expect_payment(&s, "PROCESSING", id); /* there is no way back */
}

/* DESIGN 8.4: whichever moment a worker dies at, everything was sent once and released once. */
Test(payment_step, survives_a_crash_at_every_moment)
{
    int moment = 1;

    for (bool crashed = true; crashed; moment++) {
        s.durable = 0;
        s.crash_after = moment;
        crashed = false;
        cb_uuid id = stage_start(&s, "PaymentStep",
                                 "{\"debitAccount\": \"ACC-1\", \"creditAccount\": \"ACC-2\", "
                                 "\"debitAmount\": \"100.00\", \"debitCurrency\": \"EUR\", "
                                 "\"creditCurrency\": \"USD\", \"valueDate\": \"2099-01-05\"}");
        static const struct {
            const char *domain, *result;
        } served[] = {
            { "risk", RISK("APPROVED") },
            { "fx", CONTRACT },
            { "payments", "{\"reference\": \"P\"}" },
            { NULL, NULL },
            { "fx", "{}" },
            { "risk", "{}" },
        };

        for (size_t i = 0; i <= CB_COUNT(served); i++) {
            stage_go(&s);
            if (s.crashed) {
                crashed = true;
                stage_restart(&s);
                stage_go(&s);
                stage_wait(&s, 6); /* an attempt that was lost is made again */
                stage_go(&s);
            }
            if (i == CB_COUNT(served))
                break;
            if (served[i].domain)
                stage_serve(&s, served[i].domain, CB_SUCCESS, served[i].result, NULL);
            else
                stage_respond(&s, id, "L1", "{\"error\": \"AC04\"}");
        }

        expect_status(&s, "COMPENSATED L1_ERROR", id);
        expect_payment(&s, "CANCELLED", id);
        expect_value(s.rig.sql, "5 5",
                     "SELECT count(*) || ' ' || count(DISTINCT command_type) FROM "
                     "commandbus.command_metadata WHERE correlation_id = $1",
                     id.text);
        expect_nothing_waits(&s);
    }
    cr_expect_gt(moment, 8, "only %d moments to die at", moment);
}
