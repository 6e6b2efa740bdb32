/* The fleet's life in the database: heartbeats, the limit, keeping house. */
#include <commandbus/fleet.h>
#include <stdlib.h>

#include "cb_sql.h"
#include "db.h"

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
