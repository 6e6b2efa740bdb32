/* A claimed process as the worker reads it: its state, the records of its history, and what has
 * arrived in its inbox (replies, responses, operators' requests). Whatever there is in them, the
 * run ends with a settlement that the database takes: parked, suspended or done. Nothing is
 * executed twice by one run.
 *
 *     type: Flow or Machine       status      phase      error code, or nothing
 *     unsettled claims, deadline, wait timeout, content limit [1 MiB], what it holds more [0]
 *     leaving, or nothing         state       initial state
 *     history                     inbox
 *
 * each in a line, the last five as JSON. */
#include "fuzz.h"

#include <commandbus/run.h>
#include <json-c/json.h>

#include "item_rows.h"
#include "json_check.h"
#include "record.h"
#include "utf8.h"
#include "wire.h"

typedef struct {
    int64_t count;
    char *note;
    bool go;
    json_object *extra;
} flow;

typedef struct {
    char *note;
} message;

CB_FIELDS(flow_fields, flow, CB_FIELD(flow, count, CB_INT), CB_FIELD(flow, note, CB_TEXT),
          CB_FIELD(flow, go, CB_BOOL), CB_FIELD(flow, extra, CB_JSON));
CB_FIELDS(message_fields, message, CB_FIELD(message, note, CB_TEXT));

static int ran;

static cb_outcome work(cb_context *ctx, void *state)
{
    (void)ctx;
    ran++;
    ((flow *)state)->count++;
    return CB_SUCCESS;
}

static cb_outcome refuse(cb_context *ctx, void *state)
{
    (void)state;
    return cb_transient(ctx, "E_AGAIN", "not now");
}

static bool take_result(void *state, json_object *result)
{
    flow *f = state;

    json_object_put(f->extra);
    f->extra = json_object_get(result);
    return json_object_is_type(result, json_type_object);
}

static bool take_go(void *state, json_object *payload)
{
    json_object *note = NULL;

    ((flow *)state)->go = true;
    return !json_object_object_get_ex(payload, "note", &note) ||
           cb_text_set(&((flow *)state)->note, json_object_get_string(note));
}

static bool may_go(const void *state)
{
    return ((const flow *)state)->go;
}

static cb_flow flow_execute(cb_process *p, void *state)
{
    const flow *f = state;
    cb_uuid id;
    int64_t at;

    CB_DO(cb_step(p, "prepare", work, .local = true, .compensate = work));
    CB_DO(cb_side_effect_uuid(p, "uuid", &id));
    CB_DO(cb_side_effect_time(p, "time", &at));
    if (cb_version(p, "change", 1, 2) == 2)
        CB_DO(cb_step(p, "added", work, .max_attempts = 3));
    CB_DO(cb_command_step(p, "book", NULL, take_result, .domain = "fx", .command_type = "BookFx",
                          .compensate_command = "ReleaseFx"));
    CB_DO(cb_wait(p, "go", may_go, .timeout_ms = CB_HOURS(1)));
    if (f->count > 100)
        return cb_business_failure(p, "TOO_MANY", "%s", f->note ? f->note : "");
    CB_DO(cb_step(p, "finish", f->count == 7 ? refuse : work, .max_attempts = 2));
    return CB_DONE;
}

enum {
    QUERY = 1,
    ANSWER,
    UNDO
};

static int first_step(const void *state)
{
    return ((const flow *)state)->go ? ANSWER : QUERY;
}

static bool build(int step, const void *state, void *request)
{
    (void)step;
    return cb_text_set(&((message *)request)->note, ((const flow *)state)->note);
}

static bool update(int step, void *state, const void *reply)
{
    ((flow *)state)->count += step;
    return cb_text_set(&((flow *)state)->note, ((const message *)reply)->note);
}

static int next_step(int step, const void *state)
{
    const flow *f = state;

    if (f->count > 20)
        return CB_STEP_UNDO;
    return step == QUERY ? ANSWER : f->go ? CB_STEP_NONE : QUERY;
}

static const cb_manager_step steps[] = {
    [QUERY] = { "query", .command_type = "Query", .request = &message_fields,
                .reply = &message_fields, .compensation = UNDO },
    [ANSWER] = { "answer", .response = "go", .reply = &message_fields },
    [UNDO] = { "undo", .command_type = "Undo", .request = &message_fields },
};
static const cb_process_manager manager = { .first_step = first_step,
                                            .build_command = build,
                                            .update_state = update,
                                            .next_step = next_step,
                                            .steps = steps,
                                            .n_steps = CB_COUNT(steps) };
static const cb_response responses[] = { { "go", take_go } };
static const cb_process_type flow_type = { .name = "Flow",
                                           .domain = "payments",
                                           .version = 2,
                                           .state = &flow_fields,
                                           .execute = flow_execute,
                                           .responses = responses,
                                           .n_responses = CB_COUNT(responses) };
static const cb_process_type machine_type = {
    .name = "Machine", .domain = "payments", .state = &flow_fields, .manager = &manager
};

/* The seq of the operator's request that is to be answered, and whether it was. */
static int64_t asked;
static bool answered;

/* One column as the server reads it: text and JSON that it takes. */
static void check_column(uint32_t type, const char *bytes, size_t length)
{
    static const uint32_t text_type = ARRAY_TEXT, json_type = ARRAY_JSONB;
    char *text = strndup(bytes, length);
    cb_error e = { 0 };

    FUZZ_CHECK(text, "out of memory");
    if (type == text_type)
        FUZZ_CHECK(utf8_is_valid(text), "a text that is none");
    if (type == json_type)
        FUZZ_CHECK(length > 0 && json_check(text + 1, JSON_ANY, "it", &e), "%s: %s", e.message,
                   text);
    free(text);
}

static void check_rows(const item_rows *rows)
{
    if (rows->n == 0) /* and no bytes */
        return;
    const char *at = rows->rows.bytes, *end = rows->rows.bytes + rows->rows.length;

    for (size_t i = 0; i < rows->n; i++) {
        uint32_t columns = wire_get32(at + 4);
        at += 8;
        for (uint32_t c = 0; c < columns; c++) {
            uint32_t length = wire_get32(at + 4);
            if (length != UINT32_MAX)
                check_column(wire_get32(at), at + 8, length);
            at += 8 + (length != UINT32_MAX ? length : 0);
        }
    }
    FUZZ_CHECK(at == end, "rows of another length than they say");
}

static void check_item(const cb_process_settlement *settlement)
{
    const cb_process_item *item = settlement->item;

    check_rows(&item->row);
    check_rows(&item->opened);
    check_rows(&item->rewritten);
    check_rows(&item->commands);
    for (size_t i = 0; i < item->n_consumed; i++)
        answered = answered || item->consumed[i] == asked;
}

/* -1 when there is none, or the inbox is not all ours. */
static int64_t request_in(json_object *inbox)
{
    int64_t seq = -1;

    if (!json_object_is_type(inbox, json_type_array))
        return -1;
    for (size_t i = 0; i < json_object_array_length(inbox); i++) {
        json_object *row = json_object_array_get_idx(inbox, i);
        inbox_item item;
        if (!inbox_read(row, &item) || item.seq < 0 ||
            !json_object_is_type(json_object_array_get_idx(row, CB_INBOX_SEQ), json_type_int))
            return -1;
        if (item.kind == INBOX_OPERATOR && seq < 0)
            seq = item.seq;
    }
    return seq;
}

static bool checkpoint(void *arg, cb_process_settlement *settlement)
{
    (void)arg;
    check_item(settlement);
    return true;
}

static cb_run *open_run(void)
{
    static const cb_process_type *const types[] = { &flow_type, &machine_type };
    static cb_process_types *opened;
    cb_run *run = NULL;
    cb_error e = { 0 };

    FUZZ_CHECK(
        (opened || cb_process_types_open(types, CB_COUNT(types), NULL, 0, NULL, 0, &opened, &e)) &&
            cb_run_open(opened, &run, &e),
        "%s", e.message);
    return run;
}

static const char *or_null(const char *text)
{
    return *text ? text : NULL;
}

/* JSON that jsonb would give. Not too deep: what is made of it goes some levels deeper, and
 * json_check has 32. */
static bool is_json(const char *text)
{
    int depth = 0, deepest = 0;

    for (const char *c = text; *c; c++) {
        depth += (*c == '[' || *c == '{') - (*c == ']' || *c == '}');
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest <= 24 && json_check(text, JSON_ANY, "it", NULL);
}

static bool is_row(const cb_process_row *row)
{
    return (!row->error_code || utf8_is_valid(row->error_code)) &&
           (!row->leaving || is_json(row->leaving)) && is_json(row->state) &&
           is_json(row->initial_state) && is_json(row->history) && is_json(row->inbox);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const cb_run_host host = { .checkpoint = checkpoint, .lease_seconds = 30 };
    FUZZ_SPLIT(in, data, size);
    cb_process_row row = {
        .process_id = { "0198c1de-5b1c-7e52-9f5b-6d3c2f1a0b4e" },
        .domain = "payments",
        .process_type = strcmp(fuzz_line(&in, 0), "Machine") == 0 ? "Machine" : "Flow",
        .reply_queue = "payments__replies",
        .status = fuzz_line(&in, 1),
        .phase = strcmp(fuzz_line(&in, 2), "COMPENSATING") == 0 ? "COMPENSATING" : "FORWARD",
        .error_code = or_null(fuzz_line(&in, 3)),
        .leaving = or_null(fuzz_line(&in, 5)),
        .state = fuzz_line(&in, 6),
        .initial_state = fuzz_line(&in, 7),
        .history = fuzz_line(&in, 8),
        .inbox = fuzz_line(&in, 9),
        .now_ms = 1700000000000,
        .lease_no = 1,
    };
    cb_run_result result;
    cb_error e = { 0 };

    long long deadline = 0, timeout = 0, limit = 1 << 20, too_large = 0;
    sscanf(fuzz_line(&in, 4), "%9d %15lld %15lld %9lld %9lld", &row.unsettled, &deadline, &timeout,
           &limit, &too_large);
    row.deadline_ms = deadline;
    row.wait_timeout_ms = timeout;
    row.content_limit = limit > 0 ? limit : 0;
    row.too_large = too_large > 0 ? too_large : 0;
    if (!is_row(&row))
        return 0;
    /* The database puts no blanks between the columns. */
    OWNED(json_object) inbox = json_tokener_parse(row.inbox);
    row.inbox = json_object_to_json_string_ext(inbox, JSON_C_TO_STRING_PLAIN);
    if (row.too_large) {
        row.state = row.initial_state = "{}";
        row.history = NULL;
    }
    OWNED(cb_run) run = open_run();
    ran = 0;
    asked = request_in(inbox);
    answered = asked < 0;
    cb_run_process(run, &row, &host, NULL, &result);
    FUZZ_CHECK(!result.lost && !result.misuse, "%s", result.misuse ? result.misuse : "lost");
    check_item(&result.settlement);
    FUZZ_CHECK(answered, "an operator's request was left unanswered: nobody could decide again");
    FUZZ_CHECK(ran <= 8, "%d steps in one run", ran);
    FUZZ_CHECK(strcmp(result.status, "WAITING_FOR_TSQ") != 0 || result.error_code ||
                   strcmp(row.status, "WAITING_FOR_TSQ") == 0,
               "parked without a code");
    if (!cb_run_replay(run, &row, &e))
        FUZZ_CHECK(e.message[0], "it diverges, and nobody says why");
    return 0;
}
