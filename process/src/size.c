/* How much a run may hold: what its JSON takes in memory before it is read, what the state and the
 * records have come to while it runs. Beyond that a process is parked, so that no instance dies of
 * it. */
#include <commandbus/json.h>
#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

#include "process_run.h"

enum {
    SMALL_TEXT = 16 * 1024, /* is not looked at: at worst it makes some megabytes */
    MEMORY_FACTOR = 12,     /* of content_limit: the most that a run may take */
    STATE_SHARE = 4,        /* of content_limit: what a state may have */
};

/* The end of a string of JSON, its closing quote. */
static const char *string_end(const char *c)
{
    for (c++; *c && *c != '"'; c++) {
        if (*c == '\\' && c[1])
            c++;
    }
    return c;
}

/* What has arrived may become part of the state; that is there as it is, as it was, as a change and
 * as a text. */
size_t cb_run_memory(const cb_process_row *row)
{
    size_t history = row->history ? strlen(row->history) : 0, inbox = strlen(row->inbox),
           states = strlen(row->state) + strlen(row->initial_state);

    if (history + inbox + states <= SMALL_TEXT)
        return 0;
    return (row->history ? cb_json_memory(row->history) : 0) + 2 * cb_json_memory(row->inbox) +
           3 * (cb_json_memory(row->state) + cb_json_memory(row->initial_state)) +
           4 * (history + inbox + states);
}

bool size_is_loadable(const cb_process_row *row, cb_error *e)
{
    size_t most = (size_t)row->content_limit * MEMORY_FACTOR;
    size_t takes = row->too_large > 0 ? 0 : cb_run_memory(row);

    if (row->too_large > 0)
        return cb_fail(e, CB_PAYLOAD_TOO_LARGE,
                       "it holds %lld bytes of states, records and responses, and a run loads %lld "
                       "at most (content_limit of its domain): cancel it without compensations, or "
                       "raise the limit and the memory of the workers, then retry",
                       (long long)row->too_large, (long long)row->content_limit);
    return takes <= most ||
           cb_fail(e, CB_PAYLOAD_TOO_LARGE,
                   "it would take about %zu MiB of memory, and a run takes %zu at most: its JSON "
                   "has too many small values; cancel it without compensations, or raise "
                   "content_limit of its domain and the memory of the workers, then retry",
                   takes >> 20, most >> 20);
}

/* The end of the element of an array that begins here: behind its last character. */
static const char *element_end(const char *c)
{
    int depth = 0;

    for (; *c; c++) {
        if (*c == '"')
            c = string_end(c);
        if (!*c || (depth == 0 && (*c == ',' || *c == ']')))
            break;
        depth += *c == '[' || *c == '{' ? 1 : *c == ']' || *c == '}' ? -1 : 0;
    }
    return c;
}

static bool is_decision(const char *element)
{
    static const char kind[] = ",\"OPERATOR\",";

    return strncmp(element + 1 + strspn(element + 1, "0123456789"), kind, sizeof kind - 1) == 0;
}

char *size_decisions(const char *inbox)
{
    char *kept = malloc(strlen(inbox) + sizeof "[]"), *to = kept;

    if (!kept || *inbox != '[')
        return kept ? strcpy(kept, "[]") : NULL;
    *to++ = '[';
    for (const char *c = inbox + 1; *c == '['; c += *c == ',') {
        const char *end = element_end(c);
        if (is_decision(c)) {
            if (to > kept + 1)
                *to++ = ',';
            memcpy(to, c, (size_t)(end - c));
            to += end - c;
        }
        c = end;
    }
    *to++ = ']';
    *to = 0;
    return kept;
}

/* ---- while it runs ---- */

static size_t string_bytes(const char *text, size_t length)
{
    size_t bytes = 2 + length;

    for (size_t i = 0; i < length; i++)
        bytes += (unsigned char)text[i] < ' ' ? 5 : text[i] == '"' || text[i] == '\\' ? 1 : 0;
    return bytes;
}

/* At most so many as text, with what separates it from the next. Without making the text: json-c
 * would keep it. */
static size_t text_bytes(json_object *value)
{
    size_t bytes = 4;

    switch (json_object_get_type(value)) {
    case json_type_string:
        return bytes + string_bytes(json_object_get_string(value),
                                    (size_t)json_object_get_string_len(value));
    case json_type_array:
        for (size_t i = 0; i < json_object_array_length(value); i++)
            bytes += text_bytes(json_object_array_get_idx(value, i));
        return bytes;
    case json_type_object: {
        json_object_object_foreach(value, key, member)
        {
            bytes += string_bytes(key, strlen(key)) + text_bytes(member);
        }
        return bytes;
    }
    case json_type_int:
    case json_type_double:
        return bytes + 20;
    case json_type_null:
    case json_type_boolean:
        break;
    }
    return bytes + 4;
}

void size_begin(cb_process *p)
{
    const cb_process_row *row = p->claim.row;

    p->size.state = strlen(row->state);
    p->size.content =
        p->size.state + strlen(row->initial_state) + strlen(row->history) + strlen(row->inbox);
}

static size_t state_limit(const cb_process *p)
{
    return (size_t)p->claim.row->content_limit / STATE_SHARE;
}

/* The state as it is, told exactly. */
bool size_state_fits(cb_process *p)
{
    OWNED(json_object) state = cb_fields_write(run_type(p)->state, p->state.now);

    p->size.state = text_bytes(state) + text_bytes(p->state.unknown);
    return p->size.state <= state_limit(p);
}

bool size_add_changes(cb_process *p, json_object *changes)
{
    size_t bytes = text_bytes(changes);

    p->size.state += bytes; /* at most: what it replaces is still counted */
    if (p->size.state > state_limit(p) && !size_state_fits(p)) {
        size_t has = p->size.state;
        p->size.state = 0; /* what it goes back to fits */
        state_restore(p);
        run_park(p, PARKED_PROCESS_TOO_LARGE,
                 "its state would have %zu bytes, and may have %zu: keep large things elsewhere "
                 "and name them in the state",
                 has, state_limit(p));
        return false;
    }
    return size_add(p, bytes);
}

bool size_add(cb_process *p, size_t bytes)
{
    p->size.content += bytes;
    if (p->size.content <= (size_t)p->claim.row->content_limit)
        return true;
    state_restore(p);
    run_park(p, PARKED_PROCESS_TOO_LARGE,
             "it would hold %zu bytes of states, records and responses, and may hold %lld "
             "(content_limit of its domain): make fewer or smaller records, or several processes",
             p->size.content, (long long)p->claim.row->content_limit);
    return false;
}

bool size_add_value(cb_process *p, json_object *value)
{
    return size_add(p, text_bytes(value));
}
