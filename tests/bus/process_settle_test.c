/* What settling a process writes: row, history, inbox, events and commands, together and behind the
 * fence. */
#include "process_rows.h"

#include <stdio.h>

#include "life.h"
#include "wait.h"

TestSuite(process_settle, .init = bus_open, .fini = bus_close);

#define WAITS "\"status\":\"WAITING_FOR_ASYNC\",\"wake\":\"TIMERS\",\"seen\":0"

/* DESIGN 2 */
Test(process_settle, writes_the_row_and_gives_the_lease_back)
{
    cb_uuid id = process_put("error_code = 'OLD', current_wait = 'old'");

    expect_verdict(
        CB_SETTLED,
        process_settle(&id, 0,
                       "\"version\":3,\"status\":\"WAITING_FOR_RETRY\",\"phase\":\"FORWARD\","
                       "\"step\":\"bookRisk\",\"wait\":null,\"state\":{\"n\":1},"
                       "\"error_code\":\"E\",\"error_message\":\"later\","
                       "\"leaving\":{\"to\":\"X\"},\"retry_ms\":5000,\"wake\":\"TIMERS\","
                       "\"seen\":0,\"records\":[],\"commands\":[],\"cancels\":[],\"events\":[]"));

    expect_process("1 1 3 WAITING_FOR_RETRY FORWARD bookRisk {\"n\": 1} E later {\"to\": \"X\"} f",
                   id,
                   "lease_no, settle_no, version, status, phase, current_step, "
                   "current_wait, state, error_code, error_message, leaving, deadline_spent, "
                   "lease_owner, lease_until, completed_at, tsq_at");
    expect_process("t", id,
                   "next_retry_at = wake_at AND next_wait_timeout_at IS NULL AND "
                   "next_retry_at = updated_at + interval '5 s'");
}

/* STP.14: what is not said stays; a lower version does not take the higher one's place */
Test(process_settle, without_a_state_keeps_it_and_the_highest_version)
{
    cb_uuid id = process_put("version = 7, phase = 'COMPENSATING'");

    expect_verdict(CB_SETTLED, process_settle(&id, 0, "\"version\":2," WAITS));

    expect_process("7 COMPENSATING {\"n\": 0}", id, "version, phase, state");
}

/* DESIGN 2, 8.3 */
Test(process_settle, again_is_already_done_and_changes_nothing)
{
    cb_uuid id = process_put("");
    const char *members = "\"records\":[{\"ordinal\":1,\"kind\":\"STEP\",\"status\":\"COMPLETED\","
                          "\"name\":\"a\"}],\"events\":[{\"event\":\"WAIT_TIMEOUT\"}]," WAITS;
    expect_verdict(CB_SETTLED, process_settle(&id, 0, members));
    char *before = bus_contents();

    expect_verdict(CB_ALREADY, process_settle(&id, 0, members));

    expect_unchanged(before, bus_contents());
}

/* DESIGN 2, 8.3: who lost the fence changes nothing but the record of it */
Test(process_settle, behind_a_lost_fence_is_stale_and_reported)
{
    static const char *const lost[] = {
        "lease_no = 2",
        "lease_owner = 'heir'",
        "settle_no = 2",
        "lease_owner = NULL, lease_until = NULL",
    };

    for (size_t i = 0; i < sizeof lost / sizeof *lost; i++) {
        cb_uuid id = process_put(lost[i]);

        expect_verdict(CB_STALE,
                       process_settle(&id, 0,
                                      "\"status\":\"COMPLETED\",\"wake\":\"NEVER\",\"records\":"
                                      "[{\"ordinal\":1,\"kind\":\"STEP\",\"status\":\"COMPLETED\","
                                      "\"name\":\"a\"}],\"commands\":[{\"domain\":\"fx\","
                                      "\"command_type\":\"BookFx\",\"command_id\":"
                                      "\"11111111-2222-8333-8444-555555555555\",\"data\":{}}]"));

        expect_process("EXECUTING", id, "status");
        expect_records("", id, "name");
        expect_process_events("STALE_OUTCOME", id);
    }
    expect_number(bus.conn, 0, "SELECT count(*) FROM commandbus.command_metadata");
    cb_uuid nobody = cb_uuid_new();
    expect_verdict(CB_STALE, process_settle(&nobody, 0, WAITS));
}

/* DESIGN 8.3: an instance that lost a process and has claimed it again brings both runs in one
 * call. */
Test(process_settle, behind_a_lost_fence_is_stale_beside_the_run_that_has_it)
{
    cb_uuid id = process_put("lease_no = 2");
    cb_process_settlement items[] = {
        { .process_id = id,
          .item =
              process_item_new(&id, 0,
                               WAITS ",\"records\":[{\"ordinal\":1,\"kind\":\"STEP\",\"status\":"
                                     "\"COMPLETED\",\"name\":\"lost\"}],\"commands\":[{\"domain\":"
                                     "\"fx\",\"command_type\":\"BookFx\",\"command_id\":"
                                     "\"11111111-2222-8333-8444-555555555555\",\"data\":{}}]") },
        { .process_id = id,
          .item = process_item_new(&id, 0,
                                   "\"lease_no\":2," WAITS ",\"records\":[{\"ordinal\":2,\"kind\":"
                                   "\"STEP\",\"status\":\"COMPLETED\",\"name\":\"held\"}],"
                                   "\"commands\":[{\"domain\":\"fx\",\"command_type\":\"BookRisk\","
                                   "\"command_id\":\"11111111-2222-8333-8444-555555555556\","
                                   "\"data\":{}}]") },
    };
    cb_error e = { 0 };

    expect_ok(cb_process_settle(bus.db, "w", items, 2, &e), e);

    expect_verdict(CB_STALE, items[0].verdict);
    expect_verdict(CB_SETTLED, items[1].verdict);
    expect_records("held", id, "name");
    expect_value(bus.conn, "BookRisk",
                 "SELECT string_agg(command_type, ' ') FROM commandbus.command_metadata");
    expect_process_events("STALE_OUTCOME", id);
    settlements_free(items, 2);
}

/* DESIGN 2: settle skips locked rows and never waits */
Test(process_settle, of_a_locked_row_is_busy_and_the_others_settle)
{
    cb_uuid locked = process_put(""), other = process_put("");
    cb_process_settlement items[] = {
        { .process_id = locked, .item = process_item_new(&locked, 0, WAITS) },
        { .process_id = other, .item = process_item_new(&other, 0, WAITS) },
    };
    cb_error e = { 0 };
    PGconn *holder = test_pq_open(bus.conninfo);
    test_exec(holder, "BEGIN");
    expect_value(holder, locked.text,
                 "SELECT process_id FROM commandbus.process WHERE process_id = $1 FOR UPDATE",
                 locked.text);

    expect_ok(cb_process_settle(bus.db, "w", items, 2, &e), e);

    expect_verdict(CB_BUSY, items[0].verdict);
    expect_verdict(CB_SETTLED, items[1].verdict);
    test_exec(holder,
              "ROLLBACK"); /* a connection that is only closed may keep its locks a moment */
    PQfinish(holder);
    expect_ok(cb_process_settle(bus.db, "w", items, 2, &e), e);
    expect_verdict(CB_SETTLED, items[0].verdict);
    expect_verdict(CB_ALREADY, items[1].verdict);
    expect_process_events("", locked);
    settlements_free(items, 2);
}

/* DESIGN 4: a checkpoint keeps the lease and renews it */
Test(process_settle, of_a_checkpoint_renews_the_lease_and_counts)
{
    cb_uuid id = process_put("inbox_seq = 5");

    expect_verdict(
        CB_SETTLED,
        process_settle(&id, 0,
                       "\"checkpoint\":true,\"vt_seconds\":600,\"status\":\"EXECUTING\","
                       "\"step\":\"a\",\"seen\":0,\"wake\":\"NOW\",\"records\":[{\"ordinal\":1,"
                       "\"kind\":\"STEP\",\"status\":\"STARTED\",\"name\":\"a\",\"attempts\":1}]"));

    expect_process("w 1 1 t t", id,
                   "lease_owner, lease_no, settle_no, "
                   "lease_until > now() + interval '9 min', wake_at > now() + interval '9 min'");
    expect_verdict(
        CB_SETTLED,
        process_settle(&id, 1,
                       "\"seen\":5,\"wake\":\"NEVER\",\"status\":\"COMPLETED\",\"records\":["
                       "{\"ordinal\":1,\"status\":\"COMPLETED\",\"finished\":true}]"));
    expect_process("COMPLETED 2 t", id,
                   "status, settle_no, completed_at = updated_at, lease_owner, "
                   "wake_at");
    expect_records("STEP a COMPLETED 1", id, "concat_ws(' ', kind, name, status, attempts)");
}

static void expect_wake(const char *sets, const char *members, const char *expected)
{
    cb_uuid id = process_put(sets);

    expect_verdict(CB_SETTLED, process_settle(&id, 0, members));
    expect_process(expected, id,
                   "CASE WHEN wake_at IS NULL THEN 'never' WHEN wake_at = updated_at THEN 'now' "
                   "WHEN wake_at = next_retry_at THEN 'retry' "
                   "WHEN wake_at = next_wait_timeout_at THEN 'timeout' "
                   "WHEN wake_at = deadline_at THEN 'deadline' ELSE 'otherwise' END");
}

/* DESIGN 4: nothing that arrives while a process runs is slept through */
Test(process_settle, wakes_when_something_arrived_that_the_run_has_not_seen)
{
    static const char *const wakes[] = { "NEVER", "TIMERS" };
    char members[256];

    for (size_t i = 0; i < 2; i++) {
        snprintf(members, sizeof members,
                 "\"status\":\"WAITING_FOR_ASYNC\",\"wake\":\"%s\",\"timeout_ms\":9000,\"seen\":3",
                 wakes[i]);
        expect_wake("inbox_seq = 4", members, "now");
        expect_wake("inbox_seq = 3", members, i ? "timeout" : "never");
    }
    expect_wake("", "\"status\":\"PENDING\",\"wake\":\"NOW\",\"seen\":0", "now");
}

#define DEADLINE "deadline_at = now() + interval '1 h'"

/* STP.6, STP.7, STP.10 */
Test(process_settle, wakes_at_the_first_timer)
{
    expect_wake("", WAITS, "never");
    expect_wake("", WAITS ",\"timeout_ms\":9000,\"retry_ms\":5000", "retry");
    expect_wake("", WAITS ",\"timeout_ms\":4000,\"retry_ms\":5000", "timeout");
    expect_wake(DEADLINE, WAITS ",\"timeout_ms\":4000", "timeout");
    expect_wake(DEADLINE, WAITS ",\"timeout_ms\":40000000", "deadline");
    expect_wake(DEADLINE, WAITS, "deadline");
    expect_wake(DEADLINE, "\"status\":\"WAITING_FOR_ASYNC\",\"wake\":\"NEVER\"", "never");
}

/* STP.10: never in COMPENSATING or WAITING_FOR_TSQ, never twice */
Test(process_settle, does_not_wake_for_a_deadline_that_has_no_effect)
{
    static const char *const statuses[] = { "WAITING_FOR_TSQ", "COMPENSATING", "COMPLETED",
                                            "CANCELED",        "COMPENSATED",  "FAILED" };
    char members[256];

    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        snprintf(members, sizeof members, "\"status\":\"%s\",\"wake\":\"TIMERS\",\"seen\":0",
                 statuses[i]);
        expect_wake(DEADLINE, members, "never");
    }
    expect_wake(DEADLINE ", deadline_spent = true", WAITS, "never");
    expect_wake(DEADLINE, WAITS ",\"deadline_spent\":true", "never");
    expect_wake(DEADLINE, WAITS ",\"deadline_spent\":false", "deadline");
}

/* STP.6: the first timeout stays whatever wakes the process */
Test(process_settle, keeps_moments_that_were_given_as_moments)
{
    cb_uuid id = process_put("");

    expect_verdict(CB_SETTLED, process_settle(&id, 0,
                                              WAITS ",\"retry_at_ms\":4102444800123,"
                                                    "\"timeout_at_ms\":4102444900000"));

    expect_process("t", id,
                   "next_retry_at = '2100-01-01 00:00:00.123Z' AND next_wait_timeout_at = "
                   "'2100-01-01 00:01:40Z' AND wake_at = next_retry_at");
}

/* Timers run on commandbus.now(), leases on the server's clock. */
Test(process_settle, takes_timers_from_the_clock_that_tests_move)
{
    cb_uuid id = process_put("");
    test_exec(bus.conn, "UPDATE commandbus.clock SET moved_by = interval '10 d'");

    expect_verdict(CB_SETTLED, process_settle(&id, 0,
                                              WAITS ",\"checkpoint\":true,\"vt_seconds\":60,"
                                                    "\"timeout_ms\":1000"));

    expect_process("t t t", id,
                   "next_wait_timeout_at > now() + interval '9 d', "
                   "wake_at > now() + interval '9 d', lease_until < now() + interval '1 d'");
}

/* STP.12 */
Test(process_settle, remembers_since_when_it_waits_for_an_operator)
{
    cb_uuid id = process_put("");
    const char *parked = "\"checkpoint\":true,\"status\":\"WAITING_FOR_TSQ\"";

    process_settle(&id, 0, parked);
    expect_process("t", id, "tsq_at = updated_at");
    process_settle(&id, 1, parked);
    expect_process("t", id, "tsq_at < updated_at");
    process_settle(&id, 2, WAITS);
    expect_process("t", id, "tsq_at IS NULL");
}

/* STP.11: a response that came too late does not make a process end later */
Test(process_settle, keeps_the_moment_at_which_it_ended)
{
    cb_uuid id = process_put("status = 'COMPLETED', completed_at = '2020-01-01Z'");

    expect_verdict(CB_SETTLED, process_settle(&id, 0, "\"status\":\"COMPLETED\""));

    expect_process("t", id, "completed_at = '2020-01-01Z'");
}

/* DESIGN 4: an open record gets its end in place */
Test(process_settle, opens_records_and_ends_them_in_place)
{
    cb_uuid id = process_put("");

    process_settle(
        &id, 0,
        "\"checkpoint\":true,\"records\":[{\"ordinal\":1,\"kind\":\"STEP\",\"status\":\"RETRY\","
        "\"name\":\"a\",\"attempts\":1,\"error_code\":\"E\",\"error_message\":\"m\","
        "\"opening\":{\"o\":1},\"took_ms\":1.5},"
        "{\"ordinal\":2,\"kind\":\"WAIT\",\"status\":\"WAITING\",\"name\":\"w\","
        "\"timeout_ms\":60000,\"owes\":{\"inline\":true}}]");
    test_exec(bus.conn, "CREATE TEMP TABLE first AS SELECT * FROM commandbus.process_history");
    process_settle(
        &id, 1,
        "\"checkpoint\":true,\"records\":["
        "{\"ordinal\":2,\"kind\":\"STEP\",\"status\":\"COMPLETED\",\"name\":\"other\","
        "\"finished\":true,\"patch\":{\"p\":1},\"result\":[1]},"
        "{\"ordinal\":1,\"status\":\"COMPLETED\",\"attempts\":2,\"finished\":true},"
        "{\"ordinal\":3,\"kind\":\"SIDE_EFFECT\",\"status\":\"COMPLETED\",\"name\":\"s\","
        "\"result\":\"x\",\"finished\":true}]");

    expect_records(
        "1 STEP a COMPLETED 2 {\"o\": 1} t; " /* 1.5 was of the first attempt */
        "2 WAIT w COMPLETED 0 {\"p\": 1} {\"inline\": true} [1] t; "
        "3 SIDE_EFFECT s COMPLETED 0 \"x\" t",
        id,
        "concat_ws(' ', ordinal, kind, name, status, attempts, error_code, "
        "error_message, opening, patch, owes, result, took_ms, finished_at IS NOT NULL)");
    expect_value(bus.conn, "true true",
                 "SELECT string_agg((h.at = f.at AND h.timeout_at IS NOT DISTINCT FROM "
                 "f.timeout_at)::text, ' ') FROM commandbus.process_history h JOIN first f USING "
                 "(process_id, ordinal)");
}

/* STP.6, STP.12: only a new timeout takes the place of the first; a reopened record is open
 * again */
Test(process_settle, reopens_a_record_and_moves_its_timeout_when_told)
{
    cb_uuid id = process_put("");

    process_settle(&id, 0,
                   "\"checkpoint\":true,\"records\":[{\"ordinal\":1,\"kind\":\"WAIT\","
                   "\"status\":\"FAILED\",\"name\":\"w\",\"timeout_ms\":1,\"error_code\":\"E\","
                   "\"finished\":true}]");
    process_settle(&id, 1,
                   "\"checkpoint\":true,\"records\":[{\"ordinal\":1,\"status\":\"WAITING\","
                   "\"timeout_at_ms\":4102444800000,\"finished\":false}]");

    expect_records("WAITING t", id,
                   "concat_ws(' ', status, timeout_at = '2100-01-01Z', finished_at, error_code)");
}

/* DESIGN 4 */
Test(process_settle, takes_what_was_consumed_out_of_the_inbox_and_writes_events)
{
    cb_uuid id = process_put("inbox_seq = 3"), other = process_put("inbox_seq = 3");
    test_exec(bus.conn,
              "INSERT INTO commandbus.process_inbox (process_id, seq, kind, name, payload) "
              "SELECT process_id, s, 'RESPONSE', 'r' || s, '{}' "
              "FROM commandbus.process, generate_series(1, 3) s");

    expect_verdict(
        CB_SETTLED,
        process_settle(&id, 0,
                       "\"seen\":3,\"consumed\":[1,3],\"status\":\"WAITING_FOR_ASYNC\","
                       "\"wake\":\"NEVER\",\"events\":[{\"event\":\"WAIT_TIMEOUT\",\"name\":\"w\","
                       "\"details\":{\"a\":1}},{\"event\":\"DEADLINE_EXCEEDED\","
                       "\"details\":null}]"));

    expect_value(bus.conn, "r2",
                 "SELECT string_agg(name, ' ') FROM commandbus.process_inbox "
                 "WHERE process_id = $1::uuid",
                 id.text);
    expect_number(bus.conn, 3,
                  "SELECT count(*) FROM commandbus.process_inbox WHERE process_id = $1::uuid",
                  other.text);
    expect_value(bus.conn, "WAIT_TIMEOUT w w {\"a\": 1}; DEADLINE_EXCEEDED w",
                 "SELECT string_agg(concat_ws(' ', event, step_name, worker, details), '; ' ORDER "
                 "BY id) FROM commandbus.process_event WHERE process_id = $1::uuid",
                 id.text);
}

/* DESIGN 2: who sleeps on the processes of that domain hears of one that is due, and only of
 * such */
Test(process_settle, notifies_sleepers_when_it_is_due_again)
{
    cb_uuid id = process_put(""), due = process_put("");
    PGconn *sleeper = test_pq_open(bus.conninfo);
    test_exec(sleeper, "LISTEN commandbus_payments__processes");
    test_exec(sleeper, "INSERT INTO commandbus.sleeper VALUES ('payments__processes', 's', "
                       "now() + interval '1 min')");

    process_settle(&id, 0, WAITS ",\"timeout_ms\":60000");
    test_exec(sleeper, "SELECT 1");
    PQconsumeInput(sleeper);
    cr_assert_null(PQnotifies(sleeper));
    process_settle(&due, 0, "\"status\":\"PENDING\",\"wake\":\"NOW\"");

    char *channel = wait_for_notify(sleeper);
    cr_assert_str_eq(channel, "commandbus_payments__processes");
    free(channel);
    PQfinish(sleeper);
}

/* DESIGN 8.7: the tables may be large, a settle still reads its own rows only */
Test(process_settle, reads_no_more_rows_than_it_settles)
{
    cb_uuid id = process_put("");
    test_exec(bus.conn,
              "INSERT INTO commandbus.process_history (process_id, at, ordinal, kind, status, "
              "name) SELECT gen_random_uuid(), now(), o, 'STEP', 'COMPLETED', 's' "
              "FROM generate_series(1, 20000) o");
    test_exec(bus.conn,
              "INSERT INTO commandbus.process (process_id, created_at, updated_at, status, "
              "execution_model, domain, process_type, reply_queue, initial_state, state) "
              "SELECT gen_random_uuid(), now(), now(), 'PENDING', p.execution_model, p.domain, "
              "p.process_type, p.reply_queue, '{}', '{}' "
              "FROM commandbus.process p, generate_series(1, 20000)");
    test_exec(bus.conn, "ANALYZE commandbus.process, commandbus.process_history");
    PGconn *conn = test_pq_open(bus.conninfo);
    char sql[2048];
    snprintf(sql, sizeof sql,
             "SELECT (commandbus.settle_processes('w', '[%s]')).verdicts, "
             "pg_stat_get_xact_tuples_fetched('commandbus.process'::regclass) + "
             "pg_stat_get_xact_tuples_fetched('commandbus.process_history'::regclass) + "
             "pg_stat_get_xact_tuples_returned('commandbus.process_history'::regclass) AS read",
             process_item(&id, 0,
                          "\"records\":[{\"ordinal\":1,\"kind\":\"STEP\",\"status\":\"STARTED\","
                          "\"name\":\"a\"}]," WAITS));
    PGresult *result = PQexec(conn, sql);
    cr_assert_eq(PQresultStatus(result), PGRES_TUPLES_OK, "%s", PQerrorMessage(conn));
    cr_assert_str_eq(PQgetvalue(result, 0, 0), "{SETTLED}");
    cr_assert_lt(atoi(PQgetvalue(result, 0, 1)), 10, "it read %s rows", PQgetvalue(result, 0, 1));
    PQclear(result);
    PQfinish(conn);
}
