/* Process rows: a claim is its result, and an array of structs that borrow from it. */
#include "process_rows.h"

#include <stdlib.h>
#include <string.h>

#include "fail.h"

/* The columns of claim_processes.sql and read_process.sql. */
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

bool process_rows_left_some(const PGresult *result)
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

bool process_rows_adopt(PGresult *raw, cb_process_claim **ret, cb_error *e)
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

bool process_kind_arrays(const cb_process_kind *kinds, size_t n, buffer *types, buffer *versions,
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
