/* commandbus tsq: the troubleshooting queue, seen and emptied. */
#include "bulk.h"
#include "cli.h"
#include "filter.h"
#include "output.h"

#include <commandbus/tsq.h>

static const char *const tsq_columns[] = { "domain",   "command_id", "command_type",
                                           "attempts", "error_code", "error_message",
                                           "tsq_at",   NULL };

typedef struct {
    filter_args filter;
    bool counts;
} list_args;

#define AT(field)        offsetof(list_args, field)
#define AT_FILTER(field) offsetof(list_args, filter.field)

static const arg_spec list_specs[] = {
    FILTER_DOMAIN(AT_FILTER),
    FILTER_TYPE(AT_FILTER, "command"),
    FILTER_ERROR(AT_FILTER),
    FILTER_BATCH(AT_FILTER),
    FILTER_OLDER(AT_FILTER, "in the TSQ for at least this long"),
    FILTER_LIMIT(AT_FILTER, "50"),
    FILTER_OFFSET(AT_FILTER),
    { "counts", ARG_FLAG, AT(counts), NULL,
      .help = "only how many, by domain, type and error code" },
    { 0 },
};

static int tsq_list_run(cli *c, void *untyped)
{
    list_args *args = untyped;
    cb_command_filter filter = filter_of(&args->filter);
    OWNED(cb_rows) rows = NULL;
    cb_error e = { 0 };

    if (!cli_connect(c, true, &e) || !(args->counts ? cb_tsq_counts(c->db, &filter, &rows, &e)
                                                    : cb_tsq_list(c->db, &filter, &rows, &e)))
        return cli_fail(c, &e);
    output_rows(c, rows, args->counts ? NULL : tsq_columns);
    if (!args->counts)
        filter_note_more(c, &args->filter, cb_rows_count(rows));
    return EXIT_OK;
}

const cli_command tsq_list_command = {
    .group = "tsq",
    .verb = "list",
    .summary = "Commands that could not be finished, oldest first",
    .example =
        "  commandbus tsq list --domain payments --error-code HANDLER_TIMEOUT --older-than 1h\n"
        "  commandbus tsq list --counts\n",
    .args = list_specs,
    .args_size = sizeof(list_args),
    .run = tsq_list_run,
};

typedef struct {
    bulk_args bulk;
    const char *result;
} decide_args;

#undef AT
#undef AT_FILTER
#define AT(field)        offsetof(decide_args, bulk.field)
#define AT_FILTER(field) offsetof(decide_args, bulk.filter.field)

/* What the three decisions share. */
/* clang-format off */
#define WHICH \
    { "DOMAIN", ARG_TEXT, AT(domain), NULL, "of the one command", .positional = true }, \
    { "ID", ARG_ID, AT(id), NULL, "its id", .positional = true }, \
    BULK_WHICH(AT, AT_FILTER, "command", "commands", "everything")
/* clang-format on */

#define DETAILS                                                                                     \
    "One command by DOMAIN and ID, or all that match --domain, --type, --error-code, --batch and\n" \
    "--older-than. Somebody else's decision in the meantime is counted, not overruled.\n"

static const arg_spec retry_specs[] = { WHICH, BULK_REASON(AT, "why, for the audit trail"), { 0 } };
static const arg_spec cancel_specs[] = { WHICH,
                                         BULK_REASON(AT, "why; the sender gets it with the reply"),
                                         { 0 } };
static const arg_spec complete_specs[] = {
    WHICH,
    BULK_REASON(AT, "why, for the audit trail"),
    { "result", ARG_TEXT, offsetof(decide_args, result), "JSON",
      .help = "the result that the sender gets [none]" },
    { 0 },
};

static bool tsq_select(cb_db *db, void *arg, int limit, int offset, cb_rows **ret, cb_error *e)
{
    decide_args *args = arg;
    cb_command_filter filter = filter_of(&args->bulk.filter);

    filter.limit = limit;
    filter.offset = offset;
    return cb_tsq_list(db, &filter, ret, e);
}

static cb_tsq_action tsq_action_of(const decide_args *args, const char *domain, const char *id)
{
    return (cb_tsq_action){ .domain = domain,
                            .command_id = id,
                            .operator_name = args->bulk.operator_name,
                            .reason = args->bulk.reason,
                            .result = args->result };
}

static bool tsq_retry(cb_db *db, void *args, const char *domain, const char *id, cb_error *e)
{
    const cb_tsq_action action = tsq_action_of(args, domain, id);
    return cb_tsq_retry(db, &action, e);
}

static bool tsq_cancel(cb_db *db, void *args, const char *domain, const char *id, cb_error *e)
{
    const cb_tsq_action action = tsq_action_of(args, domain, id);
    return cb_tsq_cancel(db, &action, e);
}

static bool tsq_complete(cb_db *db, void *args, const char *domain, const char *id, cb_error *e)
{
    const cb_tsq_action action = tsq_action_of(args, domain, id);
    return cb_tsq_complete(db, &action, e);
}

static const bulk_decision decisions[] = {
    { "retry", "retried", NULL, tsq_retry },
    { "cancel", "canceled", "--reason is missing: the sender gets it with the reply", tsq_cancel },
    { "complete", "completed", NULL, tsq_complete },
};

static const bulk_kind commands_in_tsq = {
    .one = "command",
    .many = "commands",
    .leave_out = "DOMAIN and ID name one command: leave the filters out",
    .say_which = "say which: DOMAIN and ID, a filter such as --domain, or --all",
    .columns = tsq_columns,
    .id_column = "command_id",
    .decisions = decisions,
    .select = tsq_select,
};

static int tsq_decide_run(cli *c, void *args)
{
    return bulk_run(c, &commands_in_tsq, args);
}

const cli_command tsq_retry_command = {
    .group = "tsq",
    .verb = "retry",
    .summary = "Lets commands run again, attempts counted anew",
    .details = DETAILS,
    .example = "  commandbus tsq retry payments 0198c1de-5b1c-7e52-9f5b-6d3c2f1a0b4e\n"
               "  commandbus tsq retry --domain payments --error-code HANDLER_TIMEOUT --dry-run\n",
    .args = retry_specs,
    .args_size = sizeof(decide_args),
    .run = tsq_decide_run,
};

const cli_command tsq_cancel_command = {
    .group = "tsq",
    .verb = "cancel",
    .summary = "Gives commands up; their senders get the reason",
    .details = DETAILS,
    .example =
        "  commandbus tsq cancel payments 0198c1de-5b1c-7e52-9f5b-6d3c2f1a0b4e --reason 'sent "
        "by mistake'\n",
    .args = cancel_specs,
    .args_size = sizeof(decide_args),
    .run = tsq_decide_run,
};

const cli_command tsq_complete_command = {
    .group = "tsq",
    .verb = "complete",
    .summary = "Declares commands done by hand; their senders get SUCCESS",
    .details = DETAILS,
    .example = "  commandbus tsq complete payments 0198c1de-5b1c-7e52-9f5b-6d3c2f1a0b4e --result "
               "'{\"ref\": \"K-17\"}'\n",
    .args = complete_specs,
    .args_size = sizeof(decide_args),
    .run = tsq_decide_run,
};
