/* A job: one claimed command on its way through the worker.
 *
 *     claimed ──▶ READY ──slot──▶ RUNNING ──returns──▶ RETURNED ──settled──▶ ended
 *                   │                │ timeout: HANDLER_TIMEOUT is settled at once, the job stays
 *                   │                ▼ until its handler returns and its late outcome was brought
 *                   └─ stopping or lease lost: given back unentered
 *
 * It takes one of its domain's places from the claim until it has ended. Stage and the flags beside it
 * are guarded by the domain's mutex; what other threads look at in passing is atomic. */
#ifndef WORKER_JOB_H
#define WORKER_JOB_H

#include <commandbus/host.h>
#include <commandbus/receive.h>
#include <stdatomic.h>

#include "outcomes.h"

struct served;

/* A claim that lives as long as one of its commands. */
typedef struct {
    cb_claim *claim;
    atomic_size_t *counted; /* where its bytes are counted while it lives */
    atomic_size_t users;
} claim_share;

typedef enum {
    JOB_READY,
    JOB_RUNNING,
    JOB_RETURNED,
} job_stage;

typedef struct job job;

/* Something to settle. A job has two: what its handler came to, and before that perhaps a timeout. */
typedef struct outcome {
    queued queued; /* always first */
    job *job;
    cb_settlement settlement;
    int tries;             /* that the database refused */
    int64_t put_off_since; /* when its effects first did not get through, 0: never */
} outcome;

struct job {
    struct served *domain;
    claim_share *share;
    const cb_command *command; /* borrowed from the share */
    int type;                  /* in the domain's registry, -1 unknown */
    double lease_seconds;      /* what a renewal asks for */

    /* The local end of the lease (now_ns), on the safe side of the server's; 0 once it is gone. */
    _Atomic int64_t lease_end;
    _Atomic int64_t deadline; /* of the handler (now_ns), 0 before it runs */
    atomic_bool wants_lease;  /* cannot start with what is left of it */

    /* Guarded by the domain's mutex. */
    job_stage stage;
    bool timed_out;       /* HANDLER_TIMEOUT was handed to the settler */
    bool timeout_pending; /* and has no verdict yet */
    bool parked;          /* returned meanwhile: `own` follows that verdict */
    bool given_up;        /* overran its grace too: nobody waits for it any more */
    int64_t started_at, returned_at;
    job *next_ready;
    job *prev, *next; /* all jobs of the domain */

    outcome own, timeout;
    cb_context *context; /* what `own` borrows from */
    char timeout_text[80];
    atomic_int users; /* the domain's list, and whoever looks without its mutex */
};

/* The caller owns the job, which joins no list. Takes a share of the claim. NULL: no memory. */
job *job_make(struct served *domain, claim_share *share, const cb_command *command,
              int64_t lease_end);
/* Drops one user; the last one frees it. */
void job_drop(job *j);

/* Drops one user of a claim; the last one frees it. */
void share_drop(claim_share *share);

/* For queues of them. */
size_t outcome_bytes(const queued *o);

/* Fills in what every settlement of the job has. */
void outcome_init(outcome *o, job *j);

/* How the local end of a lease is figured: from before it was asked for, and a margin less. */
int64_t lease_end_from(int64_t asked_at, double vt_seconds);
double lease_margin(double vt_seconds);
int64_t job_lease_left(const job *j); /* ns; 0 when over or gone */

#endif
