/* Announcing that a worker sleeps on queues, so that senders notify only then. */
#include <commandbus/lease.h>

#include "array.h"
#include "cb_sql.h"
#include "db.h"
#include "fail.h"

bool cb_sleep_announce(cb_db *db, const char *worker, const char *const *queues, size_t n,
                       double seconds, cb_error *e)
{
    OWNED_BUFFER(names);
    params p = { 0 };

    array_begin(&names, ARRAY_TEXT, n);
    for (size_t i = 0; i < n; i++)
        array_add_text(&names, queues[i]);
    if (names.failed)
        return fail_memory(e);
    params_text(&p, worker);
    params_array(&p, &names);
    params_seconds(&p, seconds);
    return db_do(db, cb_sql_sleep_announce, &p, e);
}

bool cb_sleep_end(cb_db *db, const char *worker, cb_error *e)
{
    params p = { 0 };

    params_text(&p, worker);
    return db_do(db, cb_sql_sleep_end, &p, e);
}
