/* commandbus send: one command, copies of one, or a file of them. */
#include "commands.h"
#include "json_text.h"
#include "jsonl.h"
#include "send_many.h"

#include <commandbus/send.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static const arg_spec specs[] = {
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
static bool read_headers(const arg_list *list, json_object **ret, cb_error *e)
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
static const char *contradiction(const send_args *a)
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

static int send_one(cli *c, const cb_send *command)
{
    cb_uuid id;
    cb_error e = { 0 };

    if (!cli_connect(c, true, &e) || !cb_send_command(c->db, command, &id, &e))
        return cli_fail(c, &e);
    if (c->json) {
        json_object *object = json_object_new_object();
        json_object_object_add(object, "command_id", json_object_new_string(id.text));
        json_print_adopt(object);
    } else {
        puts(id.text);
    }
    return EXIT_OK;
}

static int run(cli *c, void *untyped)
{
    const send_args *a = untyped;
    const char *problem = contradiction(a);
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
    if (!read_headers(&a->header, &headers, &e)) {
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
    .args = specs,
    .args_size = sizeof(send_args),
    .run = run,
};
