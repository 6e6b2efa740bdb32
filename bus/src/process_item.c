/* Items: what runs came to, written as rows of the composite types that settle_process_arrays
 * takes, in PostgreSQL's binary format. */
#include "item_rows.h"

#include <stdlib.h>
#include <string.h>

#include "wire.h"

/* What a claim reads of a record beside its name and its values: measured_content() counts the
 * same. */
static const size_t record_bytes = 200;

/* ---- rows, as record_recv() in the server reads them ---- */

enum {
    OUTCOME_COLUMNS = 28,
    RECORD_COLUMNS = 23,
    COMMAND_COLUMNS = 11,
};

static void add32(buffer *b, uint32_t value)
{
    unsigned char bytes[4];

    wire_put32(bytes, value);
    buffer_add(b, bytes, sizeof bytes);
}

/* Where the row begins; its length comes with its end. */
static size_t row_begin(item_rows *to, uint32_t columns)
{
    size_t at = to->rows.length;

    add32(&to->rows, 0);
    add32(&to->rows, columns);
    to->n++;
    return at;
}

static void row_end(item_rows *to, size_t at)
{
    if (!to->rows.failed)
        wire_put32((unsigned char *)to->rows.bytes + at, (uint32_t)(to->rows.length - at - 4));
}

/* Of an enum, too: the server has its OID, which it does not compare with that of a text. */
static void column_text(item_rows *to, const char *text_or_null)
{
    add32(&to->rows, ARRAY_TEXT);
    array_add_text(&to->rows, text_or_null);
}

static void column_jsonb(item_rows *to, const char *json_or_null)
{
    add32(&to->rows, ARRAY_JSONB);
    array_add_jsonb(&to->rows, json_or_null);
}

static void column_uuid(item_rows *to, const char *text_or_null)
{
    add32(&to->rows, ARRAY_UUID);
    if (!array_add_uuid(&to->rows, text_or_null))
        array_add_null(&to->rows);
}

static void column_bool(item_rows *to, bool value)
{
    add32(&to->rows, ARRAY_BOOL);
    array_add_bool(&to->rows, value);
}

/* false says nothing */
static void column_true(item_rows *to, bool value)
{
    add32(&to->rows, ARRAY_BOOL);
    if (value)
        array_add_bool(&to->rows, true);
    else
        array_add_null(&to->rows);
}

static void column_int4(item_rows *to, int64_t value)
{
    add32(&to->rows, ARRAY_INT4);
    array_add_int4(&to->rows, (int32_t)value);
}

static void column_int4_unless_0(item_rows *to, int value)
{
    add32(&to->rows, ARRAY_INT4);
    if (value)
        array_add_int4(&to->rows, value);
    else
        array_add_null(&to->rows);
}

static void column_int8(item_rows *to, int64_t value)
{
    add32(&to->rows, ARRAY_INT8);
    array_add_int8(&to->rows, value);
}

static void column_float8_if(item_rows *to, bool given, double value)
{
    add32(&to->rows, ARRAY_FLOAT8);
    if (given)
        array_add_float8(&to->rows, value);
    else
        array_add_null(&to->rows);
}

/* `type`: the built-in type of the column, which the server compares. */
static void column_null(item_rows *to, uint32_t type)
{
    add32(&to->rows, type);
    array_add_null(&to->rows);
}

/* commandbus.process_outcome, whose records, commands and consumed have arrays of their own. */
static void write_outcome(item_rows *to, const cb_process_outcome *o)
{
    static const uint32_t int4_array = 1007;
    size_t at = row_begin(to, OUTCOME_COLUMNS);

    column_uuid(to, o->process_id.text);
    column_int8(to, o->lease_no);
    column_int8(to, o->settle_no);
    column_bool(to, o->checkpoint);
    column_float8_if(to, o->vt_seconds > 0, o->vt_seconds);
    column_int4(to, o->version);
    column_text(to, o->status);
    column_text(to, o->phase);
    column_text(to, o->step);
    column_text(to, o->wait);
    column_jsonb(to, o->state);
    column_text(to, o->error_code);
    column_text(to, o->error_message);
    column_jsonb(to, o->leaving);
    column_bool(to, o->deadline_spent);
    column_int4(to, o->seen);
    column_null(to, int4_array); /* consumed */
    column_float8_if(to, o->retry_ms != 0, o->retry_ms);
    column_float8_if(to, o->retry_at_ms != 0, o->retry_at_ms);
    column_float8_if(to, o->timeout_ms != 0, o->timeout_ms);
    column_float8_if(to, o->timeout_at_ms != 0, o->timeout_at_ms);
    column_text(to, o->wake);
    column_null(to, ARRAY_JSONB); /* records */
    column_null(to, ARRAY_JSONB); /* commands */
    column_jsonb(to, o->cancels);
    column_jsonb(to, o->events);
    column_bool(to, o->refused);
    column_bool(to, o->awaits_reply);
    row_end(to, at);
}

/* commandbus.process_record */
static void write_record(item_rows *to, const cb_process_record *r)
{
    size_t at = row_begin(to, RECORD_COLUMNS);

    column_int4(to, r->ordinal);
    column_text(to, r->kind);
    column_text(to, r->status);
    column_text(to, r->name);
    column_int4(to, r->attempts);
    column_int4_unless_0(to, r->send_no);
    column_int4_unless_0(to, r->during);
    column_uuid(to, r->command_id);
    column_uuid(to, r->response_id);
    column_text(to, r->domain);
    column_text(to, r->command_type);
    column_float8_if(to, !(r->timeout_ms < 0), r->timeout_ms);
    column_null(to, ARRAY_FLOAT8); /* timeout_at_ms */
    column_float8_if(to, !(r->took_ms < 0), r->took_ms);
    column_text(to, r->error_code);
    column_text(to, r->error_message);
    column_jsonb(to, r->result);
    column_jsonb(to, r->opening);
    column_jsonb(to, r->patch);
    column_jsonb(to, r->owes);
    column_true(to, r->finished);
    column_int4_unless_0(to, r->max_attempts);
    column_true(to, r->in_doubt);
    row_end(to, at);
}

/* commandbus.new_command */
static void write_command(item_rows *to, const cb_process_command *c)
{
    size_t at = row_begin(to, COMMAND_COLUMNS);

    column_text(to, c->domain);
    column_text(to, c->command_type);
    column_jsonb(to, c->data);
    column_uuid(to, c->command_id);
    column_null(to, ARRAY_UUID); /* correlation_id: the process's */
    column_text(to, c->without_reply ? "" : NULL);
    column_int4_unless_0(to, c->max_attempts);
    column_null(to, ARRAY_FLOAT8); /* delay_seconds */
    column_int4_unless_0(to, c->timeout_seconds);
    column_null(to, ARRAY_UUID);  /* batch_id */
    column_null(to, ARRAY_JSONB); /* headers */
    row_end(to, at);
}

/* ---- how much a claim will read of it ---- */

/* Past the string whose first quote is at `c`: its end, or that of the text. */
static const char *string_end(const char *c)
{
    for (c++; *c && *c != '"'; c++) {
        if (*c == '\\' && c[1])
            c++;
    }
    return c;
}

size_t json_bytes_printed(const char *json_or_null)
{
    static const size_t most_digits = 1 << 20; /* more is no number for the server */
    const char *c = json_or_null ? json_or_null : "";
    size_t more = 0;

    for (; *c; c++) {
        if (*c == '"')
            c = string_end(c);
        else if (*c == ',' || *c == ':')
            more++;
        else if ((*c == 'e' || *c == 'E') && strchr("+-0123456789", c[1])) {
            size_t digits = strtoul(c[1] == '+' || c[1] == '-' ? c + 2 : c + 1, NULL, 10);
            more += digits < most_digits ? digits : most_digits;
        }
        if (!*c)
            break;
    }
    return json_or_null ? (size_t)(c - json_or_null) + more : 0;
}

static size_t record_grown(const cb_process_record *r, bool is_new)
{
    size_t fixed = is_new ? record_bytes + (r->name ? strlen(r->name) : 0) : 0;

    return fixed + (r->error_message ? strlen(r->error_message) : 0) +
           json_bytes_printed(r->result) + json_bytes_printed(r->opening) +
           json_bytes_printed(r->patch) + json_bytes_printed(r->owes);
}

/* ---- items ---- */

cb_process_item *cb_process_item_new(const cb_process_outcome *row)
{
    cb_process_item *item = calloc(1, sizeof *item);

    if (!item)
        return NULL;
    item->outcome = (cb_process_outcome){ .process_id = row->process_id,
                                          .lease_no = row->lease_no,
                                          .settle_no = row->settle_no,
                                          .checkpoint = row->checkpoint,
                                          .seen = row->seen };
    write_outcome(&item->row, row);
    item->grown = json_bytes_printed(row->state);
    return item;
}

void cb_process_item_free(cb_process_item *item)
{
    if (!item)
        return;
    buffer_done(&item->row.rows);
    buffer_done(&item->opened.rows);
    buffer_done(&item->rewritten.rows);
    buffer_done(&item->commands.rows);
    free(item->consumed);
    free(item);
}

void cb_process_item_open(cb_process_item *item, const cb_process_record *r)
{
    write_record(&item->opened, r);
    item->grown += record_grown(r, true);
}

void cb_process_item_rewrite(cb_process_item *item, const cb_process_record *r, bool repeats)
{
    write_record(&item->rewritten, r);
    item->grown += record_grown(r, false);
    item->repeats |= repeats;
}

void cb_process_item_send(cb_process_item *item, const cb_process_command *c)
{
    write_command(&item->commands, c);
}

void cb_process_item_consume(cb_process_item *item, int seq)
{
    if (item->n_consumed == item->room) {
        size_t room = item->room ? 2 * item->room : 4;
        int *more = realloc(item->consumed, room * sizeof *more);
        if (!more) {
            item->failed = true;
            return;
        }
        item->consumed = more;
        item->room = room;
    }
    item->consumed[item->n_consumed++] = seq;
}

bool cb_process_item_is_whole(const cb_process_item *item)
{
    return !item->failed && !item->row.rows.failed && !item->opened.rows.failed &&
           !item->rewritten.rows.failed && !item->commands.rows.failed;
}

size_t cb_process_item_bytes(const cb_process_item *item)
{
    return item->row.rows.length + item->opened.rows.length + item->rewritten.rows.length +
           item->commands.rows.length + item->n_consumed * sizeof *item->consumed;
}
