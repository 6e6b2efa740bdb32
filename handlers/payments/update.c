/* UpdatePaymentStatus {"paymentId", "status", "debitAmount", "debitCurrency", "creditCurrency",
 * "debitAccount", "creditAccount", "valueDate"}: for PaymentManager, which does nothing itself. The
 * payment changes in the transaction that completes the command. Without a paymentId it is the
 * process's id. Gives back {"paymentId"}. Only a process may send it: a payment is moved by the
 * process that it belongs to, and by nobody who knows its id. */
#include "handlers.h"
#include "mark.h"
#include "payment_messages.h"

/* The facts as a payment, borrowing from the request. */
static payment facts_of(const cb_command *command, const mark_request *r)
{
    return (payment){
        .payment_id = r->payment_id.text[0] ? r->payment_id : command->correlation_id,
        .process_id = command->correlation_id,
        .debit_amount = r->debit_amount,
        .debit_currency = r->debit_currency,
        .credit_currency = r->credit_currency,
        .debit_account = r->debit_account,
        .credit_account = r->credit_account,
        .value_date = r->value_date,
    };
}

static cb_outcome begin(cb_context *ctx, const payment *p)
{
    const char *values[BEGIN_VALUES], *code;
    char amount[CB_DECIMAL_TEXT];
    cb_error e = { 0 };

    if (!mark_may_begin(p, &code, &e))
        return cb_business_rule(ctx, code, "%s", e.message);
    begin_values(p, values, amount);
    return cb_context_effect(ctx, begin_sql, BEGIN_VALUES, values) ? CB_SUCCESS : CB_PERMANENT;
}

static cb_outcome change(cb_context *ctx, const payment *p, payment_status status)
{
    const char *values[] = { p->payment_id.text, p->process_id.text, payment_statuses[status] };

    if (status == PAYMENT_PROCESSING)
        return begin(ctx, p);
    if (status == PAYMENT_DRAFT)
        return cb_permanent(ctx, "INVALID_DATA", "\"status\" is missing, or DRAFT");
    return cb_context_effect(ctx, mark_sql, CB_COUNT(values), values) ? CB_SUCCESS : CB_PERMANENT;
}

cb_outcome update_payment_status(cb_context *ctx, const cb_command *command, json_object **result)
{
    mark_request *r = cb_fields_new(&mark_request_fields);
    cb_error e = { 0 };
    cb_outcome outcome;

    if (!r)
        return cb_transient(ctx, "NO_MEMORY", "out of memory");
    if (!cb_fields_read(&mark_request_fields, r, cb_context_data(ctx), NULL, &e)) {
        outcome = cb_permanent(ctx, "INVALID_DATA", "%s", e.message);
    } else if (!cb_uuid_is_derived(&command->command_id)) {
        outcome = cb_permanent(ctx, "NOT_OF_A_PROCESS",
                               "the payment of a process is changed by its own commands only");
    } else {
        payment p = facts_of(command, r);
        outcome = change(ctx, &p, (payment_status)r->status);
        *result = json_object_new_object();
        json_object_object_add(*result, "paymentId", json_object_new_string(p.payment_id.text));
    }
    cb_fields_free(&mark_request_fields, r);
    return outcome;
}
