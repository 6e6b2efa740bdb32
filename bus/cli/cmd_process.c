/* commandbus process list, show and respond: looking at processes, and answering one. */
#include "cli.h"
#include "fail.h"
#include "filter.h"
#include "json_text.h"
#include "output.h"
#include "process_view.h"

#include <commandbus/process_request.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    filter_args filter;
    bool counts;
} list_args;

#define AT(field)        offsetof(list_args, field)
#define AT_FILTER(field) offsetof(list_args, filter.field)

static const arg_spec list_specs[] = {
    FILTER_DOMAIN(AT_FILTER),
    FILTER_TYPE(AT_FILTER, "process"),
    FILTER_STATUS(AT_FILTER, "in this status; OPEN: not ended", process_statuses),
    FILTER_ERROR(AT_FILTER),
    FILTER_BATCH(AT_FILTER),
    FILTER_FROM(AT_FILTER, "started"),
    FILTER_TO(AT_FILTER, "started"),
    FILTER_OLDER(AT_FILTER, "nothing has changed for at least this long"),
    FILTER_LIMIT(AT_FILTER, "50"),
    FILTER_OFFSET(AT_FILTER),
    { "counts", ARG_FLAG, AT(counts), NULL, .help = "only how many, by type, status and error" },
    { 0 },
};

static const char *const list_columns[] = { "process_id", "process_type", "status",     "current",
                                            "error_code", "created_at",   "updated_at", NULL };

static int process_list_run(cli *c, void *untyped)
{
    list_args *args = untyped;
    cb_process_filter filter = process_filter_of(&args->filter);
    OWNED(cb_rows) rows = NULL;
    cb_error e = { 0 };

    if (args->counts && !args->filter.limit)
        filter.limit = 1000000; /* sums are only right when none is left out */
    if (!cli_connect(c, true, &e) || !(args->counts ? cb_process_counts(c->db, &filter, &rows, &e)
                                                    : cb_process_list(c->db, &filter, &rows, &e)))
        return cli_fail(c, &e);
    output_rows(c, rows, args->counts ? NULL : list_columns);
    if (!args->counts || cb_rows_count(rows) == 0)
        filter_note_more(c, &args->filter, cb_rows_count(rows));
    return EXIT_OK;
}

const cli_command process_list_command = {
    .group = "process",
    .verb = "list",
    .summary = "Processes, newest first",
    .details = "`current` is the step it is at, or what it waits for.\n",
    .example = "  commandbus process list --status TSQ --older-than 1h\n"
               "  commandbus process list --status OPEN --type PaymentStep --counts\n",
    .args = list_specs,
    .args_size = sizeof(list_args),
    .run = process_list_run,
};

typedef struct {
    const char *id;
} show_args;

static const arg_spec show_specs[] = {
    { "ID", ARG_ID, offsetof(show_args, id), NULL, "the process's id", .positional = true,
      .required = true },
    { 0 },
};

static void process_print(const cli *c, const cb_rows *rows)
{
    __attribute__((cleanup(process_view_done))) process_view v;

    process_view_open(&v, rows);
    if (c->json) {
        putchar('{');
        output_json_members(stdout, rows, 0);
        puts("}");
        return;
    }
    process_print_head(&v);
    process_print_advice(&v);
    process_print_story(&v);
    fputs("\nstate  ", stdout);
    json_write_pretty(stdout, cb_rows_get(rows, 0, "state"), 7);
    putchar('\n');
}

static int process_show_run(cli *c, void *untyped)
{
    const show_args *args = untyped;
    OWNED(cb_rows) rows = NULL;
    cb_error e = { 0 };

    if (!cli_connect(c, true, &e) || !cb_process_show(c->db, args->id, &rows, &e))
        return cli_fail(c, &e);
    if (cb_rows_count(rows) == 0) {
        cb_fail(&e, CB_PROCESS_NOT_FOUND, "there is no process %s", args->id);
        fail_hint(
            &e, "Check the id: commandbus process list. Processes are gone when their retention is "
                "over.");
        return cli_fail(c, &e);
    }
    process_print(c, rows);
    return EXIT_OK;
}

const cli_command process_show_command = {
    .group = "process",
    .verb = "show",
    .summary = "One process: what it is doing, what to do about it, what happened",
    .details =
        "Times of day are in the zone of the session (PGTZ). --json has everything in full.\n",
    .example = "  commandbus process show 0198c1de-5b1c-7e52-9f5b-6d3c2f1a0b4e\n",
    .args = show_specs,
    .args_size = sizeof(show_args),
    .run = process_show_run,
};

typedef struct {
    const char *id, *name, *payload, *response_id;
} respond_args;

#undef AT
#define AT(field) offsetof(respond_args, field)

static const arg_spec respond_specs[] = {
    { "ID", ARG_ID, AT(id), NULL, "the process's id", .positional = true, .required = true },
    { "NAME", ARG_TEXT, AT(name), NULL, "of the response, as its type knows it", .positional = true,
      .required = true },
    { "payload", ARG_TEXT, AT(payload), "JSON|@FILE|-", .help = "what it says [{}]" },
    { "response-id", ARG_ID, AT(response_id), "ID",
      .help = "of this response: a repeated one changes nothing [none]" },
    { 0 },
};

static int process_respond_run(cli *c, void *untyped)
{
    const respond_args *a = untyped;
    const char *payload = NULL;
    char *owned = NULL;
    bool accepted = false;
    cb_error e = { 0 };

    bool good = read_text_argument(a->payload, &payload, &owned, &e) && cli_connect(c, true, &e) &&
                cb_process_respond(c->db, a->id, a->name, payload, a->response_id, &accepted, &e);
    free(owned);
    if (!good)
        return cli_fail(c, &e);
    if (c->json) {
        json_object *object = json_object_new_object();
        json_put_text(object, "process_id", a->id);
        json_put_bool(object, "accepted", accepted);
        json_print_adopt(object);
    } else {
        puts(accepted ? "accepted" : "it was there already: nothing changed");
    }
    return EXIT_OK;
}

const cli_command process_respond_command = {
    .group = "process",
    .verb = "respond",
    .summary = "Brings a process the response it waits for",
    .details =
        "It is kept whatever the process is doing, and applied when it runs next; one that its type does\n"
        "not take, by name or by payload, is refused. With a --response-id the call can be repeated\n"
        "safely. Operators may bring any response, other logins those that they were allowed:\n"
        "commandbus responder allow.\n",
    .example = "  commandbus process respond 0198c1de-5b1c-7e52-9f5b-6d3c2f1a0b4e riskApproval "
               "--payload '{\"status\": \"APPROVED\"}'\n",
    .args = respond_specs,
    .args_size = sizeof(respond_args),
    .run = process_respond_run,
};
