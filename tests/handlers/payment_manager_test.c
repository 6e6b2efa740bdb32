/* PaymentManager, the payment as a machine of steps, and PaymentWorkflow, the shorter one: how they
 * end well, and how not. SIM.3, SIM.4. */
#include "payer.h"

#include <stdio.h>

TestSuite(payment_manager, .init = payer_open, .fini = payer_close);
TestSuite(payment_workflow, .init = payer_open, .fini = payer_close);

#define mark(s) payer_serve("payments", "UpdatePaymentStatus", CB_SUCCESS, NULL, NULL)

/* SIM.3: the same commands, waits and names as PaymentStep. */
Test(payment_manager, pays_by_commands_and_responses_alone)
{
    cb_uuid id = payer_start("PaymentManager", "USD", 0);
    char reply[80];
    snprintf(reply, sizeof reply, "{\"paymentId\": \"%s\"}", id.text);
    payer_serve("payments", "UpdatePaymentStatus", CB_SUCCESS, reply, NULL);
    payer_risk("PENDING");
    expect_status(&payer, "WAITING_FOR_ASYNC", id);
    stage_respond(&payer, id, "riskApproval", "{\"status\": \"APPROVED\"}");
    stage_go(&payer);
    payer_fx();
    expect_status(&payer, "WAITING_FOR_REPLY", id);
    payer_submit();
    for (int level = 1; level <= 4; level++)
        payer_confirm(id, level, NULL);
    mark(&payer);

    expect_status(&payer, "COMPLETED", id);
    expect_value(bus.conn, "STEP_BASED",
                 "SELECT execution_model FROM commandbus.process WHERE process_id = $1", id.text);
    expect_data(submission("STEP_BASED", id), id, "SubmitPayment");
    expect_value(bus.conn, "PROCESSING COMPLETE",
                 "SELECT string_agg(data::jsonb ->> 'status', ' ' ORDER BY created_at) FROM "
                 "commandbus.command_metadata WHERE correlation_id = $1 AND command_type = "
                 "'UpdatePaymentStatus'",
                 id.text);
    expect_state(&payer, "COMPLETE", id, "status");
    expect_state(&payer, "true", id, "riskApproved");
    expect_nothing_waits();
}

/* SIM.3: each Ln, and a person, and the risk API can say no. */
Test(payment_manager, is_undone_in_reverse_by_an_error_of_any_level)
{
    for (int level = 1; level <= 4; level++) {
        cb_uuid id = payer_start("PaymentManager", "USD", 0);
        char expected[40];
        mark(&payer);
        payer_risk("APPROVED");
        payer_fx();
        payer_submit();
        for (int i = 1; i < level; i++)
            payer_confirm(id, i, NULL);

        payer_confirm(id, level, "{\"error\": \"AC04\"}");
        payer_release("fx", "ReleaseFx");
        payer_release("risk", "ReleaseRisk");
        mark(&payer);

        snprintf(expected, sizeof expected, "COMPENSATED L%d_ERROR", level);
        expect_status(&payer, expected, id);
        expect_value(bus.conn, "AC04: no reason given",
                     "SELECT error_message FROM commandbus.process WHERE process_id = $1", id.text);
        expect_data("contractId=FX-1", id, "ReleaseFx");
        expect_data("reference=RISK-1 status=APPROVED", id, "ReleaseRisk");
        expect_state(&payer, "CANCELLED", id, "status");
        expect_nothing_waits();
    }
}

Test(payment_manager, is_undone_when_declined_at_once_or_by_a_person)
{
    static const char *const risks[] = { RISK("DECLINED"), RISK("PENDING") };

    for (size_t i = 0; i < CB_COUNT(risks); i++) {
        cb_uuid id = payer_start("PaymentManager", "USD", 0);
        mark(&payer);
        payer_serve("risk", "BookRisk", CB_SUCCESS, risks[i], NULL);
        if (i == 1) {
            stage_respond(&payer, id, "riskApproval",
                          "{\"status\": \"DECLINED\", \"reason\": \"a mule\"}");
            stage_go(&payer);
        }
        payer_release("risk", "ReleaseRisk");
        mark(&payer);

        expect_status(&payer, "COMPENSATED RISK_DECLINED", id);
        expect_value(bus.conn, i == 1 ? "a mule" : "no reason given",
                     "SELECT error_message FROM commandbus.process WHERE process_id = $1", id.text);
        expect_data(i == 1 ? "reference=RISK-1 status=PENDING" : "reference=RISK-1 status=DECLINED",
                    id, "ReleaseRisk");
        expect_nothing_waits();
    }
}

/* SIM.3: COMPENSATE before submit, TSQ from when it is sent. */
Test(payment_manager, past_its_deadline_does_what_the_gateway_may_know)
{
    cb_uuid before = payer_start("PaymentManager", "USD", 60);
    mark(&payer);
    payer_risk("APPROVED");
    stage_wait(&payer, 61);
    stage_go(&payer);
    payer_release("risk", "ReleaseRisk");
    mark(&payer);
    expect_status(&payer, "COMPENSATED DEADLINE_EXCEEDED", before);

    cb_uuid behind = payer_start("PaymentManager", "EUR", 60);
    mark(&payer);
    payer_risk("APPROVED");
    expect_state(&payer, "true", behind, "submitted");
    payer_submit();
    stage_wait(&payer, 61);
    stage_go(&payer);
    expect_status(&payer, "WAITING_FOR_TSQ DEADLINE_EXCEEDED", behind);
}

Test(payment_manager, waits_for_an_operator_when_a_confirmation_does_not_come)
{
    cb_uuid id = payer_start("PaymentManager", "EUR", 0);
    mark(&payer);
    payer_risk("APPROVED");
    payer_submit();

    stage_wait(&payer, 5 * 60 + 1);
    stage_go(&payer);

    expect_status(&payer, "WAITING_FOR_TSQ WAIT_TIMEOUT", id);
}

/* SIM.4: a payment that an operator ends is what he made of it, though no command says so. */
Test(payment_manager, ended_by_an_operator_leaves_a_payment_that_is_complete_or_cancelled)
{
    for (int complete = 0; complete <= 1; complete++) {
        cb_uuid id = payer_start("PaymentManager", "EUR", 0);
        char reply[80];
        free(test_value(bus.conn,
                        "SELECT payments.begin($1, $1, 'ACC-1', 'ACC-2', 100.00, 'EUR', 'EUR', "
                        "'2099-01-05')",
                        id.text, NULL));
        snprintf(reply, sizeof reply, "{\"paymentId\": \"%s\"}", id.text);
        payer_serve("payments", "UpdatePaymentStatus", CB_SUCCESS, reply, NULL);
        payer_serve("risk", "BookRisk", CB_PERMANENT, NULL, "PERM_ERROR");
        expect_value(bus.conn, "WAITING_FOR_TSQ",
                     "SELECT status FROM commandbus.process WHERE process_id = $1", id.text);

        if (complete)
            payer_complete(id, NULL);
        else
            payer_cancel(id, false);

        expect_payment(complete ? "COMPLETE" : "CANCELLED", id);
    }
}

/* SIM.3: the gateway cannot be reached: nobody knows, so nobody does it again. */
Test(payment_workflow, validates_books_and_leaves_an_execution_without_answer_to_a_person)
{
    cb_uuid id = payer_start("PaymentWorkflow", "USD", 0);
    expect_payment("PROCESSING", id);
    payer_fx();
    payer_risk("APPROVED");

    expect_status(&payer, "WAITING_FOR_TSQ RETRIES_EXHAUSTED", id);
    expect_history(&payer,
                   "STEP validate COMPLETED, COMMAND bookFx COMPLETED, STEP enrichData COMPLETED, "
                   "COMMAND bookRisk COMPLETED, STEP executePayment FAILED",
                   id);
    expect_state(&payer, "7", id, "riskScore");

    payer_cancel(id, true);
    payer_release("risk", "ReleaseRisk");
    payer_release("fx", "ReleaseFx");
    expect_status(&payer, "CANCELED CANCELED", id);
    expect_payment("CANCELLED", id);
}

/* SIM.3, SIM.4: FAILED. */
Test(payment_workflow, an_invalid_payment_ends_failed_with_invalid_payment)
{
    cb_uuid id = cb_uuid_new();
    cb_process_request_options options = { .process_id = id.text };
    cb_error e;
    free(
        test_value(bus.conn,
                   "SELECT verdict FROM payments.draft($1, 'ACC-1', 'ACC-2', 100.00, 'EUR', 'EUR', "
                   "'2099-01-05', NULL)",
                   id.text, NULL));

    cr_assert(cb_process_request_start(bus.db, "PaymentWorkflow", "{\"debitAccount\": \"ACC-1\"}",
                                       &options, &id, &e),
              "%s", e.message);
    stage_go(&payer);

    expect_status(&payer, "COMPENSATED INVALID_PAYMENT", id);
    expect_payment("FAILED", id);
    expect_nothing_waits();
}

Test(payment_workflow, declined_releases_risk_and_fx)
{
    cb_uuid id = payer_start("PaymentWorkflow", "USD", 0);
    payer_fx();
    payer_risk("DECLINED");
    payer_release("risk", "ReleaseRisk");
    payer_release("fx", "ReleaseFx");

    expect_status(&payer, "COMPENSATED RISK_DECLINED", id);
    expect_payment("CANCELLED", id);
}
