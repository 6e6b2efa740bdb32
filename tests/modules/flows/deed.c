/* Deeds. */
#include "deed.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* One write of O_APPEND: lines of several workers do not mix. */
static bool write_line(cb_context *ctx, const deed *d)
{
    char line[512];
    int n = snprintf(line, sizeof line, "%s %s %d %s\n", d->process_id ? d->process_id : "-",
                     d->name, cb_context_attempt(ctx), cb_context_key(ctx));
    int fd = open(d->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    bool written = fd >= 0 && n < (int)sizeof line && write(fd, line, (size_t)n) == n;

    if (fd >= 0)
        close(fd);
    return written;
}

/* True the first time. */
static bool mark(const deed *d, const char *when)
{
    char path[1024];

    snprintf(path, sizeof path, "%s/%s.%s.%s", d->marks, d->process_id ? d->process_id : "-", when,
             d->name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

void deed_die(const deed *d, const char *when)
{
    static const char stop[] = "stop:";
    const char *at = d->die_at ? d->die_at : "";
    size_t n = strlen(when);
    bool stops = strncmp(at, stop, strlen(stop)) == 0;

    at += stops ? strlen(stop) : 0;
    if (strncmp(at, when, n) != 0 || at[n] != ':' || strcmp(at + n + 1, d->name) != 0)
        return;
    if (d->marks && !mark(d, when))
        return;
    if (stops)
        raise(SIGSTOP); /* not kill(): that may let this thread go on for a moment */
    else
        kill(getpid(), SIGKILL);
}

static void take_time(int64_t ms)
{
    struct timespec left = { ms / 1000, ms % 1000 * 1000000 };

    while (ms > 0 && nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

/* However long it takes: who never opens it kills us. */
static void wait_at(const char *gate)
{
    while (gate && access(gate, F_OK) != 0)
        take_time(5);
}

static cb_outcome end(cb_context *ctx, const deed *d)
{
    size_t n = d->fail ? strcspn(d->fail, ":") : 0;

    if (n == 0 || (d->fail[n] && cb_context_attempt(ctx) > atoi(d->fail + n + 1)))
        return CB_SUCCESS;
    if (strncmp(d->fail, "TRANSIENT", n) == 0)
        return cb_transient(ctx, "TRIED", "%s was told to fail", d->name);
    if (strncmp(d->fail, "BUSINESS", n) == 0)
        return cb_business_rule(ctx, "DECLINED", "%s was told to decline", d->name);
    return cb_permanent(ctx, "BROKEN", "%s was told to break", d->name);
}

cb_outcome deed_do(cb_context *ctx, const deed *d)
{
    deed_die(d, "in");
    if (d->log && !write_line(ctx, d))
        return cb_permanent(ctx, "NO_LOG", "cannot write to %.200s", d->log);
    take_time(d->sleep_ms);
    wait_at(d->gate);
    deed_die(d, "effect");
    return end(ctx, d);
}
