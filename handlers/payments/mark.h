/* The status of a payment, in its state and in payments.payment. */
#ifndef PAYMENTS_MARK_H
#define PAYMENTS_MARK_H

#include <commandbus/process.h>

#include "payment.h"

/* Steps: idempotent by the payment's id, so they may run again. */
cb_step_fn mark_processing, mark_complete, mark_cancelled;
/* Within a step. */
cb_outcome mark_failed(cb_context *ctx, const payment *p);

/* Hooks of a process at its end: COMPLETE; CANCELLED, whether anything was undone or not. They say
 * so in the state: the row follows its process by itself, whoever ends it
 * (payments.end_with_process). */
void on_payment_completed(cb_process *p, void *state);
void on_payment_canceled(cb_process *p, void *state);

/* Whether a payment can be taken up: payment_check, and its value date is not over
 * (VALUE_DATE_PAST). Asked once, by the first step: a date that passes later is for those who are
 * called then. */
bool mark_may_begin(const payment *p, const char **code, cb_error *e) CB_NODISCARD;

/* Values of payments.begin, in its order. */
enum {
    BEGIN_VALUES = 8
};
extern const char begin_sql[], mark_sql[];
/* `amount` is room for one of them. */
void begin_values(const payment *p, const char *values[BEGIN_VALUES], char amount[CB_DECIMAL_TEXT]);

#endif
