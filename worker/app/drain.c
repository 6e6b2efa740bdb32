/* Draining. Three threads: the caller stops the worker and then the routes, one hears the second signal, and one sees to it
 * that the other two come to an end. */
#include "drain.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "refuse.h"

/* For what must end by itself once everything is said: threads, and good-bye to the database. */
static const double last_words_seconds = 5;

typedef struct {
    const drain_what *what;
    const signals *signals;
    log_sink *log;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct timespec until; /* of the monotonic clock; guarded by the mutex, as is what follows */
    bool over;             /* everything has stopped */
} drainage;

#define tell(d, lvl, what, ...) \
    log_event(&(cb_event){ .level = (lvl), .name = (what), __VA_ARGS__ }, (d)->log)

static struct timespec in_seconds(double seconds)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += (time_t)seconds;
    t.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

static void *hear_second_signal(void *arg)
{
    drainage *d = arg;
    int signal = signals_wait(d->signals, -1);

    pthread_mutex_lock(&d->mutex);
    bool over = d->over;
    if (!over) {
        d->until = in_seconds(last_words_seconds);
        pthread_cond_signal(&d->changed);
    }
    pthread_mutex_unlock(&d->mutex);
    if (over)
        return NULL;
    tell(d, CB_LEVEL_WARN, "signal.received", .signal = signal,
         .hint = "the second one: what runs is left behind and redelivered");
    if (d->what->worker)
        cb_worker_stop_now(d->what->worker);
    http_hurry(d->what->http, 0); /* last: it may have to wait for a server that does not answer */
    return NULL;
}

static void *see_to_the_end(void *arg)
{
    drainage *d = arg;
    int error = 0;

    pthread_mutex_lock(&d->mutex);
    while (!d->over && error != ETIMEDOUT) {
        struct timespec until = d->until;
        error = pthread_cond_timedwait(&d->changed, &d->mutex, &until);
    }
    if (!d->over) {
        tell(d, CB_LEVEL_ERROR, "worker.abandoned",
             .hint = "the database does not answer, or a route does not return: what was held is "
                     "redelivered");
        fflush(NULL);
        _exit(ENDED_UNDRAINED);
    }
    pthread_mutex_unlock(&d->mutex);
    return NULL;
}

static void open_drainage(drainage *d)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&d->changed, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&d->mutex, NULL);
}

static double seconds_since(struct timespec began)
{
    struct timespec now = in_seconds(0);

    return (double)(now.tv_sec - began.tv_sec) + (double)(now.tv_nsec - began.tv_nsec) / 1e9;
}

/* Routes have run beside the drain of the worker: what is left of its time is theirs. */
static bool stop(const drain_what *what, double timeout_seconds)
{
    struct timespec began = in_seconds(0);
    bool drained = !what->worker || cb_worker_stop(what->worker, timeout_seconds);
    double left = timeout_seconds - seconds_since(began);

    http_stop(what->http, drained && left > 0 ? left : 0);
    return drained;
}

bool drain(const drain_what *what, double timeout_seconds, const signals *s, log_sink *log)
{
    drainage d = { .what = what,
                   .signals = s,
                   .log = log,
                   .until = in_seconds(timeout_seconds + last_words_seconds) };
    pthread_t hears, sees;

    open_drainage(&d);
    bool is_heard = pthread_create(&hears, NULL, hear_second_signal, &d) == 0;
    bool is_seen = pthread_create(&sees, NULL, see_to_the_end, &d) == 0;
    bool drained = stop(what, timeout_seconds);

    pthread_mutex_lock(&d.mutex);
    d.over = true;
    pthread_cond_signal(&d.changed);
    pthread_mutex_unlock(&d.mutex);
    if (is_heard) {
        /* Wakes it; it has ended already when there was a second signal. */
        pthread_kill(hears, SIGTERM);
        pthread_join(hears, NULL);
    }
    if (is_seen)
        pthread_join(sees, NULL);
    pthread_cond_destroy(&d.changed);
    pthread_mutex_destroy(&d.mutex);
    return drained;
}
