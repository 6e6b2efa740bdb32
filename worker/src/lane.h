/* A lane: one kind of work of one domain, its commands or its processes, on its way through the
 * worker.
 *
 *     claimed ──▶ READY ──slot──▶ RUNNING ──returns──▶ RETURNED ──settled──▶ ended
 *                   └─ stopping: given back unentered
 *
 * A job takes one of the lane's places from its claim until it has ended; a slot is a thread that
 * runs one job at a time, and may run the next while what came of the last one is being settled.
 * Places, lists and threads are the same for both kinds; what differs stands in their tables of
 * operations, command_ops and process_ops. */
#ifndef WORKER_LANE_H
#define WORKER_LANE_H

#include <commandbus/lease.h>
#include <commandbus/run.h>
#include <commandbus/worker.h>
#include <pthread.h>
#include <stdatomic.h>

#include "claimer.h"

typedef struct lane lane;
typedef struct job job;

typedef enum {
    COMMANDS,
    PROCESSES,
    KINDS,
} lane_kind;

/* ---- jobs ---- */

/* A claim that lives as long as one of its jobs. */
typedef struct {
    const struct lane_ops *ops;
    void *claim;            /* owned */
    size_t bytes;           /* that it takes, */
    atomic_size_t *counted; /* and where they are counted while it lives */
    atomic_size_t users;
} claim_share;

typedef enum {
    JOB_READY,
    JOB_RUNNING,
    JOB_RETURNED, /* or given back: what came of it is with the settler */
} job_stage;

/* The first member of a command_job or a process_job. */
struct job {
    lane *lane;
    claim_share *share;
    double lease_seconds; /* what a renewal asks for */

    /* The local end of the lease (now_ns), on the safe side of the server's; 0 once it is gone. */
    _Atomic int64_t lease_end;
    atomic_bool wants_lease; /* cannot start with what is left of it */

    /* Guarded by the lane's mutex. */
    job_stage stage;
    bool lease_ends; /* its timeout is settled: that the lease is gone is not news */
    job *next_ready;
    job *prev, *next; /* all jobs of the lane */

    /* Likewise: what runs of it, its handler or a step, for the watchdog. */
    bool runs;
    int64_t began;            /* now_ns */
    _Atomic int64_t deadline; /* read anywhere; 0 before it runs */
    char step[64];            /* of a process */
    bool overdue;             /* runs past its deadline */
    bool given_up;            /* and past its grace: nobody waits for it any more */

    atomic_int users; /* the lane's list, and whoever looks without its mutex */
};

/* Something to settle: the first member of a command_outcome or a process_outcome. */
typedef struct outcome {
    struct outcome *next; /* in a queue of them */
    job *job;
    int tries; /* that the database refused */
} outcome;

/* Fills in a new job, whose only user is the caller. Takes a share of the claim. */
void job_init(job *j, lane *l, claim_share *share, int64_t lease_end);
/* Drops one user; the last one frees it. */
void job_drop(job *j);

/* The caller is its first user, and the claim ends with the last one. NULL: out of memory. */
claim_share *share_make(const lane *l, void *claim, size_t bytes);
/* Drops one user of a claim; the last one frees it. */
void share_drop(claim_share *share);

/* Its handler, or a step of it, begins and may take so long; or has returned. With the mutex
 * held. */
void watch_begin(job *j, const char *step, int64_t timeout_ns);
void watch_end(job *j);

/* How the local end of a lease is computed: from before it was asked for, and a margin less. */
int64_t lease_end_from(int64_t asked_at, double vt_seconds);
double lease_margin(double vt_seconds);
int64_t job_lease_left(const job *j); /* ns; 0 when over or gone */

/* ---- lanes ---- */

typedef struct {
    lane *lane;
    cb_run *run; /* of processes: what the thread runs them with */
    pthread_t thread;
} slot;

/* What differs between the kinds. */
typedef struct lane_ops {
    lane_kind kind;
    connection_name claim_connection;  /* over which they are claimed, */
    connection_name settle_connection; /* and settled */

    /* How many could be claimed now, as far as places and memory go. */
    size_t (*free_places)(const lane *l);
    /* Claims up to `quantity`, and tells what came. */
    bool (*claim)(lane *l, cb_db *db, size_t quantity, claimed *ret, cb_error *e);
    void (*claim_free)(void *claim);
    /* Of the i-th of the claim, with the caller as its user. NULL: out of memory. */
    job *(*job_make)(lane *l, claim_share *share, size_t i, int64_t lease_end);
    void (*job_free)(job *j);
    /* Frees, uncharged, what the database says this worker holds and is not among the jobs. */
    bool (*release_unknown)(lane *l, cb_db *db, job *const *jobs, size_t n, size_t *released,
                            cb_error *e);
    void (*count_released)(metrics *m, size_t domain, size_t released);
    const char *released_event, *released_hint; /* how that is told */

    /* A slot took the job: with the mutex held, which it may give up for a while. May be NULL. */
    void (*begin)(job *j);
    /* Runs it, and hands over what came of it. */
    void (*run)(slot *s, job *j);
    /* The job never began, and will not: its place is free once the database knows. */
    void (*give_back)(job *j);

    /* What runs is past its deadline: settles that, with the mutex held. NULL: it is told at
     * once. */
    void (*overdue)(job *j);
    /* Nothing of it can still be settled, so no drain waits for it. With the mutex held; NULL:
     * always. */
    bool (*is_hopeless)(const job *j);
    /* Without it: `step` is past its deadline, or (stuck) past its grace, too. */
    void (*tell_overdue)(const job *j, const char *step, bool stuck);

    /* Asks for n leases of one length, of any lanes of this kind. */
    bool (*extend)(cb_worker *w, cb_db *db, job *const *jobs, size_t n, double seconds,
                   cb_lease_state *states, cb_error *e);
    /* Others may have its place though its lease is still there: it must not begin. NULL: never. */
    bool (*has_lost_place)(const job *j);
    void (*count_renewed)(metrics *m, size_t domain, size_t extended, size_t lost);
    void (*tell_lost)(const job *j);

    size_t item_size;                  /* of what the database is given to settle, */
    size_t item_at;                    /* where that stands in the outcome, */
    size_t verdict_at;                 /* and where in it the answer, a cb_verdict, does */
    size_t (*bytes)(const outcome *o); /* of it on the wire */
    /* Writes n items; one that is not taken never spoils its batch. */
    bool (*settle)(cb_worker *w, cb_db *db, void *items, size_t n, size_t *refused, cb_error *e);
    /* It has its verdict, which is not CB_BUSY. True when its job has ended: a place is free. */
    bool (*settled)(outcome *o);
    /* The database takes it in no form; it is brought again every second. */
    void (*tell_refused)(const outcome *o, const cb_error *e);
    /* The worker ends without it. NULL: nobody waits. */
    void (*left)(outcome *o);
    /* More outcomes of this lane come within microseconds. NULL: never. */
    bool (*is_bursting)(const lane *l);
} lane_ops;

struct lane {
    /* Fixed after open. */
    cb_worker *worker;
    const lane_ops *ops;
    size_t index;     /* of the domain among the worker's, and in the metrics */
    const char *name; /* of the domain, borrowed */
    int n_slots;      /* 0: nothing of this kind runs here */
    int n_places;     /* the slots, and what may be claimed ahead of them */
    double vt_seconds;
    size_t first_reply; /* of the queues it sleeps on: from here on they bring replies */
    slot *slots;

    claim_state claiming; /* the claimer's */

    pthread_mutex_t mutex; /* guards everything below, and the stages of jobs */
    pthread_cond_t work;   /* a job is ready, or it is time to end */
    job *first_ready, *last_ready;
    job *jobs;               /* all in flight */
    atomic_size_t in_flight; /* changed under the mutex, read anywhere, as the next two */
    atomic_size_t ready;     /* of them, jobs that no slot has taken */
    atomic_size_t given_up;  /* and jobs that no drain waits for */
    size_t running, overdue; /* handlers, or steps of processes; and those past their timeout */
    size_t idle;             /* slots that sleep */
    bool waking;             /* one of them is about to wake */
    bool giving_back, ending;
    size_t n_threads;
};

/* The name of the domain is there already. Slots and places come with lane_open_slots. */
void lane_init(lane *l, cb_worker *w, const lane_ops *ops, size_t index,
               const cb_worker_domain_options *options);
bool lane_open_slots(lane *l, int slots, int places, cb_error *e);
/* Jobs that are still there were never settled: their leases end by themselves. */
void lane_done(lane *l);

/* How many could be claimed now. */
size_t lane_free_places(const lane *l);
/* Several are in flight, and there was no more to claim: work comes in one by one. */
bool lane_trickles(const lane *l);
/* Takes the jobs over: they are in flight from here on, or given back if none may start any
 * more. */
void lane_add(lane *l, job *const *jobs, size_t n);
/* A job has ended: its place is free. */
void lane_end(job *j);
/* No job may start any more; those that did not are given back. */
void lane_give_back(lane *l);

/* All jobs, each with a user of its own that snapshot_done drops. False: out of memory. */
bool lane_snapshot(lane *l, job ***ret, size_t *n);
void snapshot_done(job **jobs, size_t n);

/* Returns 0 or an errno: some of the threads may be there all the same. */
int lane_start(lane *l, const pthread_attr_t *attr);
/* Lets each thread end that has nothing ready, … */
void lane_stop(lane *l);
/* … and waits for all of them. */
void lane_join(lane *l);

#endif
