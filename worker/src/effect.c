/* The thread that settles outcomes with effects: each in a transaction of its own, on a connection
 * of its own, because an effect may wait for a lock and plain outcomes must not wait with it.
 * Connects when the first one comes. */
#include <stdio.h>

#include "clock.h"
#include "engine.h"

/* An effect that waits for a lock holds up the others: it gets a moment, then they have their turn.
 * Its command is locked meanwhile, so between two tries there is time to renew its lease. */
static const double lock_timeout_seconds = 0.25, between_tries_seconds = 0.05;

/* What the server says of an effect may repeat the data of its command, which no log shows: a
 * trigger that raises what it was given. The SQLSTATE tells enough. */
static void keep_quiet(cb_error *e)
{
    if (!*e->sqlstate)
        return;
    snprintf(e->message, sizeof e->message, "the database rejected the effects");
    *e->hint = '\0';
}

/* The handler has done what it did, and running it again would do it twice: what gets no further
 * than this waits for an operator. */
static bool is_hopeless(const cb_worker *w, command_outcome *o)
{
    int64_t now = now_ns();

    if (o->put_off_since == 0)
        o->put_off_since = now;
    return now - o->put_off_since > seconds_to_ns(w->effect_patience_seconds);
}

static void give_up(command_outcome *o)
{
    cb_settlement *s = &o->settlement;

    s->outcome = CB_PERMANENT;
    s->result = NULL;
    s->error_code = "EFFECT_FAILED";
    s->error_message = "the handler succeeded, but its effects could not get a lock";
    settler_put(&o->outcome);
}

/* False when it is to be brought again. */
static bool settle_one(cb_worker *w, command_outcome *o)
{
    const command_job *j = (const command_job *)o->outcome.job;
    db_connection *conn = &w->connections[CONNECTION_EFFECT];
    cb_error e = { 0 };
    int64_t from = now_ns();

    if (!cb_settle_with_effects(conn->db, w->id, &o->settlement, j->context, lock_timeout_seconds,
                                &e)) {
        keep_quiet(&e);
        connection_failed(conn, &e, "settle");
        if (e.code == CB_AGAIN && is_hopeless(w, o)) {
            give_up(o);
            return true;
        }
        outcomes_put(&w->effecting, &o->outcome); /* behind the others */
        if (e.code == CB_AGAIN)
            worker_pause(w, between_tries_seconds);
        return false;
    }
    connection_worked(conn);
    metrics_settle(w->metrics, 1, (now_ns() - from) / 1000);
    if (o->settlement.verdict == CB_BUSY) {
        outcomes_put(&w->effecting, &o->outcome);
        worker_pause(w, 0.005);
        return false;
    }
    if (command_outcome_settled(&o->outcome))
        claimer_freed(&w->claims[COMMANDS]);
    if (atomic_load(&w->stopping))
        worker_changed(w);
    return true;
}

void *effect_thread(void *worker)
{
    cb_worker *w = worker;
    db_connection *conn = &w->connections[CONNECTION_EFFECT];
    cb_error e;
    outcome *o;

    while (outcomes_take(&w->effecting, &o, 1, 0) > 0) {
        if (!conn->db && !connection_open(conn, &e))
            emit(w, CB_LEVEL_WARN, "connection.failed",
                 .connection = connection_names[CONNECTION_EFFECT], .error = e.message,
                 .hint = e.hint);
        if (!connection_ready(conn, NULL))
            break;
        if (!settle_one(w, (command_outcome *)o) && atomic_load(&w->ending))
            break;
    }
    return NULL;
}
