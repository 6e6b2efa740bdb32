/* SubmitPayment and UpdatePaymentStatus, one by one: what bad input gets, and what a status does to
 * a payment. SIM.3, SIM.4. */
#include "expect.h"
#include "fixture.h"
#include "test_handler.h"

#include <commandbus/host.h>
#include <commandbus/migrate.h>
#include <commandbus/set.h>
#include <limits.h>
#include <stdio.h>

static cb_set *set;
static cb_uuid process_id;

static void open_set(void)
{
    static const cb_setting nowhere = { "url", "http://127.0.0.1:9" };
    char sql[PATH_MAX];
    cb_migrate_report done;
    cb_error e = { 0 };

    bus_open();
    test_exec(bus.conn, "DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO "
                        "commandbus_owner', current_database()); END $$");
    snprintf(sql, sizeof sql, "%s/handlers/payments/sql", getenv("COMMANDBUS_SOURCE_DIR"));
    expect_ok(cb_migrate_set(bus.db, "payments", sql, &done, &e), e);
    const cb_module_config config = { bus.conninfo, &nowhere, 1 };
    expect_ok(cb_set_load_with(getenv("COMMANDBUS_MODULES_DIR"), "payments", &config, &set, &e), e);
    process_id = cb_uuid_new();
}

static void close_set(void)
{
    cb_set_free(set);
    bus_close();
}

TestSuite(payment_commands, .init = open_set, .fini = close_set);

/* Runs the command that waits: "SUCCESS", or "PERMANENT CODE"; effects are run. Valid until the
 * next call. */
static const char *run_next(const char *type)
{
    static char text[100];
    cb_receive_options options = { .worker = "here" };
    OWNED(cb_receiver) receiver = NULL;
    OWNED(cb_claim) claim = NULL;
    OWNED(cb_context) ctx = NULL;
    cb_settlement out;
    cb_error e = { 0 };

    expect_ok(cb_receiver_open("payments", &options, &receiver, &e), e);
    expect_ok(cb_receive(bus.db, receiver, 1, &claim, &e), e);
    cr_assert_eq(cb_claim_count(claim), 1);
    expect_ok(cb_context_open(cb_claim_at(claim, 0), NULL, NULL, &ctx, &e), e);
    cb_context_run(ctx, test_handler(set, type), 0, &out);
    if (cb_context_effects(ctx) > 0)
        expect_ok(cb_settle_with_effects(bus.db, "here", &out, ctx, 0, &e), e);
    snprintf(text, sizeof text, "%s%s%s", cb_outcome_name(out.outcome), out.error_code ? " " : "",
             out.error_code ? out.error_code : "");
    return text;
}

/* One that the process sends. */
static const char *run_command(const char *type, const char *data)
{
    test_send_of_process(bus.conn, &process_id, "payments", type, data);
    return run_next(type);
}

#define FACTS_ON(day)                                                                 \
    "\"debitAccount\": \"A\", \"creditAccount\": \"B\", \"debitAmount\": \"10.00\", " \
    "\"debitCurrency\": \"EUR\", \"creditCurrency\": \"USD\", \"valueDate\": \"" day "\""
#define FACTS FACTS_ON("2099-01-05")
#define expect_run(expected, type, data)                              \
    do {                                                              \
        const char *found_ = run_command(type, data);                 \
        cr_expect_str_eq(found_, expected, "%s by %s", found_, data); \
    } while (0)
#define expect_payments(expected)    \
    expect_value(bus.conn, expected, \
                 "SELECT string_agg(status || ' ' || debit_amount, ', ') FROM payments.payment")

/* SIM.4 */
Test(payment_commands, a_status_changes_the_payment_with_the_command_and_never_back)
{
    expect_run("SUCCESS", "UpdatePaymentStatus", "{\"status\": \"PROCESSING\", " FACTS "}");
    expect_payments("PROCESSING 10.00");
    expect_run("SUCCESS", "UpdatePaymentStatus", "{\"status\": \"CANCELLED\", " FACTS "}");
    expect_payments("CANCELLED 10.00");
    expect_run("SUCCESS", "UpdatePaymentStatus", "{\"status\": \"COMPLETE\", " FACTS "}");
    /* Whoever begins it goes on to book and to pay: not silently. */
    expect_run("PERMANENT EFFECT_FAILED", "UpdatePaymentStatus",
               "{\"status\": \"PROCESSING\", " FACTS "}");
    expect_payments("CANCELLED 10.00");
}

Test(payment_commands, a_payment_of_another_process_is_not_touched)
{
    char begin[400], complete[100];
    snprintf(begin, sizeof begin, "{\"paymentId\": \"%s\", \"status\": \"PROCESSING\", " FACTS "}",
             process_id.text);
    snprintf(complete, sizeof complete, "{\"paymentId\": \"%s\", \"status\": \"COMPLETE\"}",
             process_id.text);
    expect_run("SUCCESS", "UpdatePaymentStatus", begin);

    process_id = cb_uuid_new();
    expect_run("PERMANENT EFFECT_FAILED", "UpdatePaymentStatus", begin);
    expect_run("SUCCESS", "UpdatePaymentStatus", complete);
    expect_payments("PROCESSING 10.00");
}

Test(payment_commands, an_unknown_status_or_one_without_a_payment_is_refused)
{
    expect_run("PERMANENT INVALID_DATA", "UpdatePaymentStatus", "{\"status\": \"PAID\"}");
    expect_run("PERMANENT INVALID_DATA", "UpdatePaymentStatus", "{}");
    expect_run("PERMANENT INVALID_DATA", "UpdatePaymentStatus", "{\"paymentId\": 7}");
    expect_run("BUSINESS_RULE MISSING_FIELD", "UpdatePaymentStatus",
               "{\"status\": \"PROCESSING\"}");
    expect_run("BUSINESS_RULE VALUE_DATE_PAST", "UpdatePaymentStatus",
               "{\"status\": \"PROCESSING\", " FACTS_ON("2020-01-05") "}");
    expect_value(bus.conn, "0", "SELECT count(*) FROM payments.payment");
}

#define SUBMIT(amount, currency, credit, day)                                                   \
    "{\"paymentId\": \"00000000-0000-4000-8000-000000000001\", \"debitAmount\": \"10\", "       \
    "\"debitCurrency\": \"EUR\", \"creditAmount\": " amount ", \"creditCurrency\": \"" currency \
    "\", \"debitAccount\": \"A\", \"creditAccount\": \"" credit "\", \"valueDate\": \"" day     \
    "\", \"executionModel\": \"PROCESS_STEP\"}"

/* What bad input gets: nothing leaves this machine. Port 9 answers nobody, so whatever is sent is
 * transient. */
Test(payment_commands, what_cannot_be_paid_is_refused_before_anybody_is_called)
{
    expect_run("PERMANENT INVALID_DATA", "SubmitPayment", "{}");
    expect_run("PERMANENT INVALID_DATA", "SubmitPayment", SUBMIT("10", "EUR", "B", "2099-01-05"));
    expect_run("PERMANENT INVALID_CURRENCY", "SubmitPayment",
               SUBMIT("\"10\"", "EUX", "B", "2099-01-05"));
    expect_run("PERMANENT INVALID_AMOUNT", "SubmitPayment",
               SUBMIT("\"10.001\"", "EUR", "B", "2099-01-05"));
    expect_run("PERMANENT INVALID_AMOUNT", "SubmitPayment",
               SUBMIT("\"-10\"", "EUR", "B", "2099-01-05"));
    expect_run("PERMANENT SAME_ACCOUNT", "SubmitPayment",
               SUBMIT("\"10\"", "EUR", "A", "2099-01-05"));
    expect_run("PERMANENT VALUE_DATE_PAST", "SubmitPayment",
               SUBMIT("\"10\"", "EUR", "B", "2020-01-05"));

    const char *found = run_command("SubmitPayment", SUBMIT("\"10\"", "EUR", "B", "2099-01-05"));
    cr_expect_eq(strncmp(found, "TRANSIENT ", 10), 0, "%s", found);
}

/* DESIGN 8.8: a sender who knows the id of a payment's process neither moves the payment nor has
 * the network confirm it. */
Test(payment_commands, those_of_a_sender_in_the_name_of_a_process_are_refused)
{
    static const struct {
        const char *type, *data;
    } sent[] = {
        { "UpdatePaymentStatus", "{\"status\": \"COMPLETE\", " FACTS "}" },
        { "SubmitPayment", SUBMIT("\"10\"", "EUR", "B", "2099-01-05") },
    };
    cb_error e = { 0 };
    expect_run("SUCCESS", "UpdatePaymentStatus", "{\"status\": \"PROCESSING\", " FACTS "}");

    for (size_t i = 0; i < CB_COUNT(sent); i++) {
        cb_send forged = { .domain = "payments",
                           .command_type = sent[i].type,
                           .data = sent[i].data,
                           .correlation_id = process_id.text };
        expect_ok(cb_send_command(bus.db, &forged, NULL, &e), e);
        cr_expect_str_eq(run_next(sent[i].type), "PERMANENT NOT_OF_A_PROCESS");
    }
    expect_payments("PROCESSING 10.00");
}

Test(payment_commands, a_set_that_is_not_told_where_to_pay_does_not_start)
{
    static const cb_setting odd = { "uri", "http://127.0.0.1:9" };
    cb_set *other = NULL;
    cb_error e;

    expect_error(CB_MISUSE, cb_set_load(getenv("COMMANDBUS_MODULES_DIR"), "payments", &other, &e),
                 e);
    expect_error(CB_MISUSE,
                 cb_set_load_with(getenv("COMMANDBUS_MODULES_DIR"), "payments",
                                  &(cb_module_config){ NULL, &odd, 1 }, &other, &e),
                 e);
}
