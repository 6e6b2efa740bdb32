/* Looking up commands, batches and queues. */
#include <commandbus/query.h>
#include <strings.h>

#include "cb_sql.h"
#include "fail.h"
#include "rows.h"
#include "uuid_bytes.h"

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
static bool find_status(const char *written, const char **ret, cb_error *e)
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

static bool check_uuid(const char *text, const char *what, cb_error *e)
{
    unsigned char bytes[16];

    return !text || uuid_to_bytes(text, bytes)
               ? true
               : cb_fail(e, CB_INVALID_DATA, "%s is not a UUID: '%.80s'", what, text);
}

static void add_page(params *p, int limit, int offset)
{
    params_int(p, limit > 0 ? limit : 50);
    params_int(p, offset > 0 ? offset : 0);
}

/* The parameters that all filtered statements share, $1 to $11. */
static bool add_filter(params *p, const cb_command_filter *f, cb_error *e)
{
    const char *status = NULL;

    if (!find_status(f->status, &status, e) || !check_uuid(f->command_id, "command_id", e) ||
        !check_uuid(f->batch_id, "batch_id", e))
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

static bool query_filtered(cb_db *db, const char *sql, const cb_command_filter *filter,
                           cb_rows **ret, cb_error *e)
{
    static const cb_command_filter everything;
    params p = { 0 };

    return add_filter(&p, filter ? filter : &everything, e) && rows_query(db, sql, &p, ret, e);
}

bool cb_command_list(cb_db *db, const cb_command_filter *filter, cb_rows **ret, cb_error *e)
{
    return query_filtered(db, cb_sql_command_list, filter, ret, e);
}

bool cb_tsq_list(cb_db *db, const cb_command_filter *filter, cb_rows **ret, cb_error *e)
{
    return query_filtered(db, cb_sql_tsq_list, filter, ret, e);
}

bool cb_tsq_counts(cb_db *db, const cb_command_filter *filter, cb_rows **ret, cb_error *e)
{
    return query_filtered(db, cb_sql_tsq_counts, filter, ret, e);
}

/* Statements about one command: $1 domain or NULL, $2 its id. */
static bool query_command(cb_db *db, const char *sql, const char *domain, const char *command_id,
                          cb_rows **ret, cb_error *e)
{
    params p = { 0 };

    if (!command_id)
        return cb_fail(e, CB_MISUSE, "which command? Its command_id is missing");
    if (!check_uuid(command_id, "command_id", e))
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
    if (!check_uuid(batch_id, "batch_id", e))
        return false;
    params_text(&p, batch_id);
    return rows_query(db, cb_sql_batch_show, &p, ret, e);
}

bool cb_queue_list(cb_db *db, cb_rows **ret, cb_error *e)
{
    return rows_query(db, cb_sql_queue_list, NULL, ret, e);
}
