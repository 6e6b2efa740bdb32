/* Keeping the leases of processes, and giving back those that nobody knows about. */
#include "cb_sql.h"
#include "db.h"
#include "fail.h"
#include "process_rows.h"

static bool lease_arrays(const cb_process_lease *leases, size_t n, buffer *ids, buffer *lease_nos,
                         cb_error *e)
{
    array_begin(ids, ARRAY_UUID, n);
    array_begin(lease_nos, ARRAY_INT8, n);
    for (size_t i = 0; i < n; i++) {
        if (!array_add_uuid(ids, leases[i].process_id.text))
            return cb_fail(e, CB_MISUSE, "a lease whose process_id is not a UUID");
        array_add_int8(lease_nos, leases[i].lease_no);
    }
    return ids->failed || lease_nos->failed ? fail_memory(e) : true;
}

bool cb_process_extend(cb_db *db, const char *worker, cb_process_lease *leases, size_t n,
                       double vt_seconds, cb_error *e)
{
    OWNED(PGresult) result = NULL;
    OWNED_BUFFER(ids);
    OWNED_BUFFER(lease_nos);
    params p = { 0 };

    if (n == 0)
        return true;
    if (!lease_arrays(leases, n, &ids, &lease_nos, e))
        return false;
    params_text(&p, worker);
    params_array(&p, &ids);
    params_array(&p, &lease_nos);
    params_seconds(&p, vt_seconds);
    if (!db_run(db, cb_sql_extend_processes, &p, DB_TEXT, &result, e))
        return false;
    if ((size_t)PQntuples(result) != n)
        return cb_fail(e, CB_SERVER, "extend_processes answered on %d of %zu leases",
                       PQntuples(result), n);
    for (size_t i = 0; i < n; i++)
        leases[i].held = *PQgetvalue(result, (int)i, 0) == 't';
    return true;
}

bool cb_process_release_unknown(cb_db *db, const char *worker, const cb_process_kind *kinds,
                                size_t n_kinds, const cb_process_lease *held, size_t n,
                                size_t *released, cb_error *e)
{
    OWNED(PGresult) result = NULL;
    OWNED_BUFFER(types);
    OWNED_BUFFER(versions);
    OWNED_BUFFER(ids);
    OWNED_BUFFER(lease_nos);
    params p = { 0 };

    if (!worker)
        return cb_fail(e, CB_MISUSE, "releasing processes needs the worker's name");
    if (!process_kind_arrays(kinds, n_kinds, &types, &versions, e) ||
        !lease_arrays(held, n, &ids, &lease_nos, e))
        return false;
    params_text(&p, worker);
    params_array(&p, &types);
    params_array(&p, &ids);
    params_array(&p, &lease_nos);
    if (!db_run(db, cb_sql_release_unknown_processes, &p, DB_TEXT, &result, e))
        return false;
    if (released)
        *released = (size_t)PQntuples(result);
    return true;
}
