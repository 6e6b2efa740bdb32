/* A trouble: what the database refuses, for another reason than being away or busy. A right that
 * was taken away, a function that is gone. The same call is made again after 1 s, 2 s … 30 s; it is
 * told once and then once a minute; and while it lasts the instance says why it is not ready. */
#ifndef WORKER_TROUBLE_H
#define WORKER_TROUBLE_H

#include <commandbus/event.h>
#include <commandbus/worker.h>
#include <pthread.h>
#include <stdatomic.h>

#include "metrics.h"

typedef struct trouble {
    /* Fixed after trouble_init. */
    cb_worker *worker;
    struct trouble *next; /* of the worker's */
    connection_name connection;
    const char *domain; /* borrowed, or NULL */
    bool is_vital;      /* the instance is not ready without it */

    atomic_bool there;

    /* Guarded by the worker's `troubled`. */
    char reason[256];
    int64_t count, untold; /* refusals; and those since the last that was told */
    int64_t told_at, wait_until;
    double wait_seconds;
} trouble;

/* `t` stays where it is for as long as the worker does. */
void trouble_init(trouble *t, cb_worker *w, connection_name connection, const char *domain,
                  bool is_vital);

/* Refused, while `doing`. Tells it as `event` if it is time for that; NULL: the caller does. */
void trouble_add(trouble *t, const cb_error *e, const char *doing, const char *event);
/* It worked: costs nothing when there was no trouble. */
void trouble_end(trouble *t);

/* When to try again; 0: now. */
int64_t trouble_until(trouble *t);

/* Is it refused, or else lost, or only a matter of a moment? */
bool is_refusal(const cb_db *db, const cb_error *e);

/* The first vital one. */
bool troubles_find(const cb_worker *w, char *reason, size_t size);
/* Forgets them all: the worker starts. */
void troubles_reset(cb_worker *w);

#endif
