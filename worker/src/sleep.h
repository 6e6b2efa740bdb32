/* How long to leave a lane alone after a claim, and who is to wake us. */
#ifndef WORKER_SLEEP_H
#define WORKER_SLEEP_H

#include "connection.h"

/* How a lane sleeps; only its thread looks at it. */
typedef struct {
    /* Fixed after open. */
    const char *const *queues; /* whose senders are to wake us; borrowed */
    size_t n_queues;
    double poll_seconds;
    bool notify;
    db_connection *conn; /* where sleepers are announced */
    trouble refused;     /* announcing is */

    atomic_bool hot;  /* the last claim got all it asked for: there is more; read anywhere */
    int64_t poll_at;  /* when to look next, hint or not */
    double poll_wait; /* seconds, doubling up to the poll interval */
    int hits;         /* claims that found something, each soon after the one before */
    int64_t last_hit;
    int64_t announced;    /* a sleeper row is there until then */
    int64_t asleep_since; /* and since then: who sent before may not have seen it */
} sleeper;

/* The rest of what is fixed is there already. */
void sleep_init(sleeper *s, db_connection *conn, const char *domain);
/* Begins anew. */
void sleep_reset(sleeper *s);
/* A claim saw so many, and perhaps there are more; somebody had called us. Announces a sleeper when
 * there was nothing, takes it back when there is much to do. */
void sleep_after_claim(sleeper *s, size_t seen, bool hot, bool called);
/* Whoever was called before us did not come: those who send next are to call us. */
void sleep_prefer(sleeper *s);
/* We were called and cannot come: somebody else is to. */
void sleep_pass_on(sleeper *s);
/* The same if we are announced: we may have been called. */
void sleep_leave(sleeper *s);
/* A claim failed. */
void sleep_after_failure(sleeper *s);
/* Something is due in so many seconds. */
void sleep_at_most(sleeper *s, double seconds);

#endif
