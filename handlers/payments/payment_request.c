/* Reading requests to the payments API. */
#include "payment_request.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "payment_behaviour.h"
#include "payment_settings.h"

typedef struct {
    char *debit_account, *credit_account, *debit_currency, *credit_currency, *value_date;
    json_object *amount; /* a text or a number */
    int64_t cutoff_ms;   /* 0: none was said */
    json_object *behaviour;
} payment_request;

#define FIELD(member, type, name) CB_FIELD_AS(payment_request, member, type, name)
CB_FIELDS(request_fields, payment_request, FIELD(debit_account, CB_TEXT, "debitAccount"),
          FIELD(credit_account, CB_TEXT, "creditAccount"), FIELD(amount, CB_JSON, "amount"),
          FIELD(debit_currency, CB_TEXT, "debitCurrency"),
          FIELD(credit_currency, CB_TEXT, "creditCurrency"),
          FIELD(value_date, CB_TEXT, "valueDate"), FIELD(cutoff_ms, CB_TIME, "cutoffTimestamp"),
          FIELD(behaviour, CB_JSON, "behaviour"));

void asked_done(asked_payment *a)
{
    cb_fields_free(&payment_fields, a->facts);
    a->facts = NULL;
}

static bool copy_facts(payment *p, const payment_request *r)
{
    p->behaviour = json_object_get(r->behaviour);
    return cb_text_set(&p->debit_account, r->debit_account) &&
           cb_text_set(&p->credit_account, r->credit_account) &&
           cb_text_set(&p->debit_currency, r->debit_currency) &&
           cb_text_set(&p->credit_currency, r->credit_currency) &&
           cb_text_set(&p->value_date, r->value_date);
}

static void print_time(int64_t ms, char text[CUTOFF_TEXT])
{
    ms = ms < 0 ? 0 : ms; /* over is over */
    time_t seconds = (time_t)(ms / 1000);
    struct tm day;
    size_t n =
        gmtime_r(&seconds, &day) ? strftime(text, CUTOFF_TEXT, "%Y-%m-%dT%H:%M:%S", &day) : 0;

    snprintf(text + n, CUTOFF_TEXT - n, ".%03dZ", (int)(ms % 1000));
}

/* The text of an amount as it was sent; json-c keeps that of a number too. NULL: it is neither text
 * nor number. */
static const char *amount_text(json_object *amount)
{
    switch (json_object_get_type(amount)) {
    case json_type_string:
    case json_type_int:
    case json_type_double:
        return json_object_get_string(amount);
    default:
        return NULL;
    }
}

static bool check_facts(asked_payment *a, const payment_request *r, const char *where,
                        cb_http_answer *answer)
{
    payment *p = a->facts;
    const char *code = "INVALID_AMOUNT";
    cb_error e = { 0 };

    if (!copy_facts(p, r)) {
        cb_http_error(answer, 503, "NO_MEMORY", "out of memory");
    } else if (!r->amount) {
        cb_http_error(answer, 400, "MISSING_FIELD", "%samount is missing", where);
    } else if (!amount_text(r->amount)) {
        cb_http_error(answer, 400, "INVALID_TYPE", "%samount must be a text or a number", where);
    } else if (!cb_decimal_parse(amount_text(r->amount), &p->debit_amount, &e) ||
               !payment_check(p, &code, &e)) {
        cb_http_error(answer, strcmp(code, "MISSING_FIELD") == 0 ? 400 : 422, code, "%s%s", where,
                      e.message);
    } else if (request_behaviour(r->behaviour, where, answer)) {
        payment_begin(p, NULL);
        if (r->cutoff_ms)
            print_time(r->cutoff_ms, a->cutoff);
        return true;
    }
    return false;
}

bool request_payment(json_object *body, const char *where, asked_payment *ret,
                     cb_http_answer *answer)
{
    payment_request *r = cb_fields_new(&request_fields);
    cb_error e = { 0 };
    bool read = false;

    *ret = (asked_payment){ .facts = cb_fields_new(&payment_fields) };
    if (!r || !ret->facts)
        cb_http_error(answer, 503, "NO_MEMORY", "out of memory");
    else if (!body)
        cb_http_error(answer, 400, "MISSING_FIELD", "there is no body");
    else if (!cb_fields_read(&request_fields, r, body, NULL, &e))
        cb_http_error(answer, 400, "INVALID_TYPE", "%s%s", where, e.message);
    else
        read = check_facts(ret, r, where, answer);
    cb_fields_free(&request_fields, r);
    if (!read)
        asked_done(ret);
    return read;
}

bool request_behaviour(json_object *behaviour, const char *where, cb_http_answer *answer)
{
    cb_error e = { 0 };

    if (!behaviour)
        return true;
    if (!settings.simulation)
        cb_http_error(answer, 422, "NO_SIMULATION",
                      "%sa behaviour is for a simulated world: set handlers.payments.simulation",
                      where);
    else if (!behaviour_check(behaviour, &e))
        cb_http_error(answer, 422, "INVALID_BEHAVIOUR", "%s%s", where, e.message);
    else
        return true;
    return false;
}

bool request_id(const cb_http_request *request, const cb_uuid *space, cb_uuid *ret,
                cb_http_answer *answer)
{
    const char *key = request->header(request, "Idempotency-Key");
    size_t n = key ? strlen(key) : 0;

    for (const char *c = key; c && *c; c++) {
        if (*c < ' ' || *c > '~')
            n = 0;
    }
    if (!key && !settings.requires_key) {
        *ret = cb_uuid_new();
        return true;
    }
    if (n > 0 && n <= REQUEST_KEY) {
        *ret = cb_uuid_from_name(space, key);
        return true;
    }
    cb_http_error(answer, 400, key ? "INVALID_IDEMPOTENCY_KEY" : "MISSING_IDEMPOTENCY_KEY",
                  "send an Idempotency-Key of 1 to %d printable ASCII characters: who repeats a "
                  "request with it pays once",
                  REQUEST_KEY);
    return false;
}

void request_unknown(const cb_http_request *request, const char *what, const cb_uuid *id,
                     cb_http_answer *answer)
{
    if (request->header(request, "Idempotency-Key"))
        cb_http_error(answer, 503, "NOT_STARTED",
                      "it is not known whether the %s was started: ask again with the same "
                      "Idempotency-Key, which starts it once",
                      what);
    else
        cb_http_error(answer, 503, "OUTCOME_UNKNOWN",
                      "it is not known whether %s %s was started: look for it before you ask "
                      "again, because a request without an Idempotency-Key pays anew",
                      what, id->text);
}

bool request_ask(const cb_http_request *request, const char *sql, size_t n,
                 const char *const values[], struct pg_result **ret, cb_http_answer *answer)
{
    cb_error e = { 0 };

    if (cb_db_ask(request->db, sql, values, n, ret, &e))
        return true;
    cb_http_error(answer, 503, "DATABASE_FAILED", "the payment was not taken: ask again%s%s",
                  *e.sqlstate ? "; SQLSTATE " : "", e.sqlstate);
    return false;
}

bool request_refuse(const char *verdict, const char *where, cb_http_answer *answer)
{
    static const struct {
        const char *verdict;
        unsigned status;
        const char *code, *message;
    } refusals[] = {
        { "PAST", 422, "VALUE_DATE_PAST", "the value date is in the past" },
        { "LATE", 422, "CUTOFF_PAST", "the cut-off is in the past" },
        { "OTHER", 409, "IDEMPOTENCY_KEY_REUSED",
          "this Idempotency-Key belongs to a payment with other facts" },
    };

    for (size_t i = 0; i < CB_COUNT(refusals); i++) {
        if (strcmp(refusals[i].verdict, verdict) == 0) {
            cb_http_error(answer, refusals[i].status, refusals[i].code, "%s%s", where,
                          refusals[i].message);
            return true;
        }
    }
    return false;
}
