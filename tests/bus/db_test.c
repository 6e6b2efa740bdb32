/* Opening, losing and borrowing connections; transactions; secrets stay secret. */
#include "statements.h"

#include <criterion/criterion.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "bus.h"
#include "database.h"
#include "skip.h"

Test(db, a_closed_connection_is_lost_until_it_is_reopened)
{
    OWNED(cb_db) db = test_bus_open(test_server_url());
    cb_error e = { 0 };

    cr_assert_geq(cb_db_socket(db), 0);
    shutdown(cb_db_socket(db), SHUT_RDWR);
    cr_assert_not(db_do(db, "SELECT 1", NULL, &e));
    cr_assert_eq(e.code, CB_LOST, "%s", e.message);
    cr_assert(cb_db_is_lost(db));
    cr_assert_eq(cb_db_socket(db), -1);
    cr_assert_not(db_do(db, "SELECT 1", NULL, &e));
    cr_assert_eq(e.code, CB_LOST);

    cr_assert(cb_db_reconnect(db, &e), "%s", e.message);
    cr_assert_not(cb_db_is_lost(db));
    cr_assert(db_do(db, "SELECT 1", NULL, &e), "%s", e.message);
}

/* How the kernel was told to treat the connection. */
static int tcp_option(const cb_db *db, int option)
{
    int value = -1;
    socklen_t size = sizeof value;

    cr_assert_eq(getsockopt(cb_db_socket(db), IPPROTO_TCP, option, &value, &size), 0);
    return value;
}

Test(db, a_server_that_vanished_is_found_out_long_before_a_lease_ends) /* WRK.10 */
{
    OWNED(cb_db) db = test_bus_open(test_server_url());
    struct sockaddr_storage self;
    socklen_t size = sizeof self;
    cr_assert_eq(getsockname(cb_db_socket(db), (struct sockaddr *)&self, &size), 0);
    if (self.ss_family == AF_UNIX)
        test_skip("a socket of this machine cannot vanish");

    cr_expect_leq(tcp_option(db, TCP_USER_TIMEOUT), 10000); /* milliseconds without an ACK */
    cr_expect_leq(tcp_option(db, TCP_KEEPIDLE) +
                      tcp_option(db, TCP_KEEPCNT) * tcp_option(db, TCP_KEEPINTVL),
                  12);
}

Test(db, an_administrator_who_ends_the_session_leaves_it_lost)
{
    OWNED(cb_db) db = test_bus_open(test_server_url());
    cb_error e = { 0 };

    cr_assert_not(db_do(db, "SELECT pg_terminate_backend(pg_backend_pid())", NULL, &e));

    cr_assert_eq(e.code, CB_LOST, "%s", e.message);
    cr_assert(cb_db_is_lost(db));
}

/* BUS.15: bodies of our functions would mean something else, and say what is not true. */
Test(db, with_escapes_in_literals_is_refused_by_what_is_wrong)
{
    PGconn *conn = PQconnectdb(test_server_url());
    char url[512];
    cb_db *db = NULL;
    cb_error e = { 0 };
    snprintf(url, sizeof url,
             "host='%s' port='%s' dbname='%s' user='%s' password='%s' "
             "options='-c standard_conforming_strings=off'",
             PQhost(conn), PQport(conn), PQdb(conn), PQuser(conn), PQpass(conn));

    cr_assert_not(cb_db_open(url, &db, &e));
    cr_expect_eq(e.code, CB_SERVER);
    cr_expect(strstr(e.message, "standard_conforming_strings is off"), "%s", e.message);
    cr_expect(strstr(e.hint, "ALTER ROLE"), "%s", e.hint);

    PQclear(PQexec(conn, "SET standard_conforming_strings = off"));
    cr_expect_not(cb_db_borrow(conn, &db, &e));
    PQfinish(conn);
}

Test(db, no_server_there_is_lost)
{
    cb_db *db = NULL;
    cb_error e = { 0 };

    cr_assert_not(cb_db_open("postgresql://u:hunter22@127.0.0.1:1/x", &db, &e));

    cr_assert_null(db);
    cr_assert_eq(e.code, CB_LOST);
    cr_assert_null(strstr(e.message, "hunter22"), "%s", e.message);
    cr_assert_str_not_empty(e.hint);
}

Test(db, a_wrong_password_is_denied_and_not_shown)
{
    PGconn *conn = PQconnectdb(test_server_url());
    char url[512];
    cb_db *db = NULL;
    cb_error e = { 0 };
    /* A role that does not exist is refused by every method but trust. */
    snprintf(url, sizeof url,
             "host='%s' port='%s' dbname='%s' user=nobody_of_this_name password=hunter22",
             PQhost(conn), PQport(conn), PQdb(conn));
    PQfinish(conn);

    cr_assert_not(cb_db_open(url, &db, &e));

    cr_assert_eq(e.code, CB_DENIED, "%s", e.message);
    cr_assert_null(strstr(e.message, "hunter22"), "%s", e.message);
    cr_assert_eq(strncmp(e.sqlstate, "28", 2), 0, "%s", e.sqlstate);
}

Test(db, a_password_never_appears_in_a_message)
{
    /* The last three are what a password with special characters looks like to libpq. */
    static const char *const urls[] = {
        "postgresql://u:hunter22@127.0.0.1:1/db",
        "postgresql://u:hunter22@127.0.0.1:1/db?nonsense=1",
        "host=127.0.0.1 port=1 password=hunter22 nonsense",
        "password = 'hunter22",
        "postgresql://u:x@hunter22@127.0.0.1:1/db",
        "postgresql://u:x/hunter22@127.0.0.1:1/db",
        "postgresql://u:1/hunter22@127.0.0.1:1/db",
        "postgresql://u:hunter22/y@127.0.0.1:1/db",
        "postgresql://u:hunter22%zz@127.0.0.1:1/db",
        "hunter22",
        "",
    };

    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        cb_db *db = NULL;
        cb_error e = { 0 };
        bool opened = cb_db_open(urls[i], &db, &e);
        cr_assert(!opened || i + 1 == sizeof urls / sizeof *urls);
        cr_assert_null(strstr(e.message, "hunter22"), "%s: %s", urls[i], e.message);
        cr_assert_null(strstr(e.hint, "hunter22"), "%s: %s", urls[i], e.hint);
        cb_db_free(db);
    }
    cr_assert_not(cb_db_open(NULL, &(cb_db *){ NULL }, NULL));
}

Test(db, a_borrowed_connection_is_left_open)
{
    PGconn *conn = PQconnectdb(test_server_url());
    cb_db *db = NULL;
    cb_error e = { 0 };

    cr_assert(cb_db_borrow(conn, &db, &e), "%s", e.message);
    cr_assert(db_do(db, "SELECT 1", NULL, &e), "%s", e.message);
    cb_db_free(db);

    cr_assert_eq(PQstatus(conn), CONNECTION_OK);
    PQclear(PQexec(conn, "SELECT 1"));
    PQfinish(conn);
}

Test(db, a_borrowed_connection_is_reopened_by_its_owner)
{
    PGconn *conn = PQconnectdb(test_server_url());
    OWNED(cb_db) db = NULL;
    cb_error e = { 0 };

    cr_assert(cb_db_borrow(conn, &db, &e), "%s", e.message);
    shutdown(PQsocket(conn), SHUT_RDWR);
    cr_assert_not(db_do(db, "SELECT 1", NULL, &e));
    cr_assert_not(cb_db_reconnect(db, &e));
    cr_assert_eq(e.code, CB_LOST);

    PQreset(conn);
    cr_assert(cb_db_reconnect(db, &e), "%s", e.message);
    cr_assert(db_do(db, "SELECT 1", NULL, &e), "%s", e.message);
    PQfinish(conn);
}

Test(db, a_commit_that_the_server_turned_into_a_rollback_is_an_error)
{
    OWNED(cb_db) db = test_bus_open(test_server_url());
    cb_error e = { 0 };

    cr_assert(cb_db_begin(db, &e));
    cr_assert_not(db_do(db, "SELECT 1 / 0", NULL, &e));
    cr_assert_not(cb_db_commit(db, &e));

    cr_assert_eq(e.code, CB_SERVER, "%s", e.message);
    cr_assert_not(db_in_transaction(db));
}

Test(db, transactions_do_not_nest)
{
    OWNED(cb_db) db = test_bus_open(test_server_url());
    cb_error e = { 0 };

    cr_assert_not(cb_db_commit(db, &e));
    cr_assert_eq(e.code, CB_MISUSE);
    cr_assert(cb_db_begin(db, &e));
    cr_assert_not(cb_db_begin(db, &e));
    cr_assert_eq(e.code, CB_MISUSE);
    cr_assert(cb_db_rollback(db, &e));
    cr_assert(cb_db_rollback(db, &e), "nothing to roll back is fine");
}

Test(db, a_refusal_loses_its_code_in_the_message_and_keeps_its_hint)
{
    OWNED(cb_db) db = test_bus_open(test_server_url());
    cb_error e = { 0 };

    cr_assert_not(db_do_script(db,
                               "DO $$ BEGIN RAISE 'BATCH_CLOSED: it is closed' "
                               "USING ERRCODE = 'CB005', HINT = 'Open another.'; END $$",
                               &e));

    cr_assert_eq(e.code, CB_BATCH_CLOSED);
    cr_assert_str_eq(e.sqlstate, "CB005");
    cr_assert_str_eq(e.message, "it is closed");
    cr_assert_str_eq(e.hint, "Open another.");
}

/* BUS.11 */
Test(db, a_database_without_the_schema_says_what_to_run)
{
    char *conninfo = test_database_create();
    OWNED(cb_db) db = NULL;
    cb_error e = { 0 };

    cr_assert(cb_db_open(conninfo, &db, &e), "%s", e.message);
    cr_assert_not(cb_db_check_schema(db, &e));

    cr_assert_eq(e.code, CB_SCHEMA);
    cr_assert_str_eq(e.hint, "Run: commandbus migrate");
    test_database_drop(conninfo);
}
