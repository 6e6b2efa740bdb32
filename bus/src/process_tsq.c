/* What operators decide about processes that wait for them. */
#include <commandbus/process_request.h>

#include "cb_sql.h"
#include "db.h"
#include "fail.h"
#include "json.h"
#include "uuid_bytes.h"

static bool prepare(params *p, const char *process_id, const char *operator_name,
                    const char *reason, cb_error *e)
{
    unsigned char bytes[16];

    if (!process_id || !operator_name)
        return cb_fail(e, CB_MISUSE,
                       "a decision about a process needs its id and the operator's name");
    if (!uuid_to_bytes(process_id, bytes)) {
        cb_fail(e, CB_INVALID_DATA, "process_id is not a UUID: '%.80s'", process_id);
        return fail_hint(e, "commandbus process list shows the ids.");
    }
    params_text(p, process_id);
    params_text(p, operator_name);
    params_text(p, reason);
    return true;
}

bool cb_process_retry(cb_db *db, const char *process_id, const char *operator_name,
                      const char *reason, const char *new_deadline, cb_error *e)
{
    params p = { 0 };

    if (!prepare(&p, process_id, operator_name, reason, e))
        return false;
    params_text(&p, new_deadline);
    return db_do(db, cb_sql_process_retry, &p, e);
}

bool cb_process_cancel(cb_db *db, const char *process_id, const char *operator_name,
                       const char *reason, bool run_compensations, cb_error *e)
{
    params p = { 0 };

    if (!prepare(&p, process_id, operator_name, reason, e))
        return false;
    params_text(&p, run_compensations ? "true" : "false");
    return db_do(db, cb_sql_process_cancel, &p, e);
}

bool cb_process_complete(cb_db *db, const char *process_id, const char *operator_name,
                         const char *reason, const char *overrides, cb_error *e)
{
    params p = { 0 };

    if (overrides && !json_check(overrides, JSON_OBJECT, "overrides", e))
        return false;
    if (!prepare(&p, process_id, operator_name, reason, e))
        return false;
    params_text(&p, overrides);
    return db_do(db, cb_sql_process_complete, &p, e);
}
