/* The row of a payment begins with its process and ends with it, however it ends. SIM.4, SIM.8. */
#include "payer.h"

#include <stdio.h>

TestSuite(payment_end, .init = payer_open, .fini = payer_close);

/* The payment's row may be there already, by the API: the process takes it up. SIM.4 */
Test(payment_end, a_payment_goes_from_draft_to_approved_to_processing)
{
    cb_uuid id = cb_uuid_new();
    cb_process_request_options options = { .process_id = id.text };
    cb_error e;

    expect_value(bus.conn, "NEW",
                 "SELECT verdict FROM payments.draft($1, 'ACC-1', 'ACC-2', 100.00, 'EUR', 'EUR', "
                 "'2099-01-05', NULL)",
                 id.text);
    expect_payment("DRAFT", id);
    free(test_value(bus.conn, "SELECT payments.mark($1, $1, 'APPROVED')", id.text, NULL));
    expect_payment("APPROVED", id);

    cr_assert(
        cb_process_request_start(bus.db, "PaymentStep",
                                 "{\"debitAccount\": \"ACC-1\", \"creditAccount\": \"ACC-2\", "
                                 "\"debitAmount\": \"100.00\", \"debitCurrency\": \"EUR\", "
                                 "\"creditCurrency\": \"EUR\", \"valueDate\": \"2099-01-05\"}",
                                 &options, &id, &e),
        "%s", e.message);
    stage_go(&payer);

    expect_payment("PROCESSING", id);
    free(test_value(bus.conn, "SELECT payments.mark($1, $1, 'APPROVED')", id.text, NULL));
    expect_payment("PROCESSING", id); /* there is no way back */
}

static const char facts[] =
    "{\"debitAccount\": \"ACC-1\", \"creditAccount\": \"ACC-2\", \"debitAmount\": \"100.00\", "
    "\"debitCurrency\": \"EUR\", \"creditCurrency\": \"EUR\", \"valueDate\": \"2099-01-05\"}";

static const char *const types[] = { "PaymentStep", "PaymentWorkflow", "PaymentManager" };

/* As the API leaves it: APPROVED, and its process started. deadline: NULL for none. */
static cb_uuid approved(const char *type, const char *deadline)
{
    cb_uuid id = cb_uuid_new();
    cb_process_request_options options = { .process_id = id.text, .deadline = deadline };
    cb_error e;

    expect_value(bus.conn, "NEW",
                 "SELECT verdict FROM payments.draft($1, 'ACC-1', 'ACC-2', 100.00, 'EUR', 'EUR', "
                 "'2099-01-05', NULL)",
                 id.text);
    free(test_value(bus.conn, "SELECT payments.mark($1, $1, 'APPROVED')", id.text, NULL));
    cr_assert(cb_process_request_start(bus.db, type, facts, &options, &id, &e), "%s", e.message);
    return id;
}

/* A database that does not take the first step. */
static void refuse_to_begin(void)
{
    test_exec(bus.conn, "ALTER FUNCTION payments.begin RENAME TO begun");
}

/* SIM.4: COMPENSATED without anything to compensate. */
Test(payment_end, past_its_deadline_before_the_first_step_it_is_cancelled)
{
    for (size_t i = 0; i < CB_COUNT(types); i++) {
        cb_uuid id = approved(types[i], "2001-01-01");

        stage_go(&payer);

        expect_status(&payer, "COMPENSATED DEADLINE_EXCEEDED", id);
        expect_payment("CANCELLED", id);
        expect_value(bus.conn, "0", "SELECT count(*) FROM commandbus.command_metadata");
    }
}

/* SIM.4: PROCESSING, and the step that owes CANCELLED has no end. */
Test(payment_end, canceled_after_its_first_step_failed_it_is_cancelled)
{
    for (int undo = 0; undo <= 1; undo++) {
        for (size_t i = 0; i < 2; i++) {
            cb_uuid id = approved(types[i], NULL);
            refuse_to_begin();
            stage_go(&payer);
            test_exec(bus.conn, "ALTER FUNCTION payments.begun RENAME TO begin");
            expect_status(&payer, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);
            expect_payment("APPROVED", id);

            payer_cancel(id, undo);

            expect_status(&payer, "CANCELED CANCELED", id);
            expect_payment("CANCELLED", id);
        }
        cb_uuid id = approved("PaymentManager", NULL);
        stage_go(&payer);
        payer_serve("payments", "UpdatePaymentStatus", CB_PERMANENT, NULL, "EFFECT_FAILED");
        payer_cancel(id, undo);
        expect_payment("CANCELLED", id);
    }
}

Test(payment_end, completed_by_an_operator_after_its_first_step_failed_it_is_complete)
{
    cb_uuid id = approved("PaymentStep", NULL);
    refuse_to_begin();
    stage_go(&payer);

    payer_complete(id, NULL);

    expect_payment("COMPLETE", id);
    expect_state(&payer, "COMPLETE", id, "status");
}

/* Its last step said COMPLETE, but no worker came back to say so; whoever cancels it then has the
 * last word. */
Test(payment_end, given_up_behind_its_last_step_it_is_not_complete)
{
    cb_uuid id = payer_start("PaymentStep", "EUR", 0);
    payer_serve("risk", "BookRisk", CB_PERMANENT, NULL, "PERM_ERROR");
    free(test_value(bus.conn, "SELECT payments.mark($1, $1, 'COMPLETE')", id.text, NULL));
    expect_payment("COMPLETE", id);

    payer_cancel(id, false);

    expect_payment("CANCELLED", id);
    expect_state(&payer, "CANCELLED", id, "status");
}

/* Not even its state can be read: it is canceled all the same, and so is the payment. */
Test(payment_end, a_process_that_cannot_be_read_takes_its_payment_with_it)
{
    cb_uuid id = payer_start("PaymentStep", "EUR", 0);
    free(
        test_value(bus.conn,
                   "UPDATE commandbus.process SET initial_state = '{\"debitAmount\": []}', wake_at "
                   "= commandbus.now() WHERE process_id = $1 RETURNING 1",
                   id.text, NULL));
    stage_go(&payer);
    expect_status(&payer, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);

    payer_cancel(id, false);

    expect_status(&payer, "CANCELED CANCELED", id);
    expect_payment("CANCELLED", id);
}

/* A step that was slow, and whose process ended meanwhile elsewhere, makes no payment that nobody
 * pays. */
Test(payment_end, no_step_takes_a_payment_up_whose_process_has_ended)
{
    cb_uuid id = stage_start_due(&payer, "PaymentStep", facts, -1);
    stage_go(&payer);
    expect_status(&payer, "COMPENSATED DEADLINE_EXCEEDED", id);
    expect_payment("none", id);

    PGresult *late = PQexecParams(bus.conn,
                                  "SELECT payments.begin($1, $1, 'ACC-1', 'ACC-2', 100.00, 'EUR', "
                                  "'EUR', '2099-01-05')",
                                  1, NULL, &(const char *){ id.text }, NULL, NULL, 0);
    cr_expect_eq(PQresultStatus(late), PGRES_FATAL_ERROR);
    PQclear(late);

    expect_payment("none", id);
}

/* … and while one does, its process does not end. */
Test(payment_end, a_process_does_not_end_while_its_payment_is_taken_up)
{
    cb_uuid id = stage_start(&payer, "PaymentStep", facts);
    PGconn *slow = PQconnectdb(bus.conninfo);
    const char *value = id.text;

    test_exec(slow, "BEGIN");
    PQclear(PQexecParams(slow,
                         "SELECT payments.begin($1, $1, 'ACC-1', 'ACC-2', 100.00, 'EUR', 'EUR', "
                         "'2099-01-05')",
                         1, NULL, &value, NULL, NULL, 0));
    test_exec(bus.conn, "SET lock_timeout = '50ms'");
    PGresult *end =
        PQexec(bus.conn, "UPDATE commandbus.process SET status = 'FAILED'"); /* its only one */
    cr_expect_str_eq(PQresultErrorField(end, PG_DIAG_SQLSTATE), "55P03");
    PQclear(end);
    test_exec(slow, "COMMIT");
    expect_payment("PROCESSING", id);

    test_exec(bus.conn, "UPDATE commandbus.process SET status = 'FAILED'");
    expect_payment("FAILED", id);
    PQfinish(slow);
}

/* SIM.4: what was submitted is what is paid. */
Test(payment_end, a_process_with_other_facts_does_not_take_the_payment_up)
{
    cb_uuid id = cb_uuid_new();
    cb_process_request_options options = { .process_id = id.text };
    cb_error e;
    expect_value(bus.conn, "NEW",
                 "SELECT verdict FROM payments.draft($1, 'ACC-1', 'ACC-2', 1.00, 'EUR', 'EUR', "
                 "'2099-01-05', NULL)",
                 id.text);

    cr_assert(cb_process_request_start(bus.db, "PaymentStep", facts, &options, &id, &e), "%s",
              e.message);
    stage_go(&payer);

    expect_status(&payer, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);
    expect_payment("DRAFT", id);
    expect_value(bus.conn, "0", "SELECT count(*) FROM commandbus.command_metadata");
    payer_cancel(id, true);
    expect_payment("CANCELLED", id);
}

/* Section 8.8: whoever knows the id of a payment to come cannot take it. */
Test(payment_end, a_payment_that_has_not_begun_is_not_taken_by_another_process)
{
    cb_uuid owner = cb_uuid_new();
    cb_process_request_options options = { .process_id = owner.text };
    char state[400];
    cb_error e;

    snprintf(state, sizeof state, "{\"paymentId\": \"%s\", %s", owner.text, facts + 1);
    cb_uuid thief = payer_start_with("PaymentStep", state);
    expect_status(&payer, "WAITING_FOR_TSQ PERMANENT_FAILURE", thief);
    cr_assert(cb_process_request_start(bus.db, "PaymentStep", facts, &options, &owner, &e), "%s",
              e.message);
    stage_go(&payer);

    expect_payment("PROCESSING", owner);
    expect_commands(&payer, "risk/BookRisk PENDING", owner);
}

/* A payment belongs to one process, whatever another one was started with. */
Test(payment_end, the_payment_of_another_process_is_not_touched)
{
    cb_uuid owner = payer_start("PaymentStep", "EUR", 0);
    char state[400];

    snprintf(state, sizeof state, "{\"paymentId\": \"%s\", %s", owner.text, facts + 1);
    cb_uuid thief = payer_start_with("PaymentStep", state);
    expect_status(&payer, "WAITING_FOR_TSQ PERMANENT_FAILURE", thief);
    payer_complete(thief, NULL);
    snprintf(state, sizeof state, "{\"paymentId\": \"%s\"}", owner.text);
    cb_uuid no_payment = payer_start_with("PaymentWorkflow", state);
    expect_status(&payer, "COMPENSATED INVALID_PAYMENT", no_payment);

    expect_payment("PROCESSING", owner);
    expect_commands(&payer, "risk/BookRisk PENDING", owner);
}
