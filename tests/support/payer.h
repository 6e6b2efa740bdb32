/* Payments on the stage: the payments set as a worker would have it, with its tables; the test
 * plays the fx, risk and gateway handlers, the network, the persons and the clock. */
#ifndef TEST_SUPPORT_PAYER_H
#define TEST_SUPPORT_PAYER_H

#include "stage.h"

#include <commandbus/route.h>

/* The stage of a suite: TestSuite(…, .init = payer_open, .fini = payer_close). */
extern stage payer;
void payer_open(void);
void payer_close(void);

/* The set's route of this method and path. */
cb_route_fn *payer_route(const char *method, const char *path);

/* Starts a payment of 100.00 EUR to an account in this currency. Deadline in seconds; 0: none. Runs
 * until it rests. */
cb_uuid payer_start(const char *type, const char *to_currency, double deadline_seconds);
/* The same with a whole state. */
cb_uuid payer_start_with(const char *type, const char *state);

/* Somebody serves the next command of this domain, of which the type must be this one; then the
 * process goes on. A NULL result: it ends with outcome and code. */
void payer_serve(const char *domain, const char *type, cb_outcome outcome, const char *result,
                 const char *code);
#define RISK(status) "{\"reference\": \"RISK-1\", \"status\": \"" status "\", \"score\": 7}"
#define CONTRACT \
    "{\"contractId\": \"FX-1\", \"reference\": \"FXR-1\", \"rate\": \"1.0837\", \"creditAmount\": \"108.37\"}"
#define payer_risk(status) payer_serve("risk", "BookRisk", CB_SUCCESS, RISK(status), NULL)
#define payer_fx()         payer_serve("fx", "BookFx", CB_SUCCESS, CONTRACT, NULL)
#define payer_submit() \
    payer_serve("payments", "SubmitPayment", CB_SUCCESS, "{\"reference\": \"PAY-1\"}", NULL)
#define payer_release(domain, type) payer_serve((domain), (type), CB_SUCCESS, "{}", NULL)

/* A PaymentStep that has come this far: submitted, or confirmed up to level (1 … 4). */
cb_uuid payer_submitted(const char *to_currency, double deadline_seconds);
cb_uuid payer_confirmed(const char *to_currency, int level);
/* The network's answer; NULL: its reference. */
void payer_confirm(cb_uuid id, int level, const char *payload);

/* The data of the SubmitPayment of 100.00 EUR in USD, as expect_data has it: all that S0 submits.
 * Valid until the next call. */
const char *submission(const char *execution_model, cb_uuid id);

/* An operator's decision: retry, cancel, complete; then the process goes on. */
void payer_retry(cb_uuid id);
void payer_cancel(cb_uuid id, bool compensate);
void payer_complete(cb_uuid id, const char *overrides);

/* The row of payments.payment. */
#define expect_payment(expected, id)                                                              \
    expect_value(bus.conn, expected,                                                              \
                 "SELECT coalesce((SELECT status FROM payments.payment WHERE process_id = $1), '" \
                 "none')",                                                                        \
                 (id).text)
/* Nothing is left in any queue: what was sent was served. */
#define expect_nothing_waits()                                                                  \
    expect_value(bus.conn, "0",                                                                 \
                 "SELECT (SELECT count(*) FROM pgmq.q_fx__commands) + (SELECT count(*) FROM "   \
                 "pgmq.q_risk__commands) + (SELECT count(*) FROM pgmq.q_payments__commands) + " \
                 "(SELECT count(*) FROM pgmq.q_payments__replies)")
/* The data of the only command of this type. */
#define expect_data(expected, id, type)                                                        \
    expect_value(                                                                              \
        bus.conn, expected,                                                                    \
        "SELECT string_agg(key || '=' || value, ' ' ORDER BY key) FROM "                       \
        "commandbus.command_metadata, jsonb_each_text(data::jsonb) WHERE correlation_id = $1 " \
        "AND command_type = $2",                                                               \
        (id).text, type)

#endif
