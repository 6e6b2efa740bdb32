/* Calls to the database, each on the one connection. */
#include "simulator_database.h"

#include <commandbus/handler.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

#include "sim_sql.h"

DEFINE_OWNED(PGresult, PQclear)

void database_init(database *d, const char *url)
{
    *d = (database){ .url = url };
    pthread_mutex_init(&d->lock, NULL);
}

static void disconnect(database *d)
{
    cb_db_free(d->db);
    PQfinish(d->conn);
    d->db = NULL;
    d->conn = NULL;
}

void database_done(database *d)
{
    disconnect(d);
    pthread_mutex_destroy(&d->lock);
}

static bool connect_once(database *d, cb_error *e)
{
    if (d->conn && PQstatus(d->conn) == CONNECTION_OK && !cb_db_is_lost(d->db))
        return true;
    disconnect(d);
    d->conn = PQconnectdb(d->url);
    if (PQstatus(d->conn) != CONNECTION_OK)
        return cb_fail(e, CB_LOST, "no connection to the database");
    return cb_db_borrow(d->conn, &d->db, e);
}

/* True with the lock held and a connection. */
static bool begin(database *d, cb_error *e)
{
    if (!d->url)
        return cb_fail(e, CB_MISUSE,
                       "this needs a database: start the simulator with COMMANDBUS_DATABASE_URL");
    pthread_mutex_lock(&d->lock);
    if (connect_once(d, e))
        return true;
    pthread_mutex_unlock(&d->lock);
    return false;
}

bool database_respond(database *d, const char *process_id, const char *name, const char *payload,
                      const char *response_id, cb_error *e)
{
    bool is_new;

    if (!begin(d, e))
        return false;
    bool done = cb_process_respond(d->db, process_id, name, payload, response_id, &is_new, e);
    pthread_mutex_unlock(&d->lock);
    return done;
}

static bool ask(database *d, const char *sql, size_t n, const char *const values[], PGresult **ret,
                cb_error *e)
{
    if (!begin(d, e))
        return false;
    OWNED(PGresult) result = NULL;
    bool done = cb_db_ask(d->db, sql, values, n, &result, e);
    pthread_mutex_unlock(&d->lock);
    if (done && ret)
        *ret = PGresult_take(&result);
    return done;
}

bool database_keep_approval(database *d, const char *process_id, const char *command_id,
                            cb_error *e)
{
    return ask(d, sim_sql_keep_approval, 2, (const char *const[]){ process_id, command_id }, NULL,
               e);
}

bool database_keep_network(database *d, const char *process_id, const char *command_id,
                           const char *level, const char *execution_model, cb_error *e)
{
    return ask(d, sim_sql_keep_network, 4,
               (const char *const[]){ process_id, command_id, level, execution_model }, NULL, e);
}

bool database_look(database *d, const char *process_id, const char *level, bool *is_answered,
                   bool *is_over, cb_error *e)
{
    OWNED(PGresult) found = NULL;

    if (!ask(d, sim_sql_look, 2, (const char *const[]){ process_id, level }, &found, e))
        return false;
    *is_answered = PQgetvalue(found, 0, 0)[0] == 't';
    *is_over = PQgetvalue(found, 0, 1)[0] == 't';
    return true;
}
