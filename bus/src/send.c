/* Commands on their way out: checked without asking the database, written as the arrays that
 * send_arrays and create_batch_arrays read, and sent: one, many, or as a batch. */
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

/* ---- many commands as the array parameters of one statement ---- */

/* In the order of the parameters: a batch has its domain and its id once, not for each command. */
enum {
    COMMAND_TYPES,
    DATA,
    COMMAND_IDS,
    CORRELATION_IDS,
    REPLY_TOS,
    MAX_ATTEMPTS,
    DELAYS,
    TIMEOUTS,
    HEADERS,
    MEMBER_ARRAYS,
    DOMAINS = MEMBER_ARRAYS,
    BATCH_IDS,
    ARRAYS,
};

static const array_type array_types[ARRAYS] = {
    [COMMAND_TYPES] = ARRAY_TEXT,   [DATA] = ARRAY_JSONB,     [COMMAND_IDS] = ARRAY_UUID,
    [CORRELATION_IDS] = ARRAY_UUID, [REPLY_TOS] = ARRAY_TEXT, [MAX_ATTEMPTS] = ARRAY_INT4,
    [DELAYS] = ARRAY_FLOAT8,        [TIMEOUTS] = ARRAY_INT4,  [HEADERS] = ARRAY_JSONB,
    [DOMAINS] = ARRAY_TEXT,         [BATCH_IDS] = ARRAY_UUID,
};

/* Whether any command has a value in an array: one that is all NULL is not sent. */
typedef struct {
    buffer arrays[ARRAYS];
    bool used[ARRAYS];
} send_arrays;

static void send_arrays_done(send_arrays *a)
{
    for (int i = 0; i < ARRAYS; i++)
        buffer_done(&a->arrays[i]);
}

static void add_uuid_or_null(send_arrays *to, int array, const char *text_or_null)
{
    if (!text_or_null || !array_add_uuid(&to->arrays[array], text_or_null))
        array_add_null(&to->arrays[array]);
    to->used[array] |= text_or_null != NULL;
}

static void add_text(send_arrays *to, int array, const char *text_or_null)
{
    array_add_text(&to->arrays[array], text_or_null);
    to->used[array] |= text_or_null != NULL;
}

static void add_json(send_arrays *to, int array, const char *json_or_null)
{
    array_add_jsonb(&to->arrays[array], json_or_null);
    to->used[array] |= json_or_null != NULL;
}

static void add_int_unless_0(send_arrays *to, int array, int value)
{
    if (value)
        array_add_int4(&to->arrays[array], value);
    else
        array_add_null(&to->arrays[array]);
    to->used[array] |= value != 0;
}

/* commands_check() has seen to it that all ids are UUIDs. */
static void send_arrays_add(send_arrays *to, const cb_send *c, const cb_uuid *id)
{
    add_text(to, COMMAND_TYPES, c->command_type);
    add_json(to, DATA, c->data);
    add_uuid_or_null(to, COMMAND_IDS, id->text);
    add_uuid_or_null(to, CORRELATION_IDS, c->correlation_id);
    add_text(to, REPLY_TOS, c->reply_to);
    add_int_unless_0(to, MAX_ATTEMPTS, c->max_attempts);
    array_add_float8(&to->arrays[DELAYS], c->delay_seconds);
    to->used[DELAYS] |= c->delay_seconds != 0;
    add_int_unless_0(to, TIMEOUTS, c->timeout_seconds);
    add_json(to, HEADERS, c->headers);
    add_text(to, DOMAINS, c->domain);
    add_uuid_or_null(to, BATCH_IDS, c->batch_id);
}

/* How many of the first of n commands go into one statement: `chunk`, fewer when they have more
 * than 4 MiB. */
static size_t chunk_length(const cb_send *commands, size_t n, size_t chunk)
{
    size_t length = 0, bytes = 0;

    while (length < n && length < chunk && bytes < chunk_bytes) {
        const cb_send *c = &commands[length++];
        bytes += 200 + (c->data ? strlen(c->data) : 0) + (c->headers ? strlen(c->headers) : 0);
    }
    return length;
}

/* Replaces what the arrays hold by these commands. */
static bool send_arrays_fill(send_arrays *a, const cb_send *commands, const cb_uuid *ids, size_t n,
                             cb_error *e)
{
    for (int i = 0; i < ARRAYS; i++) {
        buffer_clear(&a->arrays[i]);
        array_begin(&a->arrays[i], array_types[i], n);
        a->used[i] = false;
    }
    a->used[COMMAND_TYPES] = true;
    for (size_t i = 0; i < n; i++)
        send_arrays_add(a, &commands[i], &ids[i]);
    for (int i = 0; i < ARRAYS; i++) {
        if (a->arrays[i].failed)
            return fail_memory(e);
    }
    return true;
}

/* The first `count` of the arrays. */
static void params_send_arrays(params *p, const send_arrays *a, int count)
{
    for (int i = 0; i < count; i++) {
        if (a->used[i])
            params_array(p, &a->arrays[i]);
        else
            params_text(p, NULL);
    }
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

static bool send_chunk(cb_db *db, send_arrays *a, const cb_send *commands, const cb_uuid *ids,
                       size_t n, cb_error *e)
{
    OWNED(PGresult) result = NULL;
    params p = { 0 };

    if (!send_arrays_fill(a, commands, ids, n, e))
        return false;
    params_send_arrays(&p, a, ARRAYS);
    if (!db_run(db, cb_sql_send_arrays, &p, DB_TEXT, &result, e))
        return false;
    const char *answered = PQntuples(result) == 1 ? PQgetvalue(result, 0, 0) : "no";
    if (strtoul(answered, NULL, 10) != n)
        return cb_fail(e, CB_SERVER, "send_arrays answered %s ids for %zu commands", answered, n);
    return true;
}

static bool send_chunks(cb_db *db, send_arrays *a, const cb_send *commands, size_t n,
                        const cb_send_many_options *options, const cb_uuid *ids, size_t *sent,
                        cb_error *e)
{
    size_t chunk = options->chunk ? options->chunk : 1000;

    while (*sent < n) {
        size_t count = chunk_length(commands + *sent, n - *sent, chunk);
        if (!send_chunk(db, a, commands + *sent, ids + *sent, count, e))
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
    send_arrays arrays = { 0 };
    size_t count = 0;

    if (sent)
        *sent = 0;
    cb_uuid *ids = ret ? ret : malloc((n ? n : 1) * sizeof *ids);
    if (!ids)
        return fail_memory(e);

    bool fine =
        commands_check(commands, n, ids, e) &&
        send_chunks(db, &arrays, commands, n, options ? options : &defaults, ids, &count, e);
    send_arrays_done(&arrays);
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

/* What a batch is made of, checked. */
typedef struct {
    const cb_batch_options *options;
    const cb_uuid *id;
    const cb_send *members;
    const cb_uuid *ids; /* of the members */
    size_t n;
} new_batch;

/* The batch with its first members. */
static bool create_batch(cb_db *db, const new_batch *b, send_arrays *a, size_t first, cb_error *e)
{
    params p = { 0 };

    if (!send_arrays_fill(a, b->members, b->ids, first, e))
        return false;
    params_send_arrays(&p, a, MEMBER_ARRAYS);
    params_text(&p, b->options->domain);
    params_text(&p, b->options->name);
    params_text(&p, b->options->custom_data);
    params_text(&p, b->options->reply_to);
    params_text(&p, b->id->text);
    return db_do(db, cb_sql_create_batch, &p, e);
}

static bool create_and_fill(cb_db *db, const new_batch *b, send_arrays *a, size_t first,
                            cb_error *e)
{
    if (!create_batch(db, b, a, first, e))
        return false;
    for (size_t done = first, count; done < b->n; done += count) {
        count = chunk_length(b->members + done, b->n - done, batch_chunk);
        if (!send_chunk(db, a, b->members + done, b->ids + done, count, e))
            return false;
    }
    return true;
}

/* One statement when that is enough, else a transaction, unless the caller has one. */
static bool create_whole_batch(cb_db *db, const new_batch *b, cb_error *e)
{
    send_arrays arrays = { 0 };
    size_t first = chunk_length(b->members, b->n, batch_chunk);
    bool begins = first < b->n && !db_in_transaction(db);

    if (begins && !cb_db_begin(db, e))
        return false;
    bool fine = create_and_fill(db, b, &arrays, first, e);
    send_arrays_done(&arrays);
    if (!begins)
        return fine;
    if (fine)
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
                create_whole_batch(db, &(new_batch){ options, &id, members, ids, n }, e);
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
