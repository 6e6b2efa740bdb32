/* A database with two connections, and what is in it. */
#include "fixture.h"

#include "database.h"
#include "wait.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

bus_fixture bus;

static void open_connections(char *conninfo)
{
    cr_assert_null(bus.conninfo, "this test has opened a bus already");
    bus.conninfo = conninfo;
    bus.conn = test_pq_open(conninfo);
    bus.db = test_bus_open(conninfo);
}

void bus_open(void)
{
    open_connections(test_bus_create());
    wait_until(bus.conn,
               "SELECT clock_timestamp() > pg_postmaster_start_time() + interval '1 second'");
}

void bus_open_empty(void)
{
    open_connections(test_database_create());
}

void bus_close(void)
{
    cb_db_free(bus.db);
    PQfinish(bus.conn);
    PQfinish(bus.holder);
    test_database_drop(bus.conninfo);
    bus = (bus_fixture){ 0 };
}

void bus_hold_processes(void)
{
    if (!bus.holder)
        bus.holder = test_pq_open(bus.conninfo);
    test_exec(bus.holder, "BEGIN; SELECT FROM commandbus.process FOR UPDATE");
}

void bus_let_processes_go(void)
{
    test_exec(bus.holder, "COMMIT");
}

static void add_table(FILE *out, const char *table)
{
    char sql[512];

    snprintf(sql, sizeof sql,
             "SELECT count(*) || ' rows, ' || coalesce(md5(string_agg(t::text, ';' ORDER BY "
             "t::text)), '-') FROM %s t",
             table);
    char *state = test_value(bus.conn, sql, NULL);
    fprintf(out, "%s: %s\n", table, state);
    free(state);
}

char *bus_contents(void)
{
    char *text = NULL;
    size_t size = 0;
    PGresult *tables = PQexec(bus.conn, "SELECT format('%I.%I', schemaname, tablename) "
                                        "FROM pg_tables WHERE schemaname IN ('commandbus', 'pgmq') "
                                        "ORDER BY 1");

    cr_assert_eq(PQresultStatus(tables), PGRES_TUPLES_OK, "%s", PQerrorMessage(bus.conn));
    FILE *out = open_memstream(&text, &size);
    for (int i = 0; i < PQntuples(tables); i++)
        add_table(out, PQgetvalue(tables, i, 0));
    fclose(out);
    PQclear(tables);
    return text;
}
