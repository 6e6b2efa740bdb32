/* Sending commands, one or many. */
#include <commandbus/send.h>
#include <stdlib.h>

#include "cb_sql.h"
#include "commands.h"
#include "db.h"
#include "fail.h"

bool cb_send_check(const cb_send *command, cb_error *e)
{
    return command_check(command, e);
}

bool cb_send_command(cb_db *db, const cb_send *command, cb_uuid *ret, cb_error *e)
{
    params p = { 0 };
    cb_uuid id;

    if (!command_check(command, e))
        return false;
    command_id(command, &id);
    if (ret)
        *ret = id;

    params_text(&p, command->domain);
    params_text(&p, command->command_type);
    params_text(&p, command->data ? command->data : "{}");
    params_text(&p, id.text);
    params_text(&p, command->correlation_id);
    params_text(&p, command->reply_to);
    params_int_unless_0(&p, command->max_attempts);
    params_seconds(&p, command->delay_seconds);
    params_int_unless_0(&p, command->timeout_seconds);
    params_text(&p, command->batch_id);
    params_text(&p, command->headers);
    return db_do(db, cb_sql_send, &p, e);
}

static bool send_chunk(cb_db *db, const buffer *json, size_t n, cb_error *e)
{
    OWNED(PGresult) result = NULL;
    params p = { 0 };

    if (json->failed)
        return fail_memory(e);
    params_text(&p, json->bytes);
    if (!db_run(db, cb_sql_send_many, &p, DB_TEXT, &result, e))
        return false;
    if ((size_t)PQntuples(result) != n)
        return cb_fail(e, CB_SERVER, "send_many answered %d ids for %zu commands",
                       PQntuples(result), n);
    return true;
}

static bool send_chunks(cb_db *db, const cb_send *commands, size_t n,
                        const cb_send_many_options *options, const cb_uuid *ids, size_t *sent,
                        cb_error *e)
{
    OWNED_BUFFER(json);
    size_t chunk = options->chunk ? options->chunk : 1000;

    while (*sent < n) {
        size_t count = commands_write(&json, commands + *sent, ids + *sent, n - *sent, chunk);
        if (!send_chunk(db, &json, count, e))
            return n > count ? cb_fail_while(e, "sending commands %zu to %zu of %zu", *sent + 1,
                                             *sent + count, n)
                             : false;
        *sent += count;
        if (options->progress && !options->progress(*sent, n, options->arg))
            return true;
    }
    return true;
}

bool cb_send_many(cb_db *db, const cb_send *commands, size_t n, const cb_send_many_options *options,
                  cb_uuid *ret, size_t *sent, cb_error *e)
{
    static const cb_send_many_options defaults;
    size_t count = 0;

    if (sent)
        *sent = 0;
    cb_uuid *ids = ret ? ret : malloc((n ? n : 1) * sizeof *ids);
    if (!ids)
        return fail_memory(e);

    bool fine = commands_check(commands, n, ids, e) &&
                send_chunks(db, commands, n, options ? options : &defaults, ids, &count, e);
    if (sent)
        *sent = count;
    if (!ret)
        free(ids);
    return fine;
}
