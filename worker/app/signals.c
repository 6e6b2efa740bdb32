/* Waiting for signals. */
#include "signals.h"

#include <pthread.h>
#include <stddef.h>
#include <time.h>

void signals_init(signals *s)
{
    struct sigaction hangup;

    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&s->ending);
    sigaddset(&s->ending, SIGTERM);
    sigaddset(&s->ending, SIGINT);
    /* A blocked signal is kept even if it is ignored, so an ignored one must not be among them. */
    if (sigaction(SIGHUP, NULL, &hangup) != 0 || hangup.sa_handler != SIG_IGN)
        sigaddset(&s->ending, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &s->ending, NULL);
}

int signals_wait(const signals *s, double seconds)
{
    int got;

    if (seconds >= 0) {
        struct timespec most = { .tv_sec = (time_t)seconds };
        most.tv_nsec = (long)((seconds - (double)most.tv_sec) * 1e9);
        got = sigtimedwait(&s->ending, NULL, &most);
        return got > 0 ? got : 0;
    }
    do {
        got = sigwaitinfo(&s->ending, NULL); /* fails when it was stopped and continued */
    } while (got < 0);
    return got;
}
