/* Databases for tests. Built on libpq alone: a test of the bus must not need the bus for this. */
#include "database.h"

#include "conninfo.h"

#include <criterion/criterion.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *test_server_url(void)
{
    const char *url = getenv("COMMANDBUS_TEST_URL");

    cr_assert(url && *url, "COMMANDBUS_TEST_URL is not set: start the tests with tests/run");
    return url;
}

/* Runs one statement on the server's own database. CREATE and DROP DATABASE take no parameters. */
static void run_on_server(const char *sql)
{
    PGconn *conn = PQconnectdb(test_server_url());
    cr_assert_eq(PQstatus(conn), CONNECTION_OK, "%s", PQerrorMessage(conn));

    PGresult *result = PQexec(conn, sql);
    cr_assert_eq(PQresultStatus(result), PGRES_COMMAND_OK, "%s: %s", sql, PQerrorMessage(conn));

    PQclear(result);
    PQfinish(conn);
}

char *test_database_conninfo(const char *database)
{
    char *conninfo = cb_test_conninfo(test_server_url(), database);

    cr_assert(conninfo, "COMMANDBUS_TEST_URL is not a URL of libpq");
    return conninfo;
}

static char *create_from(const char *template_name)
{
    static int created;
    char name[64], sql[256];

    snprintf(name, sizeof name, "test_%ld_%d", (long)getpid(), ++created);
    snprintf(sql, sizeof sql, "CREATE DATABASE %s TEMPLATE \"%s\"", name, template_name);
    run_on_server(sql);
    return test_database_conninfo(name);
}

char *test_database_create(void)
{
    return create_from("template0");
}

char *test_database_copy(const char *template_name)
{
    return create_from(template_name);
}

void test_database_drop(char *conninfo)
{
    if (!conninfo)
        return;

    char *name = strstr(conninfo, "dbname='") + strlen("dbname='");
    char sql[256];
    snprintf(sql, sizeof sql, "DROP DATABASE %.*s WITH (FORCE)", (int)strcspn(name, "'"), name);
    run_on_server(sql);
    free(conninfo);
}
