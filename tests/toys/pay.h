/* Processes of a type "Pay", domain payments, which nobody runs: tests move their rows by hand.
 * Everything here fails the test on an error. */
#ifndef TEST_TOYS_PAY_H
#define TEST_TOYS_PAY_H

#include "fixture.h"

/* Registers Pay, version 1. */
void pay_register(cb_db *db);
/* bus_open with Pay registered: TestSuite(…, .init = pay_open, .fini = bus_close). */
void pay_open(void);

/* A process of it with the state {"n": 1}, unless the options say more. */
cb_uuid pay_start(cb_db *db);
#define pay_start_with(db, ...) \
    pay_start_options((db), &(cb_process_request_options){ __VA_ARGS__ })
cb_uuid pay_start_options(cb_db *db, const cb_process_request_options *options);

/* Claims it. The caller frees it. */
cb_process_claim *pay_claim(cb_db *db, const char *worker, int quantity, double vt_seconds);

/* Claims every few milliseconds until something comes; fails when nothing does. */
cb_process_claim *pay_claim_awaited(cb_db *db, const char *worker, int quantity, double vt_seconds);

/* UPDATE commandbus.process SET <what> of one process. */
void pay_set(PGconn *conn, cb_uuid id, const char *what);

/* What a settle leaves behind when the process suspends: this status, no lease, no timer. */
void pay_suspend(PGconn *conn, cb_uuid id, const char *status);

/* A command that the process has sent to domain fx, with replies to payments__replies. */
cb_uuid pay_command(PGconn *conn, cb_uuid process_id);

/* A reply in payments__replies; returns its msg_id. */
long pay_reply(PGconn *conn, cb_uuid command_id, cb_uuid process_id, const char *outcome);

/* Empties payments__replies once, 100 replies at most, claiming nothing. */
cb_process_look pay_deliver(cb_db *db, double grace_seconds);

#endif
