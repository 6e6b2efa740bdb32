/* The real commandbus-worker: started, paused, ended and looked at from outside. */
#ifndef BENCH_INSTANCE_H
#define BENCH_INSTANCE_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <sys/types.h>

typedef struct {
    const char *set; /* which handlers serve BENCH_DOMAIN: "sample" or "trial" */
    int slots;
    int prefetch;
    bool polls;                  /* is not woken by NOTIFY */
    const char *const *settings; /* instead of all that: "path=value", NULL-terminated */
} instance_options;

typedef struct {
    pid_t pid;
    char name[32];
} instance;

/* Returns when it has connected and told of itself. Anything that goes wrong ends the benchmark,
 * and whatever ends the benchmark ends the worker. */
instance instance_start(PGconn *conn, const instance_options *options);
/* Drains it; it must say that it ended well. */
void instance_stop(const instance *i);

/* Between two measurements it is to use no processor, without losing what it has warmed. */
void instance_pause(const instance *i);
void instance_resume(const instance *i);

/* Of /proc: "VmRSS" now, "VmHWM" at its highest. In millions of bytes. */
double instance_memory(const instance *i, const char *field);
/* User and system time so far, of all its threads. */
double instance_cpu_seconds(const instance *i);

#endif
