/* Cancelling: the server is told on a connection of its own, so it goes through a PgBouncer too. */
#include <stdlib.h>

#include "db.h"
#include "fail.h"

struct cb_canceler {
    PGcancel *cancel;
};

bool cb_canceler_open(cb_db *db, cb_canceler **ret, cb_error *e)
{
    if (!db_is_ready(db, e))
        return false;

    OWNED(cb_canceler) canceler = calloc(1, sizeof *canceler);
    if (!canceler || !(canceler->cancel = PQgetCancel(db->conn)))
        return fail_memory(e);
    *ret = cb_canceler_take(&canceler);
    return true;
}

void cb_canceler_free(cb_canceler *canceler)
{
    if (!canceler)
        return;
    PQfreeCancel(canceler->cancel);
    free(canceler);
}

bool cb_canceler_send(const cb_canceler *canceler, cb_error *e)
{
    char why[256];

    return PQcancel(canceler->cancel, why, sizeof why) == 1 ||
           cb_fail(e, CB_LOST, "the server was not told to cancel");
}
