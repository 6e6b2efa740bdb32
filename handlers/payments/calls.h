/* What the processes of PROCESS_STEP share: their command steps, responses and deadline. */
#ifndef PAYMENTS_CALLS_H
#define PAYMENTS_CALLS_H

#include <commandbus/process.h>

#include "payment.h"

/* bookRisk, and awaitRiskApproval if a person has to decide; RISK_DECLINED when the answer is
 * no. */
cb_flow call_clear_risk(cb_process *p, payment *pay);
cb_flow call_book_fx(cb_process *p);
cb_flow call_submit(cb_process *p);
cb_take_fn take_submit;

/* riskApproval {"status": "APPROVED"|"DECLINED", "reason"}, L1 … L4 {"reference"} or {"error",
 * "message"}. */
enum {
    PAYMENT_RESPONSES = 1 + LEVELS
};
extern const cb_response payment_responses[PAYMENT_RESPONSES];
extern const cb_response_payload payment_payloads[PAYMENT_RESPONSES];

/* Of waits that say none, such as that for L4: processes.<Type>.default-wait-timeout goes before
 * it. */
#define PAYMENT_WAIT_MS CB_HOURS(24)

/* Whatever may be at the gateway is not undone by a clock: a person decides. */
cb_deadline_action payment_deadline(const void *state);

#endif
