/* A connection that comes back: every thread that talks to the database has one. */
#ifndef WORKER_CONNECTION_H
#define WORKER_CONNECTION_H

#include <commandbus/db.h>
#include <commandbus/worker.h>
#include <stdatomic.h>

#include "metrics.h"
#include "trouble.h"

typedef struct {
    cb_worker *worker;
    connection_name name;
    cb_db *db; /* NULL before the first connection */
    double wait_seconds, first_wait, longest_wait;
    int want;        /* calls in a row that the server had no room for */
    trouble refused; /* what no place, settler or chore has a trouble of its own for */
    atomic_bool up;
} db_connection;

void connection_init(db_connection *c, cb_worker *w, connection_name name);
void connection_done(db_connection *c);

/* Connects for the first time. */
bool connection_open(db_connection *c, cb_error *e);

/* Looks at the error of a call: tells of it, marks it down when the connection is lost, or when the
 * server refuses it or goes on having no room for it. Waits a moment when the same call may succeed
 * later. */
void connection_failed(db_connection *c, const cb_error *e, const char *doing);

/* A call went well: the next back-off begins at its start again, and a trouble is over. */
void connection_worked(db_connection *c);

/* True when it works. When it is down: waits its back-off, connects anew if it was lost, and tells
 * how that went; false when the worker ends. `anew`, unless NULL, tells that it is another
 * connection now. */
bool connection_ready(db_connection *c, bool *anew);

#endif
