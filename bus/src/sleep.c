/* Announcing that a worker sleeps on queues, so that senders notify only then. */
#include <commandbus/lease.h>

#include "array.h"
#include "cb_sql.h"
#include "db.h"
#include "fail.h"

static bool add_queues(params *p, buffer *names, const char *const *queues, size_t n, cb_error *e)
{
    array_begin(names, ARRAY_TEXT, n);
    for (size_t i = 0; i < n; i++)
        array_add_text(names, queues[i]);
    params_array(p, names);
    return names->failed ? fail_memory(e) : true;
}

bool cb_sleep_announce(cb_db *db, const char *worker, const char *const *queues, size_t n,
                       double seconds, cb_error *e)
{
    OWNED_BUFFER(names);
    params p = { 0 };

    params_text(&p, worker);
    if (!add_queues(&p, &names, queues, n, e))
        return false;
    params_seconds(&p, seconds);
    return db_do(db, cb_sql_sleep_announce, &p, e);
}

bool cb_sleep_end(cb_db *db, const char *worker, const char *const *queues, size_t n, cb_error *e)
{
    OWNED_BUFFER(names);
    params p = { 0 };

    params_text(&p, worker);
    if (n == 0)
        params_text(&p, NULL);
    else if (!add_queues(&p, &names, queues, n, e))
        return false;
    return db_do(db, cb_sql_sleep_end, &p, e);
}
