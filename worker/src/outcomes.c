/* A queue of outcomes. */
#include "outcomes.h"

#include "clock.h"

void outcomes_init(outcomes *q, size_t (*bytes)(const queued *o))
{
    q->bytes = bytes;
    pthread_mutex_init(&q->mutex, NULL);
    waiting_init(&q->filled);
}

void outcomes_done(outcomes *q)
{
    pthread_cond_destroy(&q->filled);
    pthread_mutex_destroy(&q->mutex);
}

void outcomes_put(outcomes *q, queued *o)
{
    o->next = NULL;
    pthread_mutex_lock(&q->mutex);
    if (q->last)
        q->last->next = o;
    else
        q->first = o;
    q->last = o;
    q->n++;
    if (q->waiting)
        pthread_cond_signal(&q->filled);
    pthread_mutex_unlock(&q->mutex);
}

void outcomes_end(outcomes *q)
{
    pthread_mutex_lock(&q->mutex);
    q->ending = true;
    pthread_cond_signal(&q->filled);
    pthread_mutex_unlock(&q->mutex);
}

size_t outcomes_count(outcomes *q)
{
    pthread_mutex_lock(&q->mutex);
    size_t n = q->n;
    pthread_mutex_unlock(&q->mutex);
    return n;
}

/* With the mutex held. */
static bool wait_for_one(outcomes *q)
{
    while (!q->first && !q->ending) {
        q->waiting = true;
        waiting_for(&q->filled, &q->mutex, -1);
        q->waiting = false;
    }
    return q->first != NULL;
}

bool outcomes_wait(outcomes *q)
{
    pthread_mutex_lock(&q->mutex);
    bool any = wait_for_one(q);
    pthread_mutex_unlock(&q->mutex);
    return any;
}

size_t outcomes_take(outcomes *q, queued **to, size_t max, size_t max_bytes)
{
    size_t n = 0, bytes = 0;

    pthread_mutex_lock(&q->mutex);
    (void)wait_for_one(q);
    while (q->first && n < max) {
        bytes += q->bytes(q->first);
        if (n > 0 && bytes > max_bytes)
            break;
        to[n++] = q->first;
        q->first = q->first->next;
    }
    if (!q->first)
        q->last = NULL;
    q->n -= n;
    pthread_mutex_unlock(&q->mutex);
    return n;
}
