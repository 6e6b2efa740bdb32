/* Creating batches, and closing those whose members are done. */
#include <commandbus/batch.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cb_sql.h"
#include "commands.h"
#include "db.h"
#include "fail.h"
#include "json.h"

/* Commands in one statement; all of a batch are one transaction. */
static const size_t chunk = 1000;

static bool check_options(const cb_batch_options *o, const cb_send *commands, size_t n, cb_uuid *id,
                          cb_error *e)
{
    if (!o->domain)
        return cb_fail(e, CB_MISUSE, "a batch needs a domain");
    if (o->custom_data && !json_check(o->custom_data, JSON_ANY, "custom_data", e))
        return false;
    if (!o->batch_id)
        *id = cb_uuid_new();
    else if (!cb_uuid_parse(o->batch_id, id))
        return cb_fail(e, CB_INVALID_DATA, "batch_id is not a UUID: '%.80s'", o->batch_id);

    for (size_t i = 0; i < n; i++) {
        if (commands[i].domain && strcmp(commands[i].domain, o->domain) != 0)
            return cb_fail(e, CB_INVALID_DATA,
                           "command %zu of %zu is for domain '%.60s', the batch for '%.60s'", i + 1,
                           n, commands[i].domain, o->domain);
    }
    return true;
}

static bool create(cb_db *db, const cb_batch_options *o, const buffer *members, const cb_uuid *id,
                   cb_error *e)
{
    params p = { 0 };

    if (members->failed)
        return fail_memory(e);
    params_text(&p, o->domain);
    params_text(&p, o->name);
    params_text(&p, members->bytes);
    params_text(&p, o->custom_data);
    params_text(&p, o->reply_to);
    params_text(&p, id->text);
    return db_do(db, cb_sql_create_batch, &p, e);
}

/* What did not fit into the first statement. */
static bool add_rest(cb_db *db, buffer *json, const cb_send *members, const cb_uuid *ids, size_t n,
                     size_t done, cb_error *e)
{
    while (done < n) {
        params p = { 0 };
        size_t count = commands_write(json, members + done, ids + done, n - done, chunk);
        if (json->failed)
            return fail_memory(e);
        params_text(&p, json->bytes);
        if (!db_do(db, cb_sql_send_many, &p, e))
            return false;
        done += count;
    }
    return true;
}

/* One statement when that is enough, else a transaction, unless the caller has one. */
static bool create_all(cb_db *db, const cb_batch_options *o, const cb_send *members,
                       const cb_uuid *ids, size_t n, const cb_uuid *id, cb_error *e)
{
    OWNED_BUFFER(json);
    size_t first = commands_write(&json, members, ids, n, chunk);

    if (first == n || db_in_transaction(db))
        return create(db, o, &json, id, e) && add_rest(db, &json, members, ids, n, first, e);

    if (!cb_db_begin(db, e))
        return false;
    if (create(db, o, &json, id, e) && add_rest(db, &json, members, ids, n, first, e))
        return cb_db_commit(db, e);
    cb_db_rollback(db, NULL);
    return false;
}

bool cb_batch_create(cb_db *db, const cb_batch_options *options, const cb_send *commands, size_t n,
                     cb_uuid *ret, cb_error *e)
{
    cb_uuid id;

    if (!check_options(options, commands, n, &id, e))
        return false;
    if (ret)
        *ret = id;
    cb_uuid *ids = malloc((n ? n : 1) * sizeof *ids);
    cb_send *members = malloc((n ? n : 1) * sizeof *members);
    if (!ids || !members) {
        free(members);
        free(ids);
        return fail_memory(e);
    }
    for (size_t i = 0; i < n; i++) {
        members[i] = commands[i];
        members[i].domain = options->domain;
        members[i].batch_id = id.text;
    }
    bool fine =
        commands_check(members, n, ids, e) && create_all(db, options, members, ids, n, &id, e);
    free(members);
    free(ids);
    return fine;
}

bool cb_batch_close(cb_db *db, const cb_uuid *batches, size_t n, size_t *closed, cb_error *e)
{
    OWNED(PGresult) result = NULL;
    OWNED_BUFFER(ids);
    params p = { 0 };

    array_begin(&ids, ARRAY_UUID, n);
    for (size_t i = 0; i < n; i++) {
        if (!array_add_uuid(&ids, batches[i].text))
            return cb_fail(e, CB_MISUSE, "batch %zu of %zu has no UUID", i + 1, n);
    }
    if (ids.failed)
        return fail_memory(e);
    if (n)
        params_array(&p, &ids);
    else
        params_text(&p, NULL);
    if (!db_run(db, cb_sql_close_batches, &p, DB_TEXT, &result, e))
        return false;
    if (closed)
        *closed = (size_t)PQntuples(result);
    return true;
}
