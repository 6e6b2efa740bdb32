/* Claiming commands. Results come in binary: numbers and ids need no parsing, payloads are borrowed
 * from the result, and a claim is one allocation beside it. */
#include <commandbus/receive.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cb_sql.h"
#include "claim.h"
#include "defaults.h"
#include "fail.h"
#include "statements.h"
#include "uuid_bytes.h"
#include "wire.h"

/* The columns of receive (queries/lease.sql). */
enum {
    EVENT,
    COMMAND_ID,
    MSG_ID,
    LEASE_NO,
    ATTEMPT,
    MAX_ATTEMPTS,
    TIMEOUT_SECONDS,
    COMMAND_TYPE,
    CORRELATION_ID,
    REPLY_TO,
    BATCH_ID,
    WAITED_US,
    VISIBLE_AT,
    HEADERS,
    DATA,
    COLUMNS,
};

/* A place before everything: timestamptz '-infinity'. */
static const int64_t from_the_start = INT64_MIN;

/* A sender may commit so long after its message became visible: so far, in microseconds, a claim
 * looks back when the last one was not a full one. Under a fleet limit hardly any is. */
static const int64_t look_back = 500000;

/* Claims begin at the start so often, and less often when that takes long because many dead entries
 * lie there: it never takes more than a hundredth of the time. */
static const double start_over_seconds = 1, start_over_seconds_most = 15;
enum {
    START_OVER_SHARE = 100
};

struct cb_receiver {
    char *domain;
    char *worker;
    cb_receive_options options; /* its worker is not used: it may not live as long */
    int64_t after;              /* where the last claim that found something ended */
    bool full;                  /* it got all it asked for: nothing before that place is left */
    double started_over;  /* when a claim last began at the start (CLOCK_MONOTONIC, seconds) */
    double start_over_in; /* and how long until the next one may */
    double usual;         /* seconds that a claim takes which begins elsewhere */
    double longer;        /* seconds that the last one from the start took longer */
};

static const int64_t default_claim_bytes = 32 * 1024 * 1024;

void cb_receiver_claim_bytes(cb_receiver *r, int64_t claim_bytes)
{
    r->options.claim_bytes = claim_bytes ? claim_bytes : default_claim_bytes;
}

bool cb_receiver_open(const char *domain, const cb_receive_options *options, cb_receiver **ret,
                      cb_error *e)
{
    if (!domain || !options || !options->worker)
        return cb_fail(e, CB_MISUSE, "a receiver needs a domain and the name of its worker");

    OWNED(cb_receiver) r = calloc(1, sizeof *r);
    if (!r)
        return fail_memory(e);
    r->options = *options;
    r->options.worker = NULL;
    if (r->options.vt_seconds == 0)
        r->options.vt_seconds = DEFAULT_VISIBILITY_SECONDS;
    if (r->options.default_max_attempts == 0)
        r->options.default_max_attempts = DEFAULT_MAX_ATTEMPTS;
    if (r->options.default_timeout_seconds == 0)
        r->options.default_timeout_seconds = DEFAULT_HANDLER_TIMEOUT_SECONDS;
    cb_receiver_claim_bytes(r, options->claim_bytes);
    r->after = from_the_start;
    r->domain = strdup(domain);
    r->worker = strdup(options->worker);
    if (!r->domain || !r->worker)
        return fail_memory(e);
    *ret = cb_receiver_take(&r);
    return true;
}

void cb_receiver_free(cb_receiver *r)
{
    if (!r)
        return;
    free(r->domain);
    free(r->worker);
    free(r);
}

typedef struct {
    cb_command command;
    char batch_id[37];
} claimed;

struct cb_claim {
    PGresult *result; /* holds what the commands borrow */
    char *domain;     /* the receiver may go before the claim */
    size_t count;
    size_t poisoned;
    size_t exhausted;
    bool more;
    claimed rows[];
};

void cb_claim_free(cb_claim *claim)
{
    if (!claim)
        return;
    PQclear(claim->result);
    free(claim->domain);
    free(claim);
}

/* Of the values in binary: how long each is, or at least is; a column that is not here has text. */
static const struct {
    int column;
    int bytes;
    bool or_more; /* jsonb: a version, and the text */
} widths[] = {
    { COMMAND_ID, 16, false },     { MSG_ID, 8, false },       { LEASE_NO, 8, false },
    { ATTEMPT, 4, false },         { MAX_ATTEMPTS, 4, false }, { TIMEOUT_SECONDS, 4, false },
    { CORRELATION_ID, 16, false }, { BATCH_ID, 16, false },    { WAITED_US, 8, false },
    { VISIBLE_AT, 8, false },      { HEADERS, 1, true },       { DATA, 1, true },
};

/* Whether every value is of the type that it is read as: a function of another release may have
 * others. */
static bool row_is_sound(const PGresult *result, int row)
{
    bool is_command = PQgetisnull(result, row, EVENT);

    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        int bytes = PQgetlength(result, row, widths[i].column);
        if (!PQgetisnull(result, row, widths[i].column) &&
            (widths[i].or_more ? bytes < widths[i].bytes : bytes != widths[i].bytes))
            return false;
    }
    return !is_command ||
           !(PQgetisnull(result, row, COMMAND_ID) || PQgetisnull(result, row, COMMAND_TYPE) ||
             PQgetisnull(result, row, DATA));
}

static const char *text_at(const PGresult *result, int row, int column)
{
    return PQgetisnull(result, row, column) ? NULL : PQgetvalue(result, row, column);
}

/* A jsonb in binary is a version, 1, and the text. */
static const char *json_at(const PGresult *result, int row, int column)
{
    const char *value = text_at(result, row, column);

    return value ? value + 1 : NULL;
}

static int64_t int64_at(const PGresult *result, int row, int column)
{
    const char *value = text_at(result, row, column);

    return value ? (int64_t)wire_get64(value) : 0;
}

static int int_at(const PGresult *result, int row, int column)
{
    const char *value = text_at(result, row, column);

    return value ? (int)(int32_t)wire_get32(value) : 0;
}

static bool uuid_at(const PGresult *result, int row, int column, char text[37])
{
    const char *value = text_at(result, row, column);

    text[0] = '\0';
    if (value)
        uuid_to_text((const unsigned char *)value, text);
    return value != NULL;
}

static void read_row(const PGresult *result, int row, const char *domain, claimed *to)
{
    cb_command *c = &to->command;

    uuid_at(result, row, COMMAND_ID, c->command_id.text);
    uuid_at(result, row, CORRELATION_ID, c->correlation_id.text);
    c->domain = domain;
    c->command_type = text_at(result, row, COMMAND_TYPE);
    c->data = json_at(result, row, DATA);
    c->headers = json_at(result, row, HEADERS);
    c->reply_to = text_at(result, row, REPLY_TO);
    c->batch_id = uuid_at(result, row, BATCH_ID, to->batch_id) ? to->batch_id : NULL;
    c->msg_id = int64_at(result, row, MSG_ID);
    c->lease_no = int64_at(result, row, LEASE_NO);
    c->attempt = int_at(result, row, ATTEMPT);
    c->max_attempts = int_at(result, row, MAX_ATTEMPTS);
    c->timeout_seconds = int_at(result, row, TIMEOUT_SECONDS);
    c->waited_us = int64_at(result, row, WAITED_US);
}

static double clock_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Where this claim starts: at the place where the last one ended, or a moment before it. From
 * the start now and then, so that what became due late is not passed over for ever. */
static int64_t place_to_start(const cb_receiver *r, double now)
{
    if (now - r->started_over >= r->start_over_in || r->after < from_the_start + look_back)
        return from_the_start;
    return r->full ? r->after : r->after - look_back;
}

/* A claim that took `took` seconds. What beginning at the start costs is what it takes longer than
 * others, and that twice in a row: a busy machine is no reason to look less often. */
static void note_claim(cb_receiver *r, bool at_start, double began, double took)
{
    if (!at_start) {
        r->usual += (took - r->usual) / 8;
        return;
    }
    double longer = took > 2 * r->usual ? took - 2 * r->usual : 0;
    double next = (longer < r->longer ? longer : r->longer) * START_OVER_SHARE;

    r->longer = longer;
    r->started_over = began;
    r->start_over_in = next < start_over_seconds        ? start_over_seconds
                       : next > start_over_seconds_most ? start_over_seconds_most
                                                        : next;
}

static int64_t place_reached(const PGresult *result, int rows)
{
    int64_t place = from_the_start;

    for (int i = 0; i < rows; i++) {
        if (!PQgetisnull(result, i, VISIBLE_AT) && int64_at(result, i, VISIBLE_AT) > place)
            place = int64_at(result, i, VISIBLE_AT);
    }
    return place;
}

bool claim_adopt(PGresult *raw, const char *domain, cb_claim **ret, cb_error *e)
{
    OWNED(PGresult) result = raw;
    int rows = PQntuples(result);

    if (PQnfields(result) != COLUMNS)
        return cb_fail(e, CB_SCHEMA, "receive answers %d columns", PQnfields(result));
    OWNED(cb_claim) claim = calloc(1, sizeof *claim + (size_t)rows * sizeof claim->rows[0]);
    if (!claim || !(claim->domain = strdup(domain)))
        return fail_memory(e);

    for (int i = 0; i < rows; i++) {
        if (!row_is_sound(result, i))
            return cb_fail(e, CB_SCHEMA, "receive answers with values of other types");
        const char *event = text_at(result, i, EVENT);
        if (!event)
            read_row(result, i, claim->domain, &claim->rows[claim->count++]);
        else if (strcmp(event, "POISON_ARCHIVED") == 0)
            claim->poisoned++;
        else if (strcmp(event, "LEASE_EXHAUSTED") == 0)
            claim->exhausted++;
        else if (strcmp(event, "MORE") == 0)
            claim->more = true;
    }
    claim->result = PGresult_take(&result);
    *ret = cb_claim_take(&claim);
    return true;
}

bool cb_receive(cb_db *db, cb_receiver *r, int quantity, cb_claim **ret, cb_error *e)
{
    OWNED(PGresult) result = NULL;
    params p = { 0 };
    double began = clock_now();
    int64_t start = place_to_start(r, began);

    if (quantity < 1)
        return cb_fail(e, CB_MISUSE, "cannot claim %d commands", quantity);
    params_text(&p, r->domain);
    params_text(&p, r->worker);
    params_int(&p, quantity);
    params_seconds(&p, r->options.vt_seconds);
    params_int(&p, r->options.default_max_attempts);
    params_int(&p, r->options.default_timeout_seconds);
    params_time(&p, start);
    params_int(&p, r->options.claim_bytes);
    if (!db_run(db, cb_sql_receive, &p, DB_BINARY, &result, e)) {
        r->start_over_in = 0;
        return false;
    }

    /* Adopted first: that checks what is read below. */
    if (!claim_adopt(PGresult_take(&result), r->domain, ret, e)) {
        r->start_over_in = 0;
        return false;
    }
    int rows = PQntuples((*ret)->result);
    note_claim(r, start == from_the_start, began, clock_now() - began);
    if (rows > 0)
        r->after = place_reached((*ret)->result, rows);
    r->full = rows >= quantity;
    return true;
}

size_t cb_claim_count(const cb_claim *claim)
{
    return claim->count;
}

const cb_command *cb_claim_at(const cb_claim *claim, size_t i)
{
    return &claim->rows[i].command;
}

size_t cb_claim_poisoned(const cb_claim *claim)
{
    return claim->poisoned;
}

size_t cb_claim_exhausted(const cb_claim *claim)
{
    return claim->exhausted;
}

bool cb_claim_more(const cb_claim *claim)
{
    return claim->more;
}

size_t cb_claim_bytes(const cb_claim *claim)
{
    return PQresultMemorySize(claim->result);
}
