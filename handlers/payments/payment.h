/* The state of a payment: what its process knows, whichever of the three it is. */
#ifndef PAYMENTS_PAYMENT_H
#define PAYMENTS_PAYMENT_H

#include <commandbus/fields.h>

/* By number here, by name on the wire. */
typedef enum {
    PAYMENT_DRAFT,
    PAYMENT_APPROVED,
    PAYMENT_PROCESSING,
    PAYMENT_COMPLETE,
    PAYMENT_FAILED,
    PAYMENT_CANCELLED,
} payment_status;
extern const char *const payment_statuses[];

typedef enum {
    RISK_NONE,
    RISK_APPROVED,
    RISK_PENDING,
    RISK_DECLINED,
} risk_status;
extern const char *const risk_statuses[];

enum {
    LEVELS = 4,   /* confirmations of the network: L1 … L4 */
    REASON = 1000 /* room for why the business says no */
};

typedef struct {
    bool received;
    char *reference, *error_code, *error_message;
} confirmation_level;

typedef struct {
    cb_uuid payment_id; /* the process's; payments.begin refuses any other */
    cb_uuid process_id; /* of PROCESS_STEP; a manager is not told it */
    int status;

    /* The facts, copied at the start and never changed. Amounts are exact; 0: none was said. */
    cb_decimal debit_amount, original_credit_amount;
    char *debit_currency, *credit_currency;
    char *debit_account, *credit_account;
    char *value_date;
    json_object
        *behaviour; /* of the simulated world towards this payment: payment_behaviour.h; or NULL */

    char *risk_reference;
    int risk_status;
    int64_t risk_score;
    int risk_decision; /* a person's */
    char *risk_reason;
    bool pending_approval, risk_approved;

    bool fx_required;
    char *fx_contract_id, *fx_reference;
    cb_decimal fx_rate, credit_amount;

    bool submitted; /* the gateway may have it: from when its command is about to be sent */
    char *submission_reference;
    confirmation_level level[LEVELS];
} payment;

extern const cb_fields payment_fields;

/* Names that process_audit does not show. */
extern const char *const payment_redact[];

/* Completes what a process was started with. process_id may be NULL. May be called at every
 * replay. */
void payment_begin(payment *p, const char *process_id);

/* Whether nothing has happened to it yet. Asked where a process begins, of what it was started
 * with: a decision or a confirmation is for the network and for persons to give, not for whoever
 * starts it. */
bool payment_is_new(const payment *p);
#define PAYMENT_IS_NOT_NEW "a payment begins with its facts alone: nothing may have happened to it"

/* Whether the facts are a payment. False: code and message say what is wrong; static code. The
 * value date is only checked to be a day. */
bool payment_check(const payment *p, const char **code, cb_error *e) CB_NODISCARD;

/* Why the business says no: a static code, and a line for people into `message`. level: 0 for L1
 * … */
const char *payment_declined(const payment *p, char *message, size_t room);
const char *payment_level_failed(const payment *p, int level, char *message, size_t room);

/* An amount as the currency writes it: "12.30". False: it is none in this currency. */
bool payment_amount(const cb_decimal *amount, const char *currency,
                    char text[CB_DECIMAL_TEXT]) CB_NODISCARD;

#endif
