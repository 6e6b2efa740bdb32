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

/* A job has two: what its handler came to, and before that perhaps a timeout. */
typedef struct {
    outcome outcome; /* always first */
    cb_settlement settlement;
    int64_t put_off_since; /* when its effects first did not get through, 0: never */
} command_outcome;

typedef struct {
    job job;                   /* always first */
    const cb_command *command; /* borrowed from the claim */
    int type;                  /* in the domain's registry, -1 unknown */
    bool enters;               /* its handler may: the lease was long enough */
    bool timed_out;            /* HANDLER_TIMEOUT was handed to the settler */
    bool timeout_pending;      /* and has no verdict yet */
    bool parked;               /* returned meanwhile: `own` follows that verdict */
    int64_t returned_at;

    command_outcome own, timeout;
    cb_context *context; /* what `own` borrows from */
    char timeout_text[80];
} command_job;

bool command_lane_init(command_lane *l, cb_worker *w, size_t index,
                       const cb_worker_domain_options *options, cb_error *e);
void command_lane_done(command_lane *l);

/* Seconds before attempt n + 1. */
double command_backoff(const command_lane *l, int attempt);

extern const lane_ops command_ops;

/* ---- of a running job ---- */
void command_job_begin(job *j);
void command_job_run(slot *s, job *j);
void command_job_give_back(job *j);
void command_job_overdue(job *j);
bool command_job_is_hopeless(const job *j);
void command_job_tell_stuck(const job *j, const char *step, bool stuck);

/* ---- of its outcomes ---- */
size_t command_outcome_bytes(const outcome *o);
bool command_outcomes_settle(cb_worker *w, cb_db *db, void *items, size_t n, size_t *refused,
                             cb_error *e);
/* Counts, tells, and ends the job if that was its last outcome. */
bool command_outcome_settled(outcome *o);
void command_outcome_tell_refused(const outcome *o, const cb_error *e);

/* The host of its context; the arg is the job. */
extern const cb_host command_host;

#endif
