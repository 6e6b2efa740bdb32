/* A claimer: the thread that takes work for free places, one lane at a time, those with most reason
 * first in turn. Each kind has one. */
#ifndef WORKER_CLAIMER_H
#define WORKER_CLAIMER_H

#include <pthread.h>
#include <stdatomic.h>

#include "sleep.h"

struct lane;
struct lane_ops;

/* What the claimer thinks of a lane. */
typedef struct {
    bool replies;       /* this look is also for replies: somebody hinted at some, or it is time */
    bool comes;         /* it is because somebody called us: others leave that to us */
    bool doubts;        /* it is because somebody else was called a while ago */
    int64_t replies_at; /* when the last look for replies was */
    int64_t claimed_at; /* when the last look of any kind was */
    int64_t typical_ns; /* how long claims took of late */
    trouble refused;    /* claims are */
    sleeper sleep;

    /* Guarded by the claimer's mutex. */
    bool hinted;      /* somebody sent something, or said so */
    bool replied;     /* likewise, a reply */
    bool called;      /* by our name, or everybody was */
    int64_t look_by;  /* somebody asks for a look by then; 0: nobody */
    int64_t doubt_at; /* likewise: somebody else was called; 0: nobody */
    int64_t doubt_ns; /* how long after such a call that is */
} claim_state;

/* What a claim brought. */
typedef struct {
    void *claim; /* with n > 0: owned */
    size_t n, bytes;
    size_t seen;        /* these, and what was dealt with on the way */
    bool more;          /* it got all it asked for, or left some */
    bool more_replies;  /* to deliver */
    double look_within; /* seconds, something will be due; < 0: nothing is known */
} claimed;

typedef struct {
    cb_worker *worker;
    const struct lane_ops *ops;
    struct lane **lanes; /* one a domain, in their order; borrowed */
    size_t n;
    size_t turn; /* whose turn it is to be looked at first */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool waiting;
    bool sweep_wanted;    /* guarded by the mutex */
    atomic_bool claiming; /* a claim is on its way: jobs may yet come of it */
    int64_t sweep_at;     /* when to look once more for lost leases; 0: never */
    int sweeps;           /* left */
} claimer;

/* The lanes are borrowed. */
void claimer_init(claimer *c, cb_worker *w, struct lane **lanes, size_t n);
void claimer_done(claimer *c);
/* Before its thread starts. */
void claimer_reset(claimer *c);

/* Something may be there for that lane. */
void claimer_hint(struct lane *l);
/* A reply may be in a queue of its processes. */
void claimer_hint_reply(struct lane *l);
/* A command has ended that replies there: a process of some lane has it in its inbox, nearly
 * always. */
void claimer_hint_queue(claimer *c, const char *queue);
/* A hint by a notification that called us, or everybody. */
void claimer_call(struct lane *l, bool for_reply);
/* Somebody else was woken for what that lane sleeps on. */
void claimer_doubt(struct lane *l);
/* Something may be due there so soon. */
void claimer_look_within(struct lane *l, double seconds);
/* A place became free. */
void claimer_freed(claimer *c);
/* Something that was claimed is not wanted any more: gives it back. */
void claimer_sweep(claimer *c);

void *claimer_thread(void *claimer);

#endif
