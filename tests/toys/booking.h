/* A command whose handler books in a ledger, and everything that can come between. */
#ifndef TEST_TOYS_BOOKING_H
#define TEST_TOYS_BOOKING_H

#include "claims.h"
#include "proxy.h"

/* The bus with a ledger and an account, a proxy before it, and one command claimed through it. */
typedef struct {
    test_proxy *proxy;
    cb_db *db; /* through it */
    cb_claim *claim;
    cb_context *ctx;
    cb_settlement item; /* of the last run */
    cb_error e;         /* of the last settle */
} booking;

void booking_open(booking *b);
void booking_close(booking *b);

/* Claims the command that waits, instead of the one before. */
void booking_claim(booking *b);

/* Books 10: an entry in the ledger and the balance of the account, two effects. */
cb_handler_fn booking_handler;

/* Runs a handler, which must succeed. */
void booking_run(booking *b, cb_handler_fn *handler);
bool booking_settle(booking *b, double lock_timeout_seconds);

#define expect_settled(b, expected)                                                  \
    do {                                                                             \
        cr_assert(booking_settle((b), 0), "%s %s", (b)->e.sqlstate, (b)->e.message); \
        expect_verdict((expected), (b)->item.verdict);                               \
    } while (0)

#define expect_ledger(expected)                                                    \
    expect_value(bus.conn, (expected),                                             \
                 "SELECT (SELECT count(*) FROM public.ledger) || ' entries, ' || " \
                 "balance || ' balance' FROM public.account")

/* In the TSQ as EFFECT_FAILED with this message, and nothing else done. */
void expect_effect_failed(booking *b, const char *message);

#endif
