/* Commands from a file of JSON lines. */
#include "send_list.h"

#include "fail.h"
#include "json_text.h"
#include "nearest.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef enum {
    KEY_TEXT,    /* const char * */
    KEY_ID,      /* const char * */
    KEY_OBJECT,  /* const char *, JSON */
    KEY_WHOLE,   /* int */
    KEY_SECONDS, /* double */
} key_kind;

typedef struct {
    const char *name;
    key_kind kind;
    size_t at; /* in a cb_send */
    double min, max;
} line_key;

#define AT(field) offsetof(cb_send, field)

/* The arguments of send, as in SQL. */
static const line_key keys[] = {
    { "domain", KEY_TEXT, AT(domain), 0, 0 },
    { "command_type", KEY_TEXT, AT(command_type), 0, 0 },
    { "data", KEY_OBJECT, AT(data), 0, 0 },
    { "command_id", KEY_ID, AT(command_id), 0, 0 },
    { "correlation_id", KEY_ID, AT(correlation_id), 0, 0 },
    { "reply_to", KEY_TEXT, AT(reply_to), 0, 0 },
    { "batch_id", KEY_ID, AT(batch_id), 0, 0 },
    { "headers", KEY_OBJECT, AT(headers), 0, 0 },
    { "max_attempts", KEY_WHOLE, AT(max_attempts), 1, 1000 },
    { "timeout_seconds", KEY_WHOLE, AT(timeout_seconds), 1, 86400 },
    { "delay_seconds", KEY_SECONDS, AT(delay_seconds), 0, 31536000 },
};
#define KEYS (sizeof keys / sizeof keys[0])

static bool line_unknown_key(const char *name, cb_error *e)
{
    nearest_word nearest = { .word = name, .length = strlen(name) };

    for (size_t i = 0; i < KEYS; i++)
        nearest_offer(&nearest, keys[i].name);
    cb_fail(e, CB_INVALID_DATA, "unknown key '%.60s'", name);
    if (nearest.best)
        return fail_hint(e, "Did you mean %s?", nearest.best);
    return fail_hint(e, "The payload of a command belongs under \"data\".");
}

static bool line_take_number(const line_key *key, const char *text, cb_send *command, cb_error *e)
{
    char *end = NULL, *field = (char *)command + key->at;

    double value = strtod(text, &end);
    bool number = strchr("-0123456789", *text) && !*end;
    bool whole = strspn(text, "0123456789") == strlen(text);
    if (!number || value < key->min || value > key->max || (key->kind == KEY_WHOLE && !whole))
        return cb_fail(e, CB_INVALID_DATA, "%s must be a%s number from %.0f to %.0f, not %.40s",
                       key->name, key->kind == KEY_WHOLE ? " whole" : "", key->min, key->max, text);
    if (key->kind == KEY_WHOLE)
        *(int *)(void *)field = (int)value;
    else
        *(double *)(void *)field = value;
    return true;
}

static bool line_take_value(const line_key *key, char *text, cb_send *command, cb_error *e)
{
    const char **field = (const char **)(void *)((char *)command + key->at);
    cb_uuid id;

    if (key->kind == KEY_WHOLE || key->kind == KEY_SECONDS)
        return line_take_number(key, text, command, e);
    if (key->kind == KEY_OBJECT) {
        if (*text != '{')
            return cb_fail(e, CB_INVALID_DATA, "%s must be a JSON object", key->name);
    } else if (!json_unescape(text) || !*text) {
        return cb_fail(e, CB_INVALID_DATA, "%s must be a text, not empty and without \\u0000",
                       key->name);
    } else if (key->kind == KEY_ID && !cb_uuid_parse(text, &id)) {
        return cb_fail(e, CB_INVALID_DATA, "%s must be a UUID", key->name);
    }
    *field = text;
    return true;
}

static bool line_take_member(const json_member *member, unsigned *seen, cb_send *command,
                             cb_error *e)
{
    for (size_t i = 0; i < KEYS; i++) {
        if (strcmp(keys[i].name, member->key) != 0)
            continue;
        if (*seen & 1U << i)
            return cb_fail(e, CB_INVALID_DATA, "key '%s' is there twice", member->key);
        *seen |= 1U << i;
        return strcmp(member->value, "null") == 0 ||
               line_take_value(&keys[i], member->value, command, e);
    }
    return line_unknown_key(member->key, e);
}

/* `text` is changed and then borrowed by the command. */
static bool line_read_command(char *text, size_t length, const cb_send *defaults, cb_send *ret,
                              cb_error *e)
{
    cb_send command = *defaults;
    json_member member;
    unsigned seen = 0;

    if (!json_check_object(text, length, e))
        return false;
    for (char *at = text; json_next_member(&at, &member);) {
        if (!line_take_member(&member, &seen, &command, e))
            return false;
    }
    if (!seen)
        return cb_fail(e, CB_INVALID_DATA,
                       "an empty object is not a command: it needs \"data\" at least");
    if (!command.domain || !command.command_type)
        return cb_fail(e, CB_INVALID_DATA, "there is no %s, neither here nor on the command line",
                       command.domain ? "command_type" : "domain");
    *ret = command;
    return cb_send_check(&command, e);
}

static bool send_list_make_room(send_list *list, cb_error *e)
{
    if (list->n < list->room)
        return true;
    size_t room = list->room ? list->room * 2 : 64;
    cb_send *commands = realloc(list->commands, room * sizeof *commands);
    if (commands)
        list->commands = commands;
    size_t *lines = realloc(list->lines, room * sizeof *lines);
    if (lines)
        list->lines = lines;
    char **texts = realloc(list->texts, room * sizeof *texts);
    if (texts)
        list->texts = texts;
    if (!commands || !lines || !texts)
        return fail_memory(e);
    list->room = room;
    return true;
}

static int send_list_by_key(const void *a, const void *b)
{
    const cb_send *x = *(const cb_send *const *)a, *y = *(const cb_send *const *)b;
    int order = strcasecmp(x->command_id, y->command_id);
    if (order == 0)
        order = strcmp(x->domain, y->domain);
    return order ? order : (x > y) - (x < y);
}

/* An id twice would be refused later anyway, but then nobody would know the line. */
static bool send_list_check_duplicates(const send_list *list, cb_error *e)
{
    const cb_send **sorted = calloc(list->n + 1, sizeof(const cb_send *));
    size_t n = 0;
    bool good = true;

    if (!sorted)
        return fail_memory(e);
    for (size_t i = 0; i < list->n; i++) {
        if (list->commands[i].command_id)
            sorted[n++] = &list->commands[i];
    }
    qsort(sorted, n, sizeof(const cb_send *), send_list_by_key);
    for (size_t i = 1; i < n && good; i++) {
        const cb_send *a = sorted[i - 1], *b = sorted[i];
        if (strcasecmp(a->command_id, b->command_id) == 0 && strcmp(a->domain, b->domain) == 0)
            good = cb_fail(
                e, CB_DUPLICATE_COMMAND, "line %zu: command_id %s is on line %zu already",
                list->lines[b - list->commands], b->command_id, list->lines[a - list->commands]);
    }
    free(sorted);
    return good;
}

/* Takes the first `skip` commands away: they were sent before. */
static void send_list_leave_out(send_list *list, size_t skip)
{
    skip = skip < list->n ? skip : list->n;
    for (size_t i = 0; i < skip; i++) {
        list->with_id -= list->commands[i].command_id != NULL;
        free(list->texts[i]);
    }
    list->n -= skip;
    memmove(list->commands, list->commands + skip, list->n * sizeof *list->commands);
    memmove(list->lines, list->lines + skip, list->n * sizeof *list->lines);
    memmove(list->texts, list->texts + skip, list->n * sizeof *list->texts);
}

typedef struct {
    send_list *list;
    const cb_send *defaults;
} send_list_reader;

/* A jsonl_take_fn. */
static bool send_list_add(void *arg, char *line, size_t length, size_t number, cb_error *e)
{
    const send_list_reader *reader = arg;
    send_list *list = reader->list;

    if (!send_list_make_room(list, e) ||
        !line_read_command(line, length, reader->defaults, &list->commands[list->n], e))
        return false;
    list->with_id += list->commands[list->n].command_id != NULL;
    list->lines[list->n] = number;
    list->texts[list->n++] = line;
    return true;
}

bool send_list_read(const char *path, const cb_send *defaults, size_t skip, send_list **ret,
                    cb_error *e)
{
    OWNED(send_list) list = calloc(1, sizeof *list);
    send_list_reader reader = { .list = list, .defaults = defaults };

    if (!list)
        return fail_memory(e);
    if (!jsonl_each(path, send_list_add, &reader, e) || !send_list_check_duplicates(list, e))
        return false;
    if (skip > 0 && list->n > 0)
        send_list_leave_out(list, skip);
    *ret = send_list_take(&list);
    return true;
}

void send_list_free(send_list *list)
{
    if (!list)
        return;
    for (size_t i = 0; i < list->n; i++)
        free(list->texts[i]);
    free(list->commands);
    free(list->lines);
    free(list->texts);
    free(list);
}
