/* Waiting for a condition, with a deadline. */
#ifndef TEST_SUPPORT_WAIT_H
#define TEST_SUPPORT_WAIT_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

/* How long tests wait for what is true in a moment on a machine that has nothing else to do. It
 * costs only those that fail: far longer than a busy machine takes, and shorter than a program of
 * tests has (tests/CMakeLists.txt). */
static const double patience_seconds = 120;

/* What a test that promises a time multiplies it with: 1 as long as the machine has no more to do
 * than tests/run gives it, more the busier it is (the load of the last minute). */
double test_slowness(void);

/* A clock that only goes forward, in seconds and in milliseconds. */
double test_clock(void);
int64_t test_clock_ms(void);

/* Asks until the query's first value is 't'; fails the test when its patience is over. */
void wait_until(PGconn *conn, const char *sql);

/* The channel of the next notification that reaches `conn`; fails the test when none comes. The
 * caller frees it. */
char *wait_for_notify(PGconn *conn);
/* The same, but its payload: who is to wake up. */
char *wait_for_call(PGconn *conn);

#endif
