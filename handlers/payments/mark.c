/* The status of a payment. */
#include "mark.h"

#include "input.h"
#include "payment_database.h"

const char begin_sql[] = "SELECT payments.begin($1, $2, $3, $4, $5, $6, $7, $8)";
const char mark_sql[] = "SELECT payments.mark($1, $2, $3)";

void begin_values(const payment *p, const char *values[BEGIN_VALUES], char amount[CB_DECIMAL_TEXT])
{
    if (!cb_decimal_print(&p->debit_amount, amount))
        amount[0] = '\0'; /* no number: refused */
    values[0] = p->payment_id.text;
    values[1] = p->process_id.text;
    values[2] = p->debit_account;
    values[3] = p->credit_account;
    values[4] = amount;
    values[5] = p->debit_currency;
    values[6] = p->credit_currency;
    values[7] = p->value_date;
}

bool mark_may_begin(const payment *p, const char **code, cb_error *e)
{
    if (!payment_check(p, code, e))
        return false;
    if (!input_day_is_over(p->value_date))
        return true;
    *code = "VALUE_DATE_PAST";
    return cb_fail(e, CB_INVALID_DATA, "the value date is over");
}

cb_outcome mark_processing(cb_context *ctx, void *state)
{
    payment *p = state;
    const char *values[BEGIN_VALUES], *code;
    char amount[CB_DECIMAL_TEXT];
    cb_error e = { 0 };

    if (!mark_may_begin(p, &code, &e))
        return cb_business_rule(ctx, code, "%s", e.message);
    begin_values(p, values, amount);
    cb_outcome outcome = database_step(ctx, begin_sql, BEGIN_VALUES, values);
    if (outcome == CB_SUCCESS)
        p->status = PAYMENT_PROCESSING;
    return outcome;
}

static cb_outcome write_status(cb_context *ctx, const payment *p, payment_status status)
{
    const char *values[] = { p->payment_id.text, p->process_id.text, payment_statuses[status] };

    return database_step(ctx, mark_sql, CB_COUNT(values), values);
}

static cb_outcome mark(cb_context *ctx, payment *p, payment_status status)
{
    cb_outcome outcome = write_status(ctx, p, status);

    if (outcome == CB_SUCCESS)
        p->status = (int)status;
    return outcome;
}

cb_outcome mark_complete(cb_context *ctx, void *state)
{
    return mark(ctx, state, PAYMENT_COMPLETE);
}

cb_outcome mark_cancelled(cb_context *ctx, void *state)
{
    return mark(ctx, state, PAYMENT_CANCELLED);
}

cb_outcome mark_failed(cb_context *ctx, const payment *p)
{
    return write_status(ctx, p, PAYMENT_FAILED);
}

/* ---- hooks ---- */

void on_payment_completed(cb_process *p, void *state)
{
    (void)p;
    ((payment *)state)->status = PAYMENT_COMPLETE;
}

void on_payment_canceled(cb_process *p, void *state)
{
    (void)p;
    ((payment *)state)->status = PAYMENT_CANCELLED;
}
