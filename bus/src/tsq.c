/* What operators decide: about commands in the troubleshooting queue, and about processes that
 * wait for them. */
#include <commandbus/process_request.h>
#include <commandbus/tsq.h>

#include "cb_sql.h"
#include "fail.h"
#include "json_check.h"
#include "statements.h"
#include "uuid_bytes.h"

static bool prepare_action(const cb_tsq_action *a, params *p, cb_error *e)
{
    unsigned char bytes[16];

    if (!a->domain || !a->command_id || !a->operator_name)
        return cb_fail(e, CB_MISUSE,
                       "an action on the troubleshooting queue needs a domain, a "
                       "command_id and the operator's name");
    if (!uuid_to_bytes(a->command_id, bytes)) {
        cb_fail(e, CB_INVALID_DATA, "command_id is not a UUID: '%.80s'", a->command_id);
        return fail_hint(e, "commandbus tsq list shows the ids.");
    }
    params_text(p, a->domain);
    params_text(p, a->command_id);
    params_text(p, a->operator_name);
    params_text(p, a->reason);
    return true;
}

bool cb_tsq_retry(cb_db *db, const cb_tsq_action *action, cb_error *e)
{
    params p = { 0 };

    return prepare_action(action, &p, e) && db_do(db, cb_sql_tsq_retry, &p, e);
}

/* The decision, and after its commit the end of the command's batch: of two operators who decide
 * about the last two members at the same moment, one then sees both. A failure of the second is
 * no failure of the first, which has happened; housekeeping closes the batch later. */
static bool end_command(cb_db *db, const char *sql, const cb_tsq_action *action,
                        const params *decision, cb_error *e)
{
    OWNED(PGresult) closed = NULL;
    params p = { 0 };

    if (!db_do(db, sql, decision, e))
        return false;
    params_text(&p, action->domain);
    params_text(&p, action->command_id);
    if (!db_in_transaction(db))
        (void)db_run_guarded(db, cb_sql_tsq_close_batch, &p, &closed, NULL);
    return true;
}

bool cb_tsq_cancel(cb_db *db, const cb_tsq_action *action, cb_error *e)
{
    params p = { 0 };

    return prepare_action(action, &p, e) && end_command(db, cb_sql_tsq_cancel, action, &p, e);
}

bool cb_tsq_complete(cb_db *db, const cb_tsq_action *action, cb_error *e)
{
    params p = { 0 };

    if (action->result && !json_check(action->result, JSON_ANY, "result", e))
        return false;
    if (!prepare_action(action, &p, e))
        return false;
    params_text(&p, action->result);
    return end_command(db, cb_sql_tsq_complete, action, &p, e);
}

/* ---- processes ---- */

static bool prepare_decision(params *p, const char *process_id, const char *operator_name,
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

    if (!prepare_decision(&p, process_id, operator_name, reason, e))
        return false;
    params_text(&p, new_deadline);
    return db_do(db, cb_sql_process_retry, &p, e);
}

bool cb_process_cancel(cb_db *db, const char *process_id, const char *operator_name,
                       const char *reason, bool run_compensations, cb_error *e)
{
    params p = { 0 };

    if (!prepare_decision(&p, process_id, operator_name, reason, e))
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
    if (!prepare_decision(&p, process_id, operator_name, reason, e))
        return false;
    params_text(&p, overrides);
    return db_do(db, cb_sql_process_complete, &p, e);
}
