/* What the rest of the worker asks of its process part. */
#ifndef WORKER_PROCESSES_H
#define WORKER_PROCESSES_H

#include "claimer.h"
#include "process_domain.h"
#include "settler.h"

extern const settle_kind process_settling;

/* One claimer for all domains: it delivers replies and takes due processes. */
bool process_claims_init(cb_worker *w, cb_error *e);
/* Delivers replies that come to queues which the configuration named before. */
bool processes_former_replies(cb_worker *w, cb_error *e);
/* Something may be in that reply queue. */
void process_hint_reply(cb_worker *w, const char *queue);

/* What a run asks of its job, but for the lease. */
extern const cb_run_host process_run_host;
void *process_slot_thread(void *slot);
/* What its run came to is settled, or left: nobody will write it. The job is gone then. */
void process_ended(cb_worker *w, process_job *j, bool left);

/* Registers the types of every domain. */
bool processes_register(cb_worker *w, cb_db *db, cb_error *e);
/* At a clean end: frees what the database says this worker holds. */
void processes_release(cb_worker *w, cb_db *db);

/* Renews the leases of processes in flight that want it. False: the database did not answer. */
bool processes_renew(cb_worker *w, bool all);

/* Counts the processes in the database, for the metrics. */
bool figures_take(cb_worker *w, cb_db *db, cb_error *e);

/* Looks at every step that runs; returns when the next one is due (now_ns). */
int64_t processes_watch(cb_worker *w, process_domain *d, int64_t now);

#endif
