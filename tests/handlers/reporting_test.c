/* The commands of the reporting set, one by one: what they find and add up is what the database
 * says. PM.7. */
#include "database.h"
#include "expect.h"
#include "fixture.h"
#include "reports.h"

#include <sys/stat.h>

TestSuite(reporting, .init = reports_open, .fini = reports_close);

#define ALL "\"ACC-001\", \"ACC-002\", \"ACC-003\", \"ACC-004\", \"ACC-005\""

/* PM.7 */
Test(reporting, a_query_has_every_transaction_of_its_accounts_and_period)
{
    report_run run = report_query("\"ACC-003\", \"ACC-001\"");
    char *text = report_read(run.path);

    expect_value(bus.conn, "ACC-003 USD, ACC-001 EUR",
                 "SELECT string_agg(concat(a ->> 'account_id', ' ', a ->> 'currency'), ', ') "
                 "FROM json_array_elements($1::json -> 'accounts') AS a",
                 text);
    expect_value(
        bus.conn, "0",
        "WITH found AS (SELECT a ->> 'account_id', (t ->> 'transaction_id')::bigint, "
        "(t ->> 'booked_on')::date, (t ->> 'amount')::numeric, t ->> 'description' "
        "FROM json_array_elements($1::json -> 'accounts') a, json_array_elements(a -> 'transactions') t), "
        "booked AS (SELECT account_id, transaction_id, booked_on, amount, description "
        "FROM reporting.transaction WHERE account_id IN ('ACC-001', 'ACC-003') "
        "AND booked_on BETWEEN '2023-01-10' AND '2023-12-20') "
        "SELECT (SELECT count(*) FROM (TABLE found EXCEPT ALL TABLE booked) x) "
        "+ (SELECT count(*) FROM (TABLE booked EXCEPT ALL TABLE found) x) "
        "+ CASE WHEN (SELECT count(*) FROM booked) < 300 THEN 1000 ELSE 0 END",
        text);
    free(text);
}

/* PM.7: to the last minor unit, in currencies of no, two and three digits. */
Test(reporting, an_aggregation_adds_up_what_the_database_adds_up)
{
    char *text = report_read(report_aggregate(ALL).path);

    expect_value(
        bus.conn, "5",
        "WITH booked AS (SELECT account_id, count(*) AS n, "
        "coalesce(sum(amount) FILTER (WHERE amount > 0), 0) AS come, "
        "coalesce(-sum(amount) FILTER (WHERE amount < 0), 0) AS gone "
        "FROM reporting.transaction WHERE booked_on BETWEEN '2023-01-10' AND '2023-12-20' GROUP BY 1), "
        "before AS (SELECT account_id, sum(amount) AS opening FROM reporting.transaction "
        "WHERE booked_on < '2023-01-10' GROUP BY 1) "
        "SELECT count(*) FROM json_array_elements($1::json -> 'accounts') a "
        "JOIN booked b ON b.account_id = a ->> 'account_id' JOIN before USING (account_id) "
        "WHERE (a ->> 'count')::bigint = n AND (a ->> 'in')::numeric = come "
        "AND (a ->> 'out')::numeric = gone AND (a ->> 'opening_balance')::numeric = opening "
        "AND (a ->> 'closing_balance')::numeric = opening + come - gone",
        text);
    /* Each month opens with what the one before left, and the months are the whole. */
    expect_value(
        bus.conn, "0",
        "SELECT count(*) FROM json_array_elements($1::json -> 'accounts') a, "
        "LATERAL (SELECT m, lag(m ->> 'closing_balance') OVER (ORDER BY m ->> 'month') AS left_over "
        "FROM json_array_elements(a -> 'months') m) AS months "
        "WHERE m ->> 'opening_balance' <> coalesce(left_over, a ->> 'opening_balance')",
        text);
    expect_value(
        bus.conn, "60 12345",
        "SELECT count(*) || ' ' || string_agg(DISTINCT right(a ->> 'account_id', 1), '' "
        "ORDER BY right(a ->> 'account_id', 1)) "
        "FROM json_array_elements($1::json -> 'accounts') a, json_array_elements(a -> 'months') m",
        text);
    free(text);
}

Test(reporting, an_account_with_nothing_booked_has_its_balance_and_no_months)
{
    test_exec(bus.conn, "INSERT INTO reporting.account VALUES ('QUIET', 'Nobody', 'EUR')");

    char *text = report_read(report_aggregate("\"QUIET\"").path);

    expect_value(
        bus.conn, "0.00 0.00 0.00 0 0",
        "SELECT concat_ws(' ', a ->> 'opening_balance', a ->> 'in', a ->> 'closing_balance', "
        "a ->> 'count', json_array_length(a -> 'months')) FROM json_array_elements($1::json "
        "-> 'accounts') a",
        text);
    free(text);
}

Test(reporting, a_sum_that_does_not_fit_is_refused_and_not_wrapped)
{
    test_exec(bus.conn,
              "INSERT INTO reporting.account VALUES ('RICH', 'Croesus', 'KWD');"
              "INSERT INTO reporting.transaction (account_id, booked_on, amount, description) "
              "SELECT 'RICH', '2023-05-01', 999999999999999.999, '' FROM generate_series(1, 12)");

    report_run run = report_do("StatementDataAggregation", "{\"data_path\": \"%s\"}",
                               report_query("\"RICH\"").path);

    cr_expect_str_eq(run.outcome, "PERMANENT FILE_CORRUPT", "%s", run.message);
}

/* The first run counts: somebody may have read its file. */
Test(reporting, a_command_that_runs_twice_has_one_file_and_it_stays_as_it_was)
{
    static const char query[] = "{\"from_date\": \"2023-01-10\", \"to_date\": \"2023-12-20\", "
                                "\"account_list\": [\"ACC-001\"]}";
    report_run first = report_query("\"ACC-001\"");
    char *before = report_read(first.path);
    test_exec(bus.conn,
              "INSERT INTO reporting.transaction (account_id, booked_on, amount, description) "
              "VALUES ('ACC-001', '2023-06-01', 1, 'late')");

    report_run second = report_do_again(first.command_id, NULL, "StatementQuery", query);

    cr_expect_str_eq(second.outcome, "SUCCESS");
    cr_expect_str_eq(second.result, first.result);
    char *after = report_read(second.path);
    cr_expect_str_eq(after, before);
    cr_expect_eq(report_files(), 2); /* a folder and a file */
    free(before);
    free(after);
}

/* No date and nothing else of the moment is in a file. */
Test(reporting, two_commands_render_the_same_bytes)
{
    static const char *const types[] = { "html", "csv", "pdf" };

    for (size_t i = 0; i < CB_COUNT(types); i++) {
        report_run one = report_render(ALL, types[i]), two = report_render(ALL, types[i]);
        char *first = report_read(one.path), *second = report_read(two.path);
        cr_expect_str_neq(one.path, two.path);
        cr_expect_str_eq(first, second, "%s", types[i]);
        free(first);
        free(second);
    }
}

Test(reporting, files_are_for_the_worker_and_its_group)
{
    char path[PATH_MAX];
    struct stat status;

    snprintf(path, sizeof path, "%s/%s", reports.folder, report_query("\"ACC-001\"").path);
    cr_assert_eq(stat(path, &status), 0);
    cr_expect_eq(status.st_mode & 07777, 0640);
}

/* A holder's name is never taken for markup, for a formula or for a second column. */
Test(reporting, names_are_escaped)
{
    test_exec(bus.conn,
              "INSERT INTO reporting.account VALUES "
              "('H-1', '<script>alert(\"1\")</script> & ''x''', 'EUR'), "
              "('H-2', '@SUM(A1),\"2\"' || chr(10) || 'next', 'EUR'), ('H-3', '+1', 'EUR');"
              "INSERT INTO reporting.transaction (account_id, booked_on, amount, description) "
              "SELECT 'H-' || n, '2023-05-01', -1, '' FROM generate_series(1, 3) n");
    char *html = report_read(report_render("\"H-1\"", "html").path);
    char *csv = report_read(report_render("\"H-2\", \"H-3\"", "csv").path);

    cr_expect_null(strstr(html, "<script"));
    cr_expect(strstr(html, "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; &#39;x&#39;"),
              "%s", html);
    cr_expect(
        strstr(csv,
               "\"H-2\",\"'@SUM(A1),\"\"2\"\"\nnext\",\"EUR\",2023-05,1,0.00,0.00,1.00,-1.00\r\n"),
        "%s", csv);
    cr_expect(strstr(csv, "\"H-3\",\"'+1\",\"EUR\","), "%s", csv);
    free(html);
    free(csv);
}

/* PM.4 */
Test(reporting, what_is_removed_is_gone_and_may_be_removed_again)
{
    report_run query = report_query("\"ACC-001\"");
    cr_assert_eq(report_files(), 2);

    report_run first = report_do("StatementRemove", "{\"path\": \"%s\"}", query.path);
    report_run second = report_do("StatementRemove", "{\"path\": \"%s\"}", query.path);

    cr_expect_str_eq(first.result, "{\"removed\":true}");
    cr_expect_str_eq(second.outcome, "SUCCESS");
    cr_expect_str_eq(second.result, "{\"removed\":false}");
    cr_expect_eq(report_files(), 0, "the folder of the process goes with its last file");
}

Test(reporting, the_role_of_workers_may_look_and_no_more)
{
    expect_value(
        bus.conn, "t t f f f",
        "SELECT concat_ws(' ', has_table_privilege(w, 'reporting.transaction', 'SELECT'), "
        "has_function_privilege(w, 'reporting.statement_data(text[], date, date, bigint)', 'EXECUTE'), "
        "has_table_privilege(w, 'reporting.transaction', 'INSERT, UPDATE, DELETE'), "
        "has_function_privilege(w, 'reporting.seed(integer, integer)', 'EXECUTE'), "
        "has_schema_privilege('commandbus_sender', 'reporting', 'USAGE')) "
        "FROM (VALUES ('commandbus_worker')) AS role (w)");
}

Test(reporting, a_query_of_more_than_there_may_be_stops_counting)
{
    expect_value(bus.conn, "0 11 t",
                 "SELECT concat_ws(' ', unknown, transactions, data IS NULL) FROM "
                 "reporting.statement_data('{ACC-001}', '2023-01-01', '2023-12-31', 10)");
    expect_value(bus.conn, "1 t",
                 "SELECT concat_ws(' ', unknown, data IS NULL) FROM "
                 "reporting.statement_data('{ACC-001,NOBODY}', '2023-01-01', '2023-01-02', 10)");
}

static report_run query_one(void)
{
    return report_do("StatementQuery",
                     "{\"from_date\": \"2023-01-10\", \"to_date\": \"2023-12-20\", "
                     "\"account_list\": [\"ACC-001\"]}");
}

/* Nobody but a connection to another database may lock this one. */
static void allow_connections(bool allow)
{
    PGconn *server = test_pq_open(test_server_url());
    char sql[256];

    snprintf(sql, sizeof sql, "ALTER DATABASE %s ALLOW_CONNECTIONS %s", PQdb(bus.conn),
             allow ? "true" : "false");
    test_exec(server, sql);
    PQfinish(server);
}

Test(reporting, a_database_that_is_away_is_asked_again_and_one_without_tables_is_not)
{
    allow_connections(false);
    report_run away = query_one();
    allow_connections(true);
    report_run back = query_one();
    test_exec(bus.conn, "DROP SCHEMA reporting CASCADE");
    report_run bare = query_one();

    cr_expect_str_eq(away.outcome, "TRANSIENT DATABASE_LOST", "%s", away.outcome);
    cr_expect_str_eq(back.outcome, "SUCCESS", "%s", back.outcome);
    cr_expect_str_eq(bare.outcome, "PERMANENT DATABASE_REFUSED", "%s", bare.outcome);
}
