/* Looking processes up. */
#include <commandbus/process_query.h>
#include <strings.h>

#include "cb_sql.h"
#include "fail.h"
#include "rows.h"
#include "uuid_bytes.h"

/* What people write, and which of the table's statuses they mean: an array as PostgreSQL reads it. */
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
static bool find_statuses(const char *written, const char **ret, cb_error *e)
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

static bool check_uuid(const char *text, const char *what, cb_error *e)
{
    unsigned char bytes[16];

    return !text || uuid_to_bytes(text, bytes)
               ? true
               : cb_fail(e, CB_INVALID_DATA, "%s is not a UUID: '%.80s'", what, text);
}

/* The parameters that all filtered statements share, $1 to $10. */
static bool query_filtered(cb_db *db, const char *sql, const cb_process_filter *filter,
                           cb_rows **ret, cb_error *e)
{
    static const cb_process_filter everything;
    const cb_process_filter *f = filter ? filter : &everything;
    const char *statuses = NULL;
    params p = { 0 };

    if (!find_statuses(f->status, &statuses, e) || !check_uuid(f->batch_id, "batch_id", e))
        return false;
    params_text(&p, f->domain);
    params_text(&p, f->process_type);
    params_text(&p, statuses);
    params_text(&p, f->error_code);
    params_text(&p, f->batch_id);
    params_text(&p, f->created_from);
    params_text(&p, f->created_to);
    params_text(&p, f->older_than);
    params_int(&p, f->limit > 0 ? f->limit : 50);
    params_int(&p, f->offset > 0 ? f->offset : 0);
    return rows_query(db, sql, &p, ret, e);
}

bool cb_process_list(cb_db *db, const cb_process_filter *filter, cb_rows **ret, cb_error *e)
{
    return query_filtered(db, cb_sql_process_list, filter, ret, e);
}

bool cb_process_tsq_list(cb_db *db, const cb_process_filter *filter, cb_rows **ret, cb_error *e)
{
    return query_filtered(db, cb_sql_process_tsq_list, filter, ret, e);
}

bool cb_process_counts(cb_db *db, const cb_process_filter *filter, cb_rows **ret, cb_error *e)
{
    return query_filtered(db, cb_sql_process_counts, filter, ret, e);
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
    if (!check_uuid(process_id, "process_id", e))
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
