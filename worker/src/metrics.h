/* Counting what happens. Every function here is lock-free and may be called from any thread; domain
 * and type are indexes (of the worker's domains; of the domain's registry, -1 for an unknown
 * type). */
#ifndef WORKER_METRICS_H
#define WORKER_METRICS_H

#include <commandbus/fleet.h>
#include <commandbus/process_row.h>
#include <commandbus/settle.h>

#include "registry.h"

typedef struct metrics metrics;

typedef struct {
    const char *domain; /* borrowed */
    const registry *types;
    int slots;
    const cb_process_kind *kinds; /* borrowed; of the processes */
    size_t n_kinds;
    int process_slots;
} metrics_domain;

/* Which connection. */
typedef enum {
    CONNECTION_CLAIM,
    CONNECTION_SETTLE,
    CONNECTION_RENEW,
    CONNECTION_LISTEN,
    CONNECTION_KEEP,
    CONNECTION_EFFECT,
    CONNECTION_PROCESS,
    CONNECTION_PROCESS_SETTLE,
    CONNECTIONS,
} connection_name;

extern const char *const connection_names[CONNECTIONS]; /* "claim" and so on */

/* Borrows the domains' strings and registries. */
bool metrics_open(const metrics_domain *domains, size_t n, metrics **ret, cb_error *e);
void metrics_free(metrics *m);

void metrics_claim(metrics *m, size_t domain, size_t claimed, size_t poisoned, size_t exhausted);
/* A handler returned (or was never entered) and its outcome has its verdict. Outcomes are counted
 * by domain, type and outcome. error_code may be NULL; HANDLER_TIMEOUT has a counter of its own
 * too. */
void metrics_outcome(metrics *m, size_t domain, int type, cb_outcome outcome, cb_verdict verdict,
                     const char *error_code);
/* One run of a handler, for the histogram. */
void metrics_run(metrics *m, size_t domain, int type, int64_t took_us);
/* From visible to claimed. */
void metrics_wait(metrics *m, size_t domain, int64_t waited_us);
void metrics_settle(metrics *m, size_t items, int64_t took_us);
void metrics_refused(metrics *m, size_t items); /* SETTLE_REFUSED */
void metrics_renewed(metrics *m, size_t domain, size_t extended, size_t gone);
void metrics_released(metrics *m, size_t domain, size_t commands); /* release_unknown */
void metrics_reconnect(metrics *m, connection_name which);
void metrics_connection_up(metrics *m, connection_name which, bool up);
void metrics_notified(metrics *m); /* wake-ups by NOTIFY that found work or not */
void metrics_sample(metrics *m, size_t domain, const cb_queue_sample *sample);
void metrics_housekeeping(metrics *m, int64_t batches_closed, int64_t rows_purged,
                          int64_t messages_restored, int64_t replies_restored);

/* ---- processes: `type` is an index of the domain's kinds ---- */

void metrics_process_claim(metrics *m, size_t domain, size_t claimed, const cb_process_look *look);
/* From due to claimed. */
void metrics_timer_lag(metrics *m, size_t domain, int64_t waited_us);

/* A run whose end is durable. */
typedef struct {
    const char *status; /* the one it left with */
    int steps, replayed;
    int64_t took_us;
    int64_t age_ms; /* of the process when it was claimed */
} process_run;

void metrics_process_run(metrics *m, size_t domain, size_t type, const process_run *run);
/* A wait, or the command of a command step, that has ended. */
void metrics_process_waited(metrics *m, size_t domain, size_t type, bool for_command,
                            const char *name, int64_t waited_us);
void metrics_process_step(metrics *m, size_t domain, int64_t took_us);
void metrics_process_settled(metrics *m, size_t domain, bool checkpoint);
void metrics_process_stale(metrics *m, size_t domain);
void metrics_process_renewed(metrics *m, size_t domain, size_t extended, size_t gone);
void metrics_process_released(metrics *m, size_t domain, size_t processes);

/* By what processes in the database are counted, beside type and status. */
typedef enum {
    FIGURES_BY_CODE, /* their error code */
    FIGURES_BY_WAIT, /* what they wait for */
    FIGURES,
} figures_by;

typedef struct {
    char process_type[128], status[24], by[128]; /* "": no code, no wait */
    int64_t count;
    int64_t oldest_us;       /* for how long one of them has been as it is */
    int64_t oldest_due_us;   /* for how long one of them has been due; 0: none is */
    int64_t oldest_reply_us; /* for how long one of them has waited for a reply; 0: none does */
} metrics_figure;

/* Takes the figures over: they are malloc'ed. */
void metrics_figures_adopt(metrics *m, figures_by by, metrics_figure *figures, size_t n);

/* A domain of the database, served here or not. */
typedef struct {
    char domain[64];
    int64_t instances; /* live ones with slots for it */
    int64_t limit;     /* fleet-limit; 0: none */
    int64_t leases;    /* of a limited domain */
    int64_t in_tsq;
    int64_t oldest_due_us;
} metrics_fleet_figure;

/* Likewise. */
void metrics_fleet_adopt(metrics *m, metrics_fleet_figure *figures, size_t n);

/* What only the worker knows at the moment of a scrape. */
typedef struct {
    size_t in_flight;     /* claimed, until settled and returned */
    size_t running;       /* inside their handler */
    size_t overdue;       /* running past their timeout */
    size_t processes;     /* in flight */
    size_t steps_overdue; /* running past their timeout */
} metrics_now;

/* The text of a scrape: `now` has one element a domain. The caller frees *ret. */
bool metrics_render(const metrics *m, const metrics_now *now, bool ready, const char *worker_id,
                    const char *version, char **ret, cb_error *e);

/* Settled outcomes of a domain since the start, for the heartbeat. */
int64_t metrics_settled(const metrics *m, size_t domain);

#endif
