/* Calls to the database, each on the one connection. */
#include "database.h"

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

/* Classes of SQLSTATE that say "later", and a connection that broke. */
static bool fail_statement(const database *d, const PGresult *result, cb_error *e)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    static const char *const later[] = { "08", "40", "53", "55", "57" };

    if (PQstatus(d->conn) != CONNECTION_OK || !state)
        return cb_fail(e, CB_LOST, "the connection to the database broke");
    for (size_t i = 0; i < CB_COUNT(later); i++) {
        if (strncmp(state, later[i], 2) == 0)
            return cb_fail(e, CB_AGAIN, "%s", PQresultErrorMessage(result));
    }
    return cb_fail(e, CB_SERVER, "%s", PQresultErrorMessage(result));
}

static bool ask(database *d, const char *sql, int n, const char *const values[], PGresult **ret,
                cb_error *e)
{
    if (!begin(d, e))
        return false;
    OWNED(PGresult) result = PQexecParams(d->conn, sql, n, NULL, values, NULL, NULL, 0);
    ExecStatusType status = PQresultStatus(result);
    bool done =
        status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || fail_statement(d, result, e);
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
