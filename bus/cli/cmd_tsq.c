/* commandbus tsq: the troubleshooting queue, seen and emptied. */
#include "bulk.h"
#include "cli.h"
#include "filter.h"
#include "output.h"

#include <commandbus/tsq.h>
#include <stdio.h>

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
    const char *domain, *id, *operator_name, *reason, *result;
    filter_args filter;
    bool all, dry_run, yes;
} tsq_args;

#undef AT
#undef AT_FILTER
#define AT(field)        offsetof(tsq_args, field)
#define AT_FILTER(field) offsetof(tsq_args, filter.field)

/* What the three decisions share. */
/* clang-format off */
#define WHICH \
    { "DOMAIN", ARG_TEXT, AT(domain), NULL, "of the one command", .positional = true }, \
    { "ID", ARG_ID, AT(id), NULL, "its id", .positional = true }, \
    FILTER_DOMAIN(AT_FILTER), FILTER_TYPE(AT_FILTER, "command"), FILTER_ERROR(AT_FILTER), \
    FILTER_BATCH(AT_FILTER), FILTER_OLDER(AT_FILTER, "in the TSQ for at least this long"), FILTER_LIMIT(AT_FILTER, "all"), \
    { "all", ARG_FLAG, AT(all), NULL, .help = "everything in the TSQ" }, \
    { "dry-run", ARG_FLAG, AT(dry_run), NULL, .help = "only show which commands it would be" }, \
    { "yes", ARG_FLAG, AT(yes), NULL, .help = "do not ask; needed for more than one command without a terminal" }, \
    { "operator", ARG_TEXT, AT(operator_name), "NAME", \
      .help = "who decides [$COMMANDBUS_OPERATOR, else your login]" }
#define REASON(text) \
    { "reason", ARG_TEXT, AT(reason), "TEXT", .help = text }
/* clang-format on */

#define DETAILS                                                                                     \
    "One command by DOMAIN and ID, or all that match --domain, --type, --error-code, --batch and\n" \
    "--older-than. Somebody else's decision in the meantime is counted, not overruled.\n"

static const arg_spec retry_specs[] = { WHICH, REASON("why, for the audit trail"), { 0 } };
static const arg_spec cancel_specs[] = { WHICH,
                                         REASON("why; the sender gets it with the reply"),
                                         { 0 } };
static const arg_spec complete_specs[] = {
    WHICH,
    REASON("why, for the audit trail"),
    { "result", ARG_TEXT, AT(result), "JSON", .help = "the result that the sender gets [none]" },
    { 0 },
};

/* What is wrong with the choice of commands, or NULL. */
static const char *tsq_wrong_choice(const tsq_args *a)
{
    const filter_args *f = &a->filter;
    bool filtered = f->domain || f->type || f->error_code || f->batch || f->older_than;

    if (a->domain && !a->id)
        return "DOMAIN wants an ID beside it; for all of a domain say --domain";
    if (a->domain && (filtered || a->all || a->dry_run || f->limit))
        return "DOMAIN and ID name one command: leave the filters out";
    if (!a->domain && !filtered && !a->all)
        return "say which: DOMAIN and ID, a filter such as --domain, or --all";
    if (filtered && a->all)
        return "--all and a filter exclude each other";
    return NULL;
}

/* A decision that is being carried out. */
typedef struct {
    tsq_args *args;
    cb_tsq_action action; /* about one command, or the rest of it about each */
    bool (*act)(cb_db *db, const cb_tsq_action *action, cb_error *e);
} decision;

static bool tsq_select(cb_db *db, void *arg, int limit, int offset, cb_rows **ret, cb_error *e)
{
    const decision *d = arg;
    cb_command_filter filter = filter_of(&d->args->filter);

    filter.limit = limit;
    filter.offset = offset;
    return cb_tsq_list(db, &filter, ret, e);
}

static bool tsq_act_on_row(cb_db *db, void *arg, const cb_rows *rows, size_t row, cb_error *e)
{
    decision *d = arg;

    d->action.domain = cb_rows_get(rows, row, "domain");
    d->action.command_id = cb_rows_get(rows, row, "command_id");
    return d->act(db, &d->action, e);
}

static int tsq_decide(cli *c, const char *verb, const char *done, decision *d)
{
    tsq_args *args = d->args;
    const char *problem = tsq_wrong_choice(args);
    const bulk b = {
        .verb = verb,
        .done = done,
        .one = "command",
        .many = "commands",
        .columns = tsq_columns,
        .dry_run = args->dry_run,
        .yes = args->yes,
        .most = (size_t)args->filter.limit,
        .arg = d,
        .select = tsq_select,
        .act = tsq_act_on_row,
    };
    cb_error e = { 0 };

    d->action = (cb_tsq_action){ .domain = args->domain,
                                 .command_id = args->id,
                                 .operator_name = cli_operator(args->operator_name),
                                 .reason = args->reason,
                                 .result = args->result };
    if (problem)
        return cli_usage(c, "%s", problem);
    if (!d->action.operator_name)
        return cli_usage(c, "who are you? Say it with --operator");
    if (!args->domain)
        return bulk_run(c, &b);
    if (!cli_connect(c, true, &e) || !d->act(c->db, &d->action, &e))
        return cli_fail(c, &e);
    bulk_report(c, &b, 1, 0);
    return EXIT_OK;
}

static int tsq_retry_run(cli *c, void *args)
{
    return tsq_decide(c, "retry", "retried", &(decision){ .args = args, .act = cb_tsq_retry });
}

static int tsq_cancel_run(cli *c, void *args)
{
    if (!((const tsq_args *)args)->reason)
        return cli_usage(c, "--reason is missing: the sender gets it with the reply");
    return tsq_decide(c, "cancel", "canceled", &(decision){ .args = args, .act = cb_tsq_cancel });
}

static int tsq_complete_run(cli *c, void *args)
{
    return tsq_decide(c, "complete", "completed",
                      &(decision){ .args = args, .act = cb_tsq_complete });
}

const cli_command tsq_retry_command = {
    .group = "tsq",
    .verb = "retry",
    .summary = "Lets commands run again, attempts counted anew",
    .details = DETAILS,
    .example = "  commandbus tsq retry payments 0198c1de-5b1c-7e52-9f5b-6d3c2f1a0b4e\n"
               "  commandbus tsq retry --domain payments --error-code HANDLER_TIMEOUT --dry-run\n",
    .args = retry_specs,
    .args_size = sizeof(tsq_args),
    .run = tsq_retry_run,
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
    .args_size = sizeof(tsq_args),
    .run = tsq_cancel_run,
};

const cli_command tsq_complete_command = {
    .group = "tsq",
    .verb = "complete",
    .summary = "Declares commands done by hand; their senders get SUCCESS",
    .details = DETAILS,
    .example = "  commandbus tsq complete payments 0198c1de-5b1c-7e52-9f5b-6d3c2f1a0b4e --result "
               "'{\"ref\": \"K-17\"}'\n",
    .args = complete_specs,
    .args_size = sizeof(tsq_args),
    .run = tsq_complete_run,
};
