/* How much of a process is counted, and how much of it a claim reads: DESIGN 8.10. */
#include "claims.h"
#include "pay.h"

#include <stdio.h>

TestSuite(process_size, .init = pay_open, .fini = bus_close);

/* Inbox items of so many bytes each, put there by hand; the row counts them. */
static void fill_inbox(cb_uuid id, int n, int bytes)
{
    char sql[800];

    snprintf(
        sql, sizeof sql,
        "INSERT INTO commandbus.process_inbox (process_id, seq, kind, name, payload) "
        "SELECT '%s', n, 'RESPONSE', 'x', to_jsonb(repeat('m', %d)) FROM generate_series(1, %d) n; "
        "UPDATE commandbus.process SET inbox_seq = %d, content_bytes = content_bytes + %d "
        "WHERE process_id = '%s'",
        id.text, bytes, n, n, n * (bytes + 300), id.text);
    test_exec(bus.conn, sql);
}

static cb_process_claim *claim_bytes(int quantity, int64_t bytes, cb_process_look *look)
{
    static const cb_process_kind kind = { "Pay", "payments", 1, false, NULL, NULL, NULL };
    cb_process_claim_options options = {
        .worker = "w", .kinds = &kind, .n_kinds = 1, .claim_bytes = bytes
    };
    cb_process_claim *claim = NULL;
    cb_error e = { 0 };

    cr_assert(cb_process_claim_due(bus.db, &options, quantity, &claim, look, &e), "%s", e.message);
    return claim;
}

/* Whatever was written: what the row says is never less than what is really there. */
static void expect_counted(void)
{
    expect_value(bus.conn, "t",
                 "SELECT bool_and(content_bytes + 300 >= commandbus.measured_content(process_id)) "
                 "FROM commandbus.process");
}

Test(process_size, counts_the_state_responses_replies_and_records) /* DESIGN 8.10 */
{
    cb_uuid id = pay_start(bus.db);

    expect_value(bus.conn, "16", "SELECT content_bytes FROM commandbus.process");
    pay_suspend(bus.conn, id, "WAITING_FOR_ASYNC");
    test_exec(bus.conn,
              "SELECT commandbus.respond(process_id, 'L1', to_jsonb(repeat('m', 100000))) "
              "FROM commandbus.process");
    expect_counted();

    /* A reply, with a large result. */
    cb_uuid command = pay_command(bus.conn, id);
    pay_reply(bus.conn, command, id, "SUCCESS");
    test_exec(bus.conn, "UPDATE pgmq.q_payments__replies SET message = message || "
                        "jsonb_build_object('result', repeat('r', 200000))");
    cr_assert_eq(pay_deliver(bus.db, 60).delivered, 1);
    expect_counted();
    expect_value(bus.conn, "t", "SELECT content_bytes > 300000 FROM commandbus.process");

    /* Records and the state that a run has made of it. */
    OWNED(cb_process_claim) taken = claim_bytes(1, 0, NULL);
    cr_assert_eq(cb_process_claim_count(taken), 1);
    test_exec(
        bus.conn,
        "SELECT commandbus.settle_processes('w', jsonb_build_array(jsonb_build_object("
        "'process_id', process_id, 'lease_no', lease_no, 'settle_no', 0, 'status', 'PENDING', "
        "'wake', 'NOW', 'state', jsonb_build_object('s', repeat('s', 400000)), "
        "'consumed', '[1, 2]'::jsonb, 'records', jsonb_build_array(jsonb_build_object("
        "'ordinal', 1, 'kind', 'STEP', 'status', 'COMPLETED', 'name', 'a', "
        "'patch', jsonb_build_object('s', repeat('s', 400000))))))) FROM commandbus.process");
    expect_counted();
    expect_value(bus.conn, "t", "SELECT content_bytes > 1100000 FROM commandbus.process");

    /* What was consumed is not there any more: a claim measures, and the row says what is. */
    OWNED(cb_process_claim) again = claim_bytes(1, 0, NULL);
    cr_assert_eq(cb_process_claim_count(again), 1);
    expect_value(bus.conn, "t",
                 "SELECT content_bytes = commandbus.measured_content(process_id) "
                 "AND content_bytes < 810000 FROM commandbus.process");
}

Test(process_size, a_claim_leaves_what_its_budget_has_no_room_for) /* DESIGN 8.10 */
{
    cb_process_look look;

    for (int i = 0; i < 5; i++)
        fill_inbox(pay_start(bus.db), 1, 400000);

    OWNED(cb_process_claim) some = claim_bytes(5, 1000000, &look);
    cr_expect_eq(cb_process_claim_count(some), 2);
    cr_expect(look.more_processes);
    cr_expect(cb_process_claim_bytes(some) > 800000 && cb_process_claim_bytes(some) < 1000000);
    /* Those that were left over have no holder, as before. */
    expect_value(
        bus.conn, "3",
        "SELECT count(*) FROM commandbus.process WHERE lease_owner IS NULL AND lease_no = 0 "
        "AND unsettled = 0 AND status = 'PENDING'");

    /* One is taken even where there is room for none. */
    OWNED(cb_process_claim) one = claim_bytes(5, 1, &look);
    cr_expect_eq(cb_process_claim_count(one), 1);
    cr_expect(look.more_processes);
    OWNED(cb_process_claim) rest = claim_bytes(5, 1000000, &look);
    cr_expect_eq(cb_process_claim_count(rest), 2);
    cr_expect_not(look.more_processes);
}

Test(process_size, of_one_that_is_too_large_only_decisions_are_read) /* DESIGN 8.10 */
{
    cb_uuid large = pay_start(bus.db), small = pay_start(bus.db);

    fill_inbox(large, 9, 1000000);
    test_exec(bus.conn,
              "INSERT INTO commandbus.process_inbox (process_id, seq, kind, name, payload) "
              "SELECT process_id, 10, 'OPERATOR', 'RETRY', '{}' FROM commandbus.process "
              "WHERE inbox_seq = 9");

    OWNED(cb_process_claim) both = claim_bytes(5, 0, NULL);
    cr_assert_eq(cb_process_claim_count(both), 2);
    cr_expect(cb_process_claim_bytes(both) < 1000);
    for (size_t i = 0; i < 2; i++) {
        const cb_process_row *row = cb_process_claim_at(both, i);
        bool is_large = strcmp(row->process_id.text, large.text) == 0;
        cr_expect(is_large || strcmp(row->process_id.text, small.text) == 0);
        cr_expect_eq(row->content_limit, 8 * 1024 * 1024);
        cr_expect_eq(row->too_large > 9000000, is_large);
        cr_expect_eq(row->history == NULL, is_large);
        cr_expect_str_eq(row->inbox, is_large ? "[[10,\"OPERATOR\",\"RETRY\",null,{}]]" : "[]");
        cr_expect_str_eq(row->state, is_large ? "{}" : "{\"n\": 1}");
    }

    /* The limit is the domain's, and whoever only reads keeps to it. */
    test_exec(bus.conn, "UPDATE commandbus.domain SET content_limit = 16 * 1024 * 1024 "
                        "WHERE domain = 'payments'");
    OWNED(cb_process_claim) read = NULL;
    cb_error e = { 0 };
    cr_assert(cb_process_read(bus.db, large.text, &read, &e), "%s", e.message);
    cr_expect_eq(cb_process_claim_at(read, 0)->too_large, 0);
    cr_expect(cb_process_claim_bytes(read) > 9000000);
}

/* A server is not asked to hand out what expired while it was away; bus_open has waited for
 * that. */
Test(process_size, a_crashed_process_does_not_wait_behind_an_older_backlog) /* DESIGN 8.1 */
{
    cb_uuid crashed = pay_start(bus.db);

    OWNED(cb_process_claim) lost = pay_claim(bus.db, "dead", 1, 0.05);
    cr_assert_eq(cb_process_claim_count(lost), 1);
    for (int i = 0; i < 50; i++)
        pay_start(bus.db);
    test_exec(bus.conn,
              "UPDATE commandbus.process SET wake_at = commandbus.now() - interval '1 hour' "
              "WHERE lease_owner IS NULL");

    /* Waits for the end of that lease, taking nothing of the backlog meanwhile. */
    test_exec(bus.conn,
              "DO $$ BEGIN WHILE EXISTS (SELECT FROM commandbus.process WHERE lease_until > "
              "clock_timestamp()) LOOP PERFORM pg_sleep(0.01); END LOOP; END $$");
    OWNED(cb_process_claim) next = pay_claim(bus.db, "w", 1, 0.5);
    cr_assert_eq(cb_process_claim_count(next), 1);
    cr_expect_str_eq(cb_process_claim_at(next, 0)->process_id.text, crashed.text);
    cr_expect_eq(cb_process_claim_at(next, 0)->unsettled, 1);

    /* And the rest of the room is for the backlog. */
    OWNED(cb_process_claim) others = pay_claim(bus.db, "w", 10, 30);
    cr_expect_eq(cb_process_claim_count(others), 10);
}

static long buffers_of_responses(int n)
{
    char sql[400];

    snprintf(sql, sizeof sql,
             "SELECT pg_temp.buffers('SELECT count(commandbus.respond(process_id, ''x'', ''{}'', "
             "gen_random_uuid())) FROM commandbus.process, generate_series(1, %d)')",
             n);
    char *text = test_value(bus.conn, sql, NULL, NULL);
    long buffers = strtol(text, NULL, 10);
    free(text);
    return buffers;
}

/* It waited for the row, and held it while it measured the process: a flood of responses that were
 * refused kept renewals away until the lease was over. */
Test(process_size, a_response_without_room_waits_for_nobody) /* DESIGN 8.10 */
{
    cb_uuid id = pay_start(bus.db);
    PGconn *holder = test_pq_open(bus.conninfo);

    fill_inbox(id, 6, 1000000);
    test_exec(bus.conn, "SET lock_timeout = '500ms'");
    test_exec(holder, "BEGIN");
    test_exec(holder, "SELECT FROM commandbus.process FOR UPDATE");
    const char *large =
        "SELECT commandbus.respond(process_id, 'x', to_jsonb(repeat('m', 1000000))) "
        "FROM commandbus.process";
    cr_expect_str_eq(test_sqlstate(bus.conn, large), "CB007");
    /* There is room for this one. */
    cr_expect_str_eq(
        test_sqlstate(bus.conn,
                      "SELECT commandbus.respond(process_id, 'x') FROM commandbus.process"),
        "55P03");
    PQfinish(holder);
}

/* One that was given already needs no room, and one that the type does not take is told so. */
Test(process_size, a_full_process_still_knows_what_it_was_given) /* BUS.19 */
{
    cb_uuid id = pay_start(bus.db);
    const char *given =
        "SELECT commandbus.respond(process_id, 'x', to_jsonb(repeat('m', $1::int)), "
        "'11111111-2222-4333-8444-555555555551') FROM commandbus.process";

    fill_inbox(id, 6, 1000000);
    expect_value(bus.conn, "t", given, "10");
    expect_value(bus.conn, "f", given, "1000000");
    test_exec(bus.conn, "UPDATE commandbus.process_type SET responses = '{\"y\": {}}'");
    cr_expect_str_eq(
        test_sqlstate(bus.conn,
                      "SELECT commandbus.respond(process_id, 'z', to_jsonb(repeat('m', 1000000))) "
                      "FROM commandbus.process"),
        "CB010");
}

/* 5,000 took 37 seconds: each looked at all versions of the row that those before had left. */
Test(process_size, many_responses_in_one_transaction_cost_the_same_each) /* BUS.19 */
{
    cb_uuid id = pay_start(bus.db);

    pay_suspend(bus.conn, id, "WAITING_FOR_ASYNC");
    test_exec(bus.conn,
              "CREATE FUNCTION pg_temp.buffers(query text) RETURNS bigint LANGUAGE plpgsql AS $$ "
              "DECLARE plan json; BEGIN "
              "EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) ' || query INTO plan; "
              "RETURN (plan -> 0 -> 'Plan' ->> 'Shared Hit Blocks')::bigint; END $$");
    long few = buffers_of_responses(500);
    test_exec(bus.conn, "DELETE FROM commandbus.process_inbox");
    long many = buffers_of_responses(2000);

    cr_log_info("%ld buffers for 500, %ld for 2,000", few, many);
    cr_expect(many < 6 * few, "%ld buffers for 500, but %ld for 2,000", few, many);
    /* All are there, numbered in order, and the process knows of them. */
    expect_value(bus.conn, "2000 2000 2500",
                 "SELECT concat_ws(' ', count(*), count(DISTINCT i.seq), max(p.inbox_seq)) "
                 "FROM commandbus.process_inbox i, commandbus.process p");
}

Test(process_size, responses_within_savepoints_are_as_if_each_was_alone) /* STP.11 */
{
    cb_uuid id = pay_start(bus.db);
    char respond[200];

    snprintf(respond, sizeof respond, "SELECT commandbus.respond('%s', 'x')", id.text);
    test_exec(bus.conn, "BEGIN");
    test_exec(bus.conn, respond);
    test_exec(bus.conn, "SAVEPOINT one");
    test_exec(bus.conn, respond);
    test_exec(bus.conn, respond);
    test_exec(bus.conn, "ROLLBACK TO one");
    test_exec(bus.conn, respond);
    test_exec(bus.conn, "COMMIT");
    test_exec(bus.conn, respond);
    expect_value(bus.conn, "1 2 3, 3",
                 "SELECT string_agg(i.seq::text, ' ' ORDER BY i.seq) || ', ' || max(p.inbox_seq) "
                 "FROM commandbus.process_inbox i, commandbus.process p");
}
