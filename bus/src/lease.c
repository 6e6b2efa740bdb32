/* Keeping the leases of commands and of processes, giving back those that nobody knows about, and
 * announcing that a worker sleeps. */
#include <commandbus/lease.h>
#include <commandbus/process_row.h>
#include <stdlib.h>
#include <string.h>

#include "cb_sql.h"
#include "domain_groups.h"
#include "fail.h"
#include "statements.h"

static const char *const state_names[] = {
    [CB_LEASE_EXTENDED] = "EXTENDED",
    [CB_LEASE_BUSY] = "BUSY",
    [CB_LEASE_GONE] = "GONE",
};
enum {
    STATES = sizeof state_names / sizeof *state_names
};

typedef struct {
    buffer ids;
    buffer lease_nos;
} lease_arrays;

static void lease_arrays_done(lease_arrays *a)
{
    buffer_done(&a->ids);
    buffer_done(&a->lease_nos);
}

static void lease_arrays_begin(lease_arrays *a, size_t n)
{
    array_begin(&a->ids, ARRAY_UUID, n);
    array_begin(&a->lease_nos, ARRAY_INT8, n);
}

static bool lease_arrays_add(lease_arrays *a, const cb_lease *lease, cb_error *e)
{
    if (!array_add_uuid(&a->ids, lease->command_id.text))
        return cb_fail(e, CB_MISUSE, "a lease whose command_id is not a UUID");
    array_add_int8(&a->lease_nos, lease->lease_no);
    return a->ids.failed || a->lease_nos.failed ? fail_memory(e) : true;
}

/* Everything about one call, freed together. */
typedef struct {
    domain_groups by_domain;
    lease_arrays *arrays;
    pipeline_statement *statements;
} extend_call;

static void extend_call_done(extend_call *call)
{
    for (size_t g = 0; call->arrays && g < call->by_domain.count; g++)
        lease_arrays_done(&call->arrays[g]);
    if (call->statements)
        pipeline_done(call->statements, call->by_domain.count);
    free(call->arrays);
    free(call->statements);
    domain_groups_done(&call->by_domain);
}

static bool fill_extend(extend_call *call, const char *worker, const cb_lease *leases, size_t n,
                        double vt_seconds, cb_error *e)
{
    for (size_t g = 0; g < call->by_domain.count; g++)
        lease_arrays_begin(&call->arrays[g], call->by_domain.sizes[g]);
    for (size_t i = 0; i < n; i++) {
        if (!lease_arrays_add(&call->arrays[call->by_domain.group_of[i]], &leases[i], e))
            return false;
    }
    for (size_t g = 0; g < call->by_domain.count; g++) {
        pipeline_statement *s = &call->statements[g];
        s->sql = cb_sql_extend;
        params_text(&s->p, call->by_domain.domains[g]);
        params_text(&s->p, worker);
        params_array(&s->p, &call->arrays[g].ids);
        params_array(&s->p, &call->arrays[g].lease_nos);
        params_seconds(&s->p, vt_seconds);
    }
    return true;
}

static bool read_states(const extend_call *call, cb_lease *leases, size_t n, cb_error *e)
{
    for (size_t g = 0; g < call->by_domain.count; g++) {
        const PGresult *result = call->statements[g].result;
        const char *at = PQntuples(result) == 1 ? PQgetvalue(result, 0, 0) : "";
        for (size_t i = 0; i < n; i++) {
            size_t state;
            if (call->by_domain.group_of[i] != g)
                continue;
            if (!words_next(&at, state_names, STATES, &state))
                return cb_fail(e, CB_SERVER, "extend gave no answer on lease %zu", i + 1);
            leases[i].state = (cb_lease_state)state;
        }
    }
    return true;
}

bool cb_lease_extend(cb_db *db, const char *worker, cb_lease *leases, size_t n, double vt_seconds,
                     cb_error *e)
{
    __attribute__((cleanup(extend_call_done))) extend_call call = { 0 };

    if (n == 0)
        return true;
    if (!domain_groups_make(&call.by_domain, leases, n, sizeof *leases, offsetof(cb_lease, domain),
                            e))
        return false;
    call.arrays = calloc(call.by_domain.count, sizeof *call.arrays);
    call.statements = calloc(call.by_domain.count, sizeof *call.statements);
    if (!call.arrays || !call.statements)
        return fail_memory(e);
    return fill_extend(&call, worker, leases, n, vt_seconds, e) &&
           pipeline_run(db, DB_WRITES, call.statements, call.by_domain.count, e) &&
           read_states(&call, leases, n, e);
}

static bool is_in(const cb_lease *lease, const char *domain)
{
    return !lease->domain || strcmp(lease->domain, domain) == 0;
}

bool cb_lease_release_unknown(cb_db *db, const char *domain, const char *worker,
                              const cb_lease *held, size_t n, size_t *released, cb_error *e)
{
    __attribute__((cleanup(lease_arrays_done))) lease_arrays arrays = { 0 };
    OWNED(PGresult) result = NULL;
    params p = { 0 };
    size_t here = 0;

    if (!domain || !worker)
        return cb_fail(e, CB_MISUSE, "releasing leases needs a domain and the worker's name");
    for (size_t i = 0; i < n; i++)
        here += is_in(&held[i], domain);
    lease_arrays_begin(&arrays, here);
    for (size_t i = 0; i < n; i++) {
        if (is_in(&held[i], domain) && !lease_arrays_add(&arrays, &held[i], e))
            return false;
    }
    params_text(&p, domain);
    params_text(&p, worker);
    params_array(&p, &arrays.ids);
    params_array(&p, &arrays.lease_nos);
    if (!db_run(db, cb_sql_release_unknown, &p, DB_TEXT, &result, e))
        return false;
    if (released)
        *released = (size_t)PQntuples(result);
    return true;
}

/* ---- of processes ---- */

static bool add_process_leases(lease_arrays *a, const cb_process_lease *leases, size_t n,
                               cb_error *e)
{
    lease_arrays_begin(a, n);
    for (size_t i = 0; i < n; i++) {
        if (!array_add_uuid(&a->ids, leases[i].process_id.text))
            return cb_fail(e, CB_MISUSE, "a lease whose process_id is not a UUID");
        array_add_int8(&a->lease_nos, leases[i].lease_no);
    }
    return a->ids.failed || a->lease_nos.failed ? fail_memory(e) : true;
}

bool cb_process_extend(cb_db *db, const char *worker, cb_process_lease *leases, size_t n,
                       double vt_seconds, cb_error *e)
{
    OWNED(PGresult) result = NULL;
    __attribute__((cleanup(lease_arrays_done))) lease_arrays arrays = { 0 };
    params p = { 0 };

    if (n == 0)
        return true;
    if (!add_process_leases(&arrays, leases, n, e))
        return false;
    params_text(&p, worker);
    params_array(&p, &arrays.ids);
    params_array(&p, &arrays.lease_nos);
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
    __attribute__((cleanup(lease_arrays_done))) lease_arrays arrays = { 0 };
    OWNED_BUFFER(types);
    params p = { 0 };

    if (!worker)
        return cb_fail(e, CB_MISUSE, "releasing processes needs the worker's name");
    array_begin(&types, ARRAY_TEXT, n_kinds);
    for (size_t i = 0; i < n_kinds; i++) {
        if (!kinds[i].process_type)
            return cb_fail(e, CB_MISUSE, "a process type needs a name");
        array_add_text(&types, kinds[i].process_type);
    }
    if (types.failed)
        return fail_memory(e);
    if (!add_process_leases(&arrays, held, n, e))
        return false;
    params_text(&p, worker);
    params_array(&p, &types);
    params_array(&p, &arrays.ids);
    params_array(&p, &arrays.lease_nos);
    if (!db_run(db, cb_sql_release_unknown_processes, &p, DB_TEXT, &result, e))
        return false;
    if (released)
        *released = (size_t)PQntuples(result);
    return true;
}

/* ---- sleeping on queues, so that senders notify only then ---- */

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

bool cb_sleep_pass_on(cb_db *db, const char *worker, const char *const *queues, size_t n,
                      cb_error *e)
{
    OWNED_BUFFER(names);
    params p = { 0 };

    params_text(&p, worker);
    return add_queues(&p, &names, queues, n, e) && db_do(db, cb_sql_sleep_pass_on, &p, e);
}
