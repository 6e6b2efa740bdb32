/* commandbus process list: which processes there are. */
#include "commands.h"
#include "output.h"
#include "process_args.h"

typedef struct {
    filter_args filter;
    bool counts;
} list_args;

#define AT(field)        offsetof(list_args, field)
#define AT_FILTER(field) offsetof(list_args, filter.field)

static const arg_spec list_specs[] = {
    FILTER_DOMAIN(AT_FILTER),
    PROCESS_TYPE(AT_FILTER),
    PROCESS_STATUS(AT_FILTER),
    FILTER_ERROR(AT_FILTER),
    FILTER_BATCH(AT_FILTER),
    PROCESS_FROM(AT_FILTER),
    PROCESS_TO(AT_FILTER),
    PROCESS_OLDER(AT_FILTER, "nothing has changed for at least this long"),
    FILTER_LIMIT(AT_FILTER, "50"),
    FILTER_OFFSET(AT_FILTER),
    { "counts", ARG_FLAG, AT(counts), NULL, .help = "only how many, by type, status and error" },
    { 0 },
};

static const char *const columns[] = { "process_id", "process_type", "status",     "current",
                                       "error_code", "created_at",   "updated_at", NULL };

static int run(cli *c, void *untyped)
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
    output_rows(c, rows, args->counts ? NULL : columns);
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
    .run = run,
};
