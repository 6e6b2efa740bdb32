/* Registering process types, and starting processes of them. */
#include "expect.h"
#include "fixture.h"
#include "parallel.h"
#include "pay.h"
#include "wait.h"

TestSuite(process_type, .init = bus_open, .fini = bus_close);
TestSuite(process_start, .init = pay_open, .fini = bus_close);

static const char types[] =
    "SELECT string_agg(concat_ws(' ', process_type, domain, execution_model, "
    "version, reply_queue), '; ') FROM commandbus.process_type";

Test(process_type, brings_its_domain_and_queues) /* STP.1 */
{
    test_exec(bus.conn, "SELECT commandbus.register_process_type('Report', 'reporting', 2)");

    expect_value(bus.conn, "Report reporting PROCESS_STEP 2 reporting__replies", types);
    expect_number(bus.conn, 2, "SELECT count(*) FROM pgmq.meta WHERE queue_name LIKE 'reporting%'");
}

Test(process_type,
     keeps_the_highest_version_and_takes_another_reply_queue) /* DESIGN 4 version skew */
{
    cb_process_kind kind = { .process_type = "Report",
                             .domain = "fx",
                             .version = 3,
                             .step_based = true,
                             .reply_queue = "fx_reports" };
    cb_error e = { 0 };

    test_exec(bus.conn, "SELECT commandbus.register_process_type('Report', 'fx', 5, 'STEP_BASED')");
    expect_ok(cb_process_register(bus.db, &kind, 1, &e), e);

    expect_value(bus.conn, "Report fx STEP_BASED 5 fx_reports", types);
}

Test(process_type, of_another_domain_or_model_or_without_sense_is_refused) /* STP.1 */
{
    cb_process_kind elsewhere = { .process_type = "Pay", .domain = "risk", .version = 1 };
    cb_error e = { 0 };

    pay_register(bus.db);
    expect_error(CB_INVALID_OPERATION, cb_process_register(bus.db, &elsewhere, 1, &e), e);
    elsewhere = (cb_process_kind){ "Pay", "payments", 9, true, NULL, NULL, NULL };
    expect_error(CB_INVALID_OPERATION, cb_process_register(bus.db, &elsewhere, 1, &e), e);
    expect_sqlstate(bus.conn, "CB010", "SELECT commandbus.register_process_type('1Pay', 'fx', 1)");
    expect_sqlstate(bus.conn, "CB010", "SELECT commandbus.register_process_type(NULL, 'fx', 1)");
    expect_sqlstate(bus.conn, "CB010", "SELECT commandbus.register_process_type('Q', 'F x', 1)");
    expect_sqlstate(bus.conn, "CB011", "SELECT commandbus.register_process_type('Q', 'fx', 0)");
    expect_sqlstate(bus.conn, "CB011", "SELECT commandbus.register_process_type('Q', 'fx', NULL)");
    expect_sqlstate(bus.conn, "CB011",
                    "SELECT commandbus.register_process_type('Q', 'fx', 1, 'X')");
    expect_sqlstate(bus.conn, "CB010",
                    "SELECT commandbus.register_process_type('Q', 'fx', 1, "
                    "'PROCESS_STEP', 'fx__commands')");

    expect_value(bus.conn, "Pay payments PROCESS_STEP 1 payments__replies", types);
}

#define ANSWER(kind) "{\"L1\": {\"fields\": {\"ok\": \"" kind "\"}}}"

/* Whichever starts last would decide what the processes of the other are told. */
Test(process_type, that_takes_another_payload_in_the_same_version_is_refused)
{
    cb_process_kind kind = {
        .process_type = "Desk", .domain = "fx", .version = 2, .responses = ANSWER("boolean")
    };
    cb_error e = { 0 };
    expect_ok(cb_process_register(bus.db, &kind, 1, &e), e);

    kind.responses = ANSWER("text");
    expect_error(CB_INVALID_OPERATION, cb_process_register(bus.db, &kind, 1, &e), e);
    cr_expect(strstr(e.message, "version 2 of process type 'Desk' has other fields of response L1"),
              "%s", e.message);
    cr_expect(strstr(e.hint, ".version"), "%s", e.hint);
    kind.responses = "{\"L1\": {}, \"L2\": {}}";
    expect_error(CB_INVALID_OPERATION, cb_process_register(bus.db, &kind, 1, &e), e);
    const char *responses = "SELECT responses::text FROM commandbus.process_type";
    expect_value(bus.conn, ANSWER("boolean"), responses);

    kind.responses =
        ANSWER("boolean"); /* the same again, one response more, an older one, a newer one */
    expect_ok(cb_process_register(bus.db, &kind, 1, &e), e);
    kind.responses = "{\"L2\": {}}";
    expect_ok(cb_process_register(bus.db, &kind, 1, &e), e);
    kind.version = 1;
    kind.responses = ANSWER("text");
    expect_ok(cb_process_register(bus.db, &kind, 1, &e), e);
    expect_value(bus.conn, "{\"L1\": {\"fields\": {\"ok\": \"boolean\"}}, \"L2\": {}}", responses);
    kind.version = 3;
    expect_ok(cb_process_register(bus.db, &kind, 1, &e), e);
    expect_value(bus.conn, ANSWER("text"), responses);
}

static void register_versions(size_t i, void *arg)
{
    cb_process_kind kind = { .process_type = "Many", .domain = "many", .version = (int)i + 1 };
    cb_db *db = NULL;
    cb_error e = { 0 };

    ((bool *)arg)[i] = cb_db_open(bus.conninfo, &db, &e) && cb_process_register(db, &kind, 1, &e);
    cb_db_free(db);
}

Test(process_type, is_registered_by_many_workers_at_once) /* STP.1 */
{
    bool fine[6] = { false };

    parallel_run(6, register_versions, fine);

    for (int i = 0; i < 6; i++)
        cr_expect(fine[i], "worker %d", i);
    expect_value(bus.conn, "Many many PROCESS_STEP 6 many__replies", types);
}

Test(process_start, is_due_at_once_and_recorded) /* STP.3, PM.1 */
{
    cb_uuid id = pay_start_with(bus.db, .deadline = "2100-01-01T00:00:00Z");

    expect_value(bus.conn, "PENDING FORWARD 0 0 0 payments Pay PROCESS_STEP payments__replies f f",
                 "SELECT concat_ws(' ', status, phase, version, lease_no, settle_no, domain, "
                 "process_type, execution_model, reply_queue, deadline_spent, "
                 "wake_at > commandbus.now(), lease_owner, lease_until) "
                 "FROM commandbus.process WHERE process_id = $1 AND state = initial_state "
                 "AND state = '{\"n\": 1}' AND deadline_at = '2100-01-01T00:00:00Z'",
                 id.text);
    expect_value(bus.conn, "PROCESS_CREATED t",
                 "SELECT event || ' ' || (db_user = session_user)::text::char "
                 "FROM commandbus.process_event WHERE process_id = $1",
                 id.text);
}

Test(process_start, leased_is_nobody_elses_until_the_lease_is_over) /* STP.3 immediate */
{
    cb_uuid id = pay_start_with(bus.db, .leased_by = "me", .lease_seconds = 20);

    OWNED(cb_process_claim) claim = pay_claim(bus.db, "other", 10, 30);
    cr_expect_eq(cb_process_claim_count(claim), 0);
    expect_value(bus.conn, "EXECUTING 1 me t t",
                 "SELECT concat_ws(' ', status, lease_no, lease_owner, "
                 "lease_until - now() BETWEEN '15 s' AND '20 s', "
                 "wake_at - commandbus.now() BETWEEN '15 s' AND '20 s') "
                 "FROM commandbus.process WHERE process_id = $1",
                 id.text);
}

Test(process_start, of_what_cannot_be_is_refused_and_leaves_nothing) /* CONTRACT refusals */
{
    cb_uuid id = pay_start(bus.db);
    cb_process_request_options again = { .process_id = id.text };
    cb_uuid ret;
    cb_error e = { 0 };
    test_exec(bus.conn,
              "UPDATE commandbus.domain SET payload_limit = 100 WHERE domain = 'payments'");
    char *before = bus_contents();

    expect_error(CB_UNKNOWN_PROCESS_TYPE,
                 cb_process_request_start(bus.db, "No", "{}", NULL, &ret, &e), e);
    expect_error(CB_INVALID_DATA, cb_process_request_start(bus.db, "Pay", "[]", NULL, &ret, &e), e);
    expect_error(CB_INVALID_OPERATION,
                 cb_process_request_start(bus.db, "Pay", "{}", &again, &ret, &e), e);
    expect_sqlstate(bus.conn, "CB009", "SELECT commandbus.start_process(NULL, '{}')");
    expect_sqlstate(bus.conn, "CB011", "SELECT commandbus.start_process('Pay', '1')");
    expect_sqlstate(bus.conn, "CB011", "SELECT commandbus.start_process('Pay', NULL)");
    expect_sqlstate(bus.conn, "CB012",
                    "SELECT commandbus.start_process('Pay', "
                    "jsonb_build_object('a', repeat('x', 100)))");
    expect_sqlstate(bus.conn, "CB011",
                    "SELECT commandbus.start_process('Pay', '{}', deadline => 'infinity')");
    expect_sqlstate(bus.conn, "CB011",
                    "SELECT commandbus.start_process('Pay', '{}', leased_by => '')");
    expect_sqlstate(bus.conn, "CB011",
                    "SELECT commandbus.start_process('Pay', '{}', leased_by => 'w', "
                    "lease_seconds => 'NaN')");
    expect_unchanged(before, bus_contents());
}

Test(process_start, joins_only_an_open_batch_of_processes_of_its_domain) /* STP.3 start batch */
{
    static const char start[] = "SELECT commandbus.start_process('Pay', '{}', batch_id => "
                                "'00000000-0000-0000-0000-00000000000%d')";
    static const char *const states[] = { "CB004", "CB007", "CB007", "CB005", "00000" };
    char sql[200];

    test_exec(bus.conn,
              "INSERT INTO commandbus.batch (batch_id, domain, batch_type, status, completed_at) "
              "SELECT ('00000000-0000-0000-0000-00000000000' || b.n)::uuid, b.domain, b.type, "
              "'PENDING', b.at FROM (VALUES (1, 'payments', 'COMMAND', NULL), "
              "(2, 'fx', 'PROCESS', NULL), (3, 'payments', 'PROCESS', now()), "
              "(4, 'payments', 'PROCESS', NULL)) b(n, domain, type, at)");
    for (int i = 0; i < 5; i++) {
        snprintf(sql, sizeof sql, start, i);
        expect_sqlstate(bus.conn, states[i], sql);
    }

    cb_process_claim_free(pay_claim(bus.db, "w", 1, 30));
    expect_value(
        bus.conn, "IN_PROGRESS t",
        "SELECT status || ' ' || (started_at IS NOT NULL)::text::char FROM commandbus.batch "
        "WHERE batch_id = '00000000-0000-0000-0000-000000000004'");
    expect_number(bus.conn, 1,
                  "SELECT count(*) FROM commandbus.audit WHERE event_type = 'BATCH_STARTED'");
}

static void start_same(size_t i, void *arg)
{
    cb_process_request_options options = { .process_id = "11111111-1111-4111-8111-111111111111" };
    cb_db *db = NULL;
    cb_error e = { 0 };

    if (!cb_db_open(bus.conninfo, &db, &e))
        return;
    if (cb_process_request_start(db, "Pay", "{}", &options, NULL, &e))
        e.code = CB_OK;
    ((cb_code *)arg)[i] = e.code;
    cb_db_free(db);
}

Test(process_start, with_one_id_at_once_starts_one) /* STP.3 */
{
    cb_code codes[4] = { CB_LOST, CB_LOST, CB_LOST, CB_LOST };
    int started = 0, refused = 0;

    parallel_run(4, start_same, codes);

    for (int i = 0; i < 4; i++) {
        started += codes[i] == CB_OK;
        refused += codes[i] == CB_INVALID_OPERATION;
    }
    cr_expect_eq(started, 1);
    cr_expect_eq(refused, 3);
    expect_number(bus.conn, 1, "SELECT count(*) FROM commandbus.process");
    expect_number(bus.conn, 1, "SELECT count(*) FROM commandbus.process_event");
}

Test(process_start, wakes_a_sleeper_unless_the_caller_runs_it_itself) /* DESIGN 2 wake-up */
{
    test_exec(bus.conn, "LISTEN commandbus_payments__processes;"
                        "SELECT commandbus.sleep_announce('w', '{payments__processes}', 60)");

    pay_start_with(bus.db, .leased_by = "me");
    test_exec(bus.conn, "SELECT 1");
    cr_assert_null(PQnotifies(bus.conn));
    pay_start(bus.db);
    free(wait_for_notify(bus.conn));
}
