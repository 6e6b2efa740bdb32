/* What the routes of the payments API share: reading a payment and a key, asking the database. Each
 * that fails has said so in the answer. */
#ifndef PAYMENTS_REQUEST_H
#define PAYMENTS_REQUEST_H

#include <commandbus/route.h>

#include "payment.h"

struct pg_result;

enum {
    CUTOFF_TEXT = 32,
    REQUEST_KEY = 200 /* most characters of an Idempotency-Key */
};

/* A payment as it was asked for. */
typedef struct {
    payment *facts;           /* owned */
    char cutoff[CUTOFF_TEXT]; /* ISO 8601; "": none was said */
} asked_payment;

void asked_done(asked_payment *a);

/* Reads {"debitAccount", "creditAccount", "amount", "debitCurrency", "creditCurrency", "valueDate"}
 * and, if they are there, "cutoffTimestamp" and "behaviour". `where` is put before what is wrong:
 * "payments[3]: "; "" for nothing. */
bool request_payment(json_object *body, const char *where, asked_payment *ret,
                     cb_http_answer *answer);
/* Whether a behaviour may be asked for here, and is one. NULL: none was asked for. */
bool request_behaviour(json_object *behaviour, const char *where, cb_http_answer *answer);

/* The id that the Idempotency-Key makes, in a space of keys; a new one where there is none and none
 * is required. */
bool request_id(const cb_http_request *request, const cb_uuid *space, cb_uuid *ret,
                cb_http_answer *answer);

/* The answer where a commit may have been lost: what was asked for may be there. */
void request_unknown(const cb_http_request *request, const char *what, const cb_uuid *id,
                     cb_http_answer *answer);

bool request_ask(const cb_http_request *request, const char *sql, size_t n,
                 const char *const values[], struct pg_result **ret, cb_http_answer *answer);

/* What a verdict of payments.draft that starts nothing says. False: it is none of those. */
bool request_refuse(const char *verdict, const char *where, cb_http_answer *answer);

#endif
