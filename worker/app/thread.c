/* Starting threads, and waiting. */
#include "thread.h"

#include <errno.h>
#include <time.h>

bool thread_start(pthread_t *ret, size_t stack_bytes, void *(*run)(void *arg), void *arg)
{
    pthread_attr_t attributes;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack_bytes);
    int error = pthread_create(ret, &attributes, run, arg);
    pthread_attr_destroy(&attributes);
    return error == 0;
}

int64_t monotonic_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void condition_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

bool condition_wait(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until_ms)
{
    struct timespec until = { .tv_sec = (time_t)(until_ms / 1000),
                              .tv_nsec = (long)(until_ms % 1000) * 1000000 };

    if (until_ms == INT64_MAX)
        return pthread_cond_wait(cond, lock) == 0;
    return pthread_cond_timedwait(cond, lock, &until) != ETIMEDOUT;
}
