/* commandbus send: one command, copies of one, or a file of them. */
#include "cli.h"
#include "fail.h"
#include "json_text.h"
#include "send_list.h"
#include "terminal.h"
#include "text.h"

#include <commandbus/query.h>
#include <commandbus/send.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define YEAR_MS 31536000000LL
#define DAY_MS  86400000LL

typedef struct {
    const char *domain, *type, *data, *id, *correlation_id, *reply_to, *batch, *headers, *file;
    arg_list header;
    int max_attempts, count, skip;
    int64_t timeout, delay;
    bool ids;
} send_args;

#define AT(field) offsetof(send_args, field)

static const arg_spec send_specs[] = {
    { "DOMAIN", ARG_TEXT, AT(domain), NULL, .help = "a registered domain", .positional = true },
    { "TYPE", ARG_TEXT, AT(type), NULL, .help = "the command's type", .positional = true },
    { "data", ARG_TEXT, AT(data), "JSON|@FILE|-", .help = "the payload, a JSON object [{}]" },
    { "id", ARG_ID, AT(id), "ID",
      .help = "the command's id: a repeated one is refused [a new one]" },
    { "correlation-id", ARG_ID, AT(correlation_id), "ID", .help = "[a new one]" },
    { "reply-to", ARG_TEXT, AT(reply_to), "QUEUE", .help = "a registered reply queue [no reply]" },
    { "max-attempts", ARG_INT, AT(max_attempts), "N",
      .help = "runs before the TSQ [the worker's setting]", .min = 1, .max = 1000 },
    { "timeout", ARG_DURATION, AT(timeout), "TIME", .help = "for one run [the worker's setting]",
      .min = 1000, .max = DAY_MS },
    { "delay", ARG_DURATION, AT(delay), "TIME", .help = "visible to workers this much later",
      .max = YEAR_MS },
    { "batch", ARG_ID, AT(batch), "ID", .help = "adds to this open batch" },
    { "header", ARG_LIST, AT(header), "NAME=VALUE", .help = "a header; may be repeated" },
    { "headers", ARG_TEXT, AT(headers), "JSON", .help = "all headers, a JSON object" },
    { "count", ARG_INT, AT(count), "N", .help = "sends N copies, each with its own id", .min = 1,
      .max = 100000000 },
    { "file", ARG_FILE, AT(file), "FILE|-", .help = "sends the commands of a file of JSON lines" },
    { "skip", ARG_INT, AT(skip), "N", .help = "leaves out the first N commands of the file",
      .max = 2147483647 },
    { "ids", ARG_FLAG, AT(ids), NULL, .help = "with --count and --file: prints every id" },
    { 0 },
};

/* The options --header as a JSON object; NULL when there are none. */
static bool send_read_headers(const arg_list *list, json_object **ret, cb_error *e)
{
    if (list->n == 0)
        return true;
    *ret = json_object_new_object();
    for (size_t i = 0; i < list->n; i++) {
        const char *text = list->items[i], *equals = strchr(text, '=');
        char name[256];

        if (!equals || equals == text || (size_t)(equals - text) >= sizeof name)
            return cb_fail(e, CB_MISUSE, "--header wants NAME=VALUE, not '%.80s'", text);
        snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
        json_object_object_add(*ret, name, json_object_new_string(equals + 1));
    }
    return true;
}

/* What options together make no sense, or NULL. */
static const char *send_contradiction(const send_args *a)
{
    if (a->file && (a->id || a->count || a->data))
        return "--file brings the commands: it goes without --id, --count and --data";
    if (!a->file && (!a->domain || !a->type))
        return "say where and what: DOMAIN and TYPE, or --file";
    if (a->count > 1 && a->id)
        return "--count gives each copy its own id: leave --id out";
    if (a->skip && !a->file)
        return "--skip goes with --file";
    if (a->headers && a->header.n)
        return "--header and --headers exclude each other";
    if (a->timeout % 1000)
        return "--timeout counts whole seconds";
    return NULL;
}

/* Sending many: in chunks, with progress, over a lost connection. */

#define SENDER_CHUNK ((size_t)1000) /* commands in one transaction */

typedef struct {
    cli *c;
    progress bar;
    size_t sent; /* durable so far, over all calls */
} sender;

#define RECONNECTS 5

static bool sender_on_progress(size_t sent, size_t total, void *arg)
{
    sender *s = arg;

    (void)total;
    progress_show(&s->bar, s->sent + sent);
    return !progress_is_interrupted();
}

static bool sender_reconnect(sender *s, cb_error *e)
{
    for (int i = 0; i < RECONNECTS && !progress_is_interrupted(); i++) {
        if (cb_db_reconnect(s->c->db, e))
            return true;
        nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
    }
    return false;
}

static bool sender_is_there(sender *s, const cb_send *command, bool *ret, cb_error *e)
{
    OWNED(cb_rows) rows = NULL;

    if (!cb_command_show(s->c->db, command->domain, command->command_id, &rows, e))
        return false;
    *ret = cb_rows_count(rows) > 0;
    return true;
}

/* Connects again and finds out what was committed of the chunk in doubt, whose end only the library
 * knows: the first command that is not there. */
static bool sender_settle_doubt(sender *s, const cb_send *commands, size_t n, size_t *done,
                                cb_error *e)
{
    size_t there = *done, missing = n - *done < SENDER_CHUNK ? n : *done + SENDER_CHUNK;

    if (!sender_reconnect(s, e))
        return false;
    while (there < missing) {
        size_t middle = there + (missing - there) / 2;
        bool found = false;
        if (!sender_is_there(s, &commands[middle], &found, e))
            return false;
        if (found)
            there = middle + 1;
        else
            missing = middle;
    }
    s->sent += there - *done;
    *done = there;
    return true;
}

/* Sends n more. Gives an id to each command that has none (written to ids[i], which must outlive
 * the commands), so that after a lost connection it can look which chunk is there and go on. An
 * interruption is no failure: then s->sent tells how far it came. */
static bool sender_send(sender *s, cb_send *commands, size_t n, cb_uuid *ids, cb_error *e)
{
    const cb_send_many_options options = { SENDER_CHUNK, sender_on_progress, s };
    int again = 5; /* deadlocks and the like */

    for (size_t i = 0; i < n; i++) {
        if (commands[i].command_id)
            continue;
        ids[i] = cb_uuid_new();
        commands[i].command_id = ids[i].text;
    }
    for (size_t done = 0; done < n && !progress_is_interrupted();) {
        size_t sent = 0;
        cb_error why = { 0 };
        bool good = cb_send_many(s->c->db, commands + done, n - done, &options, NULL, &sent, &why);

        done += sent;
        s->sent += sent;
        if (good || progress_is_interrupted())
            continue;
        *e = why;
        if (why.code == CB_AGAIN && again-- > 0)
            continue;
        if (why.code != CB_LOST || !sender_settle_doubt(s, commands, n, &done, &why))
            return false;
    }
    return true;
}

#define SLICE ((size_t)10000) /* copies made at a time */

static void send_print_ids(const cb_send *commands, size_t n, json_object *into)
{
    for (size_t i = 0; i < n; i++) {
        if (into)
            json_object_array_add(into, json_object_new_string(commands[i].command_id));
        else
            puts(commands[i].command_id);
    }
}

/* Takes ids over. */
static void send_report(const sender *s, double seconds, json_object *ids)
{
    double rate = seconds > 0 ? (double)s->sent / seconds : 0;

    if (!s->c->json) {
        fflush(stdout); /* the ids, if any, have stdout for themselves */
        cli_note(s->c, "sent %zu commands in %.1f s (%.0f/s)", s->sent, seconds, rate);
        return;
    }
    json_object *object = json_object_new_object();
    json_put_int(object, "sent", (int64_t)s->sent);
    json_object_object_add(object, "seconds", json_object_new_double(seconds));
    if (ids)
        json_object_object_add(object, "command_ids", ids);
    json_print_adopt(object);
}

/* After a failure or Ctrl-C: how many are durable, and how to go on. */
static int send_report_partly(const sender *s, size_t total, const send_list *list, size_t skip,
                              cb_error *e)
{
    const char *doubt = e->code == CB_LOST ? " for certain" : "";
    cb_error whole;

    if (s->sent == 0 && e->code != CB_LOST)
        return cli_fail(s->c, e);
    cb_fail(&whole, e->code, "%zu of %zu commands are durable%s: %s", s->sent, total, doubt,
            e->message);
    if (!list)
        fail_hint(&whole, "For the rest: --count %zu.", total - s->sent);
    else if (list->with_id == list->n)
        fail_hint(
            &whole,
            "Go on with --skip %zu. Nothing can be sent twice: every line has its command_id.",
            skip + s->sent);
    else
        fail_hint(&whole,
                  "Go on with --skip %zu. The same file from its start would send lines without "
                  "command_id twice; it is safe only with ids in the file.",
                  skip + s->sent);
    return cli_fail(s->c, &whole);
}

static int send_finish(sender *s, bool good, size_t total, const send_list *list, size_t skip,
                       json_object *ids, cb_error *e)
{
    double seconds = progress_seconds(&s->bar);
    progress_end(&s->bar);
    if (good && s->sent == total) {
        send_report(s, seconds, ids);
        return EXIT_OK;
    }
    json_object_put(ids);
    if (good)
        cb_fail(e, CB_AGAIN, "interrupted");
    return send_report_partly(s, total, list, skip, e);
}

/* Checks the whole file first. What a line lacks comes from `defaults`; the first `skip` commands
 * are left out. `print` prints every id. */
static int send_file(cli *c, const cb_send *defaults, const char *path, size_t skip, bool print)
{
    OWNED(send_list) list = NULL;
    sender s = { .c = c };
    cb_error e = { 0 };

    if (!send_list_read(path, defaults, skip, &list, &e)) {
        text_append(e.hint, sizeof e.hint, "%sNothing was sent.", *e.hint ? " " : "");
        return cli_fail(c, &e);
    }
    cb_uuid *ids = calloc(list->n + 1, sizeof *ids);
    if (!(ids || fail_memory(&e)) || !cli_connect(c, true, &e)) {
        free(ids);
        return cli_fail(c, &e);
    }
    progress_start(&s.bar, c, "sending", list->n);
    bool good = sender_send(&s, list->commands, list->n, ids, &e);
    json_object *array = c->json && print ? json_object_new_array() : NULL;
    if (print)
        send_print_ids(list->commands, s.sent, array);
    int code = send_finish(&s, good, list->n, list, skip, array, &e);
    free(ids);
    return code;
}

/* `total` copies of a command, each with an id of its own. */
static int send_copies(cli *c, const cb_send *command, size_t total, bool print)
{
    cb_send *copies = calloc(SLICE, sizeof *copies);
    cb_uuid *ids = calloc(SLICE, sizeof *ids);
    json_object *array = c->json && print ? json_object_new_array() : NULL;
    sender s = { .c = c };
    cb_error e = { 0 };
    bool good = ((copies && ids) || fail_memory(&e)) && cli_connect(c, true, &e);
    int code;

    if (good) {
        progress_start(&s.bar, c, "sending", total);
        while (good && s.sent < total && !progress_is_interrupted()) {
            size_t before = s.sent, n = total - before < SLICE ? total - before : SLICE;
            for (size_t i = 0; i < n; i++)
                copies[i] = *command;
            good = sender_send(&s, copies, n, ids, &e);
            if (print)
                send_print_ids(copies, s.sent - before, array);
        }
        code = send_finish(&s, good, total, NULL, 0, array, &e);
    } else {
        json_object_put(array);
        code = cli_fail(c, &e);
    }
    free(copies);
    free(ids);
    return code;
}

static int send_one(cli *c, const cb_send *command)
{
    cb_uuid id;
    cb_error e = { 0 };

    if (!cli_connect(c, true, &e) || !cb_send_command(c->db, command, &id, &e))
        return cli_fail(c, &e);
    if (c->json) {
        json_object *object = json_object_new_object();
        json_put_text(object, "command_id", id.text);
        json_print_adopt(object);
    } else {
        puts(id.text);
    }
    return EXIT_OK;
}

static int send_run(cli *c, void *untyped)
{
    const send_args *a = untyped;
    const char *problem = send_contradiction(a);
    char *owned = NULL;
    json_object *headers = NULL;
    cb_error e = { 0 };
    cb_send command = {
        .domain = a->domain,
        .command_type = a->type,
        .command_id = a->id,
        .correlation_id = a->correlation_id,
        .reply_to = a->reply_to,
        .batch_id = a->batch,
        .headers = a->headers,
        .max_attempts = a->max_attempts,
        .timeout_seconds = (int)(a->timeout / 1000),
        .delay_seconds = (double)a->delay / 1000,
    };
    int code;

    if (problem)
        return cli_usage(c, "%s", problem);
    if (!send_read_headers(&a->header, &headers, &e)) {
        json_object_put(headers);
        return cli_usage_error(c, &e);
    }
    if (headers)
        command.headers = json_object_to_json_string(headers);
    if (!read_text_argument(a->data, &command.data, &owned, &e))
        code = cli_fail(c, &e);
    else if (a->file)
        code = send_file(c, &command, a->file, (size_t)a->skip, a->ids);
    else if (a->count > 0)
        code = send_copies(c, &command, (size_t)a->count, a->ids);
    else
        code = send_one(c, &command);
    json_object_put(headers);
    free(owned);
    return code;
}

const cli_command send_command = {
    .verb = "send",
    .summary = "Sends commands: one, copies of one, or a file of them",
    .details =
        "Prints the id. A line of --file is an object with domain, command_type, data, command_id,\n"
        "correlation_id, reply_to, batch_id, headers, max_attempts, timeout_seconds and\n"
        "delay_seconds; what it lacks comes from the command line. All lines are checked before\n"
        "the first is sent, then they go in transactions of 1000.\n",
    .example = "  commandbus send sample Echo --data '{\"amount\": \"10.00\"}'\n"
               "  commandbus send payments --file payments.jsonl\n",
    .args = send_specs,
    .args_size = sizeof(send_args),
    .run = send_run,
};
