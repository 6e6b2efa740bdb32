/* commandbus command: looking commands up. */
#include "cli.h"
#include "fail.h"
#include "figures.h"
#include "filter.h"
#include "output.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

#define AT(field) offsetof(filter_args, field)

static const arg_spec list_specs[] = {
    FILTER_DOMAIN(AT),
    FILTER_TYPE(AT, "command"),
    FILTER_STATUS(AT, "in this status", command_statuses),
    FILTER_ERROR(AT),
    FILTER_BATCH(AT),
    FILTER_FROM(AT, "sent"),
    FILTER_TO(AT, "sent"),
    FILTER_LIMIT(AT, "50"),
    FILTER_OFFSET(AT),
    { 0 },
};

static const char *const columns[] = { "domain",   "command_id", "command_type", "status",
                                       "attempts", "error_code", "created_at",   NULL };

static int command_list_run(cli *c, void *untyped)
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
    .run = command_list_run,
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

/* To the millisecond, whatever trailing zeros PostgreSQL left out. */
static void trail_print_time(const char *text)
{
    const char *fraction = text ? strchr(text, '.') : NULL;

    if (!fraction) {
        printf("%s", text ? text : "");
        return;
    }
    size_t digits = strspn(fraction + 1, "0123456789");
    const char *zone = fraction + 1 + digits;
    printf("%.*s%.*s%s", (int)(fraction + 1 - text), text, digits < 3 ? (int)digits : 3,
           fraction + 1, &"000"[digits < 3 ? digits : 3]);
    printf("%s", zone);
}

/* " label value", or nothing. */
static void trail_print_fact(const cb_rows *trail, size_t row, const char *column,
                             const char *label)
{
    const char *value = cb_rows_get(trail, row, column);

    if (!value)
        return;
    printf("  %s ", label);
    output_plain(stdout, value);
}

static size_t trail_longest_event(const cb_rows *trail)
{
    size_t longest = 0;

    for (size_t row = 0; row < cb_rows_count(trail); row++) {
        const char *event = cb_rows_get(trail, row, "event_type");
        if (event && strlen(event) > longest)
            longest = strlen(event);
    }
    return longest;
}

/* The audit trail as a story, one line an event: when, how long after the first, what, by whom,
 * and its details. */
static void trail_print(const cb_rows *trail)
{
    int width = (int)trail_longest_event(trail);
    double first = 0, at;

    if (cb_rows_count(trail) == 0)
        puts("no audit records: their retention is over");
    for (size_t row = 0; row < cb_rows_count(trail); row++) {
        const char *time = cb_rows_get(trail, row, "at"),
                   *event = cb_rows_get(trail, row, "event_type");
        const char *details = cb_rows_get(trail, row, "details");

        trail_print_time(time);
        if (moment_parse(time, &at)) {
            first = row == 0 ? at : first;
            printf("  %+10.3fs", at - first);
        }
        printf("  %-*s", width, event ? event : "");
        trail_print_fact(trail, row, "attempt", "attempt");
        trail_print_fact(trail, row, "worker", "worker");
        trail_print_fact(trail, row, "operator", "operator");
        trail_print_fact(trail, row, "db_user", "as");
        if (details) {
            fputs("  ", stdout);
            output_plain(stdout, details);
        }
        putchar('\n');
    }
}

static void command_print(const cli *c, const cb_rows *command, cb_rows *trail)
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
    trail_print(trail);
}

/* Exactly one row is what the caller can go on with. */
static bool command_check_found(const show_args *args, const cb_rows *rows, cb_error *e)
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

static int command_show_run(cli *c, void *untyped)
{
    const show_args *args = untyped;
    OWNED(cb_rows) rows = NULL;
    OWNED(cb_rows) trail = NULL;
    cb_error e = { 0 };

    if (!cli_connect(c, true, &e) || !cb_command_show(c->db, args->domain, args->id, &rows, &e) ||
        !command_check_found(args, rows, &e) ||
        !cb_command_trail(c->db, cb_rows_get(rows, 0, "domain"), args->id, &trail, &e))
        return cli_fail(c, &e);
    command_print(c, rows, trail);
    return EXIT_OK;
}

const cli_command command_show_command = {
    .group = "command",
    .verb = "show",
    .summary = "One command with payload, result and everything that happened to it",
    .example = "  commandbus command show 0198c1de-5b1c-7e52-9f5b-6d3c2f1a0b4e\n",
    .args = show_specs,
    .args_size = sizeof(show_args),
    .run = command_show_run,
};
