/* An invalid payment gets a code and books nothing, in every process. "What bad input gets",
 * SIM.4. */
#include "payer.h"

#include <stdio.h>

TestSuite(payment_input, .init = payer_open, .fini = payer_close);

/* Facts that do not make a payment, and the code that each gets. */
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
    { "{\"debitAccount\": \"A\", \"creditAccount\": \"B\", \"debitAmount\": \"1.00\", "
      "\"debitCurrency\": \"EUR\", \"creditCurrency\": \"EUR\", \"valueDate\": \"2020-01-05\"}",
      "VALUE_DATE_PAST" },
};

/* What bad input gets: a code, and nothing booked. */
Test(payment_input, facts_that_do_not_make_a_payment_end_with_a_code_and_book_nothing)
{
    for (size_t i = 0; i < CB_COUNT(wrong); i++) {
        cb_uuid step = payer_start_with("PaymentStep", wrong[i].state);
        cb_uuid workflow = payer_start_with("PaymentWorkflow", wrong[i].state);
        char expected[60];

        snprintf(expected, sizeof expected, "COMPENSATED %s", wrong[i].code);
        expect_status(&payer, expected, step);
        expect_payment("none", step);
        expect_status(&payer, "COMPENSATED INVALID_PAYMENT", workflow);
        expect_payment("none", workflow);
    }
    expect_value(bus.conn, "0", "SELECT count(*) FROM commandbus.command_metadata");
}

/* Of the wrong type, or a number that nothing can hold: no state at all, so an operator hears of
 * it. */
Test(payment_input, an_invalid_state_waits_for_an_operator_and_books_nothing)
{
    static const char *const types[] = { "PaymentStep", "PaymentWorkflow", "PaymentManager" };
    static const char *const states[] = {
        "{\"debitAmount\": 12.5}",
        "{\"debitAmount\": \"1e5\"}",
        "{\"debitAmount\": \"99999999999999999999999999\"}",
        "{\"debitAccount\": 7}",
        "{\"status\": \"PAID\"}",
        "{\"paymentId\": \"mine\"}",
        "{\"submitted\": \"yes\"}",
    };

    for (size_t i = 0; i < CB_COUNT(types) * CB_COUNT(states); i++) {
        cb_uuid id = payer_start_with(types[i % CB_COUNT(types)], states[i / CB_COUNT(types)]);
        expect_status(&payer, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);
    }
    expect_value(bus.conn, "0", "SELECT count(*) FROM commandbus.command_metadata");
}

/* Who starts a payment neither approves nor confirms it. */
Test(payment_input, a_process_is_started_with_facts_and_nothing_that_is_to_happen)
{
    static const struct {
        const char *type, *code;
    } types[] = { { "PaymentStep", "COMPENSATED INVALID_DATA" },
                  { "PaymentWorkflow", "COMPENSATED INVALID_PAYMENT" },
                  { "PaymentManager", "COMPENSATED INVALID_DATA" } };
    static const char *const forged[] = {
        "\"riskDecision\": \"APPROVED\"", "\"riskApproved\": true",     "\"l4Received\": true",
        "\"l1Reference\": \"L1-REF-1\"",  "\"fxContractId\": \"FX-1\"", "\"submitted\": true",
    };

    for (size_t i = 0; i < CB_COUNT(types) * CB_COUNT(forged); i++) {
        char state[400];
        snprintf(state, sizeof state,
                 "{\"debitAccount\": \"A\", \"creditAccount\": \"B\", \"debitAmount\": \"1.00\", "
                 "\"debitCurrency\": \"EUR\", \"creditCurrency\": \"EUR\", \"valueDate\": "
                 "\"2099-01-05\", %s}",
                 forged[i / CB_COUNT(types)]);

        cb_uuid id = payer_start_with(types[i % CB_COUNT(types)].type, state);

        expect_status(&payer, types[i % CB_COUNT(types)].code, id);
    }
    expect_value(bus.conn, "0", "SELECT count(*) FROM commandbus.command_metadata");
}

/* The manager asks a command, whose answers payment_commands_test.c has. */
Test(payment_input, a_manager_that_is_told_that_its_payment_is_invalid_books_nothing)
{
    cb_uuid id = payer_start("PaymentManager", "EUR", 0);

    payer_serve("payments", "UpdatePaymentStatus", CB_BUSINESS_RULE, NULL, "VALUE_DATE_PAST");

    expect_status(&payer, "COMPENSATED VALUE_DATE_PAST", id);
    expect_commands(&payer, "payments/UpdatePaymentStatus FAILED", id);
    expect_nothing_waits();
}

/* A date that was good when the payment was taken up and has passed since is for FX and the gateway
 * to judge: no replay asks again. */
Test(payment_input, a_value_date_that_passes_later_does_not_break_a_payment)
{
    static const char *const types[] = { "PaymentStep", "PaymentWorkflow", "PaymentManager" };

    for (size_t i = 0; i < CB_COUNT(types); i++) {
        cb_uuid id = payer_start(types[i], "EUR", 0);
        if (i == 2)
            payer_serve("payments", "UpdatePaymentStatus", CB_SUCCESS, NULL, NULL);
        free(test_value(bus.conn,
                        "UPDATE commandbus.process SET state = state || '{\"valueDate\": "
                        "\"2020-01-05\"}', initial_state = initial_state || '{\"valueDate\": "
                        "\"2020-01-05\"}' WHERE process_id = $1 RETURNING 1",
                        id.text, NULL));

        payer_serve("risk", "BookRisk", CB_SUCCESS, RISK("PENDING"), NULL);

        expect_status(&payer, "WAITING_FOR_ASYNC", id);
        expect_state(&payer, "PENDING", id, "riskStatus");
        expect_state(&payer, "2020-01-05", id, "valueDate");
    }
}

/* Exact money: what a currency cannot hold, or nobody can, is refused and not rounded. */
Test(payment_input, an_amount_has_the_digits_of_its_currency)
{
    static const struct {
        const char *amount, *currency, *expected;
    } cases[] = {
        { "1", "JPY", "WAITING_FOR_ASYNC 1" },
        { "1.0", "JPY", "COMPENSATED INVALID_AMOUNT" },
        { "1.5", "JPY", "COMPENSATED INVALID_AMOUNT" },
        { "0.001", "BHD", "WAITING_FOR_ASYNC 0.001" },
        { "1.1", "BHD", "WAITING_FOR_ASYNC 1.100" },
        { "0.0001", "BHD", "COMPENSATED INVALID_AMOUNT" },
        { "0.01", "EUR", "WAITING_FOR_ASYNC 0.01" },
        { "0.005", "EUR", "COMPENSATED INVALID_AMOUNT" },
        { "92233720368547758.07", "EUR", "WAITING_FOR_ASYNC 92233720368547758.07" },
        { "92233720368547758.08", "EUR", "WAITING_FOR_TSQ PERMANENT_FAILURE" },
        { "9223372036854775807", "BHD", "COMPENSATED INVALID_AMOUNT" },
        { "0", "EUR", "COMPENSATED INVALID_AMOUNT" },
        { "0.00", "EUR", "COMPENSATED INVALID_AMOUNT" },
    };

    for (size_t i = 0; i < CB_COUNT(cases); i++) {
        char state[400];
        snprintf(state, sizeof state,
                 "{\"debitAccount\": \"A\", \"creditAccount\": \"B\", \"debitAmount\": \"%s\", "
                 "\"debitCurrency\": \"%s\", \"creditCurrency\": \"%s\", \"valueDate\": "
                 "\"2099-01-05\"}",
                 cases[i].amount, cases[i].currency, cases[i].currency);

        cb_uuid id = payer_start_with("PaymentStep", state);

        expect_value(
            bus.conn, cases[i].expected,
            "SELECT concat_ws(' ', p.status, p.error_code, c.data::jsonb ->> 'amount') FROM "
            "commandbus.process p LEFT JOIN commandbus.command_metadata c ON "
            "c.process_id = p.process_id WHERE p.process_id = $1",
            id.text);
    }
}
