/* Writing what runs of processes came to: one statement, one transaction. */
#include <commandbus/process_row.h>

#include "cb_sql.h"
#include "fail.h"
#include "settle_call.h"

static bool write_items(buffer *json, const cb_process_settlement *items, size_t n, cb_error *e)
{
    for (size_t i = 0; i < n; i++) {
        if (!items[i].item)
            return cb_fail(e, CB_MISUSE, "item %zu of %zu has no JSON", i + 1, n);
        buffer_add_text(json, i ? "," : "[");
        buffer_add_text(json, items[i].item);
    }
    buffer_add_text(json, "]");
    return !json->failed || fail_memory(e);
}

bool cb_process_settle(cb_db *db, const char *worker, cb_process_settlement *items, size_t n,
                       cb_error *e)
{
    OWNED(PGresult) result = NULL;
    OWNED_BUFFER(json);
    params p = { 0 };

    if (!worker)
        return cb_fail(e, CB_MISUSE, "settling needs the name of the worker");
    if (n == 0)
        return true;
    if (!write_items(&json, items, n, e))
        return false;
    params_text(&p, worker);
    params_text(&p, json.bytes);
    if (!db_run(db, cb_sql_settle_processes, &p, DB_TEXT, &result, e))
        return false;

    const char *at = PQntuples(result) == 1 ? PQgetvalue(result, 0, 0) : "";
    for (size_t i = 0; i < n; i++) {
        if (!verdict_next(&at, &items[i].verdict))
            return cb_fail(e, CB_SERVER, "settle_processes gave no verdict on item %zu", i + 1);
    }
    settle_close_batches(db, result);
    return true;
}
