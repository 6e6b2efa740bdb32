/* Sending, claiming and settling without the ceremony. Everything here fails the test on an error,
 * so it is for the test's own thread; threads and children call the bus itself. */
#ifndef TEST_SUPPORT_CLAIMS_H
#define TEST_SUPPORT_CLAIMS_H

#include "database.h"
#include "expect.h"
#include "wait.h"

/* A connection on which waiting for a lock is an error after half a second. */
cb_db *test_bus_open_impatient(const char *conninfo);

/* Sends n commands "Test" to domain fx with replies to payments__replies, one call. Their ids go to
 * `ids` unless it is NULL. */
void test_send(cb_db *db, size_t n, cb_uuid *ids);

/* One command "Test" of domain fx unless the fields say otherwise: test_send_one(db, .max_attempts
 * = 1). */
#define test_send_one(db, ...) test_send_with((db), &(cb_send){ __VA_ARGS__ })
cb_uuid test_send_with(cb_db *db, const cb_send *command);

/* Limits domain fx of the fixture (0: not), and sends so many commands to it. */
void test_fleet_limit(int limit, size_t commands);

/* Claims from domain fx. The caller frees it. */
cb_claim *test_claim(cb_db *db, const char *worker, int quantity, double vt_seconds);

/* The same, and how many it got. */
size_t test_claim_count(cb_db *db, const char *worker, int quantity, double vt_seconds);

/* Claims every few milliseconds until something comes, expired leases too; fails when nothing
 * does. */
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

#endif
