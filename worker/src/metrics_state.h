/* What metrics.c counts and metrics_render.c reads. */
#ifndef WORKER_METRICS_STATE_H
#define WORKER_METRICS_STATE_H

#include <pthread.h>

#include "histogram.h"
#include "metrics.h"

/* Counted values are written and read without order: nothing else is inferred from them. */
typedef _Atomic int64_t metrics_value;

/* Counters of a domain. */
typedef enum {
    DOMAIN_CLAIMED,
    DOMAIN_POISONED,
    DOMAIN_EXHAUSTED,
    DOMAIN_TIMEOUTS,
    DOMAIN_STALE,
    DOMAIN_SETTLED,
    DOMAIN_RENEWALS,
    DOMAIN_LEASES_LOST,
    DOMAIN_RELEASED,
    DOMAIN_COUNTERS,
} domain_counter;

/* Counters of a domain's processes. */
typedef enum {
    PROCESS_CLAIMED,
    PROCESS_STEPS,
    PROCESS_REPLAYED,
    PROCESS_CHECKPOINTS,
    PROCESS_SETTLED,
    PROCESS_STALE,
    PROCESS_RENEWALS,
    PROCESS_LEASES_LOST,
    PROCESS_RELEASED,
    REPLIES_DELIVERED,
    REPLIES_LATE,
    REPLIES_DEAD_LETTERED,
    PROCESS_COUNTERS,
} process_counter;

#define METRICS_STATUSES 11 /* as many as a process can have */
extern const char *const metrics_statuses[METRICS_STATUSES];

/* Histograms by names of the code, as they turn up. Names may be made at run time: those without a
 * place are counted together, in the last one, which bounds the number of series. */
enum {
    METRICS_NAMES = 32
};
typedef struct {
    _Atomic(char *) name; /* NULL: free; owned. Those behind it are free too */
    histogram waited;
} metrics_named;

/* One process type of a domain. */
typedef struct {
    metrics_value runs[METRICS_STATUSES];
    histogram run, age; /* of one run; from start to end */
    metrics_named waits[METRICS_NAMES], commands[METRICS_NAMES];
} metrics_process_type;

/* Counters of the whole worker. */
typedef enum {
    WORKER_REFUSED,
    WORKER_NOTIFIED,
    WORKER_BATCHES_CLOSED,
    WORKER_ROWS_PURGED,
    WORKER_MESSAGES_RESTORED,
    WORKER_REPLIES_RESTORED,
    WORKER_COUNTERS,
} worker_counter;

#define METRICS_OUTCOMES 5 /* as many as cb_outcome has */

/* One command type of a domain. */
typedef struct {
    const char *name; /* borrowed */
    metrics_value outcomes[METRICS_OUTCOMES];
    histogram run;
} metrics_type;

typedef struct {
    metrics_domain is;
    metrics_value counters[DOMAIN_COUNTERS];
    metrics_value depth, oldest_due_us; /* depth -1: not known */
    histogram wait;
    metrics_type *types; /* the registry's, in its order, then "unknown" unless a set offers that */
    size_t n_types;
    metrics_value process_counters[PROCESS_COUNTERS];
    histogram timer_lag, step;
    metrics_process_type *process_types; /* of the kinds, in their order */
    size_t unknown; /* where types that no set offers are counted: it bounds the number of series */
} metrics_part;

typedef struct {
    metrics_value reconnects;
    metrics_value
        up; /* -1: never reported, as a connection that this configuration does not need */
} metrics_connection;

struct metrics {
    metrics_part *domains;
    size_t n;
    metrics_value counters[WORKER_COUNTERS];
    metrics_connection connections[CONNECTIONS];
    histogram settle_size, settle_duration;
    struct {
        pthread_mutex_t mutex;
        metrics_figure *all;
        size_t n;
    } figures[FIGURES];
    struct {
        pthread_mutex_t mutex;
        metrics_fleet_figure *all;
        size_t n;
    } fleet;
};

static inline int64_t metrics_get(const metrics_value *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

#endif
