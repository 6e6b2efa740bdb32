/* Requests, takes and responses as JSON: each a table and a function of payment_messages.c. */
#include "calls.h"

#include "payment_messages.h"

static bool request_risk(const void *state, json_object *data)
{
    return message_write(&risk_request_fields, fill_risk, state, data);
}

static bool request_fx(const void *state, json_object *data)
{
    return message_write(&fx_request_fields, fill_fx, state, data);
}

static bool request_submit(const void *state, json_object *data)
{
    return message_write(&submit_request_fields, fill_submit_of_steps, state, data);
}

static bool take_risk(void *state, json_object *result)
{
    return message_take(&risk_reply_fields, apply_risk, state, result);
}

static bool take_fx(void *state, json_object *result)
{
    return message_take(&fx_reply_fields, apply_fx, state, result);
}

bool take_submit(void *state, json_object *result)
{
    return message_take(&submit_reply_fields, apply_submit, state, result);
}

/* ---- steps ---- */

static bool is_decided(const void *state)
{
    return ((const payment *)state)->risk_decision != RISK_NONE;
}

cb_flow call_clear_risk(cb_process *p, payment *pay)
{
    char reason[REASON];

    CB_DO(cb_command_step(p, "bookRisk", request_risk, take_risk, .domain = "risk",
                          .command_type = "BookRisk", .max_attempts = 3,
                          .compensate_command = "ReleaseRisk"));
    if (pay->pending_approval) {
        CB_DO(cb_wait(p, "awaitRiskApproval", is_decided, .timeout_ms = CB_HOURS(2)));
        pay->risk_status = pay->risk_decision;
        pay->risk_approved = pay->risk_decision == RISK_APPROVED;
    }
    if (pay->risk_status != RISK_DECLINED)
        return CB_NEXT;
    const char *code = payment_declined(pay, reason, sizeof reason);
    return cb_business_failure(p, code, "%s", reason);
}

cb_flow call_book_fx(cb_process *p)
{
    return cb_command_step(p, "bookFx", request_fx, take_fx, .domain = "fx",
                           .command_type = "BookFx", .max_attempts = 2,
                           .compensate_command = "ReleaseFx");
}

/* One attempt: a payment whose submission may have arrived is not submitted again by us. */
cb_flow call_submit(cb_process *p)
{
    return cb_command_step(p, "submitPayment", request_submit, take_submit, .domain = "payments",
                           .command_type = "SubmitPayment", .max_attempts = 1);
}

/* ---- responses ---- */

static bool take_approval(void *state, json_object *payload)
{
    return message_take(&approval_fields, apply_approval, state, payload);
}

#define CONFIRMATION(n)                                                        \
    static bool apply_l##n(payment *p, const void *message)                    \
    {                                                                          \
        return apply_confirmation(p, (n)-1, message);                          \
    }                                                                          \
    static bool take_l##n(void *state, json_object *payload)                   \
    {                                                                          \
        return message_take(&confirmation_fields, apply_l##n, state, payload); \
    }

CONFIRMATION(1)
CONFIRMATION(2)
CONFIRMATION(3)
CONFIRMATION(4)

const cb_response payment_responses[PAYMENT_RESPONSES] = {
    { "riskApproval", take_approval },
    { "L1", take_l1 },
    { "L2", take_l2 },
    { "L3", take_l3 },
    { "L4", take_l4 },
};

const cb_response_payload payment_payloads[PAYMENT_RESPONSES] = {
    { "riskApproval", &approval_fields, APPROVAL_NEEDS },
    { "L1", &confirmation_fields, CONFIRMATION_NEEDS },
    { "L2", &confirmation_fields, CONFIRMATION_NEEDS },
    { "L3", &confirmation_fields, CONFIRMATION_NEEDS },
    { "L4", &confirmation_fields, CONFIRMATION_NEEDS },
};

cb_deadline_action payment_deadline(const void *state)
{
    return ((const payment *)state)->submitted ? CB_DEADLINE_TSQ : CB_DEADLINE_COMPENSATE;
}
