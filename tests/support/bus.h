/* A migrated database of its own for each test, with the domains fx, risk and payments. */
#ifndef TEST_SUPPORT_BUS_H
#define TEST_SUPPORT_BUS_H

#include <commandbus/internal.h>
#include <libpq-fe.h>

/* How to connect to a new database with the bus in it. Freed by test_database_drop. */
char *test_bus_create(void);

/* Connections that fail the test when they fail. */
cb_db *test_bus_open(const char *conninfo);
PGconn *test_pq_open(const char *conninfo);

/* Runs statements without parameters; fails the test on an error. */
void test_exec(PGconn *conn, const char *sql);

/* The first column of the first row as text ("" for NULL or no row); the caller frees it. Up to
 * five text parameters, NULL-terminated. Fails the test on an error. */
char *test_value(PGconn *conn, const char *sql, ...);

/* The same as a number. */
long test_number(PGconn *conn, const char *sql, ...);

/* A command as settle_processes writes it for a process, replies to payments__replies, without the
 * record. */
cb_uuid test_send_of_process(PGconn *conn, const cb_uuid *process_id, const char *domain,
                             const char *command_type, const char *data);

/* The SQLSTATE with which the statement fails ("00000" when it succeeds). Static storage. */
const char *test_sqlstate(PGconn *conn, const char *sql);

#endif
