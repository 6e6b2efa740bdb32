/* Time. */
#include "clock.h"

#include <time.h>

enum {
    NS = 1000000000
};

int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * NS + t.tv_nsec;
}

int64_t seconds_to_ns(double seconds)
{
    return (int64_t)(seconds * NS);
}

double ns_to_ms(int64_t ns)
{
    return (double)ns / 1e6;
}

void waiting_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

void waiting_for(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t ns)
{
    struct timespec t;

    if (ns < 0) {
        pthread_cond_wait(cond, mutex);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &t);
    ns += t.tv_nsec;
    t.tv_sec += ns / NS;
    t.tv_nsec = ns % NS;
    pthread_cond_timedwait(cond, mutex, &t);
}
