/* A queue between those who did something and the one thread that writes it. */
#ifndef WORKER_OUTCOMES_H
#define WORKER_OUTCOMES_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* The first member of whatever stands in such a queue. */
typedef struct queued {
    struct queued *next;
} queued;

typedef struct {
    pthread_mutex_t mutex;
    pthread_cond_t filled;
    size_t (*bytes)(const queued *o); /* of one, on the wire */
    queued *first, *last;
    size_t n;
    bool waiting; /* its reader, on `filled` */
    bool ending;
} outcomes;

void outcomes_init(outcomes *q, size_t (*bytes)(const queued *o));
void outcomes_done(outcomes *q);

void outcomes_put(outcomes *q, queued *o);
/* Lets the reader end once it is empty. */
void outcomes_end(outcomes *q);
size_t outcomes_count(outcomes *q);

/* Waits until there is one; false: ended. */
bool outcomes_wait(outcomes *q);
/* Waits like that, then takes up to max outcomes of together max_bytes (one at least). 0: ended. */
size_t outcomes_take(outcomes *q, queued **to, size_t max, size_t max_bytes);

#endif
