/* Processes that wait for a worker, how long it takes to finish them, and what that costs the
 * server. */
#ifndef BENCH_PROCESS_BACKLOG_H
#define BENCH_PROCESS_BACKLOG_H

#include "bench.h"
#include "instance.h"

/* What the server has done so far. */
typedef struct {
    double commits;
    double wal_bytes;
} server_cost;

/* The real worker with every role: payments with these process slots, fx and risk with these
 * slots. */
instance process_instance(PGconn *conn, int process_slots, int slots);

/* Starts n of a type with `steps` in their state, in one statement. */
void processes_start(PGconn *conn, const char *type, long n, long steps);
/* Waits until every process is COMPLETED; dies after `seconds`, or when one ends otherwise. */
void processes_wait(PGconn *conn, double seconds);
/* Starts them while the worker is paused, lets it go on, and pauses it again. In seconds. */
double processes_drain(PGconn *conn, const instance *i, const char *type, long n, long steps);
void processes_clear(PGconn *conn);

server_cost server_cost_now(PGconn *conn);

#endif
