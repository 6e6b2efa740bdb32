/* S4's monitoring SQL, unchanged: what dashboards were written against. */
#include <stdio.h>

#include "expect.h"
#include "fixture.h"
#include "life.h"
#include "login.h"
#include "process_rows.h"

/* S4, "Monitoring and Observability", without its first statement: invalid SQL (CONTRACT). */
static const char *const statements[] = {
    "SELECT * FROM pgmq.metrics('fx__commands');",
    "SELECT * FROM pgmq.metrics('risk__commands');",
    "-- Command success/failure rates by domain and type (last hour)\n"
    "SELECT\n"
    "    domain,\n"
    "    command_type,\n"
    "    COUNT(*) FILTER (WHERE status = 'COMPLETED') AS success_count,\n"
    "    COUNT(*) FILTER (WHERE status = 'FAILED') AS failure_count,\n"
    "    COUNT(*) FILTER (WHERE status IN ('PENDING', 'IN_PROGRESS')) AS in_progress,\n"
    "    ROUND(\n"
    "        COUNT(*) FILTER (WHERE status = 'FAILED')::NUMERIC /\n"
    "        NULLIF(COUNT(*), 0) * 100, 2\n"
    "    ) AS error_rate_pct\n"
    "FROM commandbus.command_metadata\n"
    "WHERE created_at >= NOW() - INTERVAL '1 hour'\n"
    "GROUP BY domain, command_type\n"
    "ORDER BY domain, command_type;",
    "-- Average processing time by command type\n"
    "SELECT\n"
    "    domain,\n"
    "    command_type,\n"
    "    COUNT(*) AS completed_count,\n"
    "    ROUND(AVG(EXTRACT(EPOCH FROM (completed_at - created_at)) * 1000)::NUMERIC, 2) AS "
    "avg_latency_ms,\n"
    "    MIN(EXTRACT(EPOCH FROM (completed_at - created_at)) * 1000)::INTEGER AS min_latency_ms,\n"
    "    MAX(EXTRACT(EPOCH FROM (completed_at - created_at)) * 1000)::INTEGER AS max_latency_ms\n"
    "FROM commandbus.command_metadata\n"
    "WHERE status = 'COMPLETED'\n"
    "  AND completed_at >= NOW() - INTERVAL '1 hour'\n"
    "GROUP BY domain, command_type;",
};

static const char process_statement[] = "-- Processes waiting for command steps\n"
                                        "SELECT\n"
                                        "    process_type,\n"
                                        "    current_wait AS waiting_for_step,\n"
                                        "    COUNT(*) AS waiting_count,\n"
                                        "    MIN(updated_at) AS oldest_waiting_since\n"
                                        "FROM commandbus.process\n"
                                        "WHERE status = 'WAITING_FOR_ASYNC'\n"
                                        "  AND current_wait IS NOT NULL\n"
                                        "GROUP BY process_type, current_wait\n"
                                        "ORDER BY waiting_count DESC;";

enum {
    FX_METRICS,
    RISK_METRICS,
    RATES,
    LATENCIES,
    STATEMENTS
};

/* fx: three completed, one failed, one waiting; risk: two waiting. */
static void open_with_history(void)
{
    bus_open();
    for (int i = 0; i < 3; i++)
        life_run("", "SUCCESS");
    life_run("", "BUSINESS_RULE");
    life_send("");
    test_exec(bus.conn, "SELECT commandbus.send('risk', 'BookRisk') FROM generate_series(1, 2)");
}

TestSuite(monitoring, .init = open_with_history, .fini = bus_close);

static const char *cell(const PGresult *result, int row, const char *column)
{
    int number = PQfnumber(result, column);

    cr_assert_geq(number, 0, "there is no column %s", column);
    return PQgetvalue(result, row, number);
}

static void expect_answers(PGconn *conn)
{
    PGresult *r[STATEMENTS];

    for (int i = 0; i < STATEMENTS; i++) {
        r[i] = PQexec(conn, statements[i]);
        cr_assert_eq(PQresultStatus(r[i]), PGRES_TUPLES_OK, "%s", PQerrorMessage(conn));
    }
    cr_assert_str_eq(cell(r[FX_METRICS], 0, "queue_name"), "fx__commands");
    cr_assert_str_eq(cell(r[FX_METRICS], 0, "queue_length"), "1");
    cr_assert_str_eq(cell(r[FX_METRICS], 0, "total_messages"), "5");
    cr_assert_str_eq(cell(r[RISK_METRICS], 0, "queue_length"), "2");

    cr_assert_eq(PQntuples(r[RATES]), 2);
    cr_assert_str_eq(cell(r[RATES], 0, "domain"), "fx");
    cr_assert_str_eq(cell(r[RATES], 0, "success_count"), "3");
    cr_assert_str_eq(cell(r[RATES], 0, "failure_count"), "1");
    cr_assert_str_eq(cell(r[RATES], 0, "in_progress"), "1");
    cr_assert_str_eq(cell(r[RATES], 0, "error_rate_pct"), "20.00");
    cr_assert_str_eq(cell(r[RATES], 1, "domain"), "risk");
    cr_assert_str_eq(cell(r[RATES], 1, "in_progress"), "2");

    cr_assert_eq(PQntuples(r[LATENCIES]), 1);
    cr_assert_str_eq(cell(r[LATENCIES], 0, "completed_count"), "3");
    cr_assert_gt(strtod(cell(r[LATENCIES], 0, "avg_latency_ms"), NULL), 0);
    for (int i = 0; i < STATEMENTS; i++)
        PQclear(r[i]);
}

/* BUS.9 */
Test(monitoring, sql_of_s4_answers_the_superuser_and_the_owner)
{
    expect_answers(bus.conn);

    test_exec(bus.conn, "SET ROLE commandbus_owner");
    expect_answers(bus.conn);
}

/* BUS.9 */
Test(monitoring, sql_of_s4_answers_monitors_and_operators)
{
    static const char *const roles[] = { "commandbus_monitor", "commandbus_operator" };

    for (size_t i = 0; i < 2; i++) {
        login l = login_open(roles[i]);
        expect_answers(l.conn);
        login_close(&l);
    }
}

/* BUS.9: waiting for the commands of two steps, and some that do not wait or have ended. */
Test(monitoring, sql_of_s4_about_processes_shows_monitors_what_waits_for_what_and_since_when)
{
    login monitor = login_open("commandbus_monitor");

    process_put("status = 'WAITING_FOR_ASYNC', current_wait = 'bookFx', "
                "updated_at = '2026-01-02 03:04:05Z'");
    process_put("status = 'WAITING_FOR_ASYNC', current_wait = 'bookFx'");
    process_put("status = 'WAITING_FOR_ASYNC', current_wait = 'bookRisk', "
                "updated_at = '2026-02-03 04:05:06Z'");
    process_put("status = 'WAITING_FOR_TSQ', current_wait = 'bookFx', tsq_at = now()");
    process_put("status = 'COMPLETED', completed_at = now(), updated_at = '2025-01-01Z'");

    test_exec(monitor.conn, "SET timezone = 'UTC'");
    PGresult *r = PQexec(monitor.conn, process_statement);
    cr_assert_eq(PQresultStatus(r), PGRES_TUPLES_OK, "%s", PQerrorMessage(monitor.conn));
    cr_assert_eq(PQntuples(r), 2);
    cr_expect_str_eq(cell(r, 0, "process_type"), "Test");
    cr_expect_str_eq(cell(r, 0, "waiting_for_step"), "bookFx");
    cr_expect_str_eq(cell(r, 0, "waiting_count"), "2");
    cr_expect_str_eq(cell(r, 0, "oldest_waiting_since"), "2026-01-02 03:04:05+00");
    cr_expect_str_eq(cell(r, 1, "waiting_for_step"), "bookRisk");
    cr_expect_str_eq(cell(r, 1, "waiting_count"), "1");
    PQclear(r);
    login_close(&monitor);
}

/* BUS.9: what the last hour brought is found by its time, however much there is of before */
Test(monitoring, sql_of_s4_about_the_last_hour_does_not_read_what_is_older)
{
    login monitor = login_open("commandbus_monitor");
    char explain[1500];

    test_exec(
        bus.conn,
        "INSERT INTO commandbus.command_metadata (command_id, correlation_id, domain, "
        "command_type, msg_id, created_at, updated_at, completed_at, status, data) SELECT "
        "gen_random_uuid(), gen_random_uuid(), 'fx', 'BookFx', -n, now() - interval '2 d', now(), now() - interval '2 d', 'COMPLETED', "
        "'{}' FROM generate_series(1, 5000) n; ANALYZE commandbus.command_metadata");
    snprintf(explain, sizeof explain, "EXPLAIN %s", strchr(statements[RATES], '\n') + 1);
    PGresult *plan = PQexec(monitor.conn, explain);
    cr_assert_eq(PQresultStatus(plan), PGRES_TUPLES_OK, "%s", PQerrorMessage(monitor.conn));
    for (int i = 0; i < PQntuples(plan); i++)
        cr_expect_null(strstr(PQgetvalue(plan, i, 0), "Seq Scan"), "%s", PQgetvalue(plan, i, 0));
    PQclear(plan);
    login_close(&monitor);
}
