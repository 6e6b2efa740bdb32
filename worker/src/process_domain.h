/* The processes of a domain that this worker serves: their types, the slots that run them and the jobs
 * in those. Beside a `served`, which has the domain's commands. */
#ifndef WORKER_PROCESS_DOMAIN_H
#define WORKER_PROCESS_DOMAIN_H

#include <commandbus/run.h>
#include <commandbus/worker.h>
#include <pthread.h>
#include <stdatomic.h>

#include "process_job.h"

typedef struct {
    struct process_domain *domain;
    cb_run *run;
    pthread_t thread;
} process_slot;

typedef struct process_domain {
    cb_worker *worker;
    size_t index;     /* among the worker's domains, and in the metrics */
    const char *name; /* borrowed from the served domain */

    /* Fixed after open. */
    const cb_process_type **listed; /* what `types` borrows */
    cb_process_types *types;        /* NULL: it has none */
    const cb_process_kind *kinds;   /* borrowed from the types */
    size_t n_kinds;
    char **queues; /* <domain>__processes, then the reply queues */
    size_t n_queues;
    cb_process_claim_options
        claim; /* the claimer's own, and so are these: when it last asked for the next */
    int64_t timer_asked_at, timer_at; /* timer, and when that is; 0: there is none */
    cb_run_host host;
    int n_slots; /* 0: it runs none */
    double vt_seconds;

    pthread_mutex_t mutex; /* guards everything below, and what jobs say of it */
    pthread_cond_t work;   /* a job is ready, or it is time to end */
    process_job *first_ready, *last_ready;
    process_job *jobs;       /* all in flight */
    atomic_size_t in_flight; /* changed under the mutex, read anywhere */
    atomic_size_t given_up;  /* of them, jobs that no drain waits for; likewise */
    size_t overdue;          /* steps that run past their timeout */
    int idle;                /* slots that sleep */
    bool waking;             /* one of them is about to wake */
    bool giving_back, ending;
    process_slot *slots;
    size_t n_threads;
} process_domain;

/* Takes the process types of the domain's sets. Refuses (CB_MISUSE) one of another domain, and one that
 * two sets offer. Borrows name, sets, routes and settings. */
bool process_domain_init(process_domain *d, cb_worker *w, size_t index,
                         const cb_worker_options *options, cb_error *e);
void process_domain_done(process_domain *d);

/* How many may be claimed now. */
size_t process_domain_free(const process_domain *d);
/* Takes the jobs over. False when none may start any more: the caller drops them, and sweeps. */
bool process_domain_add(process_domain *d, process_job *const *jobs, size_t n);
/* The next job; NULL: the slot is to end. */
process_job *process_domain_next(process_domain *d);
/* A job has ended: its slot is free. */
void process_domain_end(process_domain *d, process_job *j);

/* No job may start any more, and those that did not are forgotten. True when there was one. */
bool process_domain_give_back(process_domain *d);

/* All jobs, each with a user of its own that process_job_drop gives back; the caller frees *ret. False:
 * no memory. */
bool process_domain_snapshot(process_domain *d, process_job ***ret, size_t *n);
void process_snapshot_done(process_job **jobs, size_t n);

#endif
