/* Writing outcomes: one statement a domain, one transaction; and again by halves when the database
 * refuses one of them. */
#include <stdio.h>
#include <stdlib.h>

#include "cb_sql.h"
#include "fail.h"
#include "settle_call.h"
#include "utf8.h"

static const char *const outcome_names[] = {
    [CB_SUCCESS] = "SUCCESS",         [CB_TRANSIENT] = "TRANSIENT",
    [CB_PERMANENT] = "PERMANENT",     [CB_BUSINESS_RULE] = "BUSINESS_RULE",
    [CB_INTERRUPTED] = "INTERRUPTED",
};

static const char *const verdict_names[] = {
    [CB_SETTLED] = "SETTLED",
    [CB_ALREADY] = "ALREADY",
    [CB_BUSY] = "BUSY",
    [CB_STALE] = "STALE",
};
enum {
    VERDICTS = sizeof verdict_names / sizeof *verdict_names
};

const char *cb_outcome_name(cb_outcome outcome)
{
    size_t i = (size_t)outcome;

    return i < sizeof outcome_names / sizeof *outcome_names ? outcome_names[i] : NULL;
}

const char *cb_verdict_name(cb_verdict verdict)
{
    size_t i = (size_t)verdict;

    return i < VERDICTS ? verdict_names[i] : "UNKNOWN";
}

bool verdict_next(const char **at, cb_verdict *ret)
{
    size_t verdict;

    if (!words_next(at, verdict_names, VERDICTS, &verdict))
        return false;
    *ret = (cb_verdict)verdict;
    return true;
}

/* The array parameters of one statement, and whether any item has a value in them: one that is all
 * NULL is not sent. */
enum {
    IDS,
    LEASES,
    OUTCOMES,
    RESULTS,
    ERROR_CODES,
    ERROR_MESSAGES,
    RETRIES,
    STILL_RUNNING,
    ARRAYS,
};

static const array_type array_types[ARRAYS] = {
    [IDS] = ARRAY_UUID,       [LEASES] = ARRAY_INT8,        [OUTCOMES] = ARRAY_TEXT,
    [RESULTS] = ARRAY_JSONB,  [ERROR_CODES] = ARRAY_TEXT,   [ERROR_MESSAGES] = ARRAY_TEXT,
    [RETRIES] = ARRAY_FLOAT8, [STILL_RUNNING] = ARRAY_BOOL,
};

struct settle_arrays {
    buffer arrays[ARRAYS];
    bool used[ARRAYS];
};

static size_t statement_count(const settle_call *call)
{
    return call->before + call->by_domain.count;
}

void settle_call_done(settle_call *call)
{
    for (size_t g = 0; call->arrays && g < call->by_domain.count; g++) {
        for (int a = 0; a < ARRAYS; a++)
            buffer_done(&call->arrays[g].arrays[a]);
    }
    if (call->statements)
        pipeline_done(call->statements, statement_count(call));
    free(call->arrays);
    free(call->statements);
    domain_groups_done(&call->by_domain);
}

static bool settle_arrays_add(settle_arrays *to, const cb_settlement *item, cb_error *e)
{
    const char *outcome = cb_outcome_name(item->outcome);

    if (!outcome)
        return cb_fail(e, CB_MISUSE, "invalid outcome %d", (int)item->outcome);
    if (!array_add_uuid(&to->arrays[IDS], item->command_id.text))
        return cb_fail(e, CB_MISUSE, "its command_id is not a UUID");
    array_add_int8(&to->arrays[LEASES], item->lease_no);
    array_add_text(&to->arrays[OUTCOMES], outcome);
    array_add_jsonb(&to->arrays[RESULTS], item->result);
    array_add_text(&to->arrays[ERROR_CODES], item->error_code);
    array_add_text(&to->arrays[ERROR_MESSAGES], item->error_message);
    array_add_float8(&to->arrays[RETRIES], item->retry_seconds);
    array_add_bool(&to->arrays[STILL_RUNNING], item->still_running);
    to->used[RESULTS] |= item->result != NULL;
    to->used[ERROR_CODES] |= item->error_code != NULL;
    to->used[ERROR_MESSAGES] |= item->error_message != NULL;
    to->used[RETRIES] |= item->retry_seconds != 0;
    to->used[STILL_RUNNING] |= item->still_running;
    return true;
}

static bool fill_arrays(settle_call *call, const cb_settlement *items, size_t n, cb_error *e)
{
    for (size_t g = 0; g < call->by_domain.count; g++) {
        settle_arrays *to = &call->arrays[g];
        for (int a = 0; a < ARRAYS; a++)
            array_begin(&to->arrays[a], array_types[a], call->by_domain.sizes[g]);
        to->used[IDS] = to->used[LEASES] = to->used[OUTCOMES] = true;
    }
    for (size_t i = 0; i < n; i++) {
        if (!settle_arrays_add(&call->arrays[call->by_domain.group_of[i]], &items[i], e))
            return cb_fail_while(e, "settling item %zu of %zu", i + 1, n);
    }
    return true;
}

static bool fill_statements(settle_call *call, const char *worker, cb_error *e)
{
    for (size_t g = 0; g < call->by_domain.count; g++) {
        const settle_arrays *from = &call->arrays[g];
        pipeline_statement *s = &call->statements[call->before + g];
        s->sql = call->sql;
        params_text(&s->p, call->by_domain.domains[g]);
        params_text(&s->p, worker);
        for (int a = 0; a < ARRAYS; a++) {
            if (from->arrays[a].failed)
                return fail_memory(e);
            if (from->used[a])
                params_array(&s->p, &from->arrays[a]);
            else
                params_text(&s->p, NULL);
        }
    }
    return true;
}

/* The verdicts of each domain come in the order of its items. */
static bool read_verdicts(const settle_call *call, cb_settlement *items, size_t n, cb_error *e)
{
    for (size_t g = 0; g < call->by_domain.count; g++) {
        const PGresult *result = call->statements[call->before + g].result;
        const char *at = PQntuples(result) == 1 ? PQgetvalue(result, 0, 0) : "";
        for (size_t i = 0; i < n; i++) {
            if (call->by_domain.group_of[i] != g)
                continue;
            if (!verdict_next(&at, &items[i].verdict))
                return cb_fail(e, CB_SERVER, "settle gave no verdict on item %zu", i + 1);
        }
    }
    return true;
}

void settle_close_batches(cb_db *db, const PGresult *answer)
{
    params p = { 0 };

    if (db->lost || db_in_transaction(db) || PQgetisnull(answer, 0, 1))
        return;
    params_text(&p, PQgetvalue(answer, 0, 1));
    (void)db_do(db, cb_sql_close_batches, &p, NULL);
}

bool settle_call_make(settle_call *call, const char *worker, const cb_settlement *items, size_t n,
                      cb_error *e)
{
    if (!worker)
        return cb_fail(e, CB_MISUSE, "settling needs the name of the worker");
    if (!domain_groups_make(&call->by_domain, items, n, sizeof *items,
                            offsetof(cb_settlement, domain), e))
        return false;
    call->arrays = calloc(call->by_domain.count, sizeof *call->arrays);
    call->statements = calloc(statement_count(call), sizeof *call->statements);
    if (!call->arrays || !call->statements)
        return fail_memory(e);
    return fill_arrays(call, items, n, e) && fill_statements(call, worker, e);
}

bool settle_call_run(settle_call *call, cb_db *db, cb_settlement *items, size_t n, cb_error *e)
{
    if (!pipeline_run(db, DB_WRITES, call->statements, statement_count(call), e) ||
        !read_verdicts(call, items, n, e))
        return false;
    for (size_t g = 0; g < call->by_domain.count; g++)
        settle_close_batches(db, call->statements[call->before + g].result);
    return true;
}

bool cb_settle(cb_db *db, const char *worker, cb_settlement *items, size_t n, cb_error *e)
{
    OWNED_SETTLE_CALL(call) = { .sql = cb_sql_settle };

    return n == 0 || (settle_call_make(&call, worker, items, n, e) &&
                      settle_call_run(&call, db, items, n, e));
}

/* ---- halving a batch that the database refuses ---- */

/* Items that the database takes in no form at all. More of them than this in one call is no matter
 * of items any more, and looking for further ones would only load a server in trouble. */
static const size_t most_unsettled = 4;

/* Or would every call get it? */
static bool concerns_an_item(cb_code code)
{
    return code == CB_DATA || code == CB_SERVER || code == CB_MISUSE || cb_code_is_refusal(code);
}

/* False to stop at once, with the reason in *why. */
static bool refuse_item(const settle_kind *kind, settle_run *run, void *item, cb_error *why)
{
    if (kind->replace(run, item, why))
        return true;
    if (!concerns_an_item(why->code))
        return false;
    run->error = *why;
    return ++run->unsettled <= most_unsettled;
}

static bool settle_halves(const settle_kind *kind, settle_run *run, char *items, size_t n,
                          cb_error *why)
{
    if (kind->settle(run, items, n, why))
        return true;
    if (!concerns_an_item(why->code))
        return false;
    if (n == 1)
        return refuse_item(kind, run, items, why);
    return settle_halves(kind, run, items, n / 2, why) &&
           settle_halves(kind, run, items + n / 2 * kind->item_size, n - n / 2, why);
}

bool settle_each(const settle_kind *kind, cb_db *db, const char *worker, void *items, size_t n,
                 size_t *refused, cb_error *e)
{
    settle_run run = { .db = db, .worker = worker };
    cb_error why = { 0 };

    if (refused)
        *refused = 0;
    if (!db_is_ready(db, e))
        return false;
    if (db_in_transaction(db))
        return cb_fail(e, CB_MISUSE, "settling each item needs its own transactions, one is open");

    bool fine = settle_halves(kind, &run, items, n, &why);
    if (refused)
        *refused = run.refused;
    if (fine && run.unsettled == 0)
        return true;
    if (e)
        *e = fine ? run.error : why;
    return false;
}

static bool settle_commands(const settle_run *run, void *items, size_t n, cb_error *e)
{
    return cb_settle(run->db, run->worker, items, n, e);
}

/* As a permanent failure with the database's reason. */
static bool replace_command(settle_run *run, void *refused, cb_error *why)
{
    cb_settlement *item = refused, instead = *item;
    char message[200];

    snprintf(message, sizeof message, "the database refused the outcome: %s%s%.120s", why->sqlstate,
             *why->sqlstate ? ", " : "", why->message);
    utf8_trim(message);
    instead.outcome = CB_PERMANENT;
    instead.result = NULL;
    instead.error_code = "SETTLE_REFUSED";
    instead.error_message = message;
    instead.retry_seconds = 0; /* it may have been the culprit: NaN, or beyond any calendar */
    if (!cb_settle(run->db, run->worker, &instead, 1, why))
        return false;
    item->verdict = instead.verdict;
    run->refused++;
    return true;
}

bool cb_settle_each(cb_db *db, const char *worker, cb_settlement *items, size_t n, size_t *refused,
                    cb_error *e)
{
    static const settle_kind commands = { sizeof *items, settle_commands, replace_command };

    return settle_each(&commands, db, worker, items, n, refused, e);
}
