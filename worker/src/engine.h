/* The worker from inside: what its threads share.
 *
 *     listen ──hint──▶ claimer ──jobs──▶ slots ──outcomes──▶ settler ──places──▶ claimer
 *                                          │                 effect (outcomes with effects)
 *       watch: timeouts                    renew: leases     maintenance: heartbeat, samples, house
 *
 * Commands and processes make the same movement: each kind has a claimer, a settler and, for each
 * domain, a lane (lane.h) whose slots run its jobs. What differs between them stands in
 * command_lane.c and command_run.c, process_lane.c and process_run.c.
 *
 * Each thread has its own file and its own connection; slots and watch have none. Locks, in the
 * order in which they may be taken: life → lane → queue of outcomes, claimer → troubled. None is
 * held while the database is asked. */
#ifndef WORKER_ENGINE_H
#define WORKER_ENGINE_H

#include <commandbus/lease.h>
#include <commandbus/listen.h>
#include <commandbus/worker.h>
#include <stdatomic.h>

#include "claimer.h"
#include "command_lane.h"
#include "connection.h"
#include "metrics.h"
#include "process_lane.h"
#include "process_memory.h"
#include "settler.h"
#include "trouble.h"

/* Renewals that somebody waits for. */
typedef struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool wanted, all; /* do not wait for the next regular one; and leave nothing out */
    uint64_t rounds;  /* successful ones */
    trouble refused[KINDS];
} renewer;

/* What the maintenance thread does again and again. */
typedef enum {
    CHORE_HEARTBEAT,
    CHORE_SAMPLE,
    CHORE_FIGURES,
    CHORE_FLEET,
    CHORE_FORMER,
    CHORE_HOUSE,
    CHORE_MESSAGES,
    CHORE_REPLIES,
    CHORES
} chore;

/* A domain that this worker serves. */
typedef struct {
    char *name;
    command_lane commands;
    process_lane processes;
} served;

struct cb_worker {
    char *id, *name, *profile, *host;
    char *url, *listen_url;
    bool no_prepared;
    char *keep_commands, *keep_audit, *keep_archives, *keep_processes;
    double kill_grace_seconds, unknown_grace_seconds;
    size_t result_limit, stack_bytes;
    cb_event_fn *on_event;
    void *on_event_arg;
    cb_level event_level;
    int64_t opened_at;
    double chore_seconds[CHORES];   /* how often; fixed before the start */
    double effect_patience_seconds; /* how long effects may wait for their locks; likewise */
    trouble chore_refused[CHORES];
    trouble *troubles; /* all that may come; fixed after open */
    pthread_mutex_t troubled;

    bool no_commands;
    served *domains;
    size_t n_domains;
    lane **lanes; /* of all domains and kinds: those of commands, then those of processes */
    size_t n_lanes;
    bool runs_processes;  /* there are slots for some */
    bool moves_processes; /* or else replies to deliver */
    process_memory process_memory;
    atomic_size_t claimed_bytes[KINDS]; /* of claims that are alive */
    char **sends_to;                    /* further domains, which are only registered */
    size_t n_sends_to;
    metrics *metrics;
    db_connection connections[CONNECTIONS];

    claimer claims[KINDS];
    renewer renewals;
    settler settling[KINDS];
    outcomes effecting;
    pthread_mutex_t listening;
    cb_listener *listener; /* while its thread has one; guarded by `listening` */
    atomic_bool hears;     /* notifications arrive: announcing sleepers makes sense */

    pthread_mutex_t pausing; /* for worker_pause, and for whoever waits until all is drained */
    pthread_cond_t unpause;  /* a job ended while stopping, or one of the flags below was set */
    pthread_mutex_t life;    /* guards what follows, and start against stop */
    pthread_t threads[10];
    size_t n_threads;
    bool started;          /* threads are there */
    atomic_bool running;   /* started and not told to stop */
    atomic_bool stopping;  /* no new claims */
    atomic_bool ending;    /* every thread is to end */
    atomic_uint abandoned; /* stops now: what is not settled by then stays with the leases */
    atomic_bool broken;    /* a handler does not return */
};

static inline lane *worker_lane(const cb_worker *w, lane_kind kind, size_t domain)
{
    return w->lanes[kind * w->n_domains + domain];
}

/* ---- the threads: each runs until w->ending, or its queue ended ---- */
void *effect_thread(void *worker);
void *renew_thread(void *worker);
void *watch_thread(void *worker);
void *listen_thread(void *worker);
void *maintenance_thread(void *worker);

/* ---- what they ask of each other ---- */

/* Renews at once; the caller does not wait. */
void renew_soon(cb_worker *w);
/* True once a renewal round that began after the call has succeeded; false when the worker ends. */
bool renew_wait(cb_worker *w);

/* Whether it works over that connection from its start to its end. */
bool worker_needs(const cb_worker *w, connection_name which);

/* Stops now if it runs, and waits for every thread. */
void worker_end(cb_worker *w);

/* Sleeps so long, or until the worker ends: then false. */
bool worker_pause(cb_worker *w, double seconds);
void worker_changed(cb_worker *w);

/* How often each chore is done, to begin with. */
void maintenance_init(cb_worker *w);
/* Says that this worker is alive. */
bool heartbeat_send(cb_worker *w, cb_error *e);
/* Counts the processes of the database, and looks at its domains, for the metrics. */
bool process_figures_take(cb_worker *w, cb_db *db, cb_error *e);
bool fleet_figures_take(cb_worker *w, cb_db *db, cb_error *e);

/* ---- events ---- */
void worker_emit(cb_worker *w, const cb_event *event);
#define emit(w, lvl, what, ...)                                                           \
    do {                                                                                  \
        if ((w)->on_event && (lvl) >= (w)->event_level)                                   \
            worker_emit((w), &(cb_event){ .level = (lvl), .name = (what), __VA_ARGS__ }); \
    } while (0)

#endif
