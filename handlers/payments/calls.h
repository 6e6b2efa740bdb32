/* What the processes of PROCESS_STEP share: requests and takes of their command steps, responses, the deadline. */
#ifndef PAYMENTS_CALLS_H
#define PAYMENTS_CALLS_H

#include <commandbus/process.h>

#include "payment.h"

cb_request_fn request_risk, request_fx, request_submit;
cb_take_fn take_risk, take_fx, take_submit;

/* riskApproval {"status": "APPROVED"|"DECLINED", "reason"}, L1 … L4 {"reference"} or {"error", "message"}. */
enum {
    PAYMENT_RESPONSES = 1 + LEVELS
};
extern const cb_response payment_responses[PAYMENT_RESPONSES];

/* Whatever may be at the gateway is not undone by a clock: a person decides. */
cb_deadline_action payment_deadline(const void *state);

#endif
