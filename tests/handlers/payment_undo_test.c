/* PaymentStep when somebody says no: what was booked is released, once and in reverse. SIM.3,
 * SIM.4. */
#include "payer.h"

#include <stdio.h>

TestSuite(payment_undo, .init = payer_open, .fini = payer_close);

/* SIM.3: declined. */
Test(payment_undo, declined_is_undone_and_nothing_else_was_booked)
{
    cb_uuid id = payer_start("PaymentStep", "USD", 0);

    payer_risk("DECLINED");
    payer_release("risk", "ReleaseRisk");

    expect_status(&payer, "COMPENSATED RISK_DECLINED", id);
    expect_payment("CANCELLED", id);
    expect_commands(&payer, "risk/BookRisk COMPLETED, risk/ReleaseRisk COMPLETED", id);
}

/* SIM.3: pending → declined. */
Test(payment_undo, pending_and_declined_by_a_person_is_undone)
{
    cb_uuid id = payer_start("PaymentStep", "USD", 0);
    payer_risk("PENDING");

    stage_respond(&payer, id, "riskApproval", "{\"status\": \"DECLINED\", \"reason\": \"a mule\"}");
    stage_go(&payer);
    payer_release("risk", "ReleaseRisk");

    expect_status(&payer, "COMPENSATED RISK_DECLINED", id);
    expect_payment("CANCELLED", id);
    expect_state(&payer, "CANCELLED", id, "status");
    expect_commands(&payer, "risk/BookRisk COMPLETED, risk/ReleaseRisk COMPLETED", id);
    expect_value(bus.conn, "a mule",
                 "SELECT error_message FROM commandbus.process WHERE process_id = $1", id.text);
    expect_nothing_waits();
}

Test(payment_undo, a_business_no_of_the_risk_api_leaves_nothing_to_release)
{
    cb_uuid id = payer_start("PaymentStep", "EUR", 0);

    payer_serve("risk", "BookRisk", CB_BUSINESS_RULE, NULL, "BIZ_ERROR");

    expect_status(&payer, "COMPENSATED BIZ_ERROR", id);
    expect_payment("CANCELLED", id);
    expect_commands(&payer, "risk/BookRisk FAILED", id);
}

/* SIM.3: FX fails → risk released. */
Test(payment_undo, when_fx_says_no_the_risk_is_released)
{
    cb_uuid id = payer_start("PaymentStep", "USD", 0);
    payer_risk("APPROVED");

    payer_serve("fx", "BookFx", CB_BUSINESS_RULE, NULL, "BIZ_ERROR");
    expect_value(bus.conn, "RISK-1",
                 "SELECT data::jsonb ->> 'reference' FROM commandbus.command_metadata WHERE "
                 "correlation_id = $1 AND command_type = 'ReleaseRisk'",
                 id.text);
    payer_release("risk", "ReleaseRisk");

    expect_status(&payer, "COMPENSATED BIZ_ERROR", id);
    expect_payment("CANCELLED", id);
    expect_commands(&payer, "risk/BookRisk COMPLETED, fx/BookFx FAILED, risk/ReleaseRisk COMPLETED",
                    id);
}

/* SIM.3: FX in the TSQ; an operator gives it up. */
Test(payment_undo, when_fx_cannot_be_booked_an_operator_decides)
{
    cb_uuid id = payer_start("PaymentStep", "USD", 0);
    payer_risk("APPROVED");

    payer_serve("fx", "BookFx", CB_PERMANENT, NULL, "PERM_ERROR");
    expect_status(&payer, "WAITING_FOR_TSQ COMMAND_IN_TSQ", id);
    expect_payment("PROCESSING", id);

    payer_cancel(id, true);
    payer_release("risk", "ReleaseRisk");
    expect_status(&payer, "CANCELED CANCELED", id);
    expect_payment("CANCELLED", id);
}

/* Exact money: an amount that its currency cannot hold is not rounded. */
Test(payment_undo, a_contract_with_an_amount_that_its_currency_cannot_have_parks_the_payment)
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
        cb_uuid id = payer_start("PaymentStep", "JPY", 0);
        payer_risk("APPROVED");
        payer_serve("fx", "BookFx", CB_SUCCESS, contracts[i], NULL);
        expect_status(&payer, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);
    }
}

/* SIM.3: submit fails. */
Test(payment_undo, when_the_gateway_says_no_everything_is_released_in_reverse)
{
    cb_uuid id = payer_start("PaymentStep", "USD", 0);
    payer_risk("APPROVED");
    payer_fx();

    payer_serve("payments", "SubmitPayment", CB_BUSINESS_RULE, NULL, "BIZ_ERROR");
    payer_release("fx", "ReleaseFx");
    payer_release("risk", "ReleaseRisk");

    expect_status(&payer, "COMPENSATED BIZ_ERROR", id);
    expect_payment("CANCELLED", id);
    expect_commands(&payer,
                    "risk/BookRisk COMPLETED, fx/BookFx COMPLETED, payments/SubmitPayment FAILED, "
                    "fx/ReleaseFx COMPLETED, risk/ReleaseRisk COMPLETED",
                    id);
    expect_nothing_waits();
}

/* One attempt: nobody knows whether the gateway has it, so nobody sends it again. */
Test(payment_undo, a_submission_without_an_answer_is_not_repeated_but_left_to_a_person)
{
    cb_uuid id = payer_start("PaymentStep", "EUR", 0);
    payer_risk("APPROVED");

    payer_serve("payments", "SubmitPayment", CB_TRANSIENT, NULL, "TIMEOUT");

    expect_status(&payer, "WAITING_FOR_TSQ COMMAND_IN_TSQ", id);
    expect_commands(&payer,
                    "risk/BookRisk COMPLETED, payments/SubmitPayment IN_TROUBLESHOOTING_QUEUE", id);
    expect_payment("PROCESSING", id);
}

/* SIM.3: an error in Ln is a business failure. */
Test(payment_undo, an_error_of_any_level_releases_everything)
{
    for (int level = 1; level <= 4; level++) {
        cb_uuid id = payer_confirmed("USD", level - 1);
        char expected[40], field[32];

        payer_confirm(id, level, "{\"error\": \"AC04\", \"message\": \"closed account\"}");
        payer_release("fx", "ReleaseFx");
        payer_release("risk", "ReleaseRisk");

        snprintf(expected, sizeof expected, "COMPENSATED L%d_ERROR", level);
        expect_status(&payer, expected, id);
        snprintf(field, sizeof field, "l%dErrorCode", level);
        expect_state(&payer, "AC04", id, field);
        expect_payment("CANCELLED", id);
        expect_value(bus.conn, "AC04: closed account",
                     "SELECT error_message FROM commandbus.process WHERE process_id = $1", id.text);
        expect_value(bus.conn, "1 1",
                     "SELECT count(*) FILTER (WHERE command_type = 'ReleaseFx') || ' ' || count(*) "
                     "FILTER (WHERE command_type = 'ReleaseRisk') FROM commandbus.command_metadata "
                     "WHERE correlation_id = $1",
                     id.text);
    }
    expect_nothing_waits();
}
