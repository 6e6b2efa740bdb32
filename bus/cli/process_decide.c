/* commandbus process retry, cancel and complete: what an operator decides about processes in the TSQ. */
#include "bulk.h"
#include "commands.h"
#include "json_text.h"
#include "process_args.h"
#include "process_overrides.h"

#include <commandbus/process_request.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *id, *operator_name, *reason, *deadline, *overrides;
    arg_list set;
    filter_args filter;
    bool all, dry_run, yes, no_compensations;
} decide_args;

#define AT(field)        offsetof(decide_args, field)
#define AT_FILTER(field) offsetof(decide_args, filter.field)

/* What the decisions share. */
/* clang-format off */
#define OPERATOR \
    { "operator", ARG_TEXT, AT(operator_name), "NAME", \
      .help = "who decides [$COMMANDBUS_OPERATOR, else your login]" }
#define REASON(text) \
    { "reason", ARG_TEXT, AT(reason), "TEXT", .help = text }
#define WHICH \
    { "ID", ARG_ID, AT(id), NULL, "of the one process", .positional = true }, \
    FILTER_DOMAIN(AT_FILTER), PROCESS_TYPE(AT_FILTER), FILTER_ERROR(AT_FILTER), FILTER_BATCH(AT_FILTER), \
    PROCESS_OLDER(AT_FILTER, "in the TSQ for at least this long"), FILTER_LIMIT(AT_FILTER, "all"), \
    { "all", ARG_FLAG, AT(all), NULL, .help = "every process in the TSQ" }, \
    { "dry-run", ARG_FLAG, AT(dry_run), NULL, .help = "only show which processes it would be" }, \
    { "yes", ARG_FLAG, AT(yes), NULL, .help = "do not ask; needed for more than one process without a terminal" }, \
    OPERATOR
/* clang-format on */

#define DETAILS                                                                                     \
    "One process by ID, or all in the TSQ that match --domain, --type, --error-code, --batch and\n" \
    "--older-than. Somebody else's decision in the meantime is counted, not overruled.\n"

static const arg_spec retry_specs[] = {
    WHICH,
    REASON("why, for the audit trail"),
    PROCESS_DEADLINE(AT(deadline), "a new deadline: ISO 8601, or +4h [a spent one stays spent]"),
    { 0 },
};
static const arg_spec cancel_specs[] = {
    WHICH,
    REASON("why; required"),
    { "no-compensations", ARG_FLAG, AT(no_compensations), NULL,
      .help = "leave what was done as it is [undo it first]" },
    { 0 },
};
static const arg_spec complete_specs[] = {
    { "ID", ARG_ID, AT(id), NULL, "of the process", .positional = true, .required = true },
    { "set", ARG_LIST, AT(set), "FIELD=VALUE", .help = "of its state; may be repeated" },
    { "overrides", ARG_TEXT, AT(overrides), "JSON", .help = "the same, all fields in one object" },
    REASON("why, for the audit trail"),
    OPERATOR,
    { 0 },
};

/* A decision that is being carried out. */
typedef struct decision decision;
struct decision {
    decide_args *args;
    const char *operator_name;
    process_deadline deadline;
    bool (*act)(cb_db *db, const decision *d, const char *id, cb_error *e);
};

static bool retry(cb_db *db, const decision *d, const char *id, cb_error *e)
{
    return cb_process_retry(db, id, d->operator_name, d->args->reason,
                            d->deadline.text[0] ? d->deadline.text : NULL, e);
}

static bool cancel(cb_db *db, const decision *d, const char *id, cb_error *e)
{
    return cb_process_cancel(db, id, d->operator_name, d->args->reason, !d->args->no_compensations,
                             e);
}

static bool complete(cb_db *db, const decision *d, const char *id, cb_error *e)
{
    char *made = NULL;
    bool good = d->args->set.n == 0 || process_overrides(db, id, &d->args->set, &made, e);

    good = good && cb_process_complete(db, id, d->operator_name, d->args->reason,
                                       made ? made : d->args->overrides, e);
    free(made);
    return good;
}

static bool select_processes(cb_db *db, void *arg, int limit, int offset, cb_rows **ret,
                             cb_error *e)
{
    decision *d = arg;
    cb_process_filter filter = process_filter_of(&d->args->filter);

    /* Once for all of them: they shall have the same deadline. */
    if (!d->deadline.text[0] && !process_deadline_of(db, d->args->deadline, &d->deadline, e))
        return false;
    filter.limit = limit;
    filter.offset = offset;
    return cb_process_tsq_list(db, &filter, ret, e);
}

static bool act_on_row(cb_db *db, void *arg, const cb_rows *rows, size_t row, cb_error *e)
{
    const decision *d = arg;

    return d->act(db, d, cb_rows_get(rows, row, "process_id"), e);
}

/* What is wrong with the choice of processes, or NULL. */
static const char *wrong_choice(const decide_args *a)
{
    const filter_args *f = &a->filter;
    bool filtered = f->domain || f->type || f->error_code || f->batch || f->older_than;

    if (a->id && (filtered || a->all || a->dry_run || f->limit))
        return "ID names one process: leave the filters out";
    if (!a->id && !filtered && !a->all)
        return "say which: an ID, a filter such as --type, or --all";
    if (filtered && a->all)
        return "--all and a filter exclude each other";
    return NULL;
}

static int decide(cli *c, const char *verb, const char *done, decision *d)
{
    static const char *const columns[] = { "process_id",    "process_type", "current", "error_code",
                                           "error_message", "tsq_at",       NULL };
    decide_args *args = d->args;
    const char *problem = wrong_choice(args);
    const bulk b = {
        .verb = verb,
        .done = done,
        .one = "process",
        .many = "processes",
        .columns = columns,
        .dry_run = args->dry_run,
        .yes = args->yes,
        .most = (size_t)args->filter.limit,
        .arg = d,
        .select = select_processes,
        .act = act_on_row,
    };
    cb_error e = { 0 };

    d->operator_name = cli_operator(args->operator_name);
    if (problem)
        return cli_usage(c, "%s", problem);
    if (!d->operator_name)
        return cli_usage(c, "who are you? Say it with --operator");
    if (!process_deadline_check(args->deadline, &e))
        return cli_usage_error(c, &e);
    if (!args->id)
        return bulk_run(c, &b);
    if (!cli_connect(c, true, &e) ||
        !process_deadline_of(c->db, args->deadline, &d->deadline, &e) ||
        !d->act(c->db, d, args->id, &e))
        return cli_fail(c, &e);
    bulk_report(c, &b, 1, 0);
    return EXIT_OK;
}

static int run_retry(cli *c, void *args)
{
    return decide(c, "retry", "retried", &(decision){ .args = args, .act = retry });
}

static int run_cancel(cli *c, void *args)
{
    if (!((const decide_args *)args)->reason)
        return cli_usage(c, "--reason is missing: whoever looks at the process later wants it");
    return decide(c, "cancel", "canceled", &(decision){ .args = args, .act = cancel });
}

static int run_complete(cli *c, void *untyped)
{
    decide_args *args = untyped;
    cb_error e = { 0 };

    if (args->overrides && args->set.n)
        return cli_usage(c, "--set and --overrides exclude each other");
    if (args->overrides && !json_check_object(args->overrides, strlen(args->overrides), &e)) {
        cb_fail_while(&e, "reading --overrides");
        return cli_fail(c, &e);
    }
    return decide(c, "complete", "completed", &(decision){ .args = args, .act = complete });
}

const cli_command process_retry_command = {
    .group = "process",
    .verb = "retry",
    .summary = "Lets processes in the TSQ go on, attempts counted anew",
    .details = DETAILS
    "A command of it that is in the TSQ is retried too; a wait that ran out gets its time anew; a\n"
    "deadline that was missed no longer counts, unless --deadline gives a new one.\n",
    .example =
        "  commandbus process retry 0198c1de-5b1c-7e52-9f5b-6d3c2f1a0b4e --reason 'gateway is "
        "back'\n"
        "  commandbus process retry --type PaymentStep --error-code WAIT_TIMEOUT --dry-run\n",
    .args = retry_specs,
    .args_size = sizeof(decide_args),
    .run = run_retry,
};

const cli_command process_cancel_command = {
    .group = "process",
    .verb = "cancel",
    .summary = "Gives processes in the TSQ up; what they did is undone first",
    .details = DETAILS "A command of it that is in the TSQ is canceled too.\n",
    .example = "  commandbus process cancel 0198c1de-5b1c-7e52-9f5b-6d3c2f1a0b4e --reason "
               "'withdrawn by the customer'\n",
    .args = cancel_specs,
    .args_size = sizeof(decide_args),
    .run = run_cancel,
};

const cli_command process_complete_command = {
    .group = "process",
    .verb = "complete",
    .summary = "Declares a process in the TSQ done by hand, with state fields set",
    .details =
        "A VALUE of --set is text where the field holds text now, else JSON. A command of it that is in\n"
        "the TSQ is canceled.\n",
    .example = "  commandbus process complete 0198c1de-5b1c-7e52-9f5b-6d3c2f1a0b4e --set "
               "submissionReference=K-17\n",
    .args = complete_specs,
    .args_size = sizeof(decide_args),
    .run = run_complete,
};
