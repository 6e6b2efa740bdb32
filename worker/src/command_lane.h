/* The commands of a domain: their lane, and the jobs in it.
 *
 *     READY ──slot──▶ RUNNING ──returns──▶ RETURNED ──settled──▶ ended
 *                        │ timeout: HANDLER_TIMEOUT is settled at once, the job stays
 *                        ▼ until its handler returns and its late outcome was brought
 *
 * What is not atomic and changes is guarded by the lane's mutex. */
#ifndef WORKER_COMMAND_LANE_H
#define WORKER_COMMAND_LANE_H

#include <commandbus/host.h>
#include <commandbus/receive.h>

#include "lane.h"
#include "outcomes.h"
#include "registry.h"

/* A command type without handler: when it was first and last seen. */
typedef struct {
    char command_type[64];
    int64_t first, last;
} unknown_type;

enum {
    UNKNOWN_TYPES = 32
};

typedef struct {
    lane lane;   /* always first */
    char *queue; /* <domain>__commands */
    registry handlers;
    cb_receiver *receiver;
    int fleet_limit; /* -1: left as it is */
    double *backoff;
    size_t n_backoff;

    _Atomic int64_t typical_ns; /* how long handlers took of late */
    unknown_type unknown[UNKNOWN_TYPES];
} command_lane;

typedef struct command_job command_job;

/* Something to settle. A job has two: what its handler came to, and before that perhaps a timeout. */
typedef struct outcome {
    queued queued; /* always first */
    command_job *job;
    cb_settlement settlement;
    int tries;             /* that the database refused */
    int64_t put_off_since; /* when its effects first did not get through, 0: never */
} outcome;

struct command_job {
    job job; /* always first */
    command_lane *lane;
    const cb_command *command; /* borrowed from the claim */
    int type;                  /* in the domain's registry, -1 unknown */
    bool enters;               /* its handler may: the lease was long enough */
    bool timed_out;            /* HANDLER_TIMEOUT was handed to the settler */
    bool timeout_pending;      /* and has no verdict yet */
    bool parked;               /* returned meanwhile: `own` follows that verdict */
    int64_t returned_at;

    outcome own, timeout;
    cb_context *context; /* what `own` borrows from */
    char timeout_text[80];
};

bool command_lane_init(command_lane *l, cb_worker *w, size_t index,
                       const cb_worker_domain_options *options, cb_error *e);
void command_lane_done(command_lane *l);

/* The caller owns the job. NULL: no memory. */
job *command_job_make(command_lane *l, claim_share *share, const cb_command *command,
                      int64_t lease_end);

/* Seconds before attempt n + 1. */
double command_backoff(const command_lane *l, int attempt);

/* For queues of them. */
size_t outcome_bytes(const queued *o);

extern const lane_ops command_ops;

/* ---- of a running job ---- */
void command_job_begin(job *j);
void command_job_run(slot *s, job *j);
void command_job_give_back(job *j);
bool command_job_overdue(job *j);
bool command_job_is_hopeless(const job *j);
void command_job_tell_stuck(const job *j, const char *step, bool stuck);

/* The host of its context; the arg is the job. */
extern const cb_host command_host;

#endif
