/* Starting a process, and bringing it a response. */
#include <commandbus/process_request.h>

#include "cb_sql.h"
#include "db.h"
#include "fail.h"
#include "json.h"
#include "uuid_bytes.h"

static bool check_id(const char *what, const char *id, cb_error *e)
{
    unsigned char bytes[16];

    if (!id || uuid_to_bytes(id, bytes))
        return true;
    return cb_fail(e, CB_INVALID_DATA, "%s is not a UUID: '%.80s'", what, id);
}

bool cb_process_request_start(cb_db *db, const char *process_type, const char *state,
                              const cb_process_request_options *options, cb_uuid *ret, cb_error *e)
{
    static const cb_process_request_options none = { 0 };
    const cb_process_request_options *o = options ? options : &none;
    params p = { 0 };
    cb_uuid id;

    if (!process_type || !state)
        return cb_fail(e, CB_MISUSE, "a process needs a type and a state");
    if (!json_check(state, JSON_OBJECT, "state", e) || !check_id("batch_id", o->batch_id, e) ||
        !check_id("process_id", o->process_id, e))
        return false;
    /* Given also when the answer is lost: a second try with it tells whether the first one came through. */
    if (!o->process_id || !cb_uuid_parse(o->process_id, &id))
        id = cb_uuid_new();
    if (ret)
        *ret = id;

    params_text(&p, process_type);
    params_text(&p, state);
    params_text(&p, id.text);
    params_text(&p, o->deadline);
    params_text(&p, o->batch_id);
    params_text(&p, o->leased_by);
    params_seconds(&p, o->lease_seconds ? o->lease_seconds : 30);
    return db_do(db, cb_sql_start_process, &p, e);
}

bool cb_process_respond(cb_db *db, const char *process_id, const char *name, const char *payload,
                        const char *response_id, bool *accepted, cb_error *e)
{
    OWNED(PGresult) result = NULL;
    params p = { 0 };

    if (!process_id || !name)
        return cb_fail(e, CB_MISUSE, "a response needs a process_id and a name");
    if (!check_id("process_id", process_id, e) || !check_id("response_id", response_id, e))
        return false;
    if (payload && !json_check(payload, JSON_ANY, "payload", e))
        return false;
    params_text(&p, process_id);
    params_text(&p, name);
    params_text(&p, payload ? payload : "{}");
    params_text(&p, response_id);
    if (!db_run(db, cb_sql_respond, &p, DB_TEXT, &result, e))
        return false;
    if (accepted)
        *accepted = PQntuples(result) == 1 && *PQgetvalue(result, 0, 0) == 't';
    return true;
}
