/* What the rest of the worker asks of its process part. */
#ifndef WORKER_PROCESSES_H
#define WORKER_PROCESSES_H

#include "claimer.h"
#include "process_lane.h"
#include "settler.h"

extern const settle_kind process_settling;

/* One claimer for all domains: it delivers replies and takes due processes. */
bool process_claims_init(cb_worker *w, cb_error *e);
/* Delivers replies that come to queues which the configuration named before. */
bool processes_former_replies(cb_worker *w, cb_error *e);
/* Something may be in that reply queue. */
void process_hint_reply(cb_worker *w, const char *queue);

/* Registers the types of every domain. */
bool processes_register(cb_worker *w, cb_db *db, cb_error *e);
/* At a clean end: frees what the database says this worker holds. */
void processes_release(cb_worker *w, cb_db *db);

/* Counts the processes in the database, for the metrics. */
bool figures_take(cb_worker *w, cb_db *db, cb_error *e);

#endif
