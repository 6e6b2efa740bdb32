/* Starting and stopping. */
#include <commandbus/domain.h>
#include <commandbus/version.h>
#include <errno.h>
#include <string.h>

#include "clock.h"
#include "engine.h"
#include "fail.h"

bool worker_pause(cb_worker *w, double seconds)
{
    int64_t until = now_ns() + seconds_to_ns(seconds);

    pthread_mutex_lock(&w->pausing);
    for (int64_t left; !atomic_load(&w->ending) && (left = until - now_ns()) > 0;)
        waiting_for(&w->unpause, &w->pausing, left);
    pthread_mutex_unlock(&w->pausing);
    return !atomic_load(&w->ending);
}

void worker_changed(cb_worker *w)
{
    pthread_mutex_lock(&w->pausing);
    pthread_cond_broadcast(&w->unpause);
    pthread_mutex_unlock(&w->pausing);
}

/* ---- starting ---- */

/* Setting a limit waits until no claim of the domain is on its way; a long one may take several. */
static bool set_limit(cb_worker *w, cb_db *db, const command_lane *l, cb_error *e)
{
    enum {
        TRIES = 5
    };

    for (int i = 1; l->fleet_limit >= 0; i++) {
        if (cb_fleet_limit_set(db, l->lane.name, l->fleet_limit, e))
            break;
        if (e->code != CB_AGAIN || i == TRIES)
            return false;
        emit(w, CB_LEVEL_WARN, "limit.waiting", .domain = l->lane.name, .error = e->message,
             .hint = e->hint);
    }
    return true;
}

static bool prepare_database(cb_worker *w, cb_error *e)
{
    cb_db *db = w->connections[CONNECTION_KEEP].db;

    if (!cb_db_check_schema(db, e))
        return false;
    for (size_t i = 0; i < w->n_domains; i++) {
        served *d = &w->domains[i];
        if (!cb_domain_register(db, d->name, NULL, e) || !set_limit(w, db, &d->commands, e))
            return cb_fail_while(e, "preparing domain '%s'", d->name);
    }
    for (size_t i = 0; i < w->n_sends_to; i++) {
        if (!cb_domain_register(db, w->sends_to[i], NULL, e))
            return cb_fail_while(e, "registering domain '%s'", w->sends_to[i]);
    }
    for (size_t i = 0; w->moves_processes && i < w->n_domains; i++) {
        const process_lane *l = &w->domains[i].processes;
        if (l->n_kinds > 0 && !cb_process_register(db, l->kinds, l->n_kinds, e))
            return cb_fail_while(e, "registering the process types of domain '%s'", l->lane.name);
    }
    return heartbeat_send(w, e);
}

bool worker_needs(const cb_worker *w, connection_name which)
{
    switch (which) {
    case CONNECTION_CLAIM:
    case CONNECTION_SETTLE:
        return !w->no_commands;
    case CONNECTION_PROCESS:
        return w->moves_processes;
    case CONNECTION_PROCESS_SETTLE:
        return w->runs_processes;
    case CONNECTION_KEEP:
    case CONNECTION_RENEW:
        return true;
    default: /* the listener comes when it can, effects when there are some */
        return false;
    }
}

static bool connect_all(cb_worker *w, cb_error *e)
{
    if (!connection_open(&w->connections[CONNECTION_KEEP], e) || !prepare_database(w, e))
        return false;
    for (int i = 0; i < CONNECTIONS; i++) {
        if (i != CONNECTION_KEEP && worker_needs(w, (connection_name)i) &&
            !connection_open(&w->connections[i], e))
            return false;
    }
    return true;
}

static bool fail_thread(cb_worker *w, int error, cb_error *e)
{
    size_t wanted = 0, got = 0;

    for (size_t i = 0; i < w->n_lanes; i++) {
        wanted += (size_t)w->lanes[i]->n_slots;
        got += w->lanes[i]->n_threads;
    }
    cb_fail(e, CB_MEMORY, "could start only %zu of %zu slots: %s", got, wanted, strerror(error));
    return fail_hint(e,
                     "Lower domains.<d>.concurrent-messages or -processes, or raise the limit of "
                     "threads (ulimit -u, the pids limit of the container).");
}

static bool start_slots(cb_worker *w, cb_error *e)
{
    pthread_attr_t attr;
    int error = 0;

    pthread_attr_init(&attr);
    if (pthread_attr_setstacksize(&attr, w->stack_bytes) != 0)
        error = EINVAL;
    for (size_t i = 0; i < w->n_lanes && !error; i++)
        error = lane_start(w->lanes[i], &attr);
    pthread_attr_destroy(&attr);
    return error ? fail_thread(w, error, e) : true;
}

/* The claimer last: nothing is claimed before all the rest runs. */
static bool start_threads(cb_worker *w, cb_error *e)
{
    const struct {
        bool wanted;
        void *(*run)(void *);
        void *arg;
    } all[] = {
        { !w->no_commands, settler_thread, &w->settling[COMMANDS] },
        { !w->no_commands, effect_thread, w },
        { w->runs_processes, settler_thread, &w->settling[PROCESSES] },
        { true, renew_thread, w },
        { true, watch_thread, w },
        { true, listen_thread, w },
        { true, maintenance_thread, w },
        { w->moves_processes, claimer_thread, &w->claims[PROCESSES] },
        { !w->no_commands, claimer_thread, &w->claims[COMMANDS] },
    };

    if (!start_slots(w, e))
        return false;
    for (size_t i = 0; i < CB_COUNT(all); i++) {
        if (!all[i].wanted)
            continue;
        int error = pthread_create(&w->threads[w->n_threads], NULL, all[i].run, all[i].arg);
        if (error)
            return fail_thread(w, error, e);
        w->n_threads++;
    }
    return true;
}

static void end_slots(cb_worker *w, lane_kind kind)
{
    for (size_t i = 0; i < w->n_domains; i++)
        lane_stop(worker_lane(w, kind, i));
    for (size_t i = 0; i < w->n_domains; i++)
        lane_join(worker_lane(w, kind, i));
}

/* Ends every thread and waits for it: first the slots of commands, whose outcomes are still
 * settled. Those of processes wait for the settler. It goes on until they have ended, but at the
 * end it waits for no database: then what they came to is left, and its lease ends by itself. */
static void end_threads(cb_worker *w)
{
    end_slots(w, COMMANDS);
    outcomes_end(&w->effecting);
    outcomes_end(&w->settling[COMMANDS].waiting);

    pthread_mutex_lock(&w->pausing);
    atomic_store(&w->ending, true);
    pthread_cond_broadcast(&w->unpause);
    pthread_mutex_unlock(&w->pausing);
    for (lane_kind kind = COMMANDS; kind < KINDS; kind++)
        claimer_freed(&w->claims[kind]);
    renew_soon(w);
    pthread_mutex_lock(&w->listening);
    if (w->listener)
        cb_listener_wake(w->listener);
    pthread_mutex_unlock(&w->listening);
    end_slots(w, PROCESSES);
    outcomes_end(&w->settling[PROCESSES].waiting);
    for (; w->n_threads > 0; w->n_threads--)
        pthread_join(w->threads[w->n_threads - 1], NULL);
}

static void reset(cb_worker *w)
{
    atomic_store(&w->stopping, false);
    atomic_store(&w->ending, false);
    atomic_store(&w->abandoned, 0);
    atomic_store(&w->broken, false);
    atomic_store(&w->hears, false);
    troubles_reset(w);
    w->effecting.ending = false;
    for (lane_kind kind = COMMANDS; kind < KINDS; kind++) {
        w->settling[kind].waiting.ending = false;
        claimer_reset(&w->claims[kind]);
    }
}

static void close_links(cb_worker *w)
{
    for (int i = 0; i < CONNECTIONS; i++)
        connection_done(&w->connections[i]);
}

/* Of processes that never began here nothing else tells the database; drained commands are
 * settled. */
static void release_processes(cb_worker *w, cb_db *db)
{
    cb_error e;

    for (size_t i = 0; i < w->n_domains; i++) {
        lane *l = worker_lane(w, PROCESSES, i);
        if (l->n_slots > 0)
            (void)!l->ops->release_unknown(l, db, NULL, 0, NULL, &e);
    }
}

/* With `life` held. */
static void tear_down(cb_worker *w)
{
    cb_error e;

    cb_db *db = w->connections[CONNECTION_KEEP].db;

    end_threads(w);
    if (db && !cb_db_is_lost(db)) {
        release_processes(w, db);
        (void)!cb_retire(db, w->id, &e);
    }
    close_links(w);
    atomic_store(&w->stopping, false);
    w->started = false;
}

bool cb_worker_start(cb_worker *w, cb_error *e)
{
    pthread_mutex_lock(&w->life);
    if (w->started) {
        pthread_mutex_unlock(&w->life);
        emit(w, CB_LEVEL_WARN, "worker.already_started", .address = NULL);
        return true;
    }
    reset(w);
    bool ok = connect_all(w, e) && start_threads(w, e);
    if (ok) {
        w->started = true;
        atomic_store(&w->running, true);
    } else {
        tear_down(w);
    }
    pthread_mutex_unlock(&w->life);
    return ok;
}

/* ---- stopping ---- */

/* False when there is nothing to stop. Under `life`, so that it never meets a start half-way. */
static bool begin_to_stop(cb_worker *w)
{
    pthread_mutex_lock(&w->life);
    bool started = w->started, first = started && !atomic_exchange(&w->stopping, true);
    if (started)
        atomic_store(&w->running, false);
    if (first) {
        for (size_t i = 0; i < w->n_lanes; i++)
            lane_give_back(w->lanes[i]);
    }
    pthread_mutex_unlock(&w->life);
    if (first)
        emit(w, CB_LEVEL_INFO, "worker.draining",
             .in_flight = (int64_t)cb_worker_in_flight(w, NULL));
    return started;
}

static bool is_claiming(cb_worker *w)
{
    return atomic_load(&w->claims[COMMANDS].claiming) ||
           atomic_load(&w->claims[PROCESSES].claiming);
}

static bool is_drained(cb_worker *w)
{
    return !is_claiming(w) && cb_worker_in_flight(w, NULL) == 0;
}

/* What is left are handlers that do not return: no use in waiting. */
static bool is_given_up(cb_worker *w)
{
    size_t given_up = 0;

    for (size_t i = 0; i < w->n_lanes; i++)
        given_up += atomic_load(&w->lanes[i]->given_up);
    return given_up > 0 && !is_claiming(w) && cb_worker_in_flight(w, NULL) <= given_up;
}

/* Somebody who stops it now ends the waiting of all who stop it already. */
static bool wait_until_drained(cb_worker *w, double timeout_seconds)
{
    int64_t until = now_ns() + seconds_to_ns(timeout_seconds);
    unsigned abandoned = atomic_load(&w->abandoned);

    pthread_mutex_lock(&w->pausing);
    for (int64_t left; !is_drained(w) && !is_given_up(w) &&
                       atomic_load(&w->abandoned) == abandoned && (left = until - now_ns()) > 0;)
        waiting_for(&w->unpause, &w->pausing, left);
    pthread_mutex_unlock(&w->pausing);
    return is_drained(w);
}

bool cb_worker_stop(cb_worker *w, double timeout_seconds)
{
    if (!begin_to_stop(w))
        return true;
    bool drained = wait_until_drained(w, timeout_seconds);

    pthread_mutex_lock(&w->life);
    /* Unless somebody else was quicker, and perhaps has started it again. */
    if (w->started && atomic_load(&w->stopping) && is_drained(w))
        tear_down(w);
    pthread_mutex_unlock(&w->life);
    emit(w, drained ? CB_LEVEL_INFO : CB_LEVEL_WARN,
         drained ? "worker.stopped" : "worker.undrained",
         .in_flight = (int64_t)cb_worker_in_flight(w, NULL));
    return drained;
}

void cb_worker_stop_now(cb_worker *w)
{
    if (!begin_to_stop(w))
        return;
    atomic_fetch_add(&w->abandoned, 1);
    worker_changed(w);
    /* What has an outcome already is written, if that is a matter of a moment. */
    for (int i = 0; i < 100 && (outcomes_count(&w->settling[COMMANDS].waiting) > 0 ||
                                outcomes_count(&w->settling[PROCESSES].waiting) > 0);
         i++)
        worker_pause(w, 0.01);
}

void worker_end(cb_worker *w)
{
    cb_worker_stop_now(w);
    pthread_mutex_lock(&w->life);
    if (w->started)
        tear_down(w);
    pthread_mutex_unlock(&w->life);
}
