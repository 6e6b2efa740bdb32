/* The fleet in the database: heartbeats, the limit, keeping house, retention, and its figures. */
#include <commandbus/fleet.h>
#include <commandbus/purge.h>
#include <stdlib.h>

#include "cb_sql.h"
#include "fail.h"
#include "rows.h"
#include "statements.h"

static bool check_worker(const char *worker, cb_error *e)
{
    return worker && *worker ? true : cb_fail(e, CB_MISUSE, "an instance needs a name");
}

bool cb_heartbeat(cb_db *db, const char *worker, const char *details, cb_error *e)
{
    params p = { 0 };

    if (!check_worker(worker, e))
        return false;
    params_text(&p, worker);
    params_text(&p, details ? details : "{}");
    return db_do(db, cb_sql_heartbeat, &p, e);
}

bool cb_retire(cb_db *db, const char *worker, cb_error *e)
{
    params p = { 0 };

    if (!check_worker(worker, e))
        return false;
    params_text(&p, worker);
    return db_do(db, cb_sql_retire, &p, e);
}

bool cb_fleet_limit_set(cb_db *db, const char *domain, int limit, cb_error *e)
{
    params p = { 0 };

    params_text(&p, domain);
    params_int(&p, limit);
    return db_do(db, cb_sql_set_fleet_limit, &p, e);
}

bool cb_fleet_tidy(cb_db *db, size_t *removed, cb_error *e)
{
    OWNED(PGresult) result = NULL;

    if (!db_run(db, cb_sql_tidy_fleet, NULL, DB_TEXT, &result, e))
        return false;
    if (PQntuples(result) != 1)
        return cb_fail(e, CB_SERVER, "tidy_fleet answered %d rows", PQntuples(result));
    if (removed)
        *removed = strtoul(PQgetvalue(result, 0, 0), NULL, 10);
    return true;
}

/* Runs a statement that answers a row for each thing it has put back. */
static bool put_back(cb_db *db, const char *sql, const params *p, size_t *restored, cb_error *e)
{
    OWNED(PGresult) result = NULL;

    if (!db_run(db, sql, p, DB_TEXT, &result, e))
        return false;
    if (restored)
        *restored = (size_t)PQntuples(result);
    return true;
}

bool cb_messages_restore(cb_db *db, const char *domain, size_t *restored, cb_error *e)
{
    params p = { 0 };

    params_text(&p, domain);
    return put_back(db, cb_sql_restore_messages, &p, restored, e);
}

bool cb_messages_keep(cb_db *db, const char *domain, size_t *restored, cb_error *e)
{
    params p = { 0 };

    params_text(&p, domain);
    return put_back(db, cb_sql_keep_messages, &p, restored, e);
}

bool cb_replies_keep(cb_db *db, double every_seconds, double grace_seconds, size_t *restored,
                     cb_error *e)
{
    params p = { 0 };

    params_seconds(&p, every_seconds);
    params_seconds(&p, grace_seconds);
    return put_back(db, cb_sql_keep_replies, &p, restored, e);
}

/* ---- retention, one round at a time ---- */

static int64_t purged_at(const PGresult *result, int column)
{
    return strtoll(PQgetvalue(result, 0, column), NULL, 10);
}

bool cb_purge(cb_db *db, const cb_purge_options *options, cb_purge_counts *ret, cb_error *e)
{
    OWNED(PGresult) result = NULL;
    params p = { 0 };

    params_text(&p, options->commands);
    params_text(&p, options->audit);
    params_text(&p, options->archives);
    params_int(&p, options->batch_size ? options->batch_size : 1000);
    params_text(&p, options->processes);
    if (!db_run(db, cb_sql_purge, &p, DB_TEXT, &result, e))
        return false;
    if (PQntuples(result) != 1)
        return cb_fail(e, CB_SERVER, "purge answered %d rows", PQntuples(result));
    *ret = (cb_purge_counts){ purged_at(result, 0), purged_at(result, 1), purged_at(result, 2),
                              purged_at(result, 3), purged_at(result, 4) };
    return true;
}

/* ---- instances, domains and queues in figures ---- */

bool cb_fleet_workers(cb_db *db, cb_rows **ret, cb_error *e)
{
    return rows_query(db, cb_sql_fleet_workers, NULL, ret, e);
}

bool cb_fleet_domains(cb_db *db, cb_rows **ret, cb_error *e)
{
    return rows_query(db, cb_sql_fleet_domains, NULL, ret, e);
}

bool cb_domain_load(cb_db *db, const char *domain, const char *window, cb_rows **ret, cb_error *e)
{
    params p = { 0 };

    if (!domain || !window)
        return cb_fail(e, CB_MISUSE, "which domain, and over what time?");
    params_text(&p, domain);
    params_text(&p, window);
    return rows_query(db, cb_sql_domain_load, &p, ret, e);
}

bool cb_domain_figures(cb_db *db, cb_rows **ret, cb_error *e)
{
    return rows_query(db, cb_sql_domain_figures, NULL, ret, e);
}

bool cb_queue_sample_many(cb_db *db, cb_queue_sample *samples, size_t n, cb_error *e)
{
    OWNED(PGresult) result = NULL;
    OWNED_BUFFER(domains);
    params p = { 0 };

    if (n == 0)
        return true;
    array_begin(&domains, ARRAY_TEXT, n);
    for (size_t i = 0; i < n; i++)
        array_add_text(&domains, samples[i].domain);
    if (domains.failed)
        return fail_memory(e);
    params_array(&p, &domains);
    if (!db_read(db, cb_sql_queue_samples, &p, &result, e))
        return false;
    if ((size_t)PQntuples(result) != n)
        return cb_fail(e, CB_SERVER, "queue_samples answered %d rows for %zu domains",
                       PQntuples(result), n);
    for (size_t i = 0; i < n; i++) {
        samples[i].depth = strtoll(PQgetvalue(result, (int)i, 0), NULL, 10);
        samples[i].oldest_due_seconds =
            (double)strtoll(PQgetvalue(result, (int)i, 1), NULL, 10) / 1e6;
    }
    return true;
}
