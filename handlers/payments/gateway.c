/* Calling the gateway: checked input, one POST, a checked answer. */
#include "gateway.h"

#include <string.h>

#include "http_answer.h"
#include "input.h"
#include "payment_settings.h"

static const char path[] = "/gateway/payments";

static cb_outcome check(cb_context *ctx, const submit_request *r)
{
    cb_outcome outcome = input_money(ctx, r->debit_amount, r->debit_currency);

    if (outcome == CB_SUCCESS)
        outcome = input_money(ctx, r->credit_amount, r->credit_currency);
    if (outcome == CB_SUCCESS)
        outcome = input_account(ctx, "debitAccount", r->debit_account);
    if (outcome == CB_SUCCESS)
        outcome = input_account(ctx, "creditAccount", r->credit_account);
    if (outcome == CB_SUCCESS && strcmp(r->debit_account, r->credit_account) == 0)
        outcome = cb_permanent(ctx, "SAME_ACCOUNT", "debit and credit are one account");
    if (outcome == CB_SUCCESS)
        outcome = input_value_date(ctx, r->value_date);
    /* Not the business's no, which would undo the payment: an earlier run may have submitted it. */
    return outcome == CB_BUSINESS_RULE
               ? cb_permanent(ctx, "VALUE_DATE_PAST", "the value date is over")
               : outcome;
}

/* Whatever else an answer has stays out of our tables. */
static cb_outcome take_reference(cb_context *ctx, json_object *answer, json_object **ret)
{
    json_object *reference = NULL;

    json_object_object_get_ex(answer, "reference", &reference);
    if (!json_object_is_type(reference, json_type_string) ||
        json_object_get_string_len(reference) == 0)
        return http_answer_invalid(ctx, path, "the answer has no reference");
    *ret = json_object_new_object();
    json_object_object_add(*ret, "reference", json_object_get(reference));
    return CB_SUCCESS;
}

cb_outcome gateway_pay(cb_context *ctx, const cb_uuid *process_id, const submit_request *r,
                       json_object **ret)
{
    OWNED(json_object) body = NULL;
    OWNED(json_object) answer = NULL;
    cb_outcome outcome = check(ctx, r);

    if (outcome != CB_SUCCESS)
        return outcome;
    if (!(body = cb_fields_write(&submit_request_fields, r)))
        return cb_transient(ctx, "NO_MEMORY", "out of memory");
    json_object_object_del(body, "behaviour");
    json_object_object_add(body, "processId", json_object_new_string(process_id->text));
    json_object_object_add(body, "commandId", json_object_new_string(cb_context_key(ctx)));
    outcome = http_post_behaving(settings.gateway, ctx, path, body, r->behaviour, &answer);
    return outcome == CB_SUCCESS ? take_reference(ctx, answer, ret) : outcome;
}
