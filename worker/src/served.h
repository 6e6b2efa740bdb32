/* A domain that this worker serves: its places, the jobs in them and the slots that run them. */
#ifndef WORKER_SERVED_H
#define WORKER_SERVED_H

#include <commandbus/worker.h>
#include <pthread.h>
#include <stdatomic.h>

#include "job.h"
#include "registry.h"

/* A command type without handler: when it was first and last seen. */
typedef struct {
    char command_type[64];
    int64_t first, last;
} unknown_type;

enum {
    UNKNOWN_TYPES = 32
};

typedef struct served {
    cb_worker *worker;
    size_t index; /* among the worker's domains, and in the metrics */
    char *name;
    char *queue; /* <domain>__commands */
    registry handlers;
    cb_receiver *receiver;

    /* Settings, fixed after open. */
    int slots;       /* 0: no commands are served */
    int places;      /* slots + prefetch */
    int fleet_limit; /* -1: left as it is */
    double vt_seconds, poll_seconds;
    bool notify;
    int timeout_seconds, max_attempts;
    double *backoff;
    size_t n_backoff;

    pthread_mutex_t mutex; /* guards everything below, and the stages of jobs */
    pthread_cond_t work;   /* a job is ready, a lease was renewed, or it is time to end */
    job *first_ready, *last_ready;
    job *jobs;               /* all in flight */
    atomic_size_t in_flight; /* changed under the mutex, read anywhere */
    size_t running, overdue;
    atomic_size_t given_up;     /* of them, jobs that no drain waits for; changed under the mutex */
    size_t idle;                /* slots waiting for work */
    size_t waking;              /* of them, told that there is some, and not yet awake */
    atomic_size_t ready;        /* jobs that no slot has taken; changed under the mutex */
    _Atomic int64_t typical_ns; /* how long handlers took of late */
    bool giving_back, ending;
    unknown_type unknown[UNKNOWN_TYPES];
    pthread_t *threads;
    size_t n_threads;
} served;

bool served_init(served *d, cb_worker *w, size_t index, const cb_worker_domain_options *options,
                 cb_error *e);
void served_done(served *d);

/* Wakes a slot if a job is ready and nobody is on the way to it. With the mutex held. */
void served_wake(served *d);

/* How many may be claimed now. */
size_t served_free_places(served *d);
/* Takes the jobs over: they are in flight from here on. False when no job may start any more: the
 * caller then gives them back. */
bool served_add(served *d, job *const *jobs, size_t n);
/* A job has ended: its place is free. */
void served_end(served *d, job *j);

/* No job may start any more: each ready one is taken out and handed to `give`, without the mutex. */
void served_give_back(served *d, void (*give)(job *j));

/* All jobs, each with a user of its own that job_drop gives back; the caller frees *ret. False: no
 * memory. */
bool served_snapshot(served *d, job ***ret, size_t *n);
void snapshot_done(job **jobs, size_t n);

/* Seconds before attempt n + 1. */
double served_backoff(const served *d, int attempt);

#endif
