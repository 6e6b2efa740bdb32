/* Retention, one round at a time. */
#include <commandbus/purge.h>
#include <stdlib.h>

#include "cb_sql.h"
#include "db.h"

static int64_t count_at(const PGresult *result, int column)
{
    return strtoll(PQgetvalue(result, 0, column), NULL, 10);
}

bool cb_purge(cb_db *db, const cb_purge_options *options, cb_purge_counts *ret, cb_error *e)
{
    OWNED(PGresult) result = NULL;
    params p = { 0 };

    params_text(&p, options->commands);
    params_text(&p, options->audit);
    params_text(&p, options->archives);
    params_int(&p, options->batch_size ? options->batch_size : 1000);
    params_text(&p, options->processes);
    if (!db_run(db, cb_sql_purge, &p, DB_TEXT, &result, e))
        return false;
    if (PQntuples(result) != 1)
        return cb_fail(e, CB_SERVER, "purge answered %d rows", PQntuples(result));
    *ret = (cb_purge_counts){ count_at(result, 0), count_at(result, 1), count_at(result, 2),
                              count_at(result, 3), count_at(result, 4) };
    return true;
}
