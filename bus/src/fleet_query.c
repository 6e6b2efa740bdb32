/* Looking at the fleet: instances, domains, queues in figures. */
#include <commandbus/fleet.h>
#include <stdlib.h>

#include "array.h"
#include "cb_sql.h"
#include "fail.h"
#include "rows.h"

bool cb_fleet_workers(cb_db *db, cb_rows **ret, cb_error *e)
{
    return rows_query(db, cb_sql_fleet_workers, NULL, ret, e);
}

bool cb_fleet_domains(cb_db *db, cb_rows **ret, cb_error *e)
{
    return rows_query(db, cb_sql_fleet_domains, NULL, ret, e);
}

bool cb_domain_load(cb_db *db, const char *domain, const char *window, cb_rows **ret, cb_error *e)
{
    params p = { 0 };

    if (!domain || !window)
        return cb_fail(e, CB_MISUSE, "which domain, and over what time?");
    params_text(&p, domain);
    params_text(&p, window);
    return rows_query(db, cb_sql_domain_load, &p, ret, e);
}

bool cb_domain_figures(cb_db *db, cb_rows **ret, cb_error *e)
{
    return rows_query(db, cb_sql_domain_figures, NULL, ret, e);
}

bool cb_queue_sample_many(cb_db *db, cb_queue_sample *samples, size_t n, cb_error *e)
{
    OWNED(PGresult) result = NULL;
    OWNED_BUFFER(domains);
    params p = { 0 };

    if (n == 0)
        return true;
    array_begin(&domains, ARRAY_TEXT, n);
    for (size_t i = 0; i < n; i++)
        array_add_text(&domains, samples[i].domain);
    if (domains.failed)
        return fail_memory(e);
    params_array(&p, &domains);
    if (!db_read(db, cb_sql_queue_samples, &p, &result, e))
        return false;
    if ((size_t)PQntuples(result) != n)
        return cb_fail(e, CB_SERVER, "queue_samples answered %d rows for %zu domains",
                       PQntuples(result), n);
    for (size_t i = 0; i < n; i++) {
        samples[i].depth = strtoll(PQgetvalue(result, (int)i, 0), NULL, 10);
        samples[i].oldest_due_seconds =
            (double)strtoll(PQgetvalue(result, (int)i, 1), NULL, 10) / 1e6;
    }
    return true;
}
