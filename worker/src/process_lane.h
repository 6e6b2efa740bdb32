/* The processes of a domain: their types, their lane, and the jobs in it.
 *
 *     READY ──slot──▶ RUNNING ──▶ RETURNED ──settled──▶ ended
 *       │              │ ▲
 *       │              ▼ │ checkpoint: the slot waits until it is durable
 *       └─ stopping: forgotten here, and released in the database
 */
#ifndef WORKER_PROCESS_LANE_H
#define WORKER_PROCESS_LANE_H

#include <semaphore.h>

#include "lane.h"

typedef struct {
    lane lane; /* always first */

    /* Fixed after open. */
    const cb_process_type **listed; /* what `types` borrows */
    cb_process_types *types;        /* NULL: it has none */
    const cb_process_kind *kinds;   /* borrowed from the types */
    size_t n_kinds;
    char **queues; /* <domain>__processes, then the reply queues */
    size_t n_queues;
    cb_run_host host;

    /* The claimer's own. */
    cb_process_claim_options claim;
    int64_t timer_asked_at; /* when it last asked for the next timer, */
    int64_t timer_at;       /* and when that is; 0: there is none */
} process_lane;

/* A job has one at a time: a checkpoint, or the end of its run. */
typedef struct {
    outcome outcome;                  /* always first */
    cb_process_settlement settlement; /* its item is the job's, or of the run whose slot waits */
} process_outcome;

typedef struct {
    job job;                   /* always first */
    const cb_process_row *row; /* borrowed from the claim */
    size_t type;               /* among the domain's kinds */
    process_outcome outcome;

    /* The settler's, between settler_put and its answer. */
    sem_t answer; /* of a checkpoint: it has its verdict, or … */
    bool left;    /* … nobody will write it */

    /* What the run came to, once it has returned: strings are the job's. */
    bool returned;
    cb_run_result result;
    int64_t took; /* ns */
    cb_process_item *item;
    char *error_code, *error_message, *misuse;
    /* The domain whose claimer is to look, when it is settled; n_domains: all of them. */
    size_t sent_to;
} process_job;

/* Takes the process types of the domain's sets. Refuses (CB_MISUSE) one of another domain, and one
 * that two sets offer. Borrows sets, routes and settings. */
bool process_lane_init(process_lane *l, cb_worker *w, size_t index,
                       const cb_worker_options *options, cb_error *e);
void process_lane_done(process_lane *l);

/* Delivers replies that come to queues which the configuration named before. */
bool process_lane_deliver_former(process_lane *l, cb_db *db, cb_error *e);

extern const lane_ops process_ops;

/* ---- of a running job ---- */
void process_job_run(slot *s, job *j);
void process_job_give_back(job *j);
void process_job_tell_overdue(const job *j, const char *step, bool stuck);

/* ---- of its outcomes ---- */
size_t process_outcome_bytes(const outcome *o);
bool process_outcomes_settle(cb_worker *w, cb_db *db, void *items, size_t n, size_t *refused,
                             cb_error *e);
bool process_outcome_settled(outcome *o);
void process_outcome_left(outcome *o);
void process_outcome_tell_refused(const outcome *o, const cb_error *e);

/* What a run asks of its job, but for the lease. */
extern const cb_run_host process_run_host;

#endif
