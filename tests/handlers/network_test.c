/* The simulator's network: what it does to processes, in a real database. SIM.2 */
#include "expect.h"
#include "fixture.h"
#include "pay.h"
#include "simulator_run.h"
#include "wait.h"

#include <stdio.h>

static test_simulator sim;
static cb_uuid process;

static void open_network(void)
{
    bus_open();
    pay_register(bus.db);
    process = pay_start(bus.db);
    /* As in handlers/payments/sql, which this must not depend on. */
    test_exec(
        bus.conn,
        "CREATE SCHEMA payments;"
        "CREATE TABLE payments.pending_approval (process_id uuid, command_id uuid, level text, "
        "execution_model text, status text, resolved_by text, resolved_at timestamptz, "
        "created_at timestamptz);"
        "CREATE TABLE payments.pending_network_response "
        "(LIKE payments.pending_approval)");
    sim = simulator_start(bus.conninfo, NULL);
}

static void close_network(void)
{
    simulator_stop(&sim);
    bus_close();
}

TestSuite(network, .init = open_network, .fini = close_network);

/* The key is the command's id. Returns the status of the answer. */
static int submit_payment(const char *key)
{
    char body[512];

    snprintf(body, sizeof body,
             "{\"processId\": \"%s\", \"commandId\": \"%s\", \"creditAmount\": \"10.00\", "
             "\"creditCurrency\": \"EUR\", \"debitAccount\": \"A\", \"creditAccount\": \"B\", "
             "\"debitAmount\": \"10.00\", \"debitCurrency\": \"EUR\", "
             "\"paymentId\": \"00000000-0000-4000-8000-000000000001\", "
             "\"valueDate\": \"2099-01-01\", \"executionModel\": \"PROCESS_STEP\"}",
             process.text, key);
    return simulator_try(&sim, &(simulator_call){ "POST", "/gateway/payments", key, NULL, body, 0 })
        .status;
}

static const char command[] = "00000000-0000-4000-8000-00000000c0de";

#define RESPONSES                                                                           \
    "(SELECT coalesce(string_agg(name || coalesce(' ' || (payload ->> 'error'), ''), ', ' " \
    "ORDER BY seq), '') FROM commandbus.process_inbox)"

Test(network, confirms_a_payment_at_four_levels_in_order)
{
    cr_assert_eq(submit_payment(command), 201);
    cr_assert_eq(submit_payment(command), 201); /* the same payment: confirmed once */

    simulator_await(&sim, "network/under_way", 0);
    expect_value(bus.conn, "L1, L2, L3, L4", "SELECT " RESPONSES);
    expect_value(bus.conn, "4",
                 "SELECT count(*) FROM commandbus.process_inbox "
                 "WHERE payload ->> 'reference' ~ ('^' || name || '-REF-[0-9A-F]{8}$')");
    cr_expect_eq(simulator_number(&sim, "gateway/bookings/booked"), 1);
}

Test(network, confirms_each_level_on_its_own_when_told_to)
{
    simulator_behave(&sim, "network", "{\"inOrder\": false}");
    simulator_behave(&sim, "network-L1", "{\"minMs\": 700, \"maxMs\": 700}");
    cr_assert_eq(submit_payment(command), 201);

    simulator_await(&sim, "network/under_way", 0);

    expect_number(bus.conn, 4, "SELECT count(DISTINCT name) FROM commandbus.process_inbox");
    expect_value(bus.conn, "L1",
                 "SELECT name FROM commandbus.process_inbox ORDER BY seq DESC LIMIT 1");
}

/* SIM.1: codes as they are everywhere. An error is the last answer. */
Test(network, an_error_at_a_level_is_the_last_answer)
{
    static const struct {
        const char *behaviour, *responses;
    } cases[] = {
        { "{\"failPermanent\": 100}", "L1, L2 PERM_ERROR" },
        { "{\"failPermanent\": 0, \"failTransient\": 100}", "L1, L2 TRANS_ERROR" },
        { "{\"failTransient\": 0, \"failBusinessRule\": 100}", "L1, L2 BIZ_ERROR" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        simulator_behave(&sim, "network-L2", cases[i].behaviour);
        cr_assert_eq(submit_payment(cb_uuid_new().text), 201);
        simulator_await(&sim, "network/under_way", 0);
        expect_value(bus.conn, cases[i].responses, "SELECT " RESPONSES);
        test_exec(bus.conn, "DELETE FROM commandbus.process_inbox");
    }
}

static void respond_to_payment(const char *name, const char *payload)
{
    bool accepted;
    cb_error e = { 0 };

    expect_ok(cb_process_respond(bus.db, process.text, name, payload, NULL, &accepted, &e), e);
}

/* One outcome for a wait: the row, and nothing of the levels behind it until a person has
 * answered. */
Test(network, a_pending_level_waits_for_a_person_and_the_others_for_it)
{
    simulator_behave(&sim, "network-L2", "{\"pending\": 100}");
    cr_assert_eq(submit_payment(command), 201);

    wait_until(bus.conn, "SELECT count(*) = 1 FROM payments.pending_network_response");
    expect_value(bus.conn, "L2 PROCESS_STEP PENDING 00000000-0000-4000-8000-00000000c0de",
                 "SELECT concat_ws(' ', level, execution_model, status, command_id) "
                 "FROM payments.pending_network_response WHERE process_id = $1::uuid",
                 process.text);
    expect_value(bus.conn, "L1", "SELECT " RESPONSES);

    respond_to_payment("L2", "{\"reference\": \"by hand\"}");

    simulator_await(&sim, "network/under_way", 0);
    expect_value(bus.conn, "L1, L2, L3, L4", "SELECT " RESPONSES);
    expect_number(bus.conn, 1, "SELECT count(*) FROM payments.pending_network_response");
}

Test(network, a_person_who_refuses_has_the_last_word)
{
    simulator_behave(&sim, "network-L1", "{\"pending\": 100}");
    cr_assert_eq(submit_payment(command), 201);
    wait_until(bus.conn, "SELECT count(*) = 1 FROM payments.pending_network_response");

    respond_to_payment("L1", "{\"error\": \"FRAUD\"}");

    simulator_await(&sim, "network/under_way", 0);
    expect_value(bus.conn, "L1 FRAUD", "SELECT " RESPONSES);
}

/* SIM.1: the network says nothing, so that the wait runs into its timeout. */
Test(network, a_silent_level_holds_up_the_others)
{
    simulator_behave(&sim, "network-L1", "{\"timeout\": 100}");
    cr_assert_eq(submit_payment(command), 201);

    simulator_await(&sim, "network/outcomes/timeout", 1);
    cr_expect_eq(simulator_number(&sim, "network/under_way"), 1);
    expect_value(bus.conn, "", "SELECT " RESPONSES);

    pay_set(bus.conn, process, "status = 'CANCELED'");

    simulator_await(&sim, "network/under_way", 0);
    expect_value(bus.conn, "", "SELECT " RESPONSES);
}

/* The database is away: what was to be said is said when it is back, once. */
Test(network, an_answer_survives_a_lost_connection)
{
    simulator_behave(&sim, "network", "{\"minMs\": 100, \"maxMs\": 300}");
    cr_assert_eq(submit_payment(command), 201);
    for (int level = 1; level <= 4; level++) {
        char reached[100];
        snprintf(reached, sizeof reached, "SELECT count(*) >= %d FROM commandbus.process_inbox",
                 level);
        wait_until(bus.conn, reached);
        test_exec(bus.conn, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                            "WHERE datname = current_database() AND pid <> pg_backend_pid() "
                            "AND query LIKE '%respond(%'");
    }

    simulator_await(&sim, "network/under_way", 0);

    expect_value(bus.conn, "L1, L2, L3, L4", "SELECT " RESPONSES);
}

Test(network, a_process_that_is_not_there_is_given_up)
{
    process = cb_uuid_new();
    cr_assert_eq(submit_payment(command), 201);

    simulator_await(&sim, "network/under_way", 0);
    cr_expect_eq(simulator_number(&sim, "network/refused"), 1);
}

static simulator_answer book_risk(const char *key, const char *process_id)
{
    char body[300];

    snprintf(body, sizeof body,
             "{\"amount\": \"5\", \"currency\": \"JPY\", \"debitAccount\": \"A\", "
             "\"creditAccount\": \"B\"%s%s%s}",
             process_id ? ", \"processId\": \"" : "", process_id ? process_id : "",
             process_id ? "\"" : "");
    return simulator_try(&sim, &(simulator_call){ "POST", "/risk/bookings", key, NULL, body, 0 });
}

Test(network, a_pending_risk_booking_is_kept_for_a_person_once)
{
    simulator_behave(&sim, "risk", "{\"pending\": 100}");

    for (int i = 0; i < 2; i++) {
        simulator_answer a = book_risk(command, process.text);
        cr_expect_eq(a.status, 201);
        cr_expect(strstr(a.body, "\"status\":\"PENDING\""), "%s", a.body);
    }

    expect_value(bus.conn, "1 RISK PENDING",
                 "SELECT concat_ws(' ', count(*), min(level), min(status)) FROM "
                 "payments.pending_approval WHERE process_id = $1::uuid",
                 process.text);
    cr_expect_eq(book_risk(cb_uuid_new().text, NULL).status, 400); /* whose would it be? */
    cr_expect_eq(simulator_number(&sim, "risk/bookings/booked"), 1);
}

Test(network, a_pending_booking_that_cannot_be_kept_is_not_booked)
{
    simulator_behave(&sim, "risk", "{\"pending\": 100}");
    test_exec(bus.conn, "DROP TABLE payments.pending_approval");

    cr_expect_eq(book_risk(command, process.text).status, 503);

    cr_expect_eq(simulator_number(&sim, "risk/bookings/booked"), 0);
}

/* SIM.1: the preset, by its percentages. */
Test(network, chaos_is_one_ten_three_two_and_five_percent)
{
    test_simulator wild = simulator_start(bus.conninfo, (const char *const[]){ "--chaos", NULL });
    json_object *all = simulator_ask(&wild, "GET", "/behaviour", NULL);

    expect_value(
        bus.conn,
        "fx 1 10 3 2 5 0, fx-release 1 10 3 2 5 0, gateway 1 10 3 2 5 0, network 1 10 3 2 5 0, "
        "network-L1 1 10 3 2 5 0, network-L2 1 10 3 2 5 0, network-L3 1 10 3 2 5 0, "
        "network-L4 1 10 3 2 5 0, risk 1 10 3 2 5 0, risk-approval 0 0 0 0 100 0, "
        "risk-release 1 10 3 2 5 0",
        "SELECT string_agg(concat_ws(' ', key, (value ->> 'failPermanent')::float8, "
        "(value ->> 'failTransient')::float8, (value ->> 'failBusinessRule')::float8, "
        "(value ->> 'timeout')::float8, (value ->> 'pending')::float8, "
        "(value ->> 'declined')::float8), ', ' ORDER BY key) FROM json_each($1::json)",
        json_object_to_json_string(all));
    json_object_put(all);
    simulator_stop(&wild);
}
