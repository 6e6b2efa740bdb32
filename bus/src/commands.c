/* Checking commands and writing them as JSON. */
#include "commands.h"

#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "json.h"
#include "uuid_bytes.h"

/* A statement larger than this gains nothing and holds much memory on both sides. */
static const size_t chunk_bytes = 4 << 20;

static bool check_uuid(const char *text, const char *what, cb_error *e)
{
    unsigned char bytes[16];

    if (!text || uuid_to_bytes(text, bytes))
        return true;
    cb_fail(e, CB_INVALID_DATA, "%s is not a UUID: '%.80s'", what, text);
    return fail_hint(e, "Write it as 8-4-4-4-12 hexadecimal digits; nothing was sent.");
}

bool command_check(const cb_send *c, cb_error *e)
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

void command_id(const cb_send *command, cb_uuid *id)
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

bool commands_check(const cb_send *commands, size_t n, cb_uuid *ids, cb_error *e)
{
    for (size_t i = 0; i < n; i++) {
        if (!command_check(&commands[i], e))
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

size_t commands_write(buffer *b, const cb_send *commands, const cb_uuid *ids, size_t n,
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
