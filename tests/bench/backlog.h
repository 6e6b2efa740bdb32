/* Commands that wait for a worker, and how long it takes to finish them. */
#ifndef BENCH_BACKLOG_H
#define BENCH_BACKLOG_H

#include "instance.h"

/* What to send to BENCH_DOMAIN. */
typedef struct {
    const char *command_type;
    const char *data;
    bool replies;
} backlog_kind;

/* Sends n, at most 1000 in a transaction. */
void backlog_send(PGconn *conn, const backlog_kind *kind, long n);
/* Waits until every command sent is settled. Dies after `seconds`. */
void backlog_wait(PGconn *conn, double seconds);
/* The same with a worker that is paused: lets it go on and pauses it afterwards. From its first
 * claim to the last settled, in seconds. */
double backlog_drain(PGconn *conn, const instance *i, double seconds);

/* Dies unless there are so many commands, all of them COMPLETED, and so many replies. */
void backlog_expect(PGconn *conn, long commands, long replies);
long backlog_count(PGconn *conn, const char *status);
/* Everything as on the first day: no command, no trail, nothing in the queues. */
void backlog_clear(PGconn *conn);

#endif
