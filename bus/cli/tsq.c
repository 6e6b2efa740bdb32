/* commandbus tsq: the troubleshooting queue, seen and emptied. */
#include "tsq.h"

#include "commands.h"
#include "filter.h"
#include "output.h"

#include <commandbus/tsq.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct {
    filter_args filter;
    bool counts;
} list_args;

#define AT(field)        offsetof(list_args, field)
#define AT_FILTER(field) offsetof(list_args, filter.field)

static const arg_spec list_specs[] = {
    FILTER_DOMAIN(AT_FILTER),
    FILTER_TYPE(AT_FILTER),
    FILTER_ERROR(AT_FILTER),
    FILTER_BATCH(AT_FILTER),
    FILTER_OLDER(AT_FILTER),
    FILTER_LIMIT(AT_FILTER, "50"),
    FILTER_OFFSET(AT_FILTER),
    { "counts", ARG_FLAG, AT(counts), NULL,
      .help = "only how many, by domain, type and error code" },
    { 0 },
};

static int run_list(cli *c, void *untyped)
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
    .example = "  commandbus tsq list --domain payments --error-code TIMEOUT --older-than 1h\n"
               "  commandbus tsq list --counts\n",
    .args = list_specs,
    .args_size = sizeof(list_args),
    .run = run_list,
};

#undef AT
#undef AT_FILTER
#define AT(field)        offsetof(tsq_args, field)
#define AT_FILTER(field) offsetof(tsq_args, filter.field)

/* What the three decisions share. */
/* clang-format off */
#define WHICH \
    { "DOMAIN", ARG_TEXT, AT(domain), NULL, "of the one command", .positional = true }, \
    { "ID", ARG_ID, AT(id), NULL, "its id", .positional = true }, \
    FILTER_DOMAIN(AT_FILTER), FILTER_TYPE(AT_FILTER), FILTER_ERROR(AT_FILTER), \
    FILTER_BATCH(AT_FILTER), FILTER_OLDER(AT_FILTER), FILTER_LIMIT(AT_FILTER, "all"), \
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

static const char *operator_name(const tsq_args *args)
{
    const char *name = args->operator_name ? args->operator_name : getenv("COMMANDBUS_OPERATOR");
    if (name && *name)
        return name;
    const struct passwd *user = getpwuid(geteuid());
    return user ? user->pw_name : getenv("USER");
}

/* What is wrong with the choice of commands, or NULL. */
static const char *wrong_choice(const tsq_args *a)
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

static int run_one(cli *c, const tsq_verb *verb, const tsq_args *args, const char *operator)
{
    cb_tsq_action action = { .domain = args->domain,
                             .command_id = args->id,
                             .operator_name = operator,
                             .reason = args->reason,
                             .result = args->result };
    cb_error e = { 0 };

    if (!cli_connect(c, true, &e) || !verb->act(c->db, &action, &e))
        return cli_fail(c, &e);
    tsq_report(c, verb, 1, 0);
    return EXIT_OK;
}

static int decide(cli *c, const tsq_verb *verb, tsq_args *args)
{
    const char *problem = wrong_choice(args), *operator= operator_name(args);

    if (problem)
        return cli_usage(c, "%s", problem);
    if (!operator)
        return cli_usage(c, "who are you? Say it with --operator");
    if (verb->needs_reason && !args->reason)
        return cli_usage(c, "--reason is missing: the sender gets it with the reply");
    return args->domain ? run_one(c, verb, args, operator) : tsq_bulk(c, verb, args, operator);
}

static int run_retry(cli *c, void *args)
{
    return decide(c, &(tsq_verb){ "retry", "retried", cb_tsq_retry, false }, args);
}

static int run_cancel(cli *c, void *args)
{
    return decide(c, &(tsq_verb){ "cancel", "canceled", cb_tsq_cancel, true }, args);
}

static int run_complete(cli *c, void *args)
{
    return decide(c, &(tsq_verb){ "complete", "completed", cb_tsq_complete, false }, args);
}

const cli_command tsq_retry_command = {
    .group = "tsq",
    .verb = "retry",
    .summary = "Lets commands run again, attempts counted anew",
    .details = DETAILS,
    .example = "  commandbus tsq retry payments 0198c1de-5b1c-7e52-9f5b-6d3c2f1a0b4e\n"
               "  commandbus tsq retry --domain payments --error-code GATEWAY_DOWN --dry-run\n",
    .args = retry_specs,
    .args_size = sizeof(tsq_args),
    .run = run_retry,
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
    .run = run_cancel,
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
    .run = run_complete,
};
