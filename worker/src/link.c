/* A connection that comes back. Backs off 1 s, 2 s … 30 s, ±10 % so that a fleet does not come back in
 * step; renewal is quicker, for leases run out meanwhile. */
#include "link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "engine.h"
#include "sqlstate.h"

void link_init(db_link *l, cb_worker *w, link_name name)
{
    l->worker = w;
    l->name = name;
    l->first_wait = name == LINK_RENEW ? 0.1 : 1;
    l->longest_wait = name == LINK_RENEW ? 2 : 30;
    l->wait_seconds = l->first_wait;
    trouble_init(&l->refused, w, name, NULL, name != LINK_KEEP && name != LINK_LISTEN);
    atomic_init(&l->up, false);
}

void link_done(db_link *l)
{
    cb_db_free(l->db);
    l->db = NULL;
    atomic_store(&l->up, false);
}

static void is_up(db_link *l, bool up)
{
    atomic_store(&l->up, up);
    metrics_link_up(l->worker->metrics, l->name, up);
}

/* Called commandbus-claim and so on: its last statement, mostly COMMIT, does not tell what it is for. */
static bool connect(db_link *l, cb_error *e)
{
    char application[32];

    snprintf(application, sizeof application, "commandbus-%s", link_names[l->name]);
    return cb_db_open_named(l->worker->url, application, &l->db, e);
}

bool link_open(db_link *l, cb_error *e)
{
    l->wait_seconds = l->first_wait;
    if (!connect(l, e))
        return false;
    is_up(l, true);
    return true;
}

/* 0.9 to 1.1, from the low bits of the clock: nothing here needs better chance. */
static double jitter(void)
{
    return 0.9 + (double)((now_ns() / 1000) % 1000) / 5000;
}

static bool back_off(db_link *l)
{
    double seconds = l->wait_seconds * jitter();

    l->wait_seconds *= 2;
    if (l->wait_seconds > l->longest_wait)
        l->wait_seconds = l->longest_wait;
    return worker_pause(l->worker, seconds);
}

/* A full disk, no memory, statements that are cancelled: no matter of a moment when it comes again and
 * again. Then it is told and waited for, as if the server were away. */
static bool is_in_want(db_link *l, const cb_error *e)
{
    enum {
        MOST_WANT = 10
    };
    bool want = sqlstate_is_class(e->sqlstate, "53") || sqlstate_is_class(e->sqlstate, "57");

    return want && ++l->want > MOST_WANT;
}

void link_failed(db_link *l, const cb_error *e, const char *doing)
{
    bool lost = e->code == CB_LOST || cb_db_is_lost(l->db);

    /* Serialisation failures and the like are part of the game: the same call again, soon. */
    if (e->code == CB_AGAIN && !lost && !is_in_want(l, e)) {
        emit(l->worker, CB_LEVEL_DEBUG, "database.again", .connection = link_names[l->name],
             .error = e->message, .error_code = e->sqlstate);
        worker_pause(l->worker, 0.02);
        return;
    }
    if (lost)
        emit(l->worker, CB_LEVEL_WARN, "connection.lost", .connection = link_names[l->name],
             .error = e->message, .hint = e->hint, .error_code = e->sqlstate, .outcome = doing);
    else
        trouble_add(&l->refused, e, doing, "database.refused");
    is_up(l, false);
}

void link_worked(db_link *l)
{
    l->wait_seconds = l->first_wait;
    l->want = 0;
    trouble_end(&l->refused);
}

bool link_ready(db_link *l, bool *anew)
{
    cb_worker *w = l->worker;
    cb_error e = { 0 };

    if (anew)
        *anew = false;
    while (!atomic_load(&l->up)) {
        if (!back_off(l))
            return false;
        if (l->db && !cb_db_is_lost(l->db)) { /* it was only refused: the same connection again */
            is_up(l, true);
            return true;
        }
        if (!(l->db ? cb_db_reconnect(l->db, &e) : connect(l, &e))) {
            emit(w, CB_LEVEL_WARN, "connection.failed", .connection = link_names[l->name],
                 .error = e.message, .hint = e.hint, .retry_seconds = l->wait_seconds);
            continue;
        }
        is_up(l, true);
        metrics_reconnect(w->metrics, l->name);
        emit(w, CB_LEVEL_INFO, "connection.restored", .connection = link_names[l->name]);
        if (anew)
            *anew = true;
        return true;
    }
    return true;
}
