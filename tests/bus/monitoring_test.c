/* S4's monitoring SQL, unchanged: what dashboards were written against. */
#include "expect.h"
#include "fixture.h"
#include "life.h"
#include "login.h"

/* S4, "Monitoring and Observability". Its first statement is no valid SQL and left out (CONTRACT). */
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

/* BUS.9: the one about processes lacks nothing but its table, which comes with the runtime */
Test(monitoring, sql_of_s4_about_processes_answers_as_soon_as_there_is_their_table)
{
    bool exists = test_number(bus.conn,
                              "SELECT count(*) FROM pg_class WHERE oid = "
                              "to_regclass('commandbus.process')",
                              NULL) == 1;

    expect_sqlstate(bus.conn, exists ? "00000" : "42P01", process_statement);
}
