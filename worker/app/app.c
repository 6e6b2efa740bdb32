/* How the program ends: refused before it starts, or by a signal. */
#include "app.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

/* What is wrong with the settings or the machine; all else is about the database. */
static const cb_code of_configuration[] = {
    CB_MISUSE, CB_MEMORY, CB_DATA, CB_INVALID_NAME, CB_INVALID_DATA, CB_INVALID_OPERATION,
};

/* Messages of libpq have several lines. */
static void refuse_one_line(const char *text, char *ret, size_t size)
{
    size_t n = 0;

    for (; *text && n + 1 < size; text++) {
        bool blank = isspace((unsigned char)*text);
        if (!blank)
            ret[n++] = *text;
        else if (n > 0 && ret[n - 1] != ' ')
            ret[n++] = ' ';
    }
    while (n > 0 && ret[n - 1] == ' ')
        n--;
    ret[n] = '\0';
}

ended refuse(const cb_error *e)
{
    char message[sizeof e->message], hint[sizeof e->hint];

    refuse_one_line(e->message, message, sizeof message);
    refuse_one_line(e->hint, hint, sizeof hint);
    fprintf(stderr, "commandbus-worker: %s\n", message);
    if (*hint)
        fprintf(stderr, "  hint: %s\n", hint);
    for (size_t i = 0; i < sizeof of_configuration / sizeof *of_configuration; i++) {
        if (of_configuration[i] == e->code)
            return ENDED_CONFIGURATION;
    }
    return ENDED_NO_DATABASE;
}

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
