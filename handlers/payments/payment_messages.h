/* What the commands of a payment carry and give back, and the responses it waits for: one struct
 * and table each, for both ways to write the process. fill_… takes from the payment, apply_… puts
 * into it; false: it is not what it should be, and the payment is as it was. */
#ifndef PAYMENTS_MESSAGES_H
#define PAYMENTS_MESSAGES_H

#include "payment.h"

/* behaviour: how the simulator is to behave towards this payment; NULL: nothing is said. */
typedef struct {
    char *amount, *currency, *debit_account, *credit_account;
    json_object *behaviour;
} risk_request;
typedef struct {
    char *reference, *status;
    int64_t score;
} risk_reply;

typedef struct {
    char *amount, *from_currency, *to_currency, *value_date;
    json_object *behaviour;
} fx_request;
typedef struct {
    char *contract_id, *reference;
    cb_decimal rate, credit_amount;
} fx_reply;

typedef struct {
    char *payment_id, *debit_account, *credit_account;
    char *debit_amount, *debit_currency, *credit_amount, *credit_currency;
    char *fx_contract_id, *fx_rate; /* NULL: it is in one currency */
    char *value_date, *execution_model;
    json_object *behaviour;
} submit_request;
typedef struct {
    char *reference;
} submit_reply;

/* The facts and the status that they are to have. */
typedef struct {
    cb_uuid payment_id;
    int status;
    cb_decimal debit_amount;
    char *debit_currency, *credit_currency, *debit_account, *credit_account, *value_date;
} mark_request;
/* Which payment it was: a manager that was not told learns it here. */
typedef struct {
    cb_uuid payment_id;
} mark_reply;

typedef struct {
    char *contract_id;
} release_fx_request;
typedef struct {
    char *reference,
        *status; /* as it was booked: of a declined one there may be nothing to release */
} release_risk_request;

/* Responses. */
typedef struct {
    int status; /* a decision */
    char *reason;
} approval;
typedef enum {
    DECISION_NONE, /* nobody said: never taken for a yes */
    DECISION_APPROVED,
    DECISION_DECLINED,
} decision;
typedef struct {
    char *reference, *error, *message;
} confirmation;
/* What each must have, as cb_response_payload says it. */
#define APPROVAL_NEEDS     "status"
#define CONFIRMATION_NEEDS "reference error"

extern const cb_fields risk_request_fields, risk_reply_fields, fx_request_fields, fx_reply_fields,
    submit_request_fields, submit_reply_fields, mark_request_fields, mark_reply_fields,
    release_fx_fields, release_risk_fields, approval_fields, confirmation_fields;

typedef bool fill_fn(const payment *p, void *message);
typedef bool apply_fn(payment *p, const void *message);

fill_fn fill_risk, fill_fx, fill_submit_of_steps, fill_submit_of_manager, fill_release_fx,
    fill_release_risk;
bool fill_mark(const payment *p, payment_status status, mark_request *to);
apply_fn apply_risk, apply_fx, apply_submit, apply_approval;
/* level: 0 for L1 … */
bool apply_confirmation(payment *p, int level, const confirmation *c);

/* The same for JSON: what a command step or a response of execute() wants. */
bool message_write(const cb_fields *fields, fill_fn *fill, const payment *p, json_object *data);
bool message_take(const cb_fields *fields, apply_fn *apply, payment *p, json_object *from);

#endif
