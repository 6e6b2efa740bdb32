/* How many processes there are, by type, status and error code: for the metrics. */
#include "engine.h"
#include "processes.h"

bool figures_take(cb_worker *w, cb_db *db, cb_error *e)
{
    (void)w, (void)db, (void)e;
    return true;
}
