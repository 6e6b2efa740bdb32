/* What a domain has had to do, from its audit records: for planning its limit. */
#include <commandbus/fleet.h>
#include <stdio.h>

#include "cb_sql.h"
#include "expect.h"
#include "fixture.h"
#include "life.h"

TestSuite(domain_load, .init = bus_open, .fini = bus_close);

static double figure(const cb_rows *rows, const char *column)
{
    const char *value = cb_rows_get(rows, 0, column);

    cr_assert(value, "%s is NULL", column);
    return strtod(value, NULL);
}

static cb_rows *look(const char *window)
{
    cb_rows *rows = NULL;
    cb_error e = { 0 };

    expect_ok(cb_domain_load(bus.db, "fx", window, &rows, &e), e);
    cr_assert_eq(cb_rows_count(rows), 1);
    return rows;
}

/* Makes every run that was recorded take so long. */
static void stretch_runs(const char *interval)
{
    free(test_value(bus.conn,
                    "WITH began AS (SELECT command_id, lease_no, at FROM commandbus.audit "
                    "               WHERE event_type = 'RECEIVED') "
                    "UPDATE commandbus.audit a SET at = b.at + $1::interval FROM began b "
                    "WHERE a.command_id = b.command_id AND a.lease_no = b.lease_no "
                    "  AND a.event_type <> 'RECEIVED' RETURNING 1",
                    interval, NULL));
}

Test(domain_load, counts_what_was_asked_for_and_how_long_runs_took) /* RL.6 */
{
    life_run("", "SUCCESS");
    life_run("", "BUSINESS_RULE");
    life_run("", "PERMANENT");
    cb_uuid retried = life_run("max_attempts => 3", "TRANSIENT");
    cr_assert_eq(life_receive(), 1);
    life_settle(&retried, "SUCCESS");
    life_send("");
    stretch_runs("400 ms");

    OWNED(cb_rows) rows = look("1 hour");

    cr_expect_eq(figure(rows, "arrivals"), 6);
    cr_expect_eq(figure(rows, "retries"), 1);
    cr_expect_eq(figure(rows, "runs"), 5);
    cr_expect_eq(figure(rows, "mean_seconds"), 0.4);
    cr_expect_eq(figure(rows, "deviation_seconds"), 0);
}

/* What was given back was not a call. */
Test(domain_load, does_not_count_what_was_interrupted) /* RL.6 */
{
    life_run("", "INTERRUPTED");

    OWNED(cb_rows) rows = look("1 hour");

    cr_expect_eq(figure(rows, "arrivals"), 1);
    cr_expect_eq(figure(rows, "runs"), 0);
    cr_expect_null(cb_rows_get(rows, 0, "mean_seconds"));
}

Test(domain_load, is_of_the_window_and_of_the_one_domain) /* RL.6 */
{
    life_run("", "SUCCESS");
    test_exec(bus.conn, "UPDATE commandbus.audit SET at = at - interval '61 minutes'");
    life_run("", "SUCCESS");
    test_exec(bus.conn, "SELECT commandbus.send('risk', 'BookRisk')");

    OWNED(cb_rows) hour = look("1 hour");
    OWNED(cb_rows) day = look("1 day");

    cr_expect_eq(figure(hour, "arrivals"), 1);
    cr_expect_eq(figure(day, "arrivals"), 2);
}

/* Else the first hour of a domain would look idle. */
Test(domain_load, of_a_young_domain_is_of_its_age) /* RL.6 */
{
    test_exec(bus.conn, "UPDATE commandbus.domain SET created_at = now() - interval '10 minutes'");
    OWNED(cb_rows) young = look("1 hour");
    test_exec(bus.conn, "UPDATE commandbus.domain SET created_at = now() - interval '1 day'");
    OWNED(cb_rows) old = look("1 hour");

    cr_expect_geq(figure(young, "seconds"), 600);
    cr_expect_lt(figure(young, "seconds"), 700);
    cr_expect_eq(figure(old, "seconds"), 3600);
}

Test(domain_load, of_an_unknown_domain_has_no_row)
{
    OWNED(cb_rows) rows = NULL;
    cb_error e = { 0 };

    expect_ok(cb_domain_load(bus.db, "nobody", "1 hour", &rows, &e), e);
    cr_expect_eq(cb_rows_count(rows), 0);
    expect_error(CB_MISUSE, cb_domain_load(bus.db, NULL, "1 hour", &rows, &e), e);
    expect_error(CB_DATA, cb_domain_load(bus.db, "fx", "an hour or so", &rows, &e), e);
}

/* A month of records lies before the hour that is asked for. */
Test(domain_load, reads_the_window_and_not_the_history) /* RL.6 */
{
    char *sql = NULL;
    test_exec(bus.conn,
              "INSERT INTO commandbus.audit (at, command_id, lease_no, domain, event_type, worker) "
              "SELECT now() - interval '30 days' + i * interval '8 s', gen_random_uuid(), 1, 'fx', "
              "       'RECEIVED', 'w' FROM generate_series(1, 300000) i");
    test_exec(bus.conn, "VACUUM ANALYZE commandbus.audit");
    long all = test_number(bus.conn,
                           "SELECT pg_relation_size('commandbus.audit') / "
                           "current_setting('block_size')::int",
                           NULL);

    cr_assert_gt(asprintf(&sql, "PREPARE load AS %s", cb_sql_domain_load), 0);
    test_exec(bus.conn, sql);
    free(sql);
    char *plan = test_value(bus.conn,
                            "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) "
                            "EXECUTE load('fx', '1 hour')",
                            NULL);

    cr_assert(strstr(plan, "\"audit_at\""), "%s", plan);
    long read = 0;
    cr_assert_eq(sscanf(strstr(plan, "\"Shared Hit Blocks\""), "\"Shared Hit Blocks\": %ld", &read),
                 1);
    cr_expect_lt(read, all / 10, "%ld of %ld blocks", read, all);
    free(plan);
}
