/* Polling a query, and waiting on a connection's socket. */
#include "wait.h"

#include "bus.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double test_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int64_t test_clock_ms(void)
{
    return (int64_t)(test_clock() * 1000);
}

double test_slowness(void)
{
    double load = 0, usual = 3.0 * (double)sysconf(_SC_NPROCESSORS_ONLN);

    return getloadavg(&load, 1) == 1 && load > usual ? load / usual : 1;
}

void wait_until(PGconn *conn, const char *sql)
{
    double end = test_clock() + patience_seconds;
    bool met = false;

    while (!met) {
        cr_assert_lt(test_clock(), end, "waited in vain for %s", sql);
        char *value = test_value(conn, sql, NULL);
        met = strcmp(value, "t") == 0;
        free(value);
        if (!met)
            poll(NULL, 0, 2); /* Between two questions, so that the server can work. */
    }
}

static PGnotify *await_notify(PGconn *conn)
{
    double end = test_clock() + patience_seconds;
    PGnotify *notify;

    while (!(notify = PQnotifies(conn))) {
        struct pollfd socket = { .fd = PQsocket(conn), .events = POLLIN };
        cr_assert_lt(test_clock(), end, "no notification came");
        poll(&socket, 1, 100);
        cr_assert(PQconsumeInput(conn), "%s", PQerrorMessage(conn));
    }
    return notify;
}

char *wait_for_notify(PGconn *conn)
{
    PGnotify *notify = await_notify(conn);
    char *channel = strdup(notify->relname);

    PQfreemem(notify);
    return channel;
}

char *wait_for_call(PGconn *conn)
{
    PGnotify *notify = await_notify(conn);
    char *name = strdup(notify->extra);

    PQfreemem(notify);
    return name;
}
