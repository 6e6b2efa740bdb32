/* A connection that comes back. Backs off 1 s, 2 s … 30 s, ±10 % so that a fleet does not come back
 * in step; renewal is quicker, for leases run out meanwhile. */
#include "connection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "engine.h"
#include "sqlstate.h"

void connection_init(db_connection *c, cb_worker *w, connection_name name)
{
    c->worker = w;
    c->name = name;
    c->first_wait = name == CONNECTION_RENEW ? 0.1 : 1;
    c->longest_wait = name == CONNECTION_RENEW ? 2 : 30;
    c->wait_seconds = c->first_wait;
    trouble_init(&c->refused, w, name, NULL, name != CONNECTION_KEEP && name != CONNECTION_LISTEN);
    atomic_init(&c->up, false);
}

void connection_done(db_connection *c)
{
    cb_db_free(c->db);
    c->db = NULL;
    atomic_store(&c->up, false);
}

static void is_up(db_connection *c, bool up)
{
    atomic_store(&c->up, up);
    metrics_connection_up(c->worker->metrics, c->name, up);
}

/* Called commandbus-claim and so on: its last statement, mostly COMMIT, does not tell what it is
 * for. */
static bool connect(db_connection *c, cb_error *e)
{
    char application[32];

    snprintf(application, sizeof application, "commandbus-%s", connection_names[c->name]);
    if (!cb_db_open_named(c->worker->url, application, &c->db, e))
        return false;
    cb_db_set_prepared(c->db, !c->worker->no_prepared);
    return true;
}

bool connection_open(db_connection *c, cb_error *e)
{
    c->wait_seconds = c->first_wait;
    if (!connect(c, e))
        return false;
    is_up(c, true);
    return true;
}

/* 0.9 to 1.1, from the low bits of the clock: nothing here needs better chance. */
static double jitter(void)
{
    return 0.9 + (double)((now_ns() / 1000) % 1000) / 5000;
}

static bool back_off(db_connection *c)
{
    double seconds = c->wait_seconds * jitter();

    c->wait_seconds *= 2;
    if (c->wait_seconds > c->longest_wait)
        c->wait_seconds = c->longest_wait;
    return worker_pause(c->worker, seconds);
}

/* A full disk, no memory, statements that are cancelled: no matter of a moment when it comes again
 * and again. Then it is told and waited for, as if the server were away. */
static bool is_in_want(db_connection *c, const cb_error *e)
{
    enum {
        MOST_WANT = 10
    };
    bool want = sqlstate_is_class(e->sqlstate, "53") || sqlstate_is_class(e->sqlstate, "57");

    return want && ++c->want > MOST_WANT;
}

void connection_failed(db_connection *c, const cb_error *e, const char *doing)
{
    bool lost = e->code == CB_LOST || cb_db_is_lost(c->db);

    /* Serialisation failures and the like are part of the game: the same call again, soon. */
    if (e->code == CB_AGAIN && !lost && !is_in_want(c, e)) {
        emit(c->worker, CB_LEVEL_DEBUG, "database.again", .connection = connection_names[c->name],
             .error = e->message, .error_code = e->sqlstate);
        worker_pause(c->worker, 0.02);
        return;
    }
    if (lost)
        emit(c->worker, CB_LEVEL_WARN, "connection.lost", .connection = connection_names[c->name],
             .error = e->message, .hint = e->hint, .error_code = e->sqlstate, .outcome = doing);
    else
        trouble_add(&c->refused, e, doing, "database.refused");
    is_up(c, false);
}

void connection_worked(db_connection *c)
{
    c->wait_seconds = c->first_wait;
    c->want = 0;
    trouble_end(&c->refused);
}

bool connection_ready(db_connection *c, bool *anew)
{
    cb_worker *w = c->worker;
    cb_error e = { 0 };

    if (anew)
        *anew = false;
    while (!atomic_load(&c->up)) {
        if (!back_off(c))
            return false;
        if (c->db && !cb_db_is_lost(c->db)) { /* it was only refused: the same connection again */
            is_up(c, true);
            return true;
        }
        if (!(c->db ? cb_db_reconnect(c->db, &e) : connect(c, &e))) {
            emit(w, CB_LEVEL_WARN, "connection.failed", .connection = connection_names[c->name],
                 .error = e.message, .hint = e.hint, .retry_seconds = c->wait_seconds);
            continue;
        }
        is_up(c, true);
        metrics_reconnect(w->metrics, c->name);
        emit(w, CB_LEVEL_INFO, "connection.restored", .connection = connection_names[c->name]);
        if (anew)
            *anew = true;
        return true;
    }
    return true;
}
