/* Waiting for a condition, with a deadline. */
#ifndef TEST_SUPPORT_WAIT_H
#define TEST_SUPPORT_WAIT_H

#include <libpq-fe.h>
#include <stdbool.h>

/* Asks until the query's first value is 't'; fails the test after ten seconds. */
void wait_until(PGconn *conn, const char *sql);

/* The channel of the next notification that reaches `conn`; fails the test when none comes in ten
 * seconds. The caller frees it. */
char *wait_for_notify(PGconn *conn);

#endif
