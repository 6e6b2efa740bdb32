/* commandbus command: looking commands up. */
#include "commands.h"
#include "fail.h"
#include "filter.h"
#include "json_text.h"
#include "output.h"
#include "text.h"
#include "timeline.h"

#include <stdio.h>
#include <string.h>

#define AT(field) offsetof(filter_args, field)

static const arg_spec list_specs[] = {
    FILTER_DOMAIN(AT), FILTER_TYPE(AT), FILTER_STATUS(AT),      FILTER_ERROR(AT),  FILTER_BATCH(AT),
    FILTER_FROM(AT),   FILTER_TO(AT),   FILTER_LIMIT(AT, "50"), FILTER_OFFSET(AT), { 0 },
};

static const char *const columns[] = { "domain",   "command_id", "command_type", "status",
                                       "attempts", "error_code", "created_at",   NULL };

static int run_list(cli *c, void *untyped)
{
    filter_args *args = untyped;
    cb_command_filter filter = filter_of(args);
    OWNED(cb_rows) rows = NULL;
    cb_error e = { 0 };

    if (!cli_connect(c, true, &e) || !cb_command_list(c->db, &filter, &rows, &e))
        return cli_fail(c, &e);
    output_rows(c, rows, columns);
    filter_note_more(c, args, cb_rows_count(rows));
    return EXIT_OK;
}

const cli_command command_list_command = {
    .group = "command",
    .verb = "list",
    .summary = "Commands, newest first",
    .example = "  commandbus command list --domain payments --status FAILED --from 2h\n",
    .args = list_specs,
    .args_size = sizeof(filter_args),
    .run = run_list,
};

typedef struct {
    const char *id, *domain;
} show_args;

static const arg_spec show_specs[] = {
    { "ID", ARG_ID, offsetof(show_args, id), NULL, .help = "the command's id", .positional = true,
      .required = true },
    { "domain", ARG_TEXT, offsetof(show_args, domain), "DOMAIN",
      .help = "when several domains know the id" },
    { 0 },
};

static void print_command(const cli *c, const cb_rows *command, cb_rows *trail)
{
    if (c->json) {
        putchar('{');
        output_json_members(stdout, command, 0);
        fputs(",\"audit\":", stdout);
        output_json_array(stdout, &trail, 1);
        puts("}");
        return;
    }
    output_record(command, 0);
    puts("");
    timeline_print(trail);
}

/* Exactly one row is what the caller can go on with. */
static bool check_found(const show_args *args, const cb_rows *rows, cb_error *e)
{
    if (cb_rows_count(rows) == 1)
        return true;
    if (cb_rows_count(rows) == 0) {
        cb_fail(e, CB_COMMAND_NOT_FOUND, "there is no command %s%s%s", args->id,
                args->domain ? " in domain " : "", args->domain ? args->domain : "");
        return fail_hint(e, "Check the id; commands are gone when their retention is over.");
    }
    cb_fail(e, CB_INVALID_OPERATION, "%zu domains know %s", cb_rows_count(rows), args->id);
    fail_hint(e, "Say which with --domain:");
    for (size_t row = 0; row < cb_rows_count(rows); row++)
        text_append(e->hint, sizeof e->hint, " %s", cb_rows_get(rows, row, "domain"));
    return false;
}

static int run_show(cli *c, void *untyped)
{
    const show_args *args = untyped;
    OWNED(cb_rows) rows = NULL;
    OWNED(cb_rows) trail = NULL;
    cb_error e = { 0 };

    if (!cli_connect(c, true, &e) || !cb_command_show(c->db, args->domain, args->id, &rows, &e) ||
        !check_found(args, rows, &e) ||
        !cb_command_trail(c->db, cb_rows_get(rows, 0, "domain"), args->id, &trail, &e))
        return cli_fail(c, &e);
    print_command(c, rows, trail);
    return EXIT_OK;
}

const cli_command command_show_command = {
    .group = "command",
    .verb = "show",
    .summary = "One command with payload, result and everything that happened to it",
    .example = "  commandbus command show 0198c1de-5b1c-7e52-9f5b-6d3c2f1a0b4e\n",
    .args = show_specs,
    .args_size = sizeof(show_args),
    .run = run_show,
};
