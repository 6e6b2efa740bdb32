/* PaymentStep: the whole life of a payment (SIM.3).
 *
 *     updateStatusProcessing ─▶ bookRisk ─▶ [awaitRiskApproval] ─▶ [bookFx] ─▶ submitPayment ─┐
 *              ⇣                   ⇣                                  ⇣                       │
 *          CANCELLED          ReleaseRisk                         ReleaseFx                   │
 *                       updateStatusComplete ◀─ awaitL4 ◀─ awaitL3 ◀─ awaitL2 ◀─ awaitL1 ◀────┘
 *
 * Submitting cannot be undone: from the moment its command may be sent, a missed deadline is a
 * person's to decide. An error of the network is the business's no: what was booked is released. */
#include "calls.h"
#include "mark.h"
#include "processes.h"

#define RECEIVED(n)                                             \
    static bool l##n##_received(const void *state)              \
    {                                                           \
        return ((const payment *)state)->level[(n)-1].received; \
    }

RECEIVED(1)
RECEIVED(2)
RECEIVED(3)
RECEIVED(4)

static const struct {
    const char *wait;
    cb_condition_fn *received;
    int64_t timeout_ms;
} levels[LEVELS] = {
    { "awaitL1", l1_received, CB_MINUTES(5) },
    { "awaitL2", l2_received, CB_MINUTES(5) },
    { "awaitL3", l3_received, CB_HOURS(3) },
    { "awaitL4", l4_received, 0 }, /* the type's, which a deployment can set */
};

static cb_flow confirm(cb_process *p, const payment *pay)
{
    char reason[REASON];

    for (int i = 0; i < LEVELS; i++) {
        CB_DO(cb_wait(p, levels[i].wait, levels[i].received, .timeout_ms = levels[i].timeout_ms));
        if (pay->level[i].error_code) {
            const char *code = payment_level_failed(pay, i, reason, sizeof reason);
            return cb_business_failure(p, code, "%s", reason);
        }
    }
    return CB_NEXT;
}

static cb_flow execute(cb_process *p, void *state)
{
    payment *pay = state;

    if (!payment_is_new(pay))
        return cb_business_failure(p, "INVALID_DATA", "%s", PAYMENT_IS_NOT_NEW);
    payment_begin(pay, cb_process_id(p));
    CB_DO(cb_step(p, "updateStatusProcessing", mark_processing, .max_attempts = 5,
                  .retry_delay_ms = CB_SECONDS(2), .compensate = mark_cancelled));
    CB_DO(call_clear_risk(p, pay));
    if (pay->fx_required)
        CB_DO(call_book_fx(p));
    pay->submitted = true;
    CB_DO(call_submit(p));
    CB_DO(confirm(p, pay));
    CB_DO(cb_step(p, "updateStatusComplete", mark_complete, .max_attempts = 5,
                  .retry_delay_ms = CB_SECONDS(2)));
    return CB_DONE;
}

const cb_process_type payment_step = {
    .name = "PaymentStep",
    .domain = "payments",
    .state = &payment_fields,
    .execute = execute,
    .responses = payment_responses,
    .n_responses = PAYMENT_RESPONSES,
    .payloads = payment_payloads,
    .n_payloads = PAYMENT_RESPONSES,
    .wait_timeout_ms = PAYMENT_WAIT_MS,
    .deadline_action_of = payment_deadline,
    .on_completed = on_payment_completed,
    .on_canceled = on_payment_canceled,
    .redact = payment_redact,
};
