/* Requests, takes and responses as JSON: each a table and a function of messages.c. */
#include "calls.h"

#include "messages.h"

bool request_risk(const void *state, json_object *data)
{
    return message_write(&risk_request_fields, fill_risk, state, data);
}

bool request_fx(const void *state, json_object *data)
{
    return message_write(&fx_request_fields, fill_fx, state, data);
}

bool request_submit(const void *state, json_object *data)
{
    return message_write(&submit_request_fields, fill_submit_of_steps, state, data);
}

bool take_risk(void *state, json_object *result)
{
    return message_take(&risk_reply_fields, apply_risk, state, result);
}

bool take_fx(void *state, json_object *result)
{
    return message_take(&fx_reply_fields, apply_fx, state, result);
}

bool take_submit(void *state, json_object *result)
{
    return message_take(&submit_reply_fields, apply_submit, state, result);
}

/* ---- responses ---- */

static bool take_approval(void *state, json_object *payload)
{
    return message_take(&approval_fields, apply_approval, state, payload);
}

#define CONFIRMATION(n)                                                              \
    static bool apply_l##n(payment *p, const void *message)                          \
    {                                                                                \
        return apply_confirmation(p, (n)-1, message);                                \
    }                                                                                \
    static bool take_l##n(void *state, json_object *payload)                         \
    {                                                                                \
        return message_take(&confirmation_fields, apply_l##n, state, payload);       \
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

cb_deadline_action payment_deadline(const void *state)
{
    return ((const payment *)state)->submitted ? CB_DEADLINE_TSQ : CB_DEADLINE_COMPENSATE;
}
