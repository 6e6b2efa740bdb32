/* The bus in a test's own database: migrated once for the server, then copied. */
#include "bus.h"

#include "database.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEMPLATE "commandbus_test_template"

PGconn *test_pq_open(const char *conninfo)
{
    PGconn *conn = PQconnectdb(conninfo);

    cr_assert_eq(PQstatus(conn), CONNECTION_OK, "%s", PQerrorMessage(conn));
    PQclear(PQexec(conn, "SET client_min_messages = warning"));
    return conn;
}

void test_exec(PGconn *conn, const char *sql)
{
    PGresult *result = PQexec(conn, sql);
    ExecStatusType status = PQresultStatus(result);

    cr_assert(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK, "%s: %s", sql,
              PQerrorMessage(conn));
    PQclear(result);
}

static char *value_of(PGconn *conn, const char *sql, va_list args)
{
    const char *params[5];
    int n = 0;

    while (n < 5 && (params[n] = va_arg(args, const char *)))
        n++;
    PGresult *result = PQexecParams(conn, sql, n, NULL, params, NULL, NULL, 0);
    cr_assert_eq(PQresultStatus(result), PGRES_TUPLES_OK, "%s: %s", sql, PQerrorMessage(conn));
    char *value = strdup(PQntuples(result) ? PQgetvalue(result, 0, 0) : "");
    PQclear(result);
    return value;
}

char *test_value(PGconn *conn, const char *sql, ...)
{
    va_list args;

    va_start(args, sql);
    char *value = value_of(conn, sql, args);
    va_end(args);
    return value;
}

long test_number(PGconn *conn, const char *sql, ...)
{
    va_list args;

    va_start(args, sql);
    char *value = value_of(conn, sql, args);
    va_end(args);
    long number = strtol(value, NULL, 10);
    free(value);
    return number;
}

const char *test_sqlstate(PGconn *conn, const char *sql)
{
    static char state[6];
    PGresult *result = PQexec(conn, sql);
    const char *found = PQresultErrorField(result, PG_DIAG_SQLSTATE);

    snprintf(state, sizeof state, "%s", found ? found : "00000");
    PQclear(result);
    return state;
}

cb_db *test_bus_open(const char *conninfo)
{
    cb_db *db = NULL;
    cb_error e = { 0 };

    cr_assert(cb_db_open(conninfo, &db, &e), "%s", e.message);
    return db;
}

/* Under the server-wide lock that the caller holds. */
static void make_template(PGconn *server)
{
    cb_error e = { 0 };
    cb_migrate_report report;

    test_exec(server, "DROP DATABASE IF EXISTS " TEMPLATE "_new WITH (FORCE)");
    test_exec(server, "CREATE DATABASE " TEMPLATE "_new TEMPLATE template0");
    char *conninfo = test_database_conninfo(TEMPLATE "_new");
    cb_db *db = test_bus_open(conninfo);
    cr_assert(cb_migrate(db, &report, &e), "%s", e.message);
    const char *const domains[] = { "fx", "risk", "payments" };
    for (size_t i = 0; i < sizeof domains / sizeof *domains; i++)
        cr_assert(cb_domain_register(db, domains[i], NULL, &e), "%s", e.message);
    cb_db_free(db);
    free(conninfo);
    test_exec(server, "ALTER DATABASE " TEMPLATE "_new RENAME TO " TEMPLATE);
}

char *test_bus_create(void)
{
    PGconn *server = test_pq_open(test_server_url());

    test_exec(server, "SELECT pg_advisory_lock(20261116)");
    if (!test_number(server, "SELECT count(*) FROM pg_database WHERE datname = $1", TEMPLATE, NULL))
        make_template(server);
    /* Copies one at a time: a template may have no other user. */
    char *conninfo = test_database_copy(TEMPLATE);
    PQfinish(server);
    return conninfo;
}
