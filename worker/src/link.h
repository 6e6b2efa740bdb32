/* A connection that comes back: every thread that talks to the database has one. */
#ifndef WORKER_LINK_H
#define WORKER_LINK_H

#include <commandbus/db.h>
#include <commandbus/worker.h>
#include <stdatomic.h>

#include "metrics.h"
#include "trouble.h"

typedef struct {
    cb_worker *worker;
    link_name name;
    cb_db *db; /* NULL before the first connection */
    double wait_seconds, first_wait, longest_wait;
    int want;        /* calls in a row that the server had no room for */
    trouble refused; /* what no place, settler or chore has a trouble of its own for */
    atomic_bool up;
} db_link;

void link_init(db_link *l, cb_worker *w, link_name name);
void link_done(db_link *l);

/* Connects for the first time. */
bool link_open(db_link *l, cb_error *e);

/* Looks at the error of a call: tells of it, marks the link down when the connection is lost, or when
 * the server refuses it or goes on having no room for it. Waits a moment when the same call may succeed
 * later. */
void link_failed(db_link *l, const cb_error *e, const char *doing);

/* A call went well: the next back-off begins at its start again, and a trouble is over. */
void link_worked(db_link *l);

/* True when the link works. When it is down: waits its back-off, connects anew if it was lost, and tells
 * how that went; false when the worker ends. `anew`, unless NULL, tells that it is another connection now. */
bool link_ready(db_link *l, bool *anew);

#endif
