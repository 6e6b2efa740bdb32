/* PaymentWorkflow: the shorter payment of S4 (SIM.3).
 *
 *     validate ─▶ [bookFx] ─▶ enrichData ─▶ bookRisk ─▶ [awaitRiskApproval] ─▶ executePayment ─┐
 *        ⇣           ⇣                          ⇣                                              │
 *    CANCELLED   ReleaseFx                 ReleaseRisk                updateStatusComplete ◀───┘
 *
 * It executes the payment itself, in a step, and does not wait for the network: confirmations that
 * come later are recorded in the state of the process that has ended. What is not a payment at all
 * ends FAILED. */
#include "calls.h"
#include "gateway.h"
#include "mark.h"
#include "processes.h"

static cb_outcome validate(cb_context *ctx, void *state)
{
    payment *p = state;
    const char *code;
    cb_error e = { 0 };

    if (mark_may_begin(p, &code, &e))
        return mark_processing(ctx, p);
    cb_outcome marked = mark_failed(ctx, p);
    return marked == CB_SUCCESS ? cb_business_rule(ctx, "INVALID_PAYMENT", "%s", e.message)
                                : marked;
}

/* What is credited: the contract's amount, or what was asked for. */
static cb_outcome enrich(cb_context *ctx, void *state)
{
    payment *p = state;

    (void)ctx;
    if (!p->fx_required)
        p->credit_amount = p->original_credit_amount;
    return CB_SUCCESS;
}

static cb_outcome pay(cb_context *ctx, void *state)
{
    payment *p = state;
    submit_request *r = cb_fields_new(&submit_request_fields);
    OWNED(json_object) answer = NULL;
    cb_outcome outcome = CB_SUCCESS;

    if (!r || !fill_submit_of_steps(p, r))
        outcome = cb_permanent(ctx, "INVALID_DATA", "there is no amount to be credited");
    if (outcome == CB_SUCCESS)
        outcome = gateway_pay(ctx, &p->process_id, r, &answer);
    if (outcome == CB_SUCCESS && !take_submit(p, answer))
        outcome = cb_permanent(ctx, "NO_MEMORY", "out of memory");
    cb_fields_free(&submit_request_fields, r);
    return outcome;
}

static cb_flow execute(cb_process *p, void *state)
{
    payment *paid = state;

    if (!payment_is_new(paid))
        return cb_business_failure(p, "INVALID_PAYMENT", "%s", PAYMENT_IS_NOT_NEW);
    payment_begin(paid, cb_process_id(p));
    CB_DO(cb_step(p, "validate", validate, .max_attempts = 5, .retry_delay_ms = CB_SECONDS(2),
                  .compensate = mark_cancelled));
    if (paid->fx_required)
        CB_DO(call_book_fx(p));
    CB_DO(cb_step(p, "enrichData", enrich, .local = true));
    CB_DO(call_clear_risk(p, paid));
    paid->submitted = true;
    CB_DO(cb_step(p, "executePayment", pay, .max_attempts = 1));
    CB_DO(cb_step(p, "updateStatusComplete", mark_complete, .max_attempts = 5,
                  .retry_delay_ms = CB_SECONDS(2)));
    return CB_DONE;
}

const cb_process_type payment_workflow = {
    .name = "PaymentWorkflow",
    .domain = "payments",
    .state = &payment_fields,
    .execute = execute,
    .responses = payment_responses,
    .n_responses = PAYMENT_RESPONSES,
    .payloads = payment_payloads,
    .n_payloads = PAYMENT_RESPONSES,
    .deadline_action_of = payment_deadline,
    .on_completed = on_payment_completed,
    .on_canceled = on_payment_canceled,
    .redact = payment_redact,
};
