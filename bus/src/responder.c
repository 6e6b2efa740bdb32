/* Who may bring responses to processes. */
#include <commandbus/responder.h>
#include <stdlib.h>

#include "cb_sql.h"
#include "db.h"
#include "rows.h"

static bool change(cb_db *db, const char *sql, const char *role, const char *process_types,
                   const char *responses, long *changed, cb_error *e)
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
    return change(db, cb_sql_responder_allow, role, process_types, responses, changed, e);
}

bool cb_responder_forbid(cb_db *db, const char *role, const char *process_types,
                         const char *responses, long *changed, cb_error *e)
{
    return change(db, cb_sql_responder_forbid, role, process_types, responses, changed, e);
}

bool cb_responder_list(cb_db *db, cb_rows **ret, cb_error *e)
{
    return rows_query(db, cb_sql_responder_list, NULL, ret, e);
}
