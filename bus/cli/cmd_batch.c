/* commandbus batch: commands or processes that are done together. */
#include "batch_view.h"
#include "cli.h"
#include "output.h"
#include "send_list.h"

#include <commandbus/batch.h>
#include <string.h>

typedef struct {
    const char *domain, *type, *name, *reply_to, *custom_data, *id, *file;
} create_args;

#define AT(field) offsetof(create_args, field)

static const arg_spec create_specs[] = {
    { "DOMAIN", ARG_TEXT, AT(domain), NULL, .help = "the domain of all its commands",
      .positional = true, .required = true },
    { "file", ARG_FILE, AT(file), "FILE|-",
      .help = "its commands, JSON lines as for commandbus send", .required = true },
    { "type", ARG_TEXT, AT(type), "TYPE", .help = "the command type of lines without one" },
    { "name", ARG_TEXT, AT(name), "TEXT", .help = "a name for people" },
    { "reply-to", ARG_TEXT, AT(reply_to), "QUEUE",
      .help = "where the completion message goes [nowhere]" },
    { "custom-data", ARG_TEXT, AT(custom_data), "JSON", .help = "kept with the batch" },
    { "id", ARG_ID, AT(id), "ID", .help = "the batch's id [a new one]" },
    { 0 },
};

/* A batch is of one domain, and its commands of no other batch. */
static bool batch_check_members(const create_args *args, const send_list *list, cb_error *e)
{
    for (size_t i = 0; i < list->n; i++) {
        if (strcmp(list->commands[i].domain, args->domain) != 0)
            return cb_fail(e, CB_INVALID_DATA, "line %zu: domain is %s, the batch's is %s",
                           list->lines[i], list->commands[i].domain, args->domain);
        if (list->commands[i].batch_id)
            return cb_fail(e, CB_INVALID_DATA,
                           "line %zu: batch_id is the new batch's, leave it out", list->lines[i]);
    }
    return true;
}

static int batch_create_run(cli *c, void *untyped)
{
    const create_args *args = untyped;
    const cb_send defaults = { .domain = args->domain, .command_type = args->type };
    const cb_batch_options options = { .domain = args->domain,
                                       .name = args->name,
                                       .custom_data = args->custom_data,
                                       .reply_to = args->reply_to,
                                       .batch_id = args->id };
    OWNED(send_list) list = NULL;
    cb_uuid id;
    cb_error e = { 0 };

    if (!send_list_read(args->file, &defaults, 0, &list, &e) ||
        !batch_check_members(args, list, &e) || !cli_connect(c, true, &e))
        return cli_fail(c, &e);
    if (!cb_batch_create(c->db, &options, list->commands, list->n, &id, &e))
        return batch_not_made(c, &id, &e);
    batch_made(c, &id, list->n);
    return EXIT_OK;
}

const cli_command batch_create_command = {
    .group = "batch",
    .verb = "create",
    .summary = "Sends the commands of a file as one batch, in one transaction",
    .details =
        "Prints the batch's id. An empty batch is refused: it could never complete. A batch of\n"
        "processes: commandbus process start TYPE --file FILE.\n",
    .example = "  commandbus batch create payments --file payments.jsonl --name 'salaries'\n",
    .args = create_specs,
    .args_size = sizeof(create_args),
    .run = batch_create_run,
};

#undef AT
#define AT(field) offsetof(batch_show_args, field)

static const arg_spec show_specs[] = {
    { "ID", ARG_ID, AT(id), NULL, .help = "the batch's id", .positional = true, .required = true },
    { "wait", ARG_FLAG, AT(wait), NULL, .help = "until all of its members are done" },
    { "timeout", ARG_DURATION, AT(timeout), "TIME", .help = "with --wait: no longer than this",
      .min = 1, .max = 31536000000LL },
    { 0 },
};

static int batch_show_run(cli *c, void *untyped)
{
    const batch_show_args *args = untyped;
    cb_error e = { 0 };

    if (args->timeout && !args->wait)
        return cli_usage(c, "--timeout goes with --wait");
    return cli_connect(c, true, &e) ? batch_show(c, args) : cli_fail(c, &e);
}

const cli_command batch_show_command = {
    .group = "batch",
    .verb = "show",
    .summary = "One batch with its counts; can wait for its end",
    .details =
        "A command or process in the troubleshooting queue is not done; a process that was undone\n"
        "(COMPENSATED) counts as failed. With --timeout the exit code is 1 when the batch is still\n"
        "open then.\n",
    .example = "  commandbus batch show 0198c1de-5b1c-7e52-9f5b-6d3c2f1a0b4e --wait --timeout 5m\n",
    .args = show_specs,
    .args_size = sizeof(batch_show_args),
    .run = batch_show_run,
};

typedef struct {
    const char *domain, *status;
    int limit, offset;
} list_args;

#undef AT
#define AT(field) offsetof(list_args, field)

static const char *const statuses[] = { "PENDING", "IN_PROGRESS", "COMPLETED",
                                        "COMPLETED_WITH_FAILURES", NULL };

static const arg_spec list_specs[] = {
    { "domain", ARG_TEXT, AT(domain), "DOMAIN", .help = "of this domain" },
    { "status", ARG_CHOICE, AT(status), "STATUS", .help = "in this status", .choices = statuses },
    { "limit", ARG_INT, AT(limit), "N", .help = "at most so many [50]", .min = 1, .max = 1000000 },
    { "offset", ARG_INT, AT(offset), "N", .help = "leave out the first N", .max = 2147483647 },
    { 0 },
};

static const char *const columns[] = {
    "domain",    "batch_id", "name",     "batch_type",         "status",     "total",
    "completed", "failed",   "canceled", "in_troubleshooting", "created_at", NULL
};

static int batch_list_run(cli *c, void *untyped)
{
    const list_args *args = untyped;
    int limit = args->limit ? args->limit : 50;
    OWNED(cb_rows) rows = NULL;
    cb_error e = { 0 };

    if (!cli_connect(c, true, &e) ||
        !cb_batch_list(c->db, args->domain, args->status, limit, args->offset, &rows, &e))
        return cli_fail(c, &e);
    output_rows(c, rows, columns);
    if (cb_rows_count(rows) == (size_t)limit)
        cli_note(c, "there may be more: --offset %d", args->offset + limit);
    return EXIT_OK;
}

const cli_command batch_list_command = {
    .group = "batch",
    .verb = "list",
    .summary = "Batches, newest first",
    .example = "  commandbus batch list --domain payments --status IN_PROGRESS\n",
    .args = list_specs,
    .args_size = sizeof(list_args),
    .run = batch_list_run,
};
