/* Process rows: a claim is its result, and an array of structs that borrow from it; one look
 * delivers replies, claims what is due and asks for the next timer. */
#include <commandbus/process_row.h>
#include <stdlib.h>
#include <string.h>

#include "cb_sql.h"
#include "defaults.h"
#include "fail.h"
#include "statements.h"
#include "uuid_bytes.h"

/* The columns of claim_processes and read_process (queries/process_run.sql). */
enum {
    PROCESS_ID,
    DOMAIN,
    PROCESS_TYPE,
    REPLY_QUEUE,
    STATUS,
    PHASE,
    ERROR_CODE,
    ERROR_MESSAGE,
    CURRENT_STEP,
    CURRENT_WAIT,
    VERSION,
    LEASE_NO,
    SETTLE_NO,
    UNSETTLED,
    INBOX_SEQ,
    NOW_MS,
    CREATED_MS,
    DEADLINE_MS,
    RETRY_MS,
    WAIT_TIMEOUT_MS,
    DEADLINE_SPENT,
    LEAVING,
    INITIAL_STATE,
    STATE,
    HISTORY,
    INBOX,
    WAITED_US,
    CONTENT_LIMIT,
    TOO_LARGE,
    MORE,
    COLUMNS,
};

struct cb_process_claim {
    PGresult *result; /* holds what the rows borrow */
    size_t count;
    size_t bytes; /* of states, histories and inboxes */
    cb_process_row rows[];
};

void cb_process_claim_free(cb_process_claim *claim)
{
    if (!claim)
        return;
    PQclear(claim->result);
    free(claim);
}

size_t cb_process_claim_count(const cb_process_claim *claim)
{
    return claim->count;
}

size_t cb_process_claim_bytes(const cb_process_claim *claim)
{
    return claim->bytes;
}

const cb_process_row *cb_process_claim_at(const cb_process_claim *claim, size_t i)
{
    return &claim->rows[i];
}

/* True when some that were due were left because of their size. */
static bool process_rows_left_some(const PGresult *result)
{
    return PQntuples(result) > 0 && *PQgetvalue(result, 0, MORE) == 't';
}

static const char *text_at(const PGresult *result, int row, int column)
{
    return PQgetisnull(result, row, column) ? NULL : PQgetvalue(result, row, column);
}

static int64_t int_at(const PGresult *result, int row, int column)
{
    return strtoll(PQgetvalue(result, row, column), NULL, 10); /* NULL is "", which is 0 */
}

static void read_row(const PGresult *result, int row, cb_process_row *to)
{
    memcpy(to->process_id.text, PQgetvalue(result, row, PROCESS_ID), sizeof to->process_id.text);
    to->domain = text_at(result, row, DOMAIN);
    to->process_type = text_at(result, row, PROCESS_TYPE);
    to->reply_queue = text_at(result, row, REPLY_QUEUE);
    to->status = text_at(result, row, STATUS);
    to->phase = text_at(result, row, PHASE);
    to->error_code = text_at(result, row, ERROR_CODE);
    to->error_message = text_at(result, row, ERROR_MESSAGE);
    to->current_step = text_at(result, row, CURRENT_STEP);
    to->current_wait = text_at(result, row, CURRENT_WAIT);
    to->version = (int)int_at(result, row, VERSION);
    to->lease_no = int_at(result, row, LEASE_NO);
    to->settle_no = int_at(result, row, SETTLE_NO);
    to->unsettled = (int)int_at(result, row, UNSETTLED);
    to->inbox_seq = int_at(result, row, INBOX_SEQ);
    to->now_ms = int_at(result, row, NOW_MS);
    to->created_ms = int_at(result, row, CREATED_MS);
    to->deadline_ms = int_at(result, row, DEADLINE_MS);
    to->retry_ms = int_at(result, row, RETRY_MS);
    to->wait_timeout_ms = int_at(result, row, WAIT_TIMEOUT_MS);
    to->deadline_spent = *PQgetvalue(result, row, DEADLINE_SPENT) == 't';
    to->leaving = text_at(result, row, LEAVING);
    to->initial_state = text_at(result, row, INITIAL_STATE);
    to->state = text_at(result, row, STATE);
    to->history = text_at(result, row, HISTORY);
    to->inbox = text_at(result, row, INBOX);
    to->waited_us = int_at(result, row, WAITED_US);
    to->content_limit = int_at(result, row, CONTENT_LIMIT);
    to->too_large = int_at(result, row, TOO_LARGE);
}

/* Adopts a result in text, also on failure. NULL is a claim of nothing. */
static bool process_rows_adopt(PGresult *raw, cb_process_claim **ret, cb_error *e)
{
    OWNED(PGresult) result = raw;
    int rows = PQntuples(result);

    if (result && PQnfields(result) != COLUMNS)
        return cb_fail(e, CB_SCHEMA, "a process comes in %d columns", PQnfields(result));
    OWNED(cb_process_claim) claim = calloc(1, sizeof *claim + (size_t)rows * sizeof *claim->rows);
    if (!claim)
        return fail_memory(e);

    for (int i = 0; i < rows; i++) {
        if (PQgetlength(result, i, PROCESS_ID) != (int)sizeof(cb_uuid) - 1)
            return cb_fail(e, CB_SERVER, "a process came without its id");
        read_row(result, i, &claim->rows[claim->count++]);
        for (int column = INITIAL_STATE; column <= INBOX; column++)
            claim->bytes += (size_t)PQgetlength(result, i, column);
    }
    claim->result = PGresult_take(&result);
    *ret = cb_process_claim_take(&claim);
    return true;
}

/* ---- one look at processes ---- */

/* The names and the versions of the types, as array parameters. */
static bool kind_arrays(const cb_process_kind *kinds, size_t n, buffer *types, buffer *versions,
                        cb_error *e)
{
    array_begin(types, ARRAY_TEXT, n);
    array_begin(versions, ARRAY_INT8, n);
    for (size_t i = 0; i < n; i++) {
        if (!kinds[i].process_type)
            return cb_fail(e, CB_MISUSE, "a process type needs a name");
        array_add_text(types, kinds[i].process_type);
        array_add_int8(versions, kinds[i].version);
    }
    return types->failed || versions->failed ? fail_memory(e) : true;
}

/* The columns of deliver_replies (queries/process_run.sql). */
enum {
    DELIVERED,
    LATE,
    DEAD_LETTERED,
    TAKEN,
    LOCKED,
};

/* Who has a process locked has it for a moment: its reply is worth another look soon, but not
 * before the worker looks for replies again (longest_without_replies_ns of its claimer). */
static const double look_again_seconds = 0.02;

static const int64_t default_claim_bytes = 8 * 1024 * 1024;

/* Everything about one look, freed together. The statements: one a queue, the claim unless the
 * caller has no room, the next timer; what the caller does not want is left out. */
typedef struct {
    buffer types;
    buffer versions;
    pipeline_statement *statements;
    size_t n, n_replies;
    const pipeline_statement *claim, *timer; /* NULL: not asked for */
} look_call;

static void look_call_done(look_call *call)
{
    buffer_done(&call->types);
    buffer_done(&call->versions);
    if (call->statements)
        pipeline_done(call->statements, call->n);
    free(call->statements);
}

static void add_replies(look_call *call, const cb_process_claim_options *o, const char *queue)
{
    pipeline_statement *s = &call->statements[call->n++];

    s->sql = cb_sql_deliver_replies;
    params_text(&s->p, queue);
    params_text(&s->p, o->worker);
    params_int(&s->p, o->most_replies ? o->most_replies : 100);
    params_seconds(&s->p,
                   o->reply_grace_seconds ? o->reply_grace_seconds : DEFAULT_REPLY_GRACE_SECONDS);
    call->n_replies++;
}

static void add_claim(look_call *call, const cb_process_claim_options *o, int quantity)
{
    pipeline_statement *s = &call->statements[call->n++];

    s->sql = cb_sql_claim_processes;
    params_text(&s->p, o->worker);
    params_array(&s->p, &call->types);
    params_array(&s->p, &call->versions);
    params_int(&s->p, quantity);
    params_seconds(&s->p, o->vt_seconds ? o->vt_seconds : DEFAULT_VISIBILITY_SECONDS);
    params_int(&s->p, o->claim_bytes ? o->claim_bytes : default_claim_bytes);
    call->claim = s;
}

static void add_timer(look_call *call, const cb_process_claim_options *o)
{
    pipeline_statement *s = &call->statements[call->n++];

    s->sql = cb_sql_next_process_wake;
    params_array(&s->p, &call->types);
    params_array(&s->p, &call->versions);
    params_seconds(&s->p, o->vt_seconds ? o->vt_seconds : DEFAULT_VISIBILITY_SECONDS);
    call->timer = s;
}

static int64_t count_at(const PGresult *result, int column)
{
    return PQntuples(result) == 1 ? strtoll(PQgetvalue(result, 0, column), NULL, 10) : 0;
}

static void read_look(const look_call *call, const cb_process_claim_options *o,
                      cb_process_look *look)
{
    const PGresult *next = call->timer ? call->timer->result : NULL;
    bool locked = false;

    *look = (cb_process_look){ .next_seconds = -1 };
    if (PQntuples(next) == 1 && !PQgetisnull(next, 0, 0))
        look->next_seconds = strtod(PQgetvalue(next, 0, 0), NULL);
    for (size_t i = 0; i < call->n_replies; i++) {
        const PGresult *r = call->statements[i].result;
        int64_t gone = count_at(r, DELIVERED) + count_at(r, LATE) + count_at(r, DEAD_LETTERED);
        look->delivered += count_at(r, DELIVERED);
        look->late += count_at(r, LATE);
        look->dead_lettered += count_at(r, DEAD_LETTERED);
        look->more_replies |=
            gone > 0 && count_at(r, TAKEN) >= (o->most_replies ? o->most_replies : 100);
        locked |= count_at(r, LOCKED) > 0;
    }
    look->more_processes = call->claim && process_rows_left_some(call->claim->result);
    if (locked && (look->next_seconds < 0 || look->next_seconds > look_again_seconds))
        look->next_seconds = look_again_seconds;
}

bool cb_process_claim_due(cb_db *db, const cb_process_claim_options *options, int quantity,
                          cb_process_claim **ret, cb_process_look *look, cb_error *e)
{
    __attribute__((cleanup(look_call_done))) look_call call = { 0 };
    PGresult *rows = NULL;

    if (!options->worker || quantity < 0)
        return cb_fail(e, CB_MISUSE, "a claim of processes needs the name of its worker and room");
    call.statements = calloc(options->n_reply_queues + 2, sizeof *call.statements);
    if (!call.statements)
        return fail_memory(e);
    if (!kind_arrays(options->kinds, options->n_kinds, &call.types, &call.versions, e))
        return false;
    for (size_t i = 0; !options->leave_replies && i < options->n_reply_queues; i++)
        add_replies(&call, options, options->reply_queues[i]);
    if (quantity > 0)
        add_claim(&call, options, quantity);
    if (!options->leave_timer)
        add_timer(&call, options);

    if (!pipeline_run(db, DB_WRITES, call.statements, call.n, e))
        return false;
    if (look)
        read_look(&call, options, look);
    if (call.claim)
        rows = PGresult_take((PGresult **)&call.claim->result);
    return process_rows_adopt(rows, ret, e);
}

bool cb_process_deliver_former(cb_db *db, const cb_process_claim_options *options,
                               int64_t *delivered, cb_error *e)
{
    OWNED(PGresult) result = NULL;
    OWNED_BUFFER(types);
    OWNED_BUFFER(versions);
    params p = { 0 };

    *delivered = 0;
    if (!kind_arrays(options->kinds, options->n_kinds, &types, &versions, e))
        return false;
    params_text(&p, options->worker);
    params_array(&p, &types);
    params_seconds(&p, options->reply_grace_seconds ? options->reply_grace_seconds
                                                    : DEFAULT_REPLY_GRACE_SECONDS);
    if (!db_run(db, cb_sql_deliver_former_replies, &p, DB_TEXT, &result, e))
        return false;
    *delivered = count_at(result, 0);
    return true;
}

/* ---- as they are, for reading only ---- */

bool cb_process_read(cb_db *db, const char *process_id, cb_process_claim **ret, cb_error *e)
{
    OWNED(PGresult) result = NULL;
    params p = { 0 };

    if (!uuid_check(process_id ? process_id : "", "process_id", e))
        return false;
    params_text(&p, process_id);
    if (!db_read(db, cb_sql_read_process, &p, &result, e))
        return false;
    if (PQntuples(result) != 1) {
        cb_fail(e, CB_PROCESS_NOT_FOUND, "there is no process %s", process_id);
        return fail_hint(e, "Check the id: commandbus process list.");
    }
    return process_rows_adopt(PGresult_take(&result), ret, e);
}

bool cb_process_running(cb_db *db, const char *process_type, const char *after, cb_uuid *ids,
                        size_t room, size_t *n, cb_error *e)
{
    OWNED(PGresult) result = NULL;
    params p = { 0 };

    params_text(&p, process_type);
    params_text(&p, after);
    params_int(&p, room < INT32_MAX ? (int64_t)room : INT32_MAX);
    if (!db_read(db, cb_sql_running_processes, &p, &result, e))
        return false;
    *n = 0;
    for (int i = 0; i < PQntuples(result) && *n < room; i++) {
        if (!cb_uuid_parse(PQgetvalue(result, i, 0), &ids[(*n)++]))
            return cb_fail(e, CB_SERVER, "a process came without its id");
    }
    return true;
}
