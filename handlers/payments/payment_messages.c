/* Tables of the messages, and the way between them and the payment. */
#include "payment_messages.h"

#include <json-c/linkhash.h>
#include <string.h>

#define MESSAGE               CB_FIELDS_DEFINE
#define TEXT(T, member, name) CB_FIELD_AS(T, member, CB_TEXT, name)
#define BEHAVIOUR(T)          CB_FIELD(T, behaviour, CB_JSON)

MESSAGE(risk_request_fields, risk_request, TEXT(risk_request, amount, "amount"),
        TEXT(risk_request, currency, "currency"), TEXT(risk_request, debit_account, "debitAccount"),
        TEXT(risk_request, credit_account, "creditAccount"), BEHAVIOUR(risk_request));
MESSAGE(risk_reply_fields, risk_reply, TEXT(risk_reply, reference, "reference"),
        TEXT(risk_reply, status, "status"), CB_FIELD(risk_reply, score, CB_INT));
MESSAGE(fx_request_fields, fx_request, TEXT(fx_request, amount, "amount"),
        TEXT(fx_request, from_currency, "fromCurrency"),
        TEXT(fx_request, to_currency, "toCurrency"), TEXT(fx_request, value_date, "valueDate"),
        BEHAVIOUR(fx_request));
MESSAGE(fx_reply_fields, fx_reply, TEXT(fx_reply, contract_id, "contractId"),
        TEXT(fx_reply, reference, "reference"), CB_FIELD(fx_reply, rate, CB_DECIMAL),
        CB_FIELD_AS(fx_reply, credit_amount, CB_DECIMAL, "creditAmount"));
MESSAGE(submit_request_fields, submit_request, TEXT(submit_request, payment_id, "paymentId"),
        TEXT(submit_request, debit_account, "debitAccount"),
        TEXT(submit_request, credit_account, "creditAccount"),
        TEXT(submit_request, debit_amount, "debitAmount"),
        TEXT(submit_request, debit_currency, "debitCurrency"),
        TEXT(submit_request, credit_amount, "creditAmount"),
        TEXT(submit_request, credit_currency, "creditCurrency"),
        TEXT(submit_request, fx_contract_id, "fxContractId"),
        TEXT(submit_request, fx_rate, "fxRate"), TEXT(submit_request, value_date, "valueDate"),
        TEXT(submit_request, execution_model, "executionModel"), BEHAVIOUR(submit_request));
MESSAGE(submit_reply_fields, submit_reply, TEXT(submit_reply, reference, "reference"));
MESSAGE(mark_request_fields, mark_request,
        CB_FIELD_AS(mark_request, payment_id, CB_UUID, "paymentId"),
        CB_FIELD_ENUM(mark_request, status, payment_statuses),
        CB_FIELD_AS(mark_request, debit_amount, CB_DECIMAL, "debitAmount"),
        TEXT(mark_request, debit_currency, "debitCurrency"),
        TEXT(mark_request, credit_currency, "creditCurrency"),
        TEXT(mark_request, debit_account, "debitAccount"),
        TEXT(mark_request, credit_account, "creditAccount"),
        TEXT(mark_request, value_date, "valueDate"));
MESSAGE(mark_reply_fields, mark_reply, CB_FIELD_AS(mark_reply, payment_id, CB_UUID, "paymentId"));
MESSAGE(release_fx_fields, release_fx_request, TEXT(release_fx_request, contract_id, "contractId"));
MESSAGE(release_risk_fields, release_risk_request,
        TEXT(release_risk_request, reference, "reference"),
        TEXT(release_risk_request, status, "status"));
static const char *const decisions[] = { "NONE", "APPROVED", "DECLINED", NULL };
MESSAGE(approval_fields, approval, CB_FIELD_ENUM(approval, status, decisions),
        TEXT(approval, reason, "reason"));
MESSAGE(confirmation_fields, confirmation, TEXT(confirmation, reference, "reference"),
        TEXT(confirmation, error, "error"), TEXT(confirmation, message, "message"));

/* ---- from the payment ---- */

/* An amount as its currency writes it. */
static bool set_amount(char **to, const cb_decimal *amount, const char *currency)
{
    char text[CB_DECIMAL_TEXT];

    return currency && payment_amount(amount, currency, text) && cb_text_set(to, text);
}

/* Which steps of a behaviour each call is told: what the others are to do is not its business. */
static const char *const for_risk[] = { "bookRisk", "awaitRiskApproval", NULL };
static const char *const for_fx[] = { "bookFx", NULL };
static const char *const for_submission[] = { "submitPayment", "awaitL1", "awaitL2",
                                              "awaitL3",       "awaitL4", NULL };

static bool set_behaviour(json_object **to, const payment *p, const char *const *steps)
{
    json_object *said = NULL;

    for (; p->behaviour && *steps; steps++) {
        if (!json_object_object_get_ex(p->behaviour, *steps, &said))
            continue;
        if (!*to && !(*to = json_object_new_object()))
            return false;
        json_object_object_add(*to, *steps, json_object_get(said));
    }
    return true;
}

bool fill_risk(const payment *p, void *message)
{
    risk_request *r = message;

    return set_amount(&r->amount, &p->debit_amount, p->debit_currency) &&
           cb_text_set(&r->currency, p->debit_currency) &&
           cb_text_set(&r->debit_account, p->debit_account) &&
           cb_text_set(&r->credit_account, p->credit_account) &&
           set_behaviour(&r->behaviour, p, for_risk);
}

bool fill_fx(const payment *p, void *message)
{
    fx_request *r = message;

    return set_amount(&r->amount, &p->debit_amount, p->debit_currency) &&
           cb_text_set(&r->from_currency, p->debit_currency) &&
           cb_text_set(&r->to_currency, p->credit_currency) &&
           cb_text_set(&r->value_date, p->value_date) && set_behaviour(&r->behaviour, p, for_fx);
}

static bool fill_submit(const payment *p, submit_request *r, const char *model)
{
    const cb_decimal *amount =
        p->credit_amount.digits != 0 ? &p->credit_amount : &p->original_credit_amount;
    char rate[CB_DECIMAL_TEXT];

    if (p->fx_contract_id &&
        (!cb_decimal_print(&p->fx_rate, rate) || !cb_text_set(&r->fx_rate, rate) ||
         !cb_text_set(&r->fx_contract_id, p->fx_contract_id)))
        return false;
    return amount->digits > 0 && cb_text_set(&r->payment_id, p->payment_id.text) &&
           set_amount(&r->debit_amount, &p->debit_amount, p->debit_currency) &&
           set_amount(&r->credit_amount, amount, p->credit_currency) &&
           cb_text_set(&r->debit_currency, p->debit_currency) &&
           cb_text_set(&r->credit_currency, p->credit_currency) &&
           cb_text_set(&r->debit_account, p->debit_account) &&
           cb_text_set(&r->credit_account, p->credit_account) &&
           cb_text_set(&r->value_date, p->value_date) && cb_text_set(&r->execution_model, model) &&
           set_behaviour(&r->behaviour, p, for_submission);
}

bool fill_submit_of_steps(const payment *p, void *message)
{
    return fill_submit(p, message, "PROCESS_STEP");
}

bool fill_submit_of_manager(const payment *p, void *message)
{
    return fill_submit(p, message, "STEP_BASED");
}

bool fill_release_fx(const payment *p, void *message)
{
    return cb_text_set(&((release_fx_request *)message)->contract_id, p->fx_contract_id);
}

bool fill_release_risk(const payment *p, void *message)
{
    release_risk_request *r = message;

    return cb_text_set(&r->reference, p->risk_reference) &&
           cb_text_set(&r->status, risk_statuses[p->risk_status]);
}

bool fill_mark(const payment *p, payment_status status, mark_request *to)
{
    to->payment_id = p->payment_id;
    to->status = (int)status;
    to->debit_amount = p->debit_amount;
    return cb_text_set(&to->debit_currency, p->debit_currency) &&
           cb_text_set(&to->credit_currency, p->credit_currency) &&
           cb_text_set(&to->debit_account, p->debit_account) &&
           cb_text_set(&to->credit_account, p->credit_account) &&
           cb_text_set(&to->value_date, p->value_date);
}

/* ---- to the payment ---- */

/* RISK_NONE: it is none of them. */
static risk_status status_named(const char *name)
{
    for (int i = RISK_APPROVED; risk_statuses[i]; i++) {
        if (name && strcmp(risk_statuses[i], name) == 0)
            return (risk_status)i;
    }
    return RISK_NONE;
}

bool apply_risk(payment *p, const void *message)
{
    const risk_reply *r = message;
    risk_status status = status_named(r->status);

    if (!r->reference || status == RISK_NONE || !cb_text_set(&p->risk_reference, r->reference))
        return false;
    p->risk_status = (int)status;
    p->risk_score = r->score;
    p->risk_approved = status == RISK_APPROVED;
    p->pending_approval = status == RISK_PENDING;
    return true;
}

bool apply_fx(payment *p, const void *message)
{
    const fx_reply *r = message;
    char text[CB_DECIMAL_TEXT];

    if (!r->contract_id || r->rate.digits <= 0 || r->credit_amount.digits <= 0 ||
        !payment_amount(&r->credit_amount, p->credit_currency, text))
        return false;
    p->fx_rate = r->rate;
    p->credit_amount = r->credit_amount;
    return cb_text_set(&p->fx_contract_id, r->contract_id) &&
           cb_text_set(&p->fx_reference, r->reference);
}

bool apply_submit(payment *p, const void *message)
{
    const submit_reply *r = message;

    return r->reference && cb_text_set(&p->submission_reference, r->reference);
}

/* One decision counts: the first. It may come before the booking that it is about is known to be
 * pending. */
bool apply_approval(payment *p, const void *message)
{
    const approval *a = message;

    if (p->risk_decision != RISK_NONE || a->status == DECISION_NONE ||
        !cb_text_set(&p->risk_reason, a->reason))
        return false;
    p->risk_decision = a->status == DECISION_APPROVED ? RISK_APPROVED : RISK_DECLINED;
    return true;
}

bool apply_confirmation(payment *p, int level, const confirmation *c)
{
    confirmation_level *l = &p->level[level];

    if (l->received || (!c->reference && !c->error))
        return false;
    l->received = true;
    return cb_text_set(&l->reference, c->reference) && cb_text_set(&l->error_code, c->error) &&
           cb_text_set(&l->error_message, c->message);
}

/* ---- and JSON ---- */

/* What has no value is left out. */
static bool move_all(json_object *from, json_object *to)
{
    if (!from)
        return false;
    json_object_object_foreach(from, name, value)
    {
        if (value && json_object_object_add(to, name, json_object_get(value)) != 0)
            return false;
    }
    return true;
}

bool message_write(const cb_fields *fields, fill_fn *fill, const payment *p, json_object *data)
{
    void *message = cb_fields_new(fields);
    OWNED(json_object) json = NULL;

    if (message && fill(p, message))
        json = cb_fields_write(fields, message);
    cb_fields_free(fields, message);
    return move_all(json, data);
}

bool message_take(const cb_fields *fields, apply_fn *apply, payment *p, json_object *from)
{
    void *message = cb_fields_new(fields);
    cb_error e;
    bool taken = message && json_object_is_type(from, json_type_object) &&
                 cb_fields_read(fields, message, from, NULL, &e) && apply(p, message);

    cb_fields_free(fields, message);
    return taken;
}
