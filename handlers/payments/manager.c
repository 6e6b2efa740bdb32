/* PaymentManager: the payment of step.c as a machine of steps (STEP_BASED), to be compared with it.
 *
 *     updateStatusProcessing ─▶ bookRisk ─▶ [awaitRiskApproval] ─▶ [bookFx] ─▶ submitPayment ─┐
 *              ⇣                   ⇣                                  ⇣                       │
 *     updateStatusCancelled   releaseRisk                         releaseFx                   │
 *                       updateStatusComplete ◀─ awaitL4 ◀─ awaitL3 ◀─ awaitL2 ◀─ awaitL1 ◀────┘
 *
 * A manager does nothing itself: the status of a payment is a command too, unless an operator ends
 * it. */
#include <stdio.h>

#include "calls.h"
#include "mark.h"
#include "payment_messages.h"
#include "processes.h"

enum {
    MARK_PROCESSING = 1,
    BOOK_RISK,
    AWAIT_APPROVAL,
    BOOK_FX,
    SUBMIT,
    AWAIT_L1,
    AWAIT_L2,
    AWAIT_L3,
    AWAIT_L4,
    MARK_COMPLETE,
    MARK_CANCELLED,
    RELEASE_RISK,
    RELEASE_FX,
};

#define AWAIT(n, ms)                                                    \
    {                                                                   \
        "awaitL" #n, .response = "L" #n, .reply = &confirmation_fields, \
                     .needs = CONFIRMATION_NEEDS, .timeout_ms = (ms)    \
    }
#define MARK(step, ...)                                                               \
    {                                                                                 \
        step, .command_type = "UpdatePaymentStatus", .request = &mark_request_fields, \
              .reply = &mark_reply_fields, __VA_ARGS__                                \
    }

static const cb_manager_step steps[] = {
    [MARK_PROCESSING] = MARK("updateStatusProcessing", .compensation = MARK_CANCELLED),
    [BOOK_RISK] = { "bookRisk", .command_type = "BookRisk", .domain = "risk", .max_attempts = 3,
                    .request = &risk_request_fields, .reply = &risk_reply_fields,
                    .compensation = RELEASE_RISK },
    [AWAIT_APPROVAL] = { "awaitRiskApproval", .response = "riskApproval", .reply = &approval_fields,
                         .needs = APPROVAL_NEEDS, .timeout_ms = CB_HOURS(2) },
    [BOOK_FX] = { "bookFx", .command_type = "BookFx", .domain = "fx", .max_attempts = 2,
                  .request = &fx_request_fields, .reply = &fx_reply_fields,
                  .compensation = RELEASE_FX },
    [SUBMIT] = { "submitPayment", .command_type = "SubmitPayment", .max_attempts = 1,
                 .request = &submit_request_fields, .reply = &submit_reply_fields },
    [AWAIT_L1] = AWAIT(1, CB_MINUTES(5)),
    [AWAIT_L2] = AWAIT(2, CB_MINUTES(5)),
    [AWAIT_L3] = AWAIT(3, CB_HOURS(3)),
    [AWAIT_L4] = AWAIT(4, 0), /* the type's, which a deployment can set */
    [MARK_COMPLETE] = MARK("updateStatusComplete", .max_attempts = 5),
    [MARK_CANCELLED] = MARK("updateStatusCancelled", .max_attempts = 5),
    [RELEASE_RISK] = { "releaseRisk", .command_type = "ReleaseRisk", .domain = "risk",
                       .request = &release_risk_fields },
    [RELEASE_FX] = { "releaseFx", .command_type = "ReleaseFx", .domain = "fx",
                     .request = &release_fx_fields },
};

static bool create(void *state)
{
    payment_begin(state, NULL);
    return true;
}

static int first(const void *state)
{
    return payment_is_new(state) ? MARK_PROCESSING : CB_STEP_UNDO;
}

static bool build(int step, const void *state, void *request)
{
    switch (step) {
    case MARK_PROCESSING:
        return fill_mark(state, PAYMENT_PROCESSING, request);
    case MARK_COMPLETE:
        return fill_mark(state, PAYMENT_COMPLETE, request);
    case MARK_CANCELLED:
        return fill_mark(state, PAYMENT_CANCELLED, request);
    case BOOK_RISK:
        return fill_risk(state, request);
    case BOOK_FX:
        return fill_fx(state, request);
    case SUBMIT:
        return fill_submit_of_manager(state, request);
    case RELEASE_RISK:
        return fill_release_risk(state, request);
    default:
        return fill_release_fx(state, request);
    }
}

static int behind_risk(const payment *p)
{
    if (p->risk_status == RISK_DECLINED)
        return CB_STEP_UNDO;
    return p->fx_required ? BOOK_FX : SUBMIT;
}

static int next(int step, const void *state)
{
    const payment *p = state;

    switch (step) {
    case BOOK_RISK:
        return p->risk_status == RISK_PENDING ? AWAIT_APPROVAL : behind_risk(p);
    case AWAIT_APPROVAL:
        return behind_risk(p);
    case AWAIT_L1:
    case AWAIT_L2:
    case AWAIT_L3:
    case AWAIT_L4:
        return p->level[step - AWAIT_L1].error_code ? CB_STEP_UNDO : step + 1;
    case MARK_COMPLETE:
        return CB_STEP_NONE;
    default:
        return step + 1;
    }
}

static bool decide(payment *p, const void *reply)
{
    if (!apply_approval(p, reply))
        return false;
    p->risk_status = p->risk_decision;
    p->risk_approved = p->risk_decision == RISK_APPROVED;
    return true;
}

static bool set_status(payment *p, payment_status status, const mark_reply *reply)
{
    p->status = (int)status;
    if (reply->payment_id.text[0])
        p->payment_id = reply->payment_id;
    return true;
}

static bool apply(int step, payment *p, const void *reply)
{
    switch (step) {
    case MARK_PROCESSING:
        return set_status(p, PAYMENT_PROCESSING, reply);
    case MARK_COMPLETE:
        return set_status(p, PAYMENT_COMPLETE, reply);
    case MARK_CANCELLED:
        return set_status(p, PAYMENT_CANCELLED, reply);
    case BOOK_RISK:
        return apply_risk(p, reply);
    case AWAIT_APPROVAL:
        return decide(p, reply);
    case BOOK_FX:
        return apply_fx(p, reply);
    case SUBMIT:
        return apply_submit(p, reply);
    case RELEASE_RISK:
    case RELEASE_FX:
        return true;
    default:
        return apply_confirmation(p, step - AWAIT_L1, reply);
    }
}

static bool update(int step, void *state, const void *reply)
{
    payment *p = state;

    if (!apply(step, p, reply))
        return false;
    if (step < SUBMIT && next(step, p) == SUBMIT)
        p->submitted = true;
    return true;
}

/* As PaymentStep says it. */
static const char *undo_code(int step, const void *state, char *message, size_t room)
{
    const payment *p = state;

    if (step == 0) {
        snprintf(message, room, "%s", PAYMENT_IS_NOT_NEW);
        return "INVALID_DATA";
    }
    if (step < AWAIT_L1)
        return payment_declined(p, message, room);
    return payment_level_failed(p, step - AWAIT_L1, message, room);
}

static const cb_process_manager manager = {
    .create_state = create,
    .first_step = first,
    .build_command = build,
    .update_state = update,
    .next_step = next,
    .undo_code = undo_code,
    .steps = steps,
    .n_steps = CB_COUNT(steps),
};

const cb_process_type payment_manager = {
    .name = "PaymentManager",
    .domain = "payments",
    .state = &payment_fields,
    .manager = &manager,
    .wait_timeout_ms = PAYMENT_WAIT_MS,
    .deadline_action_of = payment_deadline,
    .on_completed = on_payment_completed,
    .on_canceled = on_payment_canceled,
    .redact = payment_redact,
};
