/* What operators do with the troubleshooting queue. */
#include <commandbus/tsq.h>

#include "cb_sql.h"
#include "db.h"
#include "fail.h"
#include "json.h"
#include "look.h"
#include "uuid_bytes.h"

static bool prepare(const cb_tsq_action *a, params *p, cb_error *e)
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

    return prepare(action, &p, e) && db_do(db, cb_sql_tsq_retry, &p, e);
}

/* The decision, and after its commit the end of the command's batch: of two operators who decide about
 * the last two members at the same moment, one then sees both. A failure of the second is no failure of
 * the first, which has happened; housekeeping closes the batch later. */
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
        (void)db_look_and_write(db, cb_sql_tsq_close_batch, &p, &closed, NULL);
    return true;
}

bool cb_tsq_cancel(cb_db *db, const cb_tsq_action *action, cb_error *e)
{
    params p = { 0 };

    return prepare(action, &p, e) && end_command(db, cb_sql_tsq_cancel, action, &p, e);
}

bool cb_tsq_complete(cb_db *db, const cb_tsq_action *action, cb_error *e)
{
    params p = { 0 };

    if (action->result && !json_check(action->result, JSON_ANY, "result", e))
        return false;
    if (!prepare(action, &p, e))
        return false;
    params_text(&p, action->result);
    return end_command(db, cb_sql_tsq_complete, action, &p, e);
}
