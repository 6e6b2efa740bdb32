/* A claimer: the thread that takes work for free places, one domain at a time, those with most reason
 * first in turn. Commands and processes have one each; what differs is the kind. */
#ifndef WORKER_CLAIMER_H
#define WORKER_CLAIMER_H

#include <pthread.h>
#include <stdatomic.h>

#include "sleep.h"

/* What is claimed for: a domain's commands, or its processes. */
typedef struct {
    size_t domain;      /* its index */
    bool always;        /* to be looked at even when nothing is free: replies are to be delivered */
    bool replies;       /* this look is also for replies: somebody hinted at some, or it is time */
    int64_t replies_at; /* when the last such look was */
    trouble refused;    /* claims are */
    sleeper sleep;

    /* Guarded by the claimer's mutex. */
    bool hinted;     /* somebody sent something, or said so */
    bool replied;    /* likewise, a reply */
    int64_t look_by; /* somebody asks for a look by then; 0: nobody */
} claim_place;

typedef struct {
    /* How many could be taken now. */
    size_t (*free_places)(cb_worker *w, const claim_place *p);
    void (*claim)(cb_worker *w, claim_place *p);
    /* Gives back what the database says we hold and we do not: the answer to a claim was lost. Only the
     * claimer claims, so between two claims the two views can be compared. */
    void (*release_unknown)(cb_worker *w, claim_place *p);
} claim_kind;

typedef struct {
    cb_worker *worker;
    const claim_kind *kind;
    link_name link;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    claim_place *places; /* one a domain, in their order */
    size_t n;
    size_t turn; /* whose turn it is to be looked at first */
    bool waiting;
    bool sweep_wanted;    /* guarded by the mutex */
    atomic_bool claiming; /* a claim is on its way: jobs may yet come of it */
    int64_t sweep_at;     /* when to look once more for lost leases; 0: never */
    int sweeps;           /* left */
} claimer;

/* The places are made, and for the caller to fill. False: no memory. */
bool claimer_init(claimer *c, cb_worker *w, const claim_kind *kind, link_name link, size_t n,
                  cb_error *e);
void claimer_done(claimer *c);
/* Before its thread starts. */
void claimer_reset(claimer *c);

/* Something may be there for that domain. */
void claimer_hint(claimer *c, size_t domain);
/* A reply may be there for its processes. */
void claimer_hint_reply(claimer *c, size_t domain);
/* Something may be due there so soon. */
void claimer_look_within(claimer *c, size_t domain, double seconds);
/* A place became free. */
void claimer_freed(claimer *c);
/* Something that was claimed is not wanted any more: gives it back. */
void claimer_sweep(claimer *c);

/* A claim for a place failed. It must not keep the others from theirs: a refusal is no matter of the
 * connection. */
void claimer_failed(claimer *c, claim_place *p, const cb_error *e, const char *doing);

void *claimer_thread(void *claimer);

#endif
