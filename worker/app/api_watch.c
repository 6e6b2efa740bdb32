/* One thread that sleeps until the first route is due. It cancels under the lock: when a route's turn has ended, nothing is on
 * its way that could hit the next one. */
#include "api_watch.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "fail.h"

enum {
    AGAIN_MS = 1000, /* a route may go on with another statement */
    STACK_BYTES = 256 * 1024
};

typedef struct {
    cb_canceler *canceler; /* NULL: nothing runs */
    int64_t due_ms;
    bool is_over; /* its time */
} turn;

struct api_watch {
    size_t n;
    pthread_t thread;
    bool is_started;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    turn *turns;
    int64_t hurry_ms;
    bool stopping;
};

int64_t api_now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The earlier of the two, INT64_MAX for none. */
static int64_t due_of(const api_watch *w, const turn *t)
{
    if (!t->canceler)
        return INT64_MAX;
    return t->is_over || t->due_ms < w->hurry_ms ? t->due_ms : w->hurry_ms;
}

/* Cancels what is due. Gives when to look again. */
static int64_t cancel_due(api_watch *w)
{
    int64_t now = api_now_ms(), next = INT64_MAX;

    for (size_t i = 0; i < w->n; i++) {
        turn *t = &w->turns[i];
        if (due_of(w, t) <= now) {
            cb_canceler_send(t->canceler, NULL); /* not heard: again in a second */
            t->is_over = true;
            t->due_ms = api_now_ms() + AGAIN_MS;
        }
        if (due_of(w, t) < next)
            next = due_of(w, t);
    }
    return next;
}

static void *watch(void *arg)
{
    api_watch *w = arg;

    pthread_mutex_lock(&w->lock);
    while (!w->stopping) {
        int64_t next = cancel_due(w);
        struct timespec until = { .tv_sec = (time_t)(next / 1000),
                                  .tv_nsec = (long)(next % 1000) * 1000000 };
        if (next == INT64_MAX)
            pthread_cond_wait(&w->changed, &w->lock);
        else
            pthread_cond_timedwait(&w->changed, &w->lock, &until);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

bool api_watch_begin(api_watch *w, size_t thread, cb_db *db, int64_t due_ms, cb_error *e)
{
    cb_canceler *canceler = NULL;

    if (!cb_canceler_open(db, &canceler, e))
        return false;
    pthread_mutex_lock(&w->lock);
    w->turns[thread] = (turn){ canceler, due_ms, false };
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    return true;
}

bool api_watch_end(api_watch *w, size_t thread)
{
    pthread_mutex_lock(&w->lock);
    turn ended = w->turns[thread];
    w->turns[thread] = (turn){ 0 };
    pthread_mutex_unlock(&w->lock);
    cb_canceler_free(ended.canceler);
    return ended.is_over;
}

void api_watch_hurry(api_watch *w, int64_t due_ms)
{
    pthread_mutex_lock(&w->lock);
    if (due_ms < w->hurry_ms)
        w->hurry_ms = due_ms;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static bool start_thread(api_watch *w, cb_error *e)
{
    pthread_attr_t attributes;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    w->is_started = pthread_create(&w->thread, &attributes, watch, w) == 0;
    pthread_attr_destroy(&attributes);
    return w->is_started || cb_fail(e, CB_MEMORY, "no thread to watch the HTTP routes");
}

bool api_watch_open(size_t n, api_watch **ret, cb_error *e)
{
    api_watch *raw = calloc(1, sizeof *raw);
    pthread_condattr_t monotonic;

    if (!raw)
        return fail_memory(e);
    raw->n = n;
    raw->hurry_ms = INT64_MAX;
    pthread_mutex_init(&raw->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&raw->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    OWNED(api_watch) w = raw;
    w->turns = calloc(n, sizeof *w->turns);
    if (!w->turns)
        return fail_memory(e);
    if (!start_thread(w, e))
        return false;
    *ret = api_watch_take(&w);
    return true;
}

void api_watch_free(api_watch *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    if (w->is_started)
        pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w->turns);
    free(w);
}
