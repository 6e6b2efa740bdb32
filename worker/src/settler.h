/* A settler: the thread that writes what slots came to, a group commit. While one flush is on the wire
 * the next one gathers. Commands and processes have one each; what differs is the kind. */
#ifndef WORKER_SETTLER_H
#define WORKER_SETTLER_H

#include <commandbus/settle.h>

#include "link.h"
#include "outcomes.h"

/* What is settled, and how. */
typedef struct {
    size_t item_size;  /* of what the database is given, */
    size_t item_at;    /* where that stands in what is queued, */
    size_t verdict_at; /* and where in it the answer, a cb_verdict, does */

    /* Writes n items; one that is not taken never spoils its batch. */
    bool (*write)(cb_worker *w, cb_db *db, void *items, size_t n, size_t *refused, cb_error *e);
    /* It has its verdict, which is not CB_BUSY. */
    void (*settled)(cb_worker *w, queued *o);
    /* The database takes it in no form; it is brought again every second. */
    void (*tell_refused)(cb_worker *w, queued *o, const cb_error *e);
    /* The worker ends without it. NULL: nobody waits. */
    void (*left)(cb_worker *w, queued *o);
    void (*flushed)(cb_worker *w);     /* after each flush; may be NULL */
    bool (*is_bursting)(cb_worker *w); /* more comes within microseconds; NULL: never */
    size_t (*bytes)(const queued *o);
} settle_kind;

typedef struct {
    cb_worker *worker;
    const settle_kind *kind;
    link_name link;
    outcomes waiting;
    outcomes refused; /* by the database: watch brings them again */
    trouble trouble;  /* the database takes none of them */
} settler;

void settler_init(settler *s, cb_worker *w, const settle_kind *kind, link_name link);
void settler_done(settler *s);

void settler_put(settler *s, queued *o);
/* Perhaps the database takes now what it refused. */
void settler_bring_again(settler *s);

/* Runs until `waiting` has ended and is empty. */
void *settler_thread(void *settler);

#endif
