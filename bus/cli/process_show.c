/* commandbus process show: one process and everything that happened to it. */
#include "commands.h"
#include "fail.h"
#include "json_text.h"
#include "output.h"
#include "process_view.h"

#include <stdio.h>

typedef struct {
    const char *id;
} show_args;

static const arg_spec show_specs[] = {
    { "ID", ARG_ID, offsetof(show_args, id), NULL, "the process's id", .positional = true,
      .required = true },
    { 0 },
};

static void print_process(const cli *c, const cb_rows *rows)
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

static int run(cli *c, void *untyped)
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
    print_process(c, rows);
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
    .run = run,
};
