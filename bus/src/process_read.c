/* Processes as they are, for reading only. */
#include <string.h>

#include "cb_sql.h"
#include "db.h"
#include "fail.h"
#include "process_rows.h"
#include "uuid_bytes.h"

bool cb_process_read(cb_db *db, const char *process_id, cb_process_claim **ret, cb_error *e)
{
    OWNED(PGresult) result = NULL;
    params p = { 0 };
    unsigned char bytes[16];

    if (!uuid_to_bytes(process_id, bytes))
        return cb_fail(e, CB_INVALID_DATA, "process_id is not a UUID: '%.80s'",
                       process_id ? process_id : "");
    params_text(&p, process_id);
    if (!db_read(db, cb_sql_read_process, &p, &result, e))
        return false;
    if (PQntuples(result) != 1) {
        cb_fail(e, CB_PROCESS_NOT_FOUND, "there is no process %s", process_id);
        return fail_hint(e, "Check the id: commandbus process list.");
    }
    return process_rows_adopt(PGresult_take(&result), ret, e);
}

bool cb_process_running(cb_db *db, const char *process_type, const char *after, cb_uuid *ids,
                        size_t room, size_t *n, cb_error *e)
{
    OWNED(PGresult) result = NULL;
    params p = { 0 };

    params_text(&p, process_type);
    params_text(&p, after);
    params_int(&p, room < INT32_MAX ? (int64_t)room : INT32_MAX);
    if (!db_read(db, cb_sql_running_processes, &p, &result, e))
        return false;
    *n = 0;
    for (int i = 0; i < PQntuples(result) && *n < room; i++) {
        if (!cb_uuid_parse(PQgetvalue(result, i, 0), &ids[(*n)++]))
            return cb_fail(e, CB_SERVER, "a process came without its id");
    }
    return true;
}
