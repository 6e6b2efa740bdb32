/* The status of a payment, in its state and in payments.payment. */
#ifndef PAYMENTS_MARK_H
#define PAYMENTS_MARK_H

#include <commandbus/process.h>

#include "payment.h"

/* Steps: idempotent by the payment's id, so they may run again. */
cb_step_fn mark_processing, mark_complete, mark_cancelled;
/* Within a step. */
cb_outcome mark_failed(cb_context *ctx, const payment *p);

/* Hooks of a process that an operator ended: COMPLETE, or FAILED when nothing was undone. As good as they can: they have
 * no attempts, and a database that is away just then leaves the row as it was. */
void mark_completed_by_operator(void *state);
void mark_canceled_by_operator(void *state);

/* Values of payments.begin, in its order. */
enum {
    BEGIN_VALUES = 8
};
extern const char begin_sql[], mark_sql[];
/* `amount` is room for one of them. */
void begin_values(const payment *p, const char *values[BEGIN_VALUES], char amount[CB_DECIMAL_TEXT]);

#endif
