/* The state of a payment, and whether it is one. */
#include "payment.h"

#include <commandbus/date.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

const char *const payment_statuses[] = { "DRAFT",  "APPROVED",  "PROCESSING", "COMPLETE",
                                         "FAILED", "CANCELLED", NULL };
const char *const risk_statuses[] = { "NONE", "APPROVED", "PENDING", "DECLINED", NULL };

const char *const payment_redact[] = { "debitAccount", "creditAccount", NULL };

#define ENUM_AS(member, values, name) CB_FIELD_ENUM_AS(payment, member, values, name)
#define FIELD(member, type, name)     CB_FIELD_AS(payment, member, type, name)
#define LEVEL(i, prefix)                                         \
    FIELD(level[i].received, CB_BOOL, prefix "Received"),        \
        FIELD(level[i].reference, CB_TEXT, prefix "Reference"),  \
        FIELD(level[i].error_code, CB_TEXT, prefix "ErrorCode"), \
        FIELD(level[i].error_message, CB_TEXT, prefix "ErrorMessage")

static const cb_field list[] = {
    FIELD(payment_id, CB_UUID, "paymentId"),
    FIELD(process_id, CB_UUID, "processId"),
    ENUM_AS(status, payment_statuses, "status"),
    FIELD(debit_amount, CB_DECIMAL, "debitAmount"),
    FIELD(original_credit_amount, CB_DECIMAL, "originalCreditAmount"),
    FIELD(debit_currency, CB_TEXT, "debitCurrency"),
    FIELD(credit_currency, CB_TEXT, "creditCurrency"),
    FIELD(debit_account, CB_TEXT, "debitAccount"),
    FIELD(credit_account, CB_TEXT, "creditAccount"),
    FIELD(value_date, CB_TEXT, "valueDate"),
    FIELD(behaviour, CB_JSON, "behaviour"),
    FIELD(risk_reference, CB_TEXT, "riskReference"),
    ENUM_AS(risk_status, risk_statuses, "riskStatus"),
    FIELD(risk_score, CB_INT, "riskScore"),
    ENUM_AS(risk_decision, risk_statuses, "riskDecision"),
    FIELD(risk_reason, CB_TEXT, "riskReason"),
    FIELD(pending_approval, CB_BOOL, "pendingApproval"),
    FIELD(risk_approved, CB_BOOL, "riskApproved"),
    FIELD(fx_required, CB_BOOL, "fxRequired"),
    FIELD(fx_contract_id, CB_TEXT, "fxContractId"),
    FIELD(fx_reference, CB_TEXT, "fxReference"),
    FIELD(fx_rate, CB_DECIMAL, "fxRate"),
    FIELD(credit_amount, CB_DECIMAL, "creditAmount"),
    FIELD(submitted, CB_BOOL, "submitted"),
    FIELD(submission_reference, CB_TEXT, "submissionReference"),
    LEVEL(0, "l1"),
    LEVEL(1, "l2"),
    LEVEL(2, "l3"),
    LEVEL(3, "l4"),
};

const cb_fields payment_fields = { "payment", sizeof(payment), list, CB_COUNT(list) };

void payment_begin(payment *p, const char *process_id)
{
    if (process_id)
        snprintf(p->process_id.text, sizeof p->process_id.text, "%s", process_id);
    if (process_id && !p->payment_id.text[0])
        p->payment_id = p->process_id;
    p->fx_required = p->debit_currency && p->credit_currency &&
                     strcmp(p->debit_currency, p->credit_currency) != 0;
    if (!p->fx_required && p->original_credit_amount.digits == 0)
        p->original_credit_amount = p->debit_amount;
}

static bool is_untouched(const confirmation_level *l)
{
    return !l->received && !l->reference && !l->error_code && !l->error_message;
}

bool payment_is_new(const payment *p)
{
    bool untouched = true;

    for (int i = 0; i < LEVELS; i++)
        untouched = untouched && is_untouched(&p->level[i]);
    return untouched && !p->risk_reference && p->risk_status == RISK_NONE &&
           p->risk_decision == RISK_NONE && !p->pending_approval && !p->risk_approved &&
           !p->fx_contract_id && !p->submitted && !p->submission_reference;
}

bool payment_amount(const cb_decimal *amount, const char *currency, char text[CB_DECIMAL_TEXT])
{
    cb_money money;
    cb_error e;

    return cb_decimal_print(amount, text) && cb_money_parse(text, currency, &money, &e) &&
           cb_money_print(&money, text);
}

/* As banks write them: an IBAN, or what stands for one. */
static bool is_account(const char *text)
{
    size_t n = strlen(text);

    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)text[i]) && !strchr("-_", text[i]))
            return false;
    }
    return n > 0 && n <= 34;
}

static bool wrong(const char **code, const char *is, cb_error *e, const char *message)
{
    *code = is;
    return cb_fail(e, CB_INVALID_DATA, "%s", message);
}

static bool check_presence(const payment *p, const char **code, cb_error *e)
{
    const struct {
        const char *name, *value;
    } wanted[] = {
        { "debitAccount", p->debit_account },   { "creditAccount", p->credit_account },
        { "debitCurrency", p->debit_currency }, { "creditCurrency", p->credit_currency },
        { "valueDate", p->value_date },
    };

    for (size_t i = 0; i < CB_COUNT(wanted); i++) {
        if (!wanted[i].value) {
            *code = "MISSING_FIELD";
            return cb_fail(e, CB_INVALID_DATA, "%s is missing", wanted[i].name);
        }
    }
    return true;
}

/* debit: the amount as text. What risk judges must be what the gateway pays. */
static bool is_credited_as_debited(const payment *p, const char *debit)
{
    char credit[CB_DECIMAL_TEXT];

    if (strcmp(p->debit_currency, p->credit_currency) != 0)
        return true;
    return p->credit_amount.digits == 0 &&
           (p->original_credit_amount.digits == 0 ||
            (payment_amount(&p->original_credit_amount, p->debit_currency, credit) &&
             strcmp(credit, debit) == 0));
}

bool payment_check(const payment *p, const char **code, cb_error *e)
{
    char text[CB_DECIMAL_TEXT];

    if (!check_presence(p, code, e))
        return false;
    if (!is_account(p->debit_account) || !is_account(p->credit_account))
        return wrong(code, "INVALID_ACCOUNT", e,
                     "an account is 1 to 34 letters, digits, '-' and '_'");
    if (strcmp(p->debit_account, p->credit_account) == 0)
        return wrong(code, "SAME_ACCOUNT", e, "debitAccount and creditAccount are the same");
    if (cb_currency_exponent(p->debit_currency) < 0 || cb_currency_exponent(p->credit_currency) < 0)
        return wrong(code, "UNKNOWN_CURRENCY", e, "a currency is a code of ISO 4217, as EUR");
    if (p->debit_amount.digits <= 0)
        return wrong(code, "INVALID_AMOUNT", e, "the amount must be above zero");
    if (!payment_amount(&p->debit_amount, p->debit_currency, text))
        return wrong(code, "INVALID_AMOUNT", e,
                     "the amount has more digits than its currency, or is too large");
    if (!is_credited_as_debited(p, text))
        return wrong(code, "INVALID_AMOUNT", e,
                     "in one currency the amount credited is the amount debited");
    if (!cb_date_parse(p->value_date, &(cb_date){ 0 }))
        return wrong(code, "INVALID_DATE", e, "valueDate is a day, as 2030-12-31");
    return true;
}

static const char *or_none(const char *text)
{
    return text ? text : "no reason given";
}

const char *payment_declined(const payment *p, char *message, size_t room)
{
    snprintf(message, room, "%s", or_none(p->risk_reason));
    return "RISK_DECLINED";
}

const char *payment_level_failed(const payment *p, int level, char *message, size_t room)
{
    static const char *const codes[LEVELS] = { "L1_ERROR", "L2_ERROR", "L3_ERROR", "L4_ERROR" };
    const confirmation_level *l = &p->level[level];

    snprintf(message, room, "%s: %s", l->error_code, or_none(l->error_message));
    return codes[level];
}
