/* Commands on their way out: checked without asking the database, written as the JSON that
 * send_many and create_batch read, and sent: one, many, or as a batch. */
#include <commandbus/batch.h>
#include <commandbus/send.h>
#include <stdlib.h>
#include <string.h>

#include "cb_sql.h"
#include "fail.h"
#include "json_check.h"
#include "statements.h"
#include "uuid_bytes.h"

/* A statement larger than this gains nothing and holds much memory on both sides. */
static const size_t chunk_bytes = 4 << 20;

static bool check_uuid(const char *text, const char *what, cb_error *e)
{
    if (uuid_check(text, what, e))
        return true;
    return fail_hint(e, "Write it as 8-4-4-4-12 hexadecimal digits; nothing was sent.");
}

bool cb_send_check(const cb_send *c, cb_error *e)
{
    if (!c->domain || !c->command_type)
        return cb_fail(e, CB_MISUSE, "a command needs a %s", c->domain ? "command_type" : "domain");
    if (c->data && !json_check(c->data, JSON_OBJECT, "data", e))
        return false;
    if (c->headers && !json_check(c->headers, JSON_OBJECT, "headers", e))
        return false;
    if (!(c->delay_seconds >= -1e9 && c->delay_seconds <= 1e9)) /* NaN is neither. */
        return cb_fail(e, CB_INVALID_DATA, "delay_seconds must be 0 to 31536000 (a year)");
    return check_uuid(c->command_id, "command_id", e) &&
           check_uuid(c->correlation_id, "correlation_id", e) &&
           check_uuid(c->batch_id, "batch_id", e);
}

/* Fills *id with the command's own id in lower case, or a new one. */
static void command_id(const cb_send *command, cb_uuid *id)
{
    if (!command->command_id || !cb_uuid_parse(command->command_id, id))
        *id = cb_uuid_new();
}

/* One command with an id of the sender's choice. */
typedef struct {
    const char *id;
    const char *domain;
    size_t index;
} chosen_id;

static int compare_ids(const void *a, const void *b)
{
    const chosen_id *x = a, *y = b;
    int by_id = strcmp(x->id, y->id);

    return by_id ? by_id : strcmp(x->domain, y->domain);
}

static bool check_duplicates(const cb_send *commands, size_t n, const cb_uuid *ids, cb_error *e)
{
    chosen_id *chosen = malloc((n ? n : 1) * sizeof *chosen);
    size_t count = 0, twice = 0;

    if (!chosen)
        return fail_memory(e);
    for (size_t i = 0; i < n; i++) {
        if (commands[i].command_id)
            chosen[count++] = (chosen_id){ ids[i].text, commands[i].domain, i };
    }
    qsort(chosen, count, sizeof *chosen, compare_ids);
    for (size_t i = 1; i < count && !twice; i++) {
        if (compare_ids(&chosen[i - 1], &chosen[i]) == 0)
            twice = i;
    }
    if (twice) {
        cb_fail(e, CB_DUPLICATE_COMMAND, "commands %zu and %zu of %zu have the same command_id %s",
                chosen[twice - 1].index + 1, chosen[twice].index + 1, n, chosen[twice].id);
        fail_hint(e, "Leave one of them out; nothing was sent.");
    }
    free(chosen);
    return twice == 0;
}

/* Checks n commands, gives each its id, and refuses an id that stands twice in one domain. */
static bool commands_check(const cb_send *commands, size_t n, cb_uuid *ids, cb_error *e)
{
    for (size_t i = 0; i < n; i++) {
        if (!cb_send_check(&commands[i], e))
            return cb_fail_while(e, "checking command %zu of %zu", i + 1, n);
        command_id(&commands[i], &ids[i]);
    }
    return check_duplicates(commands, n, ids, e);
}

/* A member whose value is JSON already. */
static void add_json(buffer *b, const char *key, const char *json)
{
    if (!json)
        return;
    buffer_add_text(b, key);
    buffer_add_text(b, json);
}

static void add_string(buffer *b, const char *key, const char *text)
{
    if (!text)
        return;
    buffer_add_text(b, key);
    buffer_add_json_string(b, text);
}

static void add_int(buffer *b, const char *key, int value)
{
    if (!value)
        return;
    buffer_add_text(b, key);
    buffer_add_int(b, value);
}

/* The members of the wire format are all there, in full: send_many then puts the object into the
 * queue as it is. */
static void write_command(buffer *b, const cb_send *c, const cb_uuid *id)
{
    cb_uuid correlation_id;

    if (!cb_uuid_parse(c->correlation_id, &correlation_id))
        correlation_id = cb_uuid_new();
    add_string(b, "{\"command_id\":", id->text);
    add_string(b, ",\"correlation_id\":", correlation_id.text);
    add_string(b, ",\"domain\":", c->domain);
    add_string(b, ",\"command_type\":", c->command_type);
    add_json(b, ",\"data\":", c->data ? c->data : "{}");
    if (c->reply_to)
        add_string(b, ",\"reply_to\":", c->reply_to);
    else
        add_json(b, ",\"reply_to\":", "null");
    add_json(b, ",\"headers\":", c->headers);
    add_string(b, ",\"batch_id\":", c->batch_id);
    add_int(b, ",\"max_attempts\":", c->max_attempts);
    add_int(b, ",\"timeout_seconds\":", c->timeout_seconds);
    if (c->delay_seconds != 0) {
        buffer_add_text(b, ",\"delay_seconds\":");
        buffer_add_seconds(b, c->delay_seconds);
    }
    buffer_add_text(b, "}");
}

/* Replaces the buffer's content by a JSON array of the first of n commands: `chunk` of them,
 * fewer when they have more than 4 MiB. Returns how many. */
static size_t commands_write(buffer *b, const cb_send *commands, const cb_uuid *ids, size_t n,
                             size_t chunk)
{
    size_t written = 0;

    buffer_clear(b);
    buffer_add_text(b, "[");
    while (written < n && written < chunk && b->length < chunk_bytes) {
        if (written > 0)
            buffer_add_text(b, ",");
        write_command(b, &commands[written], &ids[written]);
        written++;
        if (b->failed)
            break;
    }
    buffer_add_text(b, "]");
    return written;
}

/* ---- sending, one or many ---- */

bool cb_send_command(cb_db *db, const cb_send *command, cb_uuid *ret, cb_error *e)
{
    params p = { 0 };
    cb_uuid id;

    if (!cb_send_check(command, e))
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

/* ---- batches: creating them, and closing those whose members are done ---- */

/* Commands in one statement; all of a batch are one transaction. */
static const size_t batch_chunk = 1000;

static bool check_batch(const cb_batch_options *o, const cb_send *commands, size_t n, cb_uuid *id,
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

static bool create_batch(cb_db *db, const cb_batch_options *o, const buffer *members,
                         const cb_uuid *id, cb_error *e)
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
        size_t count = commands_write(json, members + done, ids + done, n - done, batch_chunk);
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
static bool create_whole_batch(cb_db *db, const cb_batch_options *o, const cb_send *members,
                               const cb_uuid *ids, size_t n, const cb_uuid *id, cb_error *e)
{
    OWNED_BUFFER(json);
    size_t first = commands_write(&json, members, ids, n, batch_chunk);

    if (first == n || db_in_transaction(db))
        return create_batch(db, o, &json, id, e) && add_rest(db, &json, members, ids, n, first, e);

    if (!cb_db_begin(db, e))
        return false;
    if (create_batch(db, o, &json, id, e) && add_rest(db, &json, members, ids, n, first, e))
        return cb_db_commit(db, e);
    cb_db_rollback(db, NULL);
    return false;
}

bool cb_batch_create(cb_db *db, const cb_batch_options *options, const cb_send *commands, size_t n,
                     cb_uuid *ret, cb_error *e)
{
    cb_uuid id;

    if (!check_batch(options, commands, n, &id, e))
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
    bool fine = commands_check(members, n, ids, e) &&
                create_whole_batch(db, options, members, ids, n, &id, e);
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
