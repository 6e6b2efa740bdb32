/* Many payments in one request, as S0 starts them: all of them or none.
 *
 *     POST /api/payments/batch {"name", "executeImmediately", "behaviour",
 *                               "payments": [{…, "cutoffTimestamp", "behaviour"}, …]}
 *          Idempotency-Key: …
 *
 * Rows and processes are made in one transaction. The batch's id follows from the key, and those of
 * its payments from that and their places, so a repeated request finds them all. */
#include <commandbus/process.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "handlers.h"
#include "payment_request.h"
#include "processes.h"

DEFINE_OWNED(PGresult, PQclear)

enum {
    MOST = 500,      /* payments of a batch; the body's limit is mostly met before */
    MOST_HERE = 100, /* that one request executes itself */
    LONGEST_NAME = 200,
    LEASE_SECONDS = 60 /* what was not executed here by then, workers do */
};

/* Of the ids of batches that Idempotency-Keys make. */
static const cb_uuid key_space = { "c3b6a0de-7a0e-5b3c-8f4e-52b8e8f5a9d1" };

typedef struct {
    asked_payment asked;
    cb_uuid id;
    char deadline[64];
    json_object *state; /* owned */
} member;

typedef struct {
    cb_uuid id;
    char *name; /* NULL: none */
    bool execute_immediately;
    json_object *behaviour; /* of those that say none */
    member *members;
    size_t n;
} batch;

typedef struct {
    char *name;
    bool execute_immediately;
    json_object *behaviour;
} batch_request;

CB_FIELDS(request_fields, batch_request, CB_FIELD(batch_request, name, CB_TEXT),
          CB_FIELD_AS(batch_request, execute_immediately, CB_BOOL, "executeImmediately"),
          CB_FIELD(batch_request, behaviour, CB_JSON));

static void batch_done(batch *b)
{
    for (size_t i = 0; b->members && i < b->n; i++) {
        asked_done(&b->members[i].asked);
        json_object_put(b->members[i].state);
    }
    free(b->members);
    free(b->name);
    json_object_put(b->behaviour);
}

#define OWNED_BATCH(name) __attribute__((cleanup(batch_done))) batch name

/* ---- what was asked ---- */

static bool read_options(json_object *body, batch *b, cb_http_answer *answer)
{
    batch_request *r = cb_fields_new(&request_fields);
    cb_error e = { 0 };
    bool read = false;

    if (!r) {
        cb_http_error(answer, 503, "NO_MEMORY", "out of memory");
    } else if (!body) {
        cb_http_error(answer, 400, "MISSING_FIELD", "there is no body");
    } else if (!cb_fields_read(&request_fields, r, body, NULL, &e)) {
        cb_http_error(answer, 400, "INVALID_TYPE", "%s", e.message);
    } else if (r->name && (!*r->name || strlen(r->name) > LONGEST_NAME)) {
        cb_http_error(answer, 422, "INVALID_NAME", "a name has 1 to %d bytes", LONGEST_NAME);
    } else if (request_behaviour(r->behaviour, "", answer)) {
        b->name = r->name;
        b->behaviour = r->behaviour;
        b->execute_immediately = r->execute_immediately;
        r->name = NULL;
        r->behaviour = NULL;
        read = true;
    }
    cb_fields_free(&request_fields, r);
    return read;
}

static cb_uuid member_id(const batch *b, size_t i)
{
    char place[24];

    snprintf(place, sizeof place, "%zu", i + 1);
    return cb_uuid_from_name(&b->id, place);
}

static bool read_member(batch *b, size_t i, json_object *said, cb_http_answer *answer)
{
    member *m = &b->members[i];
    char where[40];

    snprintf(where, sizeof where, "payments[%zu]: ", i);
    if (!json_object_is_type(said, json_type_object)) {
        cb_http_error(answer, 400, "INVALID_TYPE", "%sa payment is a JSON object", where);
        return false;
    }
    if (!request_payment(said, where, &m->asked, answer))
        return false;
    payment *p = m->asked.facts;
    if (!p->behaviour)
        p->behaviour = json_object_get(b->behaviour);
    m->id = p->payment_id = member_id(b, i);
    p->status = PAYMENT_APPROVED;
    if ((m->state = cb_fields_write(&payment_fields, p)))
        return true;
    cb_http_error(answer, 503, "NO_MEMORY", "out of memory");
    return false;
}

static bool read_members(json_object *body, batch *b, cb_http_answer *answer)
{
    json_object *list = NULL;
    size_t n, most = b->execute_immediately ? MOST_HERE : MOST;

    json_object_object_get_ex(body, "payments", &list);
    if (!json_object_is_type(list, json_type_array)) {
        cb_http_error(answer, 400, list ? "INVALID_TYPE" : "MISSING_FIELD",
                      "payments must be a list of payments");
        return false;
    }
    n = json_object_array_length(list);
    if (n == 0 || n > most) {
        cb_http_error(answer, 422, n == 0 ? "BATCH_EMPTY" : "BATCH_TOO_LARGE",
                      "a batch has 1 to %zu payments%s", most,
                      b->execute_immediately ? " where they are executed immediately" : "");
        return false;
    }
    if (!(b->members = calloc(n, sizeof *b->members))) {
        cb_http_error(answer, 503, "NO_MEMORY", "out of memory");
        return false;
    }
    b->n = n;
    for (size_t i = 0; i < n; i++) {
        if (!read_member(b, i, json_object_array_get_idx(list, i), answer))
            return false;
    }
    return true;
}

/* ---- rows ---- */

/* As payments.draft_all reads it; NULL without memory. */
static json_object *drafts_of(const batch *b)
{
    json_object *list = json_object_new_array();

    for (size_t i = 0; list && i < b->n; i++) {
        const payment *p = b->members[i].asked.facts;
        char amount[CB_DECIMAL_TEXT] = "";
        const struct {
            const char *name, *value;
        } texts[] = {
            { "processId", b->members[i].id.text },
            { "debitAccount", p->debit_account },
            { "creditAccount", p->credit_account },
            { "debitAmount", amount },
            { "debitCurrency", p->debit_currency },
            { "creditCurrency", p->credit_currency },
            { "valueDate", p->value_date },
            { "cutoff", *b->members[i].asked.cutoff ? b->members[i].asked.cutoff : NULL },
        };
        json_object *one = json_object_new_object();
        if (!payment_amount(&p->debit_amount, p->debit_currency, amount))
            amount[0] = '\0'; /* cannot be: it was checked; no number is refused */
        for (size_t k = 0; k < CB_COUNT(texts); k++) {
            if (texts[k].value)
                json_object_object_add(one, texts[k].name, json_object_new_string(texts[k].value));
        }
        json_object_array_add(list, one);
    }
    return list;
}

/* *known: how many were there already, with these facts. */
static bool draft_all(const cb_http_request *request, batch *b, size_t *known,
                      cb_http_answer *answer)
{
    OWNED(json_object) list = drafts_of(b);
    const char *text = list ? json_object_to_json_string_ext(list, JSON_C_TO_STRING_PLAIN) : NULL;
    OWNED(PGresult) rows = NULL;

    if (!text) {
        cb_http_error(answer, 503, "NO_MEMORY", "out of memory");
        return false;
    }
    if (!request_ask(request, "SELECT verdict, cutoff_at FROM payments.draft_all($1::jsonb)", 1,
                     &text, &rows, answer))
        return false;
    for (size_t i = 0; i < b->n; i++) {
        const char *verdict = PQgetvalue(rows, (int)i, 0);
        char where[40];
        snprintf(where, sizeof where, "payments[%zu]: ", i);
        if (request_refuse(verdict, where, answer))
            return false;
        *known += strcmp(verdict, "NEW") != 0;
        snprintf(b->members[i].deadline, sizeof b->members[i].deadline, "%s",
                 PQgetvalue(rows, (int)i, 1));
    }
    return true;
}

/* Whether the payments that were there already are all of the batch that the key made. */
static bool is_the_same(const cb_http_request *request, const batch *b, size_t known,
                        cb_http_answer *answer)
{
    const cb_uuid beyond = member_id(b, b->n);
    const char *id = beyond.text;
    OWNED(PGresult) row = NULL;

    if (!request_ask(request, "SELECT EXISTS (SELECT FROM payments.payment WHERE process_id = $1)",
                     1, &id, &row, answer))
        return false;
    if (known == b->n && strcmp(PQgetvalue(row, 0, 0), "f") == 0)
        return true;
    cb_http_error(answer, 409, "IDEMPOTENCY_KEY_REUSED",
                  "this Idempotency-Key belongs to a batch of more or fewer payments");
    return false;
}

/* ---- processes ---- */

static bool start_members(const cb_http_request *request, const batch *b, const char *leased_by,
                          cb_error *e)
{
    const char **texts = calloc(3 * b->n, sizeof *texts);
    bool started = false;

    if (!texts)
        return cb_fail(e, CB_MEMORY, "out of memory");
    const char **ids = texts + b->n, **deadlines = ids + b->n;
    for (size_t i = 0; i < b->n; i++) {
        texts[i] = json_object_to_json_string_ext(b->members[i].state, JSON_C_TO_STRING_PLAIN);
        ids[i] = b->members[i].id.text;
        deadlines[i] = b->members[i].deadline;
    }
    started = cb_start_batch(request->db,
                             &(cb_start_batch_options){ .process_type = payment_step.name,
                                                        .name = b->name,
                                                        .batch_id = b->id.text,
                                                        .process_ids = ids,
                                                        .deadlines = deadlines,
                                                        .leased_by = leased_by,
                                                        .lease_seconds = LEASE_SECONDS },
                             texts, b->n, NULL, e);
    free(texts);
    return started;
}

static time_t now_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    return t.tv_sec;
}

/* Each until it waits. What there is no time for, workers take up when the lease is over. */
static void execute_all(const cb_http_request *request, const batch *b, const char *leased_by)
{
    time_t until = now_seconds() + LEASE_SECONDS / 2;
    cb_error e;

    for (size_t i = 0; i < b->n && now_seconds() < until; i++)
        (void)cb_process_run_leased(request->db, request->types, b->members[i].id.text, leased_by,
                                    LEASE_SECONDS, NULL, &e);
}

static bool not_started(cb_http_answer *answer)
{
    cb_http_error(answer, 503, "NOT_STARTED", "the batch was not started: ask again");
    return false;
}

/* *is_new: it was not there before. */
static bool submit(const cb_http_request *request, batch *b, bool *is_new, cb_http_answer *answer)
{
    char leased_by[256];
    size_t known = 0;
    cb_error e = { 0 };

    cb_process_types_caller(request->types, leased_by, sizeof leased_by);
    if (!cb_process_types_register(request->db, request->types, payment_step.name, &e) ||
        !cb_db_begin(request->db, &e))
        return not_started(answer);
    if (!draft_all(request, b, &known, answer) ||
        (known > 0 && !is_the_same(request, b, known, answer)))
        return false;
    *is_new = known == 0;
    if (*is_new && !start_members(request, b, b->execute_immediately ? leased_by : NULL, &e))
        return not_started(answer);
    if (*is_new && !cb_db_commit(request->db, &e)) {
        request_unknown(request, "batch", &b->id, answer);
        return false;
    }
    if (*is_new && b->execute_immediately)
        execute_all(request, b, leased_by);
    return true;
}

static void tell(const batch *b, bool is_new, cb_http_answer *answer)
{
    json_object *ids = json_object_new_array();

    for (size_t i = 0; i < b->n; i++)
        json_object_array_add(ids, json_object_new_string(b->members[i].id.text));
    answer->status = is_new ? 202 : 200;
    answer->body = json_object_new_object();
    json_object_object_add(answer->body, "batchId", json_object_new_string(b->id.text));
    json_object_object_add(answer->body, "name", b->name ? json_object_new_string(b->name) : NULL);
    json_object_object_add(answer->body, "total", json_object_new_int64((int64_t)b->n));
    json_object_object_add(answer->body, "processIds", ids);
}

void route_batch(const cb_http_request *request, cb_http_answer *answer)
{
    OWNED_BATCH(b) = { 0 };
    bool is_new = false;

    if (!request_id(request, &key_space, &b.id, answer) ||
        !read_options(request->body, &b, answer) || !read_members(request->body, &b, answer))
        return;
    bool submitted = submit(request, &b, &is_new, answer);
    cb_db_rollback(request->db, NULL); /* of what was refused, or there before */
    if (submitted)
        tell(&b, is_new, answer);
}
