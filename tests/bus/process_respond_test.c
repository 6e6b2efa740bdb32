/* Asynchronous responses: each recorded once, in the order of arrival. */
#include "expect.h"
#include "fixture.h"
#include "parallel.h"
#include "pay.h"
#include "wait.h"

#include <stdio.h>

static cb_uuid process;

static void open_with_process(void)
{
    bus_open();
    pay_register(bus.db);
    process = pay_start(bus.db);
}

TestSuite(process_respond, .init = open_with_process, .fini = bus_close);

static bool respond(const char *name, const char *payload, const char *response_id)
{
    bool accepted = false;
    cb_error e = { 0 };

    expect_ok(cb_process_respond(bus.db, process.text, name, payload, response_id, &accepted, &e),
              e);
    return accepted;
}

typedef struct {
    bool same_id; /* all bring one response */
    bool accepted[4];
} crowd;

static void respond_level(size_t i, void *arg)
{
    static const char *const ids[] = { "00000000-0000-4000-8000-000000000001",
                                       "00000000-0000-4000-8000-000000000002",
                                       "00000000-0000-4000-8000-000000000003",
                                       "00000000-0000-4000-8000-000000000004" };
    crowd *c = arg;
    char name[] = "L1";
    cb_db *db = NULL;
    cb_error e = { 0 };

    name[1] = (char)('1' + i);
    if (!cb_db_open(bus.conninfo, &db, &e))
        return;
    if (!cb_process_respond(db, process.text, name, "{\"reference\": \"REF\"}",
                            ids[c->same_id ? 0 : i], &c->accepted[i], &e))
        c->accepted[i] = false;
    cb_db_free(db);
}

Test(process_respond, l1_to_l4_at_once_are_each_recorded_once_in_order_of_arrival) /* STP.11 */
{
    crowd c = { 0 };

    parallel_run(4, respond_level, &c);

    for (int i = 0; i < 4; i++)
        cr_expect(c.accepted[i], "L%d", i + 1);
    expect_value(bus.conn, "L1 L2 L3 L4",
                 "SELECT string_agg(name, ' ' ORDER BY name) FROM commandbus.process_inbox "
                 "WHERE kind = 'RESPONSE' AND payload = '{\"reference\": \"REF\"}'");
    expect_value(bus.conn, "1 2 3 4",
                 "SELECT string_agg(seq::text, ' ' ORDER BY at) FROM commandbus.process_inbox");
    expect_number(bus.conn, 4, "SELECT inbox_seq FROM commandbus.process");
}

Test(process_respond, with_one_id_at_once_counts_once) /* CONTRACT respond */
{
    crowd c = { .same_id = true };

    parallel_run(4, respond_level, &c);

    cr_expect_eq(c.accepted[0] + c.accepted[1] + c.accepted[2] + c.accepted[3], 1);
    expect_number(bus.conn, 1, "SELECT count(*) FROM commandbus.process_inbox");
    expect_number(bus.conn, 1, "SELECT inbox_seq FROM commandbus.process");
}

Test(process_respond, that_was_applied_long_ago_is_known_by_the_history) /* STP.11 */
{
    cb_uuid id = cb_uuid_new();

    cr_expect(respond("L1", NULL, id.text));
    free(test_value(bus.conn,
                    "WITH c AS (DELETE FROM commandbus.process_inbox RETURNING *) INSERT INTO "
                    "commandbus.process_history (process_id, ordinal, at, kind, status, name, "
                    "response_id) SELECT process_id, 1, at, 'RESPONSE', 'COMPLETED', name, "
                    "response_id FROM c RETURNING name",
                    NULL));

    cr_expect_not(respond("L1", NULL, id.text));
    cr_expect(respond("L1", NULL, NULL), "without an id it is another one");
    cr_expect(respond("L1", NULL, NULL));
    expect_value(bus.conn, "2:{} 3:{}",
                 "SELECT string_agg(seq || ':' || payload, ' ' ORDER BY seq) "
                 "FROM commandbus.process_inbox");
}

Test(process_respond, wakes_only_processes_that_wait_or_have_ended) /* STP.11 */
{
    static const struct {
        const char *status;
        bool wakes;
    } cases[] = {
        { "PENDING", false },
        { "EXECUTING", true },
        { "WAITING_FOR_REPLY", true },
        { "WAITING_FOR_ASYNC", true },
        { "WAITING_FOR_RETRY", false },
        { "WAITING_FOR_TSQ", false },
        { "COMPENSATING", false },
        { "COMPENSATED", true },
        { "COMPLETED", true },
        { "CANCELED", true },
        { "FAILED", true },
    };

    test_exec(bus.conn, "UPDATE commandbus.clock SET moved_by = '1 hour'");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pay_suspend(bus.conn, process, cases[i].status);
        pay_set(bus.conn, process, "wake_at = 'infinity'");
        cr_expect(respond("L1", NULL, NULL));
        char *woken = test_value(bus.conn,
                                 "SELECT wake_at BETWEEN commandbus.now() - interval '10 s' AND "
                                 "commandbus.now() FROM commandbus.process",
                                 NULL);
        cr_expect_str_eq(woken, cases[i].wakes ? "t" : "f", "%s", cases[i].status);
        free(woken);
        expect_value(bus.conn, cases[i].status, "SELECT status FROM commandbus.process");
    }
}

Test(process_respond, to_a_leased_process_leaves_its_timer_until_the_lease_is_over) /* DESIGN 4 */
{
    cb_process_claim_free(pay_claim(bus.db, "w", 1, 30));

    cr_expect(respond("L1", NULL, NULL));
    expect_value(bus.conn, "t w 1",
                 "SELECT concat_ws(' ', wake_at > commandbus.now() + interval '20 s', lease_owner, "
                 "inbox_seq) FROM commandbus.process");
    pay_set(bus.conn, process, "lease_until = now() - interval '1 s'");
    cr_expect(respond("L2", NULL, NULL));
    expect_value(bus.conn, "t w 2",
                 "SELECT concat_ws(' ', wake_at <= commandbus.now(), lease_owner, inbox_seq) "
                 "FROM commandbus.process");
}

Test(process_respond, notifies_sleepers_only_when_it_wakes) /* DESIGN 2 wake-up */
{
    test_exec(bus.conn, "LISTEN commandbus_payments__processes;"
                        "SELECT commandbus.sleep_announce('w', '{payments__processes}', 60)");

    cr_expect(respond("L1", NULL, NULL)); /* PENDING */
    test_exec(bus.conn, "SELECT 1");
    cr_assert_null(PQnotifies(bus.conn));
    pay_suspend(bus.conn, process, "WAITING_FOR_ASYNC");
    cr_expect(respond("L2", NULL, NULL));
    free(wait_for_notify(bus.conn));
}

Test(process_respond, that_nobody_can_take_is_refused) /* CONTRACT refusals */
{
    char sql[300];
    bool accepted;
    cb_error e = { 0 };
    char *before = bus_contents();

    expect_error(CB_PROCESS_NOT_FOUND,
                 cb_process_respond(bus.db, cb_uuid_new().text, "L1", NULL, NULL, &accepted, &e),
                 e);
    expect_error(CB_INVALID_DATA,
                 cb_process_respond(bus.db, process.text, "L1", "{", NULL, &accepted, &e), e);
    expect_error(CB_INVALID_DATA,
                 cb_process_respond(bus.db, process.text, "L1", NULL, "x", &accepted, &e), e);
    expect_error(CB_INVALID_NAME,
                 cb_process_respond(bus.db, process.text, "", NULL, NULL, &accepted, &e), e);
    snprintf(sql, sizeof sql, "SELECT commandbus.respond('%s', repeat('x', 201))", process.text);
    expect_sqlstate(bus.conn, "CB010", sql);
    snprintf(sql, sizeof sql,
             "SELECT commandbus.respond('%s', 'L1', to_jsonb(repeat('x', 1048576)))", process.text);
    expect_sqlstate(bus.conn, "CB012", sql);
    /* Deeper than a worker reads: its process could never go on. */
    snprintf(sql, sizeof sql,
             "SELECT commandbus.respond('%s', 'L1', (repeat('[', 40) || repeat(']', 40))::jsonb)",
             process.text);
    expect_sqlstate(bus.conn, "CB011", sql);
    expect_unchanged(before, bus_contents());
}

Test(process_respond, into_a_full_inbox_is_refused) /* DESIGN 8.7 */
{
    char sql[200];

    test_exec(bus.conn,
              "INSERT INTO commandbus.process_inbox (process_id, seq, kind, name, payload) "
              "SELECT process_id, n, 'RESPONSE', 'x', '{}' FROM commandbus.process, "
              "generate_series(1, 10000) n; UPDATE commandbus.process SET inbox_seq = 10000");
    snprintf(sql, sizeof sql, "SELECT commandbus.respond('%s', 'L1')", process.text);
    expect_sqlstate(bus.conn, "CB007", sql);
    test_exec(bus.conn, "DELETE FROM commandbus.process_inbox WHERE seq = 1");
    expect_sqlstate(bus.conn, "00000", sql);
}

/* A claim reads all that a process was given: more than that would end its worker. */
Test(process_respond, takes_no_more_than_a_run_can_load) /* DESIGN 8.7, 8.10 */
{
    char sql[200];

    snprintf(sql, sizeof sql,
             "SELECT commandbus.respond('%s', 'L1', to_jsonb(repeat('m', 1000000)))", process.text);
    for (int i = 0; i < 6; i++)
        expect_sqlstate(bus.conn, "00000", sql);
    expect_sqlstate(bus.conn, "CB007", sql);
    expect_value(bus.conn, "6", "SELECT count(*) FROM commandbus.process_inbox");
    /* What is small still gets in. */
    respond("L1", "{}", NULL);

    /* What is not there any more does not count any more. */
    test_exec(bus.conn, "DELETE FROM commandbus.process_inbox WHERE seq < 3");
    expect_sqlstate(bus.conn, "00000", sql);
}
