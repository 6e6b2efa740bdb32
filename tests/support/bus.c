/* The bus in a test's own database: migrated once for the server, then copied. */
#include "bus.h"

#include "cb_sql.h"
#include "database.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t add_to_hash(uint64_t hash, const char *text)
{
    for (const char *c = text; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    return hash;
}

/* Named by what is in it, so that a server that outlives a change of the SQL gets a new one. */
static void template_name(char *name, size_t size)
{
    uint64_t hash = add_to_hash(14695981039346656037u, cb_sql_bootstrap); /* FNV-1a */

    for (size_t i = 0; i < cb_schema_files_count; i++)
        hash = add_to_hash(hash, cb_schema_files[i].text);
    hash = add_to_hash(hash, cb_functions_checksum);
    snprintf(name, size, "commandbus_test_%016llx", (unsigned long long)hash);
}

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

cb_uuid test_send_of_process(PGconn *conn, const cb_uuid *process_id, const char *domain,
                             const char *command_type, const char *data)
{
    cb_uuid id = cb_uuid_derived(process_id, cb_uuid_new().text);

    free(
        test_value(conn,
                   "SELECT commandbus.put_commands($1, ARRAY[$2::uuid], "
                   "ARRAY[$3::uuid], ARRAY[$4], ARRAY[$5::jsonb], '{payments__replies}', '{NULL}', "
                   "ARRAY[statement_timestamp()], '{NULL}', '{NULL}', '{NULL}', ARRAY[$3::uuid])",
                   domain, id.text, process_id->text, command_type, data));
    return id;
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
static void make_template(PGconn *server, const char *name)
{
    cb_error e = { 0 };
    cb_migrate_report report;
    char sql[256];

    test_exec(server, "DROP DATABASE IF EXISTS commandbus_test_new WITH (FORCE)");
    test_exec(server, "CREATE DATABASE commandbus_test_new TEMPLATE template0");
    char *conninfo = test_database_conninfo("commandbus_test_new");
    cb_db *db = test_bus_open(conninfo);
    cr_assert(cb_migrate(db, &report, &e), "%s", e.message);
    const char *const domains[] = { "fx", "risk", "payments" };
    for (size_t i = 0; i < sizeof domains / sizeof *domains; i++)
        cr_assert(cb_domain_register(db, domains[i], NULL, &e), "%s", e.message);
    cb_db_free(db);
    free(conninfo);
    snprintf(sql, sizeof sql, "ALTER DATABASE commandbus_test_new RENAME TO %s", name);
    test_exec(server, sql);
}

char *test_bus_create(void)
{
    char name[64];
    PGconn *server = test_pq_open(test_server_url());

    template_name(name, sizeof name);
    test_exec(server, "SELECT pg_advisory_lock(20261116)");
    if (!test_number(server, "SELECT count(*) FROM pg_database WHERE datname = $1", name, NULL))
        make_template(server, name);
    /* Copies one at a time: a template may have no other user. */
    char *conninfo = test_database_copy(name);
    PQfinish(server);
    return conninfo;
}
