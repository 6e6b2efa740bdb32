/* The payments API (SIM.5).
 *
 *     POST /api/payments {"debitAccount", "creditAccount", "amount", "debitCurrency",
 *                         "creditCurrency", "valueDate"}
 *          Idempotency-Key: …                       recommended
 *     GET  /api/payments/{processId}/status
 *
 * batch.c has POST /api/payments/batch.
 *
 * The key makes the process's id: who asks again with it hears how the payment is, and nothing new
 * is started. A crash between the payment's row and its process is mended by asking again. */
#include <commandbus/process.h>
#include <json-c/json_tokener.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

#include "handlers.h"
#include "mark.h"
#include "payment_request.h"
#include "processes.h"

DEFINE_OWNED(PGresult, PQclear)

/* Of the ids that Idempotency-Keys make. */
static const cb_uuid key_space = { "5a0d9a4e-3b1c-5d0f-9f55-7a6f7d4c2b10" };

/* ---- the payment's row ---- */

/* DRAFT, then APPROVED. deadline: the payment's cut-off, also of one that was there already; "" of
 * one that is at its end, and is not to be started again. */
static bool draft(const cb_http_request *request, const asked_payment *a, const cb_uuid *id,
                  char deadline[64], cb_http_answer *answer)
{
    const payment *p = a->facts;
    char amount[CB_DECIMAL_TEXT] = "";
    const char *values[] = { id->text,          p->debit_account,
                             p->credit_account, amount,
                             p->debit_currency, p->credit_currency,
                             p->value_date,     *a->cutoff ? a->cutoff : NULL };
    const char *approved[] = { id->text, id->text, payment_statuses[PAYMENT_APPROVED] };
    OWNED(PGresult) drafted = NULL;
    OWNED(PGresult) marked = NULL;

    if (!payment_amount(&p->debit_amount, p->debit_currency, amount) ||
        !request_ask(
            request,
            "SELECT verdict, cutoff_at FROM payments.draft($1, $2, $3, $4, $5, $6, $7, $8)",
            CB_COUNT(values), values, &drafted, answer))
        return false;
    if (request_refuse(PQgetvalue(drafted, 0, 0), "", answer))
        return false;
    bool ended = strcmp(PQgetvalue(drafted, 0, 0), "ENDED") == 0;
    snprintf(deadline, 64, "%s", ended ? "" : PQgetvalue(drafted, 0, 1));
    return ended || request_ask(request, mark_sql, CB_COUNT(approved), approved, &marked, answer);
}

/* The document of payments.status_of; false: there is none, or the answer says why. */
static bool read_status(const cb_http_request *request, const char *id, cb_http_answer *answer)
{
    OWNED(PGresult) found = NULL;

    if (!request_ask(request, "SELECT payments.status_of($1)", 1, &id, &found, answer))
        return false;
    if (PQntuples(found) == 0 || PQgetisnull(found, 0, 0)) {
        cb_http_error(answer, 404, "NOT_FOUND", "there is no such payment");
        return false;
    }
    json_object_put(answer->body);
    answer->body = json_tokener_parse(PQgetvalue(found, 0, 0));
    return answer->body != NULL;
}

/* ---- the process ---- */

/* The process of this id was there already: how is it? */
static bool status_of_old(const cb_http_request *request, const char *id, char status[32],
                          cb_http_answer *answer)
{
    json_object *value = NULL;

    if (!read_status(request, id, answer))
        return false;
    json_object_object_get_ex(answer->body, "status", &value);
    snprintf(status, 32, "%s", json_object_get_string(value));
    json_object_put(answer->body);
    answer->body = NULL;
    return true;
}

/* Whether a refusal to start is that of a process that is there: there are others. False: the
 * answer says so. */
static bool was_started(const cb_http_request *request, const char *id, cb_http_answer *answer)
{
    OWNED(PGresult) found = NULL;

    if (!request_ask(request, "SELECT payments.is_started($1)", 1, &id, &found, answer))
        return false;
    if (strcmp(PQgetvalue(found, 0, 0), "t") == 0)
        return true;
    cb_http_error(answer, 503, "NOT_STARTED", "the payment was not started: ask again");
    return false;
}

static bool start(const cb_http_request *request, payment *p, const cb_uuid *id,
                  const char *deadline, char status[32], cb_http_answer *answer)
{
    const char *how = NULL;
    cb_uuid started;
    cb_error e = { 0 };

    if (!*deadline)
        return status_of_old(request, id->text, status, answer);
    p->payment_id = *id;
    p->status = PAYMENT_APPROVED;
    if (cb_process_start(request->db, request->types, payment_step.name, p, &started, &how, &e,
                         .process_id = id->text, .deadline = deadline)) {
        snprintf(status, 32, "%s", how);
        return true;
    }
    if (e.code == CB_INVALID_OPERATION)
        return was_started(request, id->text, answer) &&
               status_of_old(request, id->text, status, answer);
    request_unknown(request, "payment", id, answer);
    return false;
}

/* ---- the routes ---- */

static const struct {
    const char *status;
    unsigned http;
    const char *message;
} messages[] = {
    { "COMPLETED", 200, "Completed" },
    { "WAITING_FOR_ASYNC", 202, "Awaiting confirmations" },
    { "WAITING_FOR_RETRY", 202, "Processing (will retry)" },
    { NULL, 202, "Processing" },
};

static void tell(const cb_uuid *id, const char *status, cb_http_answer *answer)
{
    size_t i = 0;

    while (messages[i].status && strcmp(messages[i].status, status) != 0)
        i++;
    answer->status = messages[i].http;
    answer->body = json_object_new_object();
    json_object_object_add(answer->body, "processId", json_object_new_string(id->text));
    json_object_object_add(answer->body, "status", json_object_new_string(status));
    json_object_object_add(answer->body, "message", json_object_new_string(messages[i].message));
}

void route_submit(const cb_http_request *request, cb_http_answer *answer)
{
    __attribute__((cleanup(asked_done))) asked_payment a = { 0 };
    char deadline[64], status[32];
    cb_uuid id;

    if (request_id(request, &key_space, &id, answer) &&
        request_payment(request->body, "", &a, answer) &&
        draft(request, &a, &id, deadline, answer) &&
        start(request, a.facts, &id, deadline, status, answer))
        tell(&id, status, answer);
}

void route_status(const cb_http_request *request, cb_http_answer *answer)
{
    cb_uuid id;

    if (!cb_uuid_parse(request->parts[0], &id))
        cb_http_error(answer, 404, "NOT_FOUND", "there is no such payment");
    else
        read_status(request, id.text, answer);
}
