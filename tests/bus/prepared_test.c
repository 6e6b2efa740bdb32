/* Statements that repeat are prepared, and nothing depends on it. */
#include "prepared.h"

#include "cb_sql.h"
#include "claims.h"
#include "statements.h"

TestSuite(prepared, .init = bus_open, .fini = bus_close);

enum {
    RUNS_UNTIL_PREPARED = 3 /* the first as text, the second looks for a pooler */
};

/* How many statements the session of bus.db has prepared. */
static long count_prepared(void)
{
    return test_number(cb_db_conn(bus.db), "SELECT count(*) FROM pg_prepared_statements", NULL);
}

static void end_sleep(int times)
{
    for (int i = 0; i < times; i++) {
        cb_error e = { 0 };
        expect_ok(cb_sleep_end(bus.db, "w", NULL, 0, &e), e);
    }
}

static void send_some(int times)
{
    for (int i = 0; i < times; i++)
        test_send_one(bus.db, .domain = "fx");
}

static void replace_sleep_end(const char *type)
{
    char sql[256];

    test_exec(bus.conn, "DROP FUNCTION commandbus.sleep_end");
    snprintf(sql, sizeof sql,
             "CREATE FUNCTION commandbus.sleep_end(worker text, queue_names text[] DEFAULT NULL) "
             "RETURNS %s LANGUAGE sql AS 'SELECT 1::%s'",
             type, type);
    test_exec(bus.conn, sql);
}

Test(prepared, a_statement_is_prepared_once_however_often_it_runs)
{
    end_sleep(RUNS_UNTIL_PREPARED - 1);
    cr_expect_eq(count_prepared(), 0);

    end_sleep(5);

    cr_expect_eq(count_prepared(), 1);
    expect_value(cb_db_conn(bus.db), "t",
                 "SELECT statement LIKE '%commandbus.sleep_end(%' AND name LIKE 'commandbus\\_%' "
                 "FROM pg_prepared_statements");
}

Test(prepared, the_life_of_a_command_is_the_same)
{
    for (int i = 0; i < 2 * RUNS_UNTIL_PREPARED; i++) {
        cb_uuid id = test_send_one(bus.db, .reply_to = "payments__replies");
        expect_verdict(CB_SETTLED, test_run_one(bus.db, "w", CB_SUCCESS));
        expect_command("COMPLETED 1", id, "status, attempts");
        expect_messages("0 queued, 0 archived, 1 replied", id);
    }

    cr_expect_eq(count_prepared(), 3, "send, receive, settle");
}

Test(prepared, a_statement_that_is_there_twice_in_a_flush_is_prepared_once)
{
    end_sleep(RUNS_UNTIL_PREPARED - 1);

    pipeline_statement s[3] = { { .sql = cb_sql_sleep_end },
                                { .sql = "SELECT 'between'" },
                                { .sql = cb_sql_sleep_end } };
    cb_error e = { 0 };
    for (int i = 0; i < 3; i += 2) {
        params_text(&s[i].p, "w");
        params_text(&s[i].p, NULL);
    }
    expect_ok(pipeline_run(bus.db, DB_WRITES, s, 3, &e), e);

    cr_expect(s[0].result && s[2].result);
    cr_expect_str_eq(PQgetvalue(s[1].result, 0, 0), "between");
    pipeline_done(s, 3);
    cr_expect_eq(count_prepared(), 1);
}

/* The server skips what follows an error: it was not prepared, whatever was sent. */
static void fail_with_sleep_end(bool error_comes_first)
{
    pipeline_statement s[2] = { 0 };
    cb_error e = { 0 };
    pipeline_statement *end = &s[error_comes_first ? 1 : 0];
    pipeline_statement *wrong = &s[error_comes_first ? 0 : 1];

    end->sql = cb_sql_sleep_end;
    params_text(&end->p, "w");
    params_text(&end->p, NULL);
    wrong->sql = "SELECT 1 / 0";
    expect_error(CB_DATA, pipeline_run(bus.db, DB_WRITES, s, 2, &e), e);
    cr_expect(wrong->refused && !end->refused);
}

Test(prepared, an_error_in_the_same_flush_leaves_it_right)
{
    end_sleep(RUNS_UNTIL_PREPARED - 1);

    fail_with_sleep_end(true);
    fail_with_sleep_end(false);
    cr_expect_eq(count_prepared(), 1);
    end_sleep(2);

    cr_expect_eq(count_prepared(), 1);
    cr_expect_not(bus.db->prepared.off);
}

Test(prepared, a_statement_that_cannot_be_prepared_is_the_one_that_is_refused)
{
    end_sleep(RUNS_UNTIL_PREPARED - 1);
    test_exec(bus.conn, "DROP FUNCTION commandbus.sleep_end");

    pipeline_statement s[2] = { { .sql = "SELECT 1" }, { .sql = cb_sql_sleep_end } };
    cb_error e = { 0 };
    params_text(&s[1].p, "w");
    params_text(&s[1].p, NULL);
    expect_error(CB_SCHEMA, pipeline_run(bus.db, DB_WRITES, s, 2, &e), e);

    cr_expect(!s[0].refused && s[1].refused);
    cr_expect_not(cb_db_is_lost(bus.db));
}

Test(prepared, a_refusal_of_a_prepared_statement_is_the_same)
{
    cb_uuid id = test_send_one(bus.db, .domain = "fx");
    send_some(RUNS_UNTIL_PREPARED);
    cb_error e;

    expect_error(
        CB_DUPLICATE_COMMAND,
        cb_send_command(bus.db,
                        &(cb_send){ .domain = "fx", .command_type = "Test", .command_id = id.text },
                        NULL, &e),
        e);
    send_some(1);

    cr_expect_eq(count_prepared(), 1);
}

Test(prepared, a_session_that_forgot_them_is_noticed_and_nothing_happens_twice)
{
    send_some(RUNS_UNTIL_PREPARED);
    cr_assert_eq(count_prepared(), 1);

    test_exec(cb_db_conn(bus.db), "DEALLOCATE ALL");
    send_some(2);

    expect_number(bus.conn, RUNS_UNTIL_PREPARED + 2, "SELECT count(*) FROM pgmq.q_fx__commands");
    cr_expect_eq(count_prepared(), 0, "nothing is prepared on such a session any more");
}

Test(prepared, a_name_that_is_taken_is_left_alone)
{
    char sql[128];

    send_some(RUNS_UNTIL_PREPARED);
    char *name = test_value(cb_db_conn(bus.db), "SELECT name FROM pg_prepared_statements", NULL);
    cb_error e = { 0 };
    expect_ok(cb_db_reconnect(bus.db, &e), e);
    snprintf(sql, sizeof sql, "PREPARE %s AS SELECT 1", name);
    test_exec(cb_db_conn(bus.db), sql);
    free(name);

    send_some(RUNS_UNTIL_PREPARED + 1);

    expect_number(bus.conn, 2 * RUNS_UNTIL_PREPARED + 1,
                  "SELECT count(*) FROM pgmq.q_fx__commands");
    cr_expect_eq(count_prepared(), 1);
}

Test(prepared, a_function_with_another_result_is_prepared_anew)
{
    replace_sleep_end("integer");
    end_sleep(RUNS_UNTIL_PREPARED);

    replace_sleep_end("text");
    end_sleep(2);
    expect_number(cb_db_conn(bus.db), 1,
                  "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE '%\\_1'");
    replace_sleep_end("bigint");
    end_sleep(2);

    expect_number(cb_db_conn(bus.db), 1,
                  "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE '%\\_2'");
    cr_expect_not(bus.db->prepared.off);
}

Test(prepared, a_function_that_always_says_so_does_not_fill_the_session)
{
    end_sleep(RUNS_UNTIL_PREPARED);
    test_exec(bus.conn, "CREATE OR REPLACE FUNCTION commandbus.sleep_end(worker text, "
                        "queue_names text[] DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS "
                        "$$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '0A000'; END $$");

    for (int i = 0; i < 30; i++) {
        cb_error e;
        expect_error(CB_SERVER, cb_sleep_end(bus.db, "w", NULL, 0, &e), e);
        cr_expect_str_eq(e.message, "no");
    }

    cr_expect_eq(count_prepared(), 10);
}

Test(prepared, a_new_connection_begins_anew)
{
    cb_error e = { 0 };

    end_sleep(RUNS_UNTIL_PREPARED);
    expect_ok(cb_db_reconnect(bus.db, &e), e);
    cr_expect_eq(count_prepared(), 0);
    end_sleep(RUNS_UNTIL_PREPARED);

    cr_expect_eq(count_prepared(), 1);
}

Test(prepared, inside_a_transaction_of_the_caller_statements_are_sent_as_text)
{
    cb_error e = { 0 };

    expect_ok(cb_db_begin(bus.db, &e), e);
    send_some(2 * RUNS_UNTIL_PREPARED);
    expect_ok(cb_db_commit(bus.db, &e), e);

    cr_expect_eq(count_prepared(), 0);
}

Test(prepared, it_can_be_switched_off)
{
    cb_error e = { 0 };

    cb_db_set_prepared(bus.db, false);
    end_sleep(2 * RUNS_UNTIL_PREPARED);
    cr_expect_eq(count_prepared(), 0);
    expect_ok(cb_db_reconnect(bus.db, &e), e);
    end_sleep(2 * RUNS_UNTIL_PREPARED);
    cr_expect_eq(count_prepared(), 0, "also on the next connection");
    cb_db_set_prepared(bus.db, true);
    end_sleep(RUNS_UNTIL_PREPARED);

    cr_expect_eq(count_prepared(), 1);
}

Test(prepared, statements_of_others_are_not_prepared)
{
    for (int i = 0; i < 2 * RUNS_UNTIL_PREPARED; i++) {
        OWNED(PGresult) result = NULL;
        cb_error e = { 0 };
        expect_ok(cb_db_ask(bus.db, "SELECT 1", NULL, 0, &result, &e), e);
    }

    cr_expect_eq(count_prepared(), 0);
}

Test(prepared, a_borrowed_session_stays_as_it_was)
{
    OWNED(cb_db) borrowed = NULL;
    cb_error e = { 0 };

    expect_ok(cb_db_borrow(bus.conn, &borrowed, &e), e);
    for (int i = 0; i < 2 * RUNS_UNTIL_PREPARED; i++)
        test_send_one(borrowed, .domain = "fx");

    expect_number(bus.conn, 0, "SELECT count(*) FROM pg_prepared_statements");
}
