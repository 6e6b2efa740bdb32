/* Reading a story, and looking things up in it. */
#include "script_story.h"

#include <json-c/json_tokener.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "bus.h"

static const char everything[] =
    "SELECT json_build_object('status', p.status, 'phase', p.phase, 'error_code', p.error_code, "
    "'error_message', p.error_message, 'lease_owner', p.lease_owner, 'wake_at', p.wake_at, 'state', p.state, "
    "'initial_state', p.initial_state, 'inbox', (SELECT count(*) FROM commandbus.process_inbox i "
    "WHERE i.process_id = p.process_id), "
    "'overdue', (SELECT count(*) FROM commandbus.process_event e WHERE e.process_id = p.process_id AND e.event = "
    "'DEADLINE_EXCEEDED'), "
    "'history', (SELECT coalesce(json_agg(json_build_object('ordinal', ordinal, 'kind', kind, 'status', status, "
    "'name', name, 'attempts', attempts, 'send_no', coalesce(send_no, 0), 'during', coalesce(during, 0), "
    "'command_id', command_id, 'error_code', error_code, 'result', result, 'opening', opening, 'patch', patch, "
    "'owes', owes) ORDER BY ordinal), '[]') FROM commandbus.process_history h WHERE h.process_id = p.process_id), "
    "'commands', (SELECT coalesce(json_agg(json_build_object('command_id', command_id, 'status', status, "
    "'error_code', error_code, 'retries', (SELECT count(*) FROM commandbus.audit a WHERE a.command_id = c.command_id "
    "AND a.event_type = 'OPERATOR_RETRY'), 'canceled', (SELECT count(*) FROM commandbus.audit a WHERE "
    "a.command_id = c.command_id AND a.event_type = 'OPERATOR_CANCEL' AND operator IS NOT NULL), "
    "'by_hand', (SELECT count(*) FROM commandbus.audit a WHERE a.command_id = c.command_id AND a.event_type = "
    "'OPERATOR_COMPLETE'))), '[]') FROM commandbus.command_metadata c WHERE c.correlation_id = p.process_id)) "
    "FROM commandbus.process p WHERE p.process_id = $1";

static json_object *get(json_object *o, const char *key)
{
    json_object *value = NULL;

    json_object_object_get_ex(o, key, &value);
    return value;
}

const char *story_text(json_object *o, const char *key)
{
    json_object *value = get(o, key);

    return value ? json_object_get_string(value) : "";
}

int story_number(json_object *o, const char *key)
{
    return json_object_get_int(get(o, key));
}

bool story_is(json_object *o, const char *key, const char *value)
{
    return strcmp(story_text(o, key), value) == 0;
}

static void read_effects(story *s, const char *process_id, const char *log)
{
    char path[1024];
    effect e;

    snprintf(path, sizeof path, "%s/%s", log, process_id);
    FILE *f = fopen(path, "re");
    while (f && s->n_effects < MOST_EFFECTS &&
           fscanf(f, "%c%d %*d %*d %39s %c\n", &e.direction, &e.op, e.key, &e.letter) == 4)
        s->effects[s->n_effects++] = e;
    if (f)
        fclose(f);
}

void story_read(story *s, PGconn *conn, const char *process_id, const char *log)
{
    char *text = test_value(conn, everything, process_id, NULL);

    *s = (story){ .row = json_tokener_parse(text) };
    free(text);
    s->history = get(s->row, "history");
    s->commands = get(s->row, "commands");
    s->state = get(s->row, "state");
    s->ops = get(s->state, "ops");
    read_effects(s, process_id, log);
}

void story_done(story *s)
{
    json_object_put(s->row);
}

void story_wrong(story *s, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vfprintf(s->problems, fmt, args);
    va_end(args);
    fputc('\n', s->problems);
    s->n_problems++;
}

json_object *story_record(const story *s, char direction, int op)
{
    json_object *forward = NULL;
    char name[40];

    snprintf(name, sizeof name, "%s%d",
             story_text(json_object_array_get_idx(s->ops, (size_t)op), "k"), op);
    for (size_t i = 0; i < json_object_array_length(s->history); i++) {
        json_object *r = json_object_array_get_idx(s->history, i);
        if (!story_is(r, "name", name) || story_is(r, "kind", "RESPONSE"))
            continue;
        if (story_is(r, "kind", "COMPENSATION") == (direction == 'u'))
            forward = r;
    }
    return forward;
}

bool story_is_completed(json_object *record)
{
    return record && story_is(record, "status", "COMPLETED");
}

char story_last(const story *s, char direction, int op)
{
    char last = 0;

    for (int i = 0; i < s->n_effects; i++)
        if (s->effects[i].direction == direction && s->effects[i].op == op)
            last = s->effects[i].letter;
    return last;
}

int story_decisions(const story *s, const char *name)
{
    int n = 0;

    for (size_t i = 0; i < json_object_array_length(s->history); i++) {
        json_object *r = json_object_array_get_idx(s->history, i);
        n += story_is(r, "kind", "OPERATOR") && story_is(r, "name", name);
    }
    return n;
}

bool story_is_forced(const story *s)
{
    for (size_t i = 0; i < json_object_array_length(s->history); i++) {
        json_object *r = json_object_array_get_idx(s->history, i);
        if (story_is(r, "kind", "OPERATOR") && !story_is(r, "name", "RETRY") &&
            story_is(get(r, "result"), "error_code", "OUTCOME_UNKNOWN"))
            return true;
    }
    return false;
}

bool story_by_hand(const story *s, char direction, int op)
{
    json_object *r = story_record(s, direction, op);

    for (size_t i = 0; r && i < json_object_array_length(s->commands); i++) {
        json_object *c = json_object_array_get_idx(s->commands, i);
        if (story_is(c, "command_id", story_text(r, "command_id")))
            return story_number(c, "by_hand") > 0;
    }
    return false;
}
