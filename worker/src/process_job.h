/* A process job: one claimed process on its way through the worker.
 *
 *     claimed ──▶ ready ──slot──▶ runs ──▶ returned ──settled──▶ ended
 *                   │              │ ▲
 *                   │              ▼ │ checkpoint: the slot waits until it is durable
 *                   └─ stopping: forgotten here, and released in the database
 *
 * It takes one of its domain's places from the claim until what it came to is durable; its slot may run the
 * next one meanwhile. What stands behind
 * the comment is guarded by the domain's mutex; what other threads look at in passing is atomic. */
#ifndef WORKER_PROCESS_JOB_H
#define WORKER_PROCESS_JOB_H

#include <commandbus/run.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "outcomes.h"
#include "process_memory.h"

struct process_domain;

/* A claim that lives as long as one of its processes. */
typedef struct {
    cb_process_claim *claim;
    process_memory *memory; /* where its bytes are counted while it lives */
    atomic_size_t users;
} process_share;

typedef struct process_job process_job;

/* What a job has to settle: one thing at a time, a checkpoint or the end of its run. */
typedef struct {
    queued queued; /* always first */
    process_job *job;
    cb_process_settlement settlement; /* its item is the job's, or of the run whose slot waits */
    int tries;                        /* that the database refused */
} process_outcome;

struct process_job {
    struct process_domain *domain;
    process_share *share;
    const cb_process_row *row; /* borrowed from the share */
    size_t type;               /* among the domain's kinds */

    /* The local end of the lease (now_ns), on the safe side of the server's; 0 once it is gone. */
    _Atomic int64_t lease_end;
    process_outcome outcome;

    /* The settler's, between settler_put and its answer. */
    sem_t answer; /* of a checkpoint: it has its verdict, or … */
    bool left;    /* … nobody will write it */

    /* What the run came to, once it has returned: strings are the job's. */
    bool returned;
    cb_run_result result;
    int64_t took; /* ns */
    char *item, *error_code, *error_message, *misuse;
    size_t
        sent_to; /* the domain whose claimer is to look, when it is settled; n_domains: all of them */

    /* Guarded by the domain's mutex. */
    bool finished;        /* the end of its run was handed to the settler */
    char step[64];        /* that runs */
    int64_t step_began;   /* 0: none runs */
    int64_t step_timeout; /* ns */
    bool overdue;         /* that step is */
    bool given_up;        /* overran its grace too: nobody waits for it any more */
    process_job *next_ready;
    process_job *prev, *next; /* all jobs of the domain */
    atomic_int users;         /* the domain's list, and whoever looks without its mutex */
};

/* The caller owns the job, which joins no list. Takes a share of the claim. NULL: no memory. */
process_job *process_job_make(struct process_domain *d, process_share *share,
                              const cb_process_row *row, int64_t lease_end);
/* Keeps what its run came to, which until now was borrowed from the run. False: no memory. */
bool process_job_return(process_job *j, const cb_run_result *result, int64_t took);
/* Drops one user; the last one frees it. */
void process_job_drop(process_job *j);
/* Drops one user of a claim; the last one frees it. */
void process_share_drop(process_share *share);

#endif
