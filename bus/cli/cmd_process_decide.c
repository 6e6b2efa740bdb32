/* commandbus process retry, cancel and complete: what an operator decides about processes in the
 * TSQ. */
#include "bulk.h"
#include "cli.h"
#include "fail.h"
#include "figures.h"
#include "filter.h"
#include "json_text.h"
#include "nearest.h"

#include <commandbus/process_query.h>
#include <commandbus/process_request.h>
#include <json-c/json.h>
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
    FILTER_DOMAIN(AT_FILTER), FILTER_TYPE(AT_FILTER, "process"), FILTER_ERROR(AT_FILTER), FILTER_BATCH(AT_FILTER), \
    FILTER_OLDER(AT_FILTER, "in the TSQ for at least this long"), FILTER_LIMIT(AT_FILTER, "all"), \
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
    { "deadline", ARG_TEXT, AT(deadline), "TIME|+TIME",
      .help = "a new deadline: ISO 8601, or +4h [a spent one stays spent]" },
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

/* State fields given as --set field=value, as one JSON object. */

/* A mistyped field would be kept beside the right one, and nobody would notice. */
static bool overrides_unknown_field(json_object *state, const char *name, cb_error *e)
{
    nearest_word nearest = { .word = name, .length = strlen(name) };

    json_object_object_foreach(state, known, value)
    {
        (void)value;
        nearest_offer(&nearest, known);
    }
    cb_fail(e, CB_INVALID_DATA, "the state has no field '%.80s': nothing was changed", name);
    return fail_hint(e, "%s%s%sTo add a new one say --overrides.",
                     nearest.best ? "Did you mean " : "", nearest.best ? nearest.best : "",
                     nearest.best ? "? " : "");
}

/* Writes one member. The value is written as it was given: a number keeps all its digits. */
static bool overrides_write_field(FILE *out, json_object *state, const char *item, bool first,
                                  cb_error *e)
{
    const char *equals = strchr(item, '=');
    json_object *now = NULL;
    char name[256];

    if (!equals || equals == item || (size_t)(equals - item) >= sizeof name)
        return cb_fail(e, CB_MISUSE, "--set wants FIELD=VALUE, not '%.80s'", item);
    snprintf(name, sizeof name, "%.*s", (int)(equals - item), item);
    if (!json_object_object_get_ex(state, name, &now))
        return overrides_unknown_field(state, name, e);
    if (!first)
        fputc(',', out);
    json_write_string(out, name);
    fputc(':', out);
    if (json_object_is_type(now, json_type_string) || !json_is_value(equals + 1))
        json_write_string(out, equals + 1);
    else
        fputs(equals + 1, out);
    return true;
}

static bool overrides_write(json_object *state, const arg_list *set, char **ret, cb_error *e)
{
    size_t size = 0;
    bool good = true;
    FILE *out = open_memstream(ret, &size);

    if (!out)
        return fail_memory(e);
    fputc('{', out);
    for (size_t i = 0; i < set->n && good; i++)
        good = overrides_write_field(out, state, set->items[i], i == 0, e);
    fputc('}', out);
    fclose(out);
    return good;
}

/* Reads the process's state: a value is text where the field holds text now, or where it is no
 * JSON. A field that the state does not have is refused. The caller frees *ret. */
static bool overrides_of(cb_db *db, const char *process_id, const arg_list *set, char **ret,
                         cb_error *e)
{
    OWNED(cb_rows) rows = NULL;

    if (!cb_process_show(db, process_id, &rows, e))
        return false;
    if (cb_rows_count(rows) == 0)
        return cb_fail(e, CB_PROCESS_NOT_FOUND, "there is no process %s", process_id);
    json_object *state = json_tokener_parse(cb_rows_get(rows, 0, "state"));
    bool good = overrides_write(state, set, ret, e);
    json_object_put(state);
    return good;
}

/* A decision that is being carried out. */
typedef struct decision decision;
struct decision {
    decide_args *args;
    const char *operator_name;
    deadline_arg deadline;
    bool (*act)(cb_db *db, const decision *d, const char *id, cb_error *e);
};

static bool decide_retry(cb_db *db, const decision *d, const char *id, cb_error *e)
{
    return cb_process_retry(db, id, d->operator_name, d->args->reason,
                            d->deadline.text[0] ? d->deadline.text : NULL, e);
}

static bool decide_cancel(cb_db *db, const decision *d, const char *id, cb_error *e)
{
    return cb_process_cancel(db, id, d->operator_name, d->args->reason, !d->args->no_compensations,
                             e);
}

static bool decide_complete(cb_db *db, const decision *d, const char *id, cb_error *e)
{
    char *made = NULL;
    bool good = d->args->set.n == 0 || overrides_of(db, id, &d->args->set, &made, e);

    good = good && cb_process_complete(db, id, d->operator_name, d->args->reason,
                                       made ? made : d->args->overrides, e);
    free(made);
    return good;
}

static bool decide_select(cb_db *db, void *arg, int limit, int offset, cb_rows **ret, cb_error *e)
{
    decision *d = arg;
    cb_process_filter filter = process_filter_of(&d->args->filter);

    /* Once for all of them: they shall have the same deadline. */
    if (!d->deadline.text[0] && !deadline_of(db, d->args->deadline, &d->deadline, e))
        return false;
    filter.limit = limit;
    filter.offset = offset;
    return cb_process_tsq_list(db, &filter, ret, e);
}

static bool decide_act_on_row(cb_db *db, void *arg, const cb_rows *rows, size_t row, cb_error *e)
{
    const decision *d = arg;

    return d->act(db, d, cb_rows_get(rows, row, "process_id"), e);
}

/* What is wrong with the choice of processes, or NULL. */
static const char *decide_wrong_choice(const decide_args *a)
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
    const char *problem = decide_wrong_choice(args);
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
        .select = decide_select,
        .act = decide_act_on_row,
    };
    cb_error e = { 0 };

    d->operator_name = cli_operator(args->operator_name);
    if (problem)
        return cli_usage(c, "%s", problem);
    if (!d->operator_name)
        return cli_usage(c, "who are you? Say it with --operator");
    if (!deadline_check(args->deadline, &e))
        return cli_usage_error(c, &e);
    if (!args->id)
        return bulk_run(c, &b);
    if (!cli_connect(c, true, &e) || !deadline_of(c->db, args->deadline, &d->deadline, &e) ||
        !d->act(c->db, d, args->id, &e))
        return cli_fail(c, &e);
    bulk_report(c, &b, 1, 0);
    return EXIT_OK;
}

static int process_retry_run(cli *c, void *args)
{
    return decide(c, "retry", "retried", &(decision){ .args = args, .act = decide_retry });
}

static int process_cancel_run(cli *c, void *args)
{
    if (!((const decide_args *)args)->reason)
        return cli_usage(c, "--reason is missing: whoever looks at the process later wants it");
    return decide(c, "cancel", "canceled", &(decision){ .args = args, .act = decide_cancel });
}

static int process_complete_run(cli *c, void *untyped)
{
    decide_args *args = untyped;
    cb_error e = { 0 };

    if (args->overrides && args->set.n)
        return cli_usage(c, "--set and --overrides exclude each other");
    if (args->overrides && !json_check_object(args->overrides, strlen(args->overrides), &e)) {
        cb_fail_while(&e, "reading --overrides");
        return cli_fail(c, &e);
    }
    return decide(c, "complete", "completed", &(decision){ .args = args, .act = decide_complete });
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
    .run = process_retry_run,
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
    .run = process_cancel_run,
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
    .run = process_complete_run,
};
