/* A settler: the thread that writes what slots came to, a group commit. While one flush is on the
 * wire the next one gathers. Each kind has one. */
#ifndef WORKER_SETTLER_H
#define WORKER_SETTLER_H

#include "lane.h"

/* A queue between those who did something and the one thread that writes it. */
typedef struct {
    pthread_mutex_t mutex;
    pthread_cond_t filled;
    size_t (*bytes)(const outcome *o); /* of one, on the wire */
    outcome *first, *last;
    size_t n;
    bool waiting;  /* its reader, on `filled`, */
    size_t enough; /* for so many; 0: for one */
    bool ending;
} outcomes;

void outcomes_init(outcomes *q, size_t (*bytes)(const outcome *o));
void outcomes_done(outcomes *q);

void outcomes_put(outcomes *q, outcome *o);
/* Lets the reader end once it is empty. */
void outcomes_end(outcomes *q);
size_t outcomes_count(outcomes *q);

/* Waits until there is one; false: ended. */
bool outcomes_wait(outcomes *q);
/* Waits until there are so many, or so long; once it is ending not at all. */
void outcomes_gather(outcomes *q, size_t enough, int64_t ns);
/* Waits like that, then takes up to max outcomes of together max_bytes (one at least). 0: ended. */
size_t outcomes_take(outcomes *q, outcome **to, size_t max, size_t max_bytes);

typedef struct {
    cb_worker *worker;
    const lane_ops *ops;
    outcomes waiting;
    outcomes refused;   /* by the database: watch brings them again */
    trouble trouble;    /* the database takes none of them */
    int64_t flushed_at; /* when the last flush began */
    int64_t typical_ns; /* how long they took of late */
} settler;

void settler_init(settler *s, cb_worker *w, const lane_ops *ops);
void settler_done(settler *s);

/* To the settler of its job's kind. */
void settler_put(outcome *o);
/* Perhaps the database takes now what it refused. */
void settler_bring_again(settler *s);

/* Runs until `waiting` has ended and is empty. */
void *settler_thread(void *settler);

#endif
