/* What the start needs of the keeping thread. */
#ifndef WORKER_KEEP_H
#define WORKER_KEEP_H

#include "engine.h"

/* How often each chore is done, to begin with. */
void keep_init(cb_worker *w);

/* Says that this worker is alive, on the link of that name. */
bool keep_heartbeat(cb_worker *w, cb_error *e);

/* Counts the processes in the database, for the metrics. */
bool figures_take(cb_worker *w, cb_db *db, cb_error *e);

/* Looks at the domains of the database, for the metrics. */
bool fleet_figures_take(cb_worker *w, cb_db *db, cb_error *e);

#endif
