/* Looking up commands, batches, queues and processes: result tables, a PGresult with a
 * friendlier face. */
#include <commandbus/process_query.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cb_sql.h"
#include "fail.h"
#include "rows.h"
#include "uuid_bytes.h"

struct cb_rows {
    PGresult *result;
};

/* Types by their OIDs, which are fixed in every server. */
enum {
    OID_BOOL = 16,
    OID_INT8 = 20,
    OID_INT2 = 21,
    OID_INT4 = 23,
    OID_OID = 26,
    OID_JSON = 114,
    OID_FLOAT4 = 700,
    OID_FLOAT8 = 701,
    OID_NUMERIC = 1700,
    OID_JSONB = 3802,
};

bool rows_adopt(PGresult *raw, cb_rows **ret, cb_error *e)
{
    OWNED(PGresult) result = raw;
    cb_rows *rows = malloc(sizeof *rows);

    if (!rows)
        return fail_memory(e);
    rows->result = PGresult_take(&result);
    *ret = rows;
    return true;
}

bool rows_query(cb_db *db, const char *sql, const params *p, cb_rows **ret, cb_error *e)
{
    OWNED(PGresult) result = NULL;

    if (!db_read_guarded(db, sql, p, &result, e))
        return false;
    return rows_adopt(PGresult_take(&result), ret, e);
}

void cb_rows_free(cb_rows *rows)
{
    if (!rows)
        return;
    PQclear(rows->result);
    free(rows);
}

size_t cb_rows_count(const cb_rows *rows)
{
    return (size_t)PQntuples(rows->result);
}

size_t cb_rows_columns(const cb_rows *rows)
{
    return (size_t)PQnfields(rows->result);
}

const char *cb_rows_column_name(const cb_rows *rows, size_t column)
{
    return PQfname(rows->result, (int)column);
}

static Oid column_type(const cb_rows *rows, size_t column)
{
    return PQftype(rows->result, (int)column);
}

bool cb_rows_column_is_json(const cb_rows *rows, size_t column)
{
    Oid type = column_type(rows, column);

    return type == OID_JSON || type == OID_JSONB;
}

bool cb_rows_column_is_number(const cb_rows *rows, size_t column)
{
    switch (column_type(rows, column)) {
    case OID_INT8:
    case OID_INT2:
    case OID_INT4:
    case OID_OID:
    case OID_FLOAT4:
    case OID_FLOAT8:
    case OID_NUMERIC:
        return true;
    default:
        return false;
    }
}

bool cb_rows_column_is_bool(const cb_rows *rows, size_t column)
{
    return column_type(rows, column) == OID_BOOL;
}

const char *cb_rows_value(const cb_rows *rows, size_t row, size_t column)
{
    int r = (int)row, c = (int)column;

    if (row >= cb_rows_count(rows) || column >= cb_rows_columns(rows) ||
        PQgetisnull(rows->result, r, c))
        return NULL;
    return PQgetvalue(rows->result, r, c);
}

const char *cb_rows_get(const cb_rows *rows, size_t row, const char *column)
{
    for (size_t i = 0; i < cb_rows_columns(rows); i++) {
        if (strcmp(cb_rows_column_name(rows, i), column) == 0)
            return cb_rows_value(rows, row, i);
    }
    return NULL;
}

/* ---- commands, batches and queues ---- */

/* What people write, and what the table holds. */
static const struct {
    const char *written;
    const char *status;
} command_statuses[] = {
    { "PENDING", "PENDING" },
    { "IN_PROGRESS", "IN_PROGRESS" },
    { "COMPLETED", "COMPLETED" },
    { "FAILED", "FAILED" },
    { "CANCELED", "CANCELED" },
    { "CANCELLED", "CANCELED" },
    { "IN_TROUBLESHOOTING_QUEUE", "IN_TROUBLESHOOTING_QUEUE" },
    { "TSQ", "IN_TROUBLESHOOTING_QUEUE" },
};

/* *ret stays NULL when there is nothing to filter by. */
static bool find_command_status(const char *written, const char **ret, cb_error *e)
{
    if (!written)
        return true;
    for (size_t i = 0; i < sizeof command_statuses / sizeof *command_statuses; i++) {
        if (strcasecmp(written, command_statuses[i].written) == 0) {
            *ret = command_statuses[i].status;
            return true;
        }
    }
    cb_fail(e, CB_INVALID_DATA, "no command has the status '%.60s'", written);
    return fail_hint(e, "PENDING, IN_PROGRESS, COMPLETED, FAILED, CANCELED or "
                        "IN_TROUBLESHOOTING_QUEUE.");
}

static void add_page(params *p, int limit, int offset)
{
    params_int(p, limit > 0 ? limit : 50);
    params_int(p, offset > 0 ? offset : 0);
}

/* The parameters that all filtered statements share, $1 to $11. */
static bool add_command_filter(params *p, const cb_command_filter *f, cb_error *e)
{
    const char *status = NULL;

    if (!find_command_status(f->status, &status, e) ||
        !uuid_check(f->command_id, "command_id", e) || !uuid_check(f->batch_id, "batch_id", e))
        return false;
    params_text(p, f->domain);
    params_text(p, f->command_id);
    params_text(p, f->command_type);
    params_text(p, status);
    params_text(p, f->error_code);
    params_text(p, f->batch_id);
    params_text(p, f->created_from);
    params_text(p, f->created_to);
    params_text(p, f->older_than);
    add_page(p, f->limit, f->offset);
    return true;
}

static bool query_commands(cb_db *db, const char *sql, const cb_command_filter *filter,
                           cb_rows **ret, cb_error *e)
{
    static const cb_command_filter everything;
    params p = { 0 };

    return add_command_filter(&p, filter ? filter : &everything, e) &&
           rows_query(db, sql, &p, ret, e);
}

bool cb_command_list(cb_db *db, const cb_command_filter *filter, cb_rows **ret, cb_error *e)
{
    return query_commands(db, cb_sql_command_list, filter, ret, e);
}

bool cb_tsq_list(cb_db *db, const cb_command_filter *filter, cb_rows **ret, cb_error *e)
{
    return query_commands(db, cb_sql_tsq_list, filter, ret, e);
}

bool cb_tsq_counts(cb_db *db, const cb_command_filter *filter, cb_rows **ret, cb_error *e)
{
    return query_commands(db, cb_sql_tsq_counts, filter, ret, e);
}

/* Statements about one command: $1 domain or NULL, $2 its id. */
static bool query_command(cb_db *db, const char *sql, const char *domain, const char *command_id,
                          cb_rows **ret, cb_error *e)
{
    params p = { 0 };

    if (!command_id)
        return cb_fail(e, CB_MISUSE, "which command? Its command_id is missing");
    if (!uuid_check(command_id, "command_id", e))
        return false;
    params_text(&p, domain);
    params_text(&p, command_id);
    return rows_query(db, sql, &p, ret, e);
}

bool cb_command_show(cb_db *db, const char *domain, const char *command_id, cb_rows **ret,
                     cb_error *e)
{
    return query_command(db, cb_sql_command_show, domain, command_id, ret, e);
}

bool cb_command_trail(cb_db *db, const char *domain, const char *command_id, cb_rows **ret,
                      cb_error *e)
{
    return query_command(db, cb_sql_command_trail, domain, command_id, ret, e);
}

bool cb_batch_list(cb_db *db, const char *domain, const char *status, int limit, int offset,
                   cb_rows **ret, cb_error *e)
{
    params p = { 0 };

    params_text(&p, domain);
    params_text(&p, status);
    add_page(&p, limit, offset);
    return rows_query(db, cb_sql_batch_list, &p, ret, e);
}

bool cb_batch_show(cb_db *db, const char *batch_id, cb_rows **ret, cb_error *e)
{
    params p = { 0 };

    if (!batch_id)
        return cb_fail(e, CB_MISUSE, "which batch? Its batch_id is missing");
    if (!uuid_check(batch_id, "batch_id", e))
        return false;
    params_text(&p, batch_id);
    return rows_query(db, cb_sql_batch_show, &p, ret, e);
}

bool cb_queue_list(cb_db *db, cb_rows **ret, cb_error *e)
{
    return rows_query(db, cb_sql_queue_list, NULL, ret, e);
}

/* ---- processes ---- */

/* What people write, and which of the table's statuses they mean: an array as PostgreSQL reads
 * it. */
static const struct {
    const char *written;
    const char *statuses;
} process_statuses[] = {
    { "PENDING", "{PENDING}" },
    { "EXECUTING", "{EXECUTING}" },
    { "WAITING_FOR_REPLY", "{WAITING_FOR_REPLY}" },
    { "WAITING_FOR_ASYNC", "{WAITING_FOR_ASYNC}" },
    { "WAITING_FOR_RETRY", "{WAITING_FOR_RETRY}" },
    { "WAITING_FOR_TSQ", "{WAITING_FOR_TSQ}" },
    { "TSQ", "{WAITING_FOR_TSQ}" },
    { "COMPENSATING", "{COMPENSATING}" },
    { "COMPENSATED", "{COMPENSATED}" },
    { "COMPLETED", "{COMPLETED}" },
    { "CANCELED", "{CANCELED}" },
    { "CANCELLED", "{CANCELED}" },
    { "FAILED", "{FAILED}" },
    /* S2's words, of which each of ours is under one. */
    { "IN_PROGRESS", "{EXECUTING,WAITING_FOR_RETRY}" },
    { "WAITING", "{WAITING_FOR_REPLY,WAITING_FOR_ASYNC}" },
    { "OPEN", "{PENDING,EXECUTING,WAITING_FOR_REPLY,WAITING_FOR_ASYNC,WAITING_FOR_RETRY,"
              "WAITING_FOR_TSQ,COMPENSATING}" },
};

/* *ret stays NULL when there is nothing to filter by. */
static bool find_process_statuses(const char *written, const char **ret, cb_error *e)
{
    if (!written)
        return true;
    for (size_t i = 0; i < sizeof process_statuses / sizeof *process_statuses; i++) {
        if (strcasecmp(written, process_statuses[i].written) == 0) {
            *ret = process_statuses[i].statuses;
            return true;
        }
    }
    cb_fail(e, CB_INVALID_DATA, "no process has the status '%.60s'", written);
    return fail_hint(e, "PENDING, EXECUTING, WAITING_FOR_REPLY, WAITING_FOR_ASYNC, "
                        "WAITING_FOR_RETRY, WAITING_FOR_TSQ, COMPENSATING, COMPENSATED, COMPLETED, "
                        "CANCELED, FAILED; or IN_PROGRESS, WAITING, OPEN.");
}

/* The parameters that all filtered statements share, $1 to $10. */
static bool query_processes(cb_db *db, const char *sql, const cb_process_filter *filter,
                            cb_rows **ret, cb_error *e)
{
    static const cb_process_filter everything;
    const cb_process_filter *f = filter ? filter : &everything;
    const char *statuses = NULL;
    params p = { 0 };

    if (!find_process_statuses(f->status, &statuses, e) || !uuid_check(f->batch_id, "batch_id", e))
        return false;
    params_text(&p, f->domain);
    params_text(&p, f->process_type);
    params_text(&p, statuses);
    params_text(&p, f->error_code);
    params_text(&p, f->batch_id);
    params_text(&p, f->created_from);
    params_text(&p, f->created_to);
    params_text(&p, f->older_than);
    add_page(&p, f->limit, f->offset);
    return rows_query(db, sql, &p, ret, e);
}

bool cb_process_list(cb_db *db, const cb_process_filter *filter, cb_rows **ret, cb_error *e)
{
    return query_processes(db, cb_sql_process_list, filter, ret, e);
}

bool cb_process_tsq_list(cb_db *db, const cb_process_filter *filter, cb_rows **ret, cb_error *e)
{
    return query_processes(db, cb_sql_process_tsq_list, filter, ret, e);
}

bool cb_process_counts(cb_db *db, const cb_process_filter *filter, cb_rows **ret, cb_error *e)
{
    return query_processes(db, cb_sql_process_counts, filter, ret, e);
}

bool cb_process_load(cb_db *db, cb_rows **ret, cb_error *e)
{
    return rows_query(db, cb_sql_process_load, NULL, ret, e);
}

bool cb_process_figures(cb_db *db, cb_rows **ret, cb_error *e)
{
    return rows_query(db, cb_sql_process_figures, NULL, ret, e);
}

bool cb_process_show(cb_db *db, const char *process_id, cb_rows **ret, cb_error *e)
{
    params p = { 0 };

    if (!process_id)
        return cb_fail(e, CB_MISUSE, "which process? Its process_id is missing");
    if (!uuid_check(process_id, "process_id", e))
        return false;
    params_text(&p, process_id);
    return rows_query(db, cb_sql_process_show, &p, ret, e);
}

bool cb_process_moment(cb_db *db, const char *interval, cb_rows **ret, cb_error *e)
{
    params p = { 0 };

    if (!interval)
        return cb_fail(e, CB_MISUSE, "how long from now? The interval is missing");
    params_text(&p, interval);
    return rows_query(db, cb_sql_process_moment, &p, ret, e);
}
