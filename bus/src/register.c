/* What is made known before work comes: domains, process types, and who may bring responses. */
#include <commandbus/domain.h>
#include <commandbus/process_row.h>
#include <commandbus/responder.h>
#include <stdlib.h>

#include "cb_sql.h"
#include "rows.h"
#include "statements.h"

bool cb_domain_register(cb_db *db, const char *domain, const char *reply_queue, cb_error *e)
{
    params p = { 0 };

    if (!domain)
        return cb_fail(e, CB_MISUSE, "a domain needs a name");
    params_text(&p, domain);
    params_text(&p, reply_queue);
    return db_do(db, cb_sql_register_domain, &p, e);
}

static void add_names(buffer *b, const char *const *names)
{
    size_t n = 0;

    while (names && names[n])
        n++;
    array_begin(b, ARRAY_TEXT, n);
    for (size_t i = 0; i < n; i++)
        array_add_text(b, names[i]);
}

static bool register_type(cb_db *db, const cb_process_kind *kind, cb_error *e)
{
    OWNED_BUFFER(redact);
    params p = { 0 };

    params_text(&p, kind->process_type);
    params_text(&p, kind->domain);
    params_int(&p, kind->version);
    params_text(&p, kind->step_based ? "STEP_BASED" : "PROCESS_STEP");
    params_text(&p, kind->reply_queue);
    add_names(&redact, kind->redact);
    params_array(&p, &redact);
    params_text(&p, kind->responses);
    return db_do(db, cb_sql_register_process_type, &p, e);
}

bool cb_process_register(cb_db *db, const cb_process_kind *kinds, size_t n, cb_error *e)
{
    for (size_t i = 0; i < n; i++) {
        if (!kinds[i].process_type || !kinds[i].domain)
            return cb_fail(e, CB_MISUSE, "a process type needs a name and a domain");
        if (!register_type(db, &kinds[i], e))
            return cb_fail_while(e, "registering process type '%s'", kinds[i].process_type);
    }
    return true;
}

static bool change_responder(cb_db *db, const char *sql, const char *role,
                             const char *process_types, const char *responses, long *changed,
                             cb_error *e)
{
    OWNED(PGresult) result = NULL;
    params p = { 0 };

    if (!role || !process_types || !responses)
        return cb_fail(e, CB_MISUSE, "a right needs a role, a process type and a response");
    params_text(&p, role);
    params_text(&p, process_types);
    params_text(&p, responses);
    if (!db_run(db, sql, &p, DB_TEXT, &result, e))
        return false;
    if (changed)
        *changed = strtol(PQgetvalue(result, 0, 0), NULL, 10);
    return true;
}

bool cb_responder_allow(cb_db *db, const char *role, const char *process_types,
                        const char *responses, long *changed, cb_error *e)
{
    return change_responder(db, cb_sql_responder_allow, role, process_types, responses, changed, e);
}

bool cb_responder_forbid(cb_db *db, const char *role, const char *process_types,
                         const char *responses, long *changed, cb_error *e)
{
    return change_responder(db, cb_sql_responder_forbid, role, process_types, responses, changed,
                            e);
}

bool cb_responder_list(cb_db *db, cb_rows **ret, cb_error *e)
{
    return rows_query(db, cb_sql_responder_list, NULL, ret, e);
}
