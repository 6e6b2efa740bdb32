/* Sending, claiming and settling without the ceremony. Everything here fails the test on an error, so
 * it is for the test's own thread; threads and children call the bus itself. */
#ifndef TEST_SUPPORT_CLAIMS_H
#define TEST_SUPPORT_CLAIMS_H

#include <commandbus/commandbus.h>
#include <criterion/criterion.h>
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

#include "database.h"
#include "fixture.h"
#include "wait.h"

/* A connection on which waiting for a lock is an error after half a second. */
cb_db *test_bus_open_impatient(const char *conninfo);

/* Sends n commands "Test" to domain fx with replies to payments__replies, one call. Their ids go to
 * `ids` unless it is NULL. */
void test_send(cb_db *db, size_t n, cb_uuid *ids);

/* One command "Test" of domain fx unless the fields say otherwise: test_send_one(db, .max_attempts = 1). */
#define test_send_one(db, ...) test_send_with((db), &(cb_send){ __VA_ARGS__ })
cb_uuid test_send_with(cb_db *db, const cb_send *command);

/* Limits domain fx of the fixture (0: not), and sends so many commands to it. */
void test_fleet_limit(int limit, size_t commands);

/* Claims from domain fx. The caller frees it. */
cb_claim *test_claim(cb_db *db, const char *worker, int quantity, double vt_seconds);

/* Claims every few milliseconds until something comes, expired leases too; fails when nothing does. */
cb_claim *test_claim_awaited(cb_db *db, const char *worker, int quantity, double vt_seconds);

/* The outcome of a claimed command: success with the result {"ok":true}, else error code "E". */
cb_settlement test_outcome(const cb_command *command, cb_outcome outcome);

/* One outcome, and its verdict. */
cb_verdict test_settle_one(cb_db *db, const char *worker, cb_settlement item);

/* Claims one command (it must come) and settles it. */
cb_verdict test_run_one(cb_db *db, const char *worker, cb_outcome outcome);

/* Waits for something to claim, completes all of it; returns how many commands that were. */
size_t test_run_all(cb_db *db, const char *worker, int quantity);

/* The lease that goes with a claimed command. */
cb_lease test_lease(const cb_command *command);
cb_lease_state test_extend_one(cb_db *db, const char *worker, cb_lease lease, double vt_seconds);

/* Seconds of a clock that only goes forward. */
double test_clock(void);

/* The value of a query: expect_value(sql, "COMPLETED", "SELECT status …", parameters…). */
#define expect_value(conn, expected, ...)                                                   \
    do {                                                                                    \
        char *found_ = test_value((conn), __VA_ARGS__, NULL);                               \
        cr_expect_str_eq(found_, (expected), "expected '%s', found '%s' by %s", (expected), \
                         found_, #__VA_ARGS__);                                             \
        free(found_);                                                                       \
    } while (0)

/* The events of a command's audit trail, in order, one space between them. */
#define expect_trail(conn, expected, id)                                                     \
    expect_value(conn, expected,                                                             \
                 "SELECT string_agg(event_type, ' ' ORDER BY at, id) FROM commandbus.audit " \
                 "WHERE command_id = $1",                                                    \
                 (id).text)

/* Where messages that name a command are: how many in the queue of fx, its archive, the replies. */
#define expect_messages(conn, expected, id)                                                      \
    expect_value(                                                                                \
        conn, expected,                                                                          \
        "SELECT (SELECT count(*) FROM pgmq.q_fx__commands WHERE message ->> 'command_id' = $1) " \
        "|| ' queued, ' || "                                                                     \
        "(SELECT count(*) FROM pgmq.a_fx__commands WHERE message ->> 'command_id' = $1) "        \
        "|| ' archived, ' || "                                                                   \
        "(SELECT count(*) FROM pgmq.q_payments__replies WHERE message ->> 'command_id' = $1) "   \
        "|| ' replied'",                                                                         \
        (id).text)

#define expect_verdict(expected, found) \
    cr_expect_str_eq(cb_verdict_name(found), cb_verdict_name(expected))

#endif
