/* Starting processes, one or a batch of them, and bringing them responses. */
#include <commandbus/batch.h>
#include <commandbus/process_request.h>
#include <stdio.h>

#include "cb_sql.h"
#include "fail.h"
#include "json_check.h"
#include "statements.h"
#include "uuid_bytes.h"

bool cb_process_request_start(cb_db *db, const char *process_type, const char *state,
                              const cb_process_request_options *options, cb_uuid *ret, cb_error *e)
{
    static const cb_process_request_options none = { 0 };
    const cb_process_request_options *o = options ? options : &none;
    params p = { 0 };
    cb_uuid id;

    if (!process_type || !state)
        return cb_fail(e, CB_MISUSE, "a process needs a type and a state");
    if (!json_check(state, JSON_OBJECT, "state", e) || !uuid_check(o->batch_id, "batch_id", e) ||
        !uuid_check(o->process_id, "process_id", e))
        return false;
    /* Given also when the answer is lost: a second try with it tells whether the first one came
     * through. */
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
    if (!uuid_check(process_id, "process_id", e) || !uuid_check(response_id, "response_id", e))
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

/* ---- a batch: one transaction, as many statements as it takes ---- */

/* One statement ends with the first of them. */
static const size_t chunk = 1000, chunk_bytes = 4 << 20;

typedef struct {
    cb_db *db;
    const cb_start_batch_options *options;
    const char *const *states;
    size_t n, done;
    cb_uuid id;
    buffer json, labels, ids, deadlines; /* of the chunk that is being made */
} batch_start;

static void batch_start_done(batch_start *s)
{
    buffer_done(&s->json);
    buffer_done(&s->labels);
    buffer_done(&s->ids);
    buffer_done(&s->deadlines);
}

/* What refusals call the state. */
static void name_state(const batch_start *s, size_t i, char *to, size_t size)
{
    if (s->options->lines)
        snprintf(to, size, "line %zu", s->options->lines[i]);
    else
        snprintf(to, size, "state %zu", i + 1);
}

static bool batch_start_check(batch_start *s, cb_error *e)
{
    const cb_start_batch_options *o = s->options;
    char label[40];
    cb_uuid id;

    if (!o->process_type)
        return cb_fail(e, CB_MISUSE, "a batch of processes needs a process type");
    if (s->n > CB_BATCH_MOST_PROCESSES)
        return cb_fail(e, CB_INVALID_DATA, "a batch starts with at most %d processes, not %zu",
                       CB_BATCH_MOST_PROCESSES, s->n);
    if (o->custom_data && !json_check(o->custom_data, JSON_ANY, "custom_data", e))
        return false;
    if (!o->batch_id)
        s->id = cb_uuid_new();
    else if (!cb_uuid_parse(o->batch_id, &s->id))
        return cb_fail(e, CB_INVALID_DATA, "batch_id is not a UUID: '%.80s'", o->batch_id);

    for (size_t i = 0; i < s->n; i++) {
        name_state(s, i, label, sizeof label);
        if (!s->states[i])
            return cb_fail(e, CB_MISUSE, "%s is missing", label);
        if (!json_check(s->states[i], JSON_OBJECT, label, e))
            return false;
        if (o->process_ids && (!o->process_ids[i] || !cb_uuid_parse(o->process_ids[i], &id)))
            return cb_fail(e, CB_INVALID_DATA, "the id of %s is not a UUID", label);
    }
    return true;
}

static void write_texts(buffer *to, const char *const *texts, size_t n)
{
    buffer_clear(to);
    array_begin(to, ARRAY_TEXT, n);
    for (size_t i = 0; i < n; i++)
        array_add_text(to, texts[i]);
}

/* The next states that go into one statement; how many. */
static size_t write_chunk(batch_start *s)
{
    size_t from = s->done, to = from;
    char label[40];

    buffer_clear(&s->json);
    buffer_add_text(&s->json, "[");
    while (to < s->n && to - from < chunk && s->json.length < chunk_bytes && !s->json.failed) {
        buffer_add_text(&s->json, to > from ? "," : "");
        buffer_add_text(&s->json, s->states[to++]);
    }
    buffer_add_text(&s->json, "]");

    buffer_clear(&s->labels);
    array_begin(&s->labels, ARRAY_TEXT, to - from);
    for (size_t i = from; i < to; i++) {
        name_state(s, i, label, sizeof label);
        array_add_text(&s->labels, label);
    }
    if (s->options->process_ids)
        write_texts(&s->ids, s->options->process_ids + from, to - from);
    if (s->options->deadlines)
        write_texts(&s->deadlines, s->options->deadlines + from, to - from);
    return to - from;
}

static void add_array(params *p, const buffer *array)
{
    if (array)
        params_array(p, array);
    else
        params_text(p, NULL);
}

/* The first chunk brings the batch with it. */
static bool batch_start_send_chunk(batch_start *s, cb_error *e)
{
    const cb_start_batch_options *o = s->options;
    bool first = s->done == 0;
    size_t count = write_chunk(s);
    params p = { 0 };

    if (s->json.failed || s->labels.failed || s->ids.failed || s->deadlines.failed)
        return fail_memory(e);
    params_text(&p, o->process_type);
    params_text(&p, s->json.bytes);
    if (first) {
        params_text(&p, o->name);
        params_text(&p, o->reply_to);
        params_text(&p, o->custom_data);
        params_text(&p, s->id.text);
        params_text(&p, o->deadline);
    } else {
        params_text(&p, o->deadline);
        params_text(&p, s->id.text);
    }
    params_array(&p, &s->labels);
    add_array(&p, o->process_ids ? &s->ids : NULL);
    add_array(&p, o->deadlines ? &s->deadlines : NULL);
    params_text(&p, o->leased_by);
    params_seconds(&p, o->lease_seconds ? o->lease_seconds : 30);
    if (!db_do(s->db, first ? cb_sql_start_batch : cb_sql_start_processes, &p, e))
        return false;
    s->done += count;
    if (o->progress && !o->progress(s->done, s->n, o->arg))
        return cb_fail(e, CB_AGAIN, "stopped before it was complete: nothing was started");
    return true;
}

/* An empty batch too is for the server to refuse. */
static bool batch_start_send(batch_start *s, cb_error *e)
{
    do {
        if (!batch_start_send_chunk(s, e))
            return false;
    } while (s->done < s->n);
    return true;
}

bool cb_start_batch(cb_db *db, const cb_start_batch_options *options, const char *const *states,
                    size_t n, cb_uuid *ret, cb_error *e)
{
    __attribute__((cleanup(batch_start_done)))
    batch_start s = { .db = db, .options = options, .states = states, .n = n };

    if (!batch_start_check(&s, e))
        return false;
    if (ret)
        *ret = s.id;
    if (db_in_transaction(db))
        return batch_start_send(&s, e);
    if (!cb_db_begin(db, e))
        return false;
    if (batch_start_send(&s, e))
        return cb_db_commit(db, e);
    cb_db_rollback(db, NULL);
    return false;
}
