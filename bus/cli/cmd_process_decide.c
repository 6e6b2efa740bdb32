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
    bulk_args bulk;
    const char *deadline, *overrides;
    arg_list set;
    bool no_compensations;
    deadline_arg until; /* deadline as the library takes it: the same for all of them */
} decide_args;

#define AT(field)        offsetof(decide_args, field)
#define AT_BULK(field)   offsetof(decide_args, bulk.field)
#define AT_FILTER(field) offsetof(decide_args, bulk.filter.field)

/* What retry and cancel share. */
/* clang-format off */
#define WHICH \
    { "ID", ARG_ID, AT_BULK(id), NULL, "of the one process", .positional = true }, \
    BULK_WHICH(AT_BULK, AT_FILTER, "process", "processes", "every process")
/* clang-format on */

#define DETAILS                                                                                     \
    "One process by ID, or all in the TSQ that match --domain, --type, --error-code, --batch and\n" \
    "--older-than. Somebody else's decision in the meantime is counted, not overruled.\n"

static const arg_spec retry_specs[] = {
    WHICH,
    BULK_REASON(AT_BULK, "why, for the audit trail"),
    { "deadline", ARG_TEXT, AT(deadline), "TIME|+TIME",
      .help = "a new deadline: ISO 8601, or +4h [a spent one stays spent]" },
    { 0 },
};
static const arg_spec cancel_specs[] = {
    WHICH,
    BULK_REASON(AT_BULK, "why; required"),
    { "no-compensations", ARG_FLAG, AT(no_compensations), NULL,
      .help = "leave what was done as it is [undo it first]" },
    { 0 },
};
static const arg_spec complete_specs[] = {
    { "ID", ARG_ID, AT_BULK(id), NULL, "of the process", .positional = true, .required = true },
    { "set", ARG_LIST, AT(set), "FIELD=VALUE", .help = "of its state; may be repeated" },
    { "overrides", ARG_TEXT, AT(overrides), "JSON", .help = "the same, all fields in one object" },
    BULK_REASON(AT_BULK, "why, for the audit trail"),
    BULK_OPERATOR(AT_BULK),
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

/* The id of a process is enough: nobody asks for its domain. */
static bool decide_retry(cb_db *db, void *arg, const char *domain, const char *id, cb_error *e)
{
    const decide_args *args = arg;

    (void)domain;
    return cb_process_retry(db, id, args->bulk.operator_name, args->bulk.reason,
                            args->until.text[0] ? args->until.text : NULL, e);
}

static bool decide_cancel(cb_db *db, void *arg, const char *domain, const char *id, cb_error *e)
{
    const decide_args *args = arg;

    (void)domain;
    return cb_process_cancel(db, id, args->bulk.operator_name, args->bulk.reason,
                             !args->no_compensations, e);
}

static bool decide_complete(cb_db *db, void *arg, const char *domain, const char *id, cb_error *e)
{
    const decide_args *args = arg;
    char *made = NULL;
    bool good = args->set.n == 0 || overrides_of(db, id, &args->set, &made, e);

    (void)domain;
    good = good && cb_process_complete(db, id, args->bulk.operator_name, args->bulk.reason,
                                       made ? made : args->overrides, e);
    free(made);
    return good;
}

static bool decide_check(void *args, cb_error *e)
{
    return deadline_check(((const decide_args *)args)->deadline, e);
}

static bool decide_prepare(cb_db *db, void *arg, cb_error *e)
{
    decide_args *args = arg;

    return deadline_of(db, args->deadline, &args->until, e);
}

static bool decide_select(cb_db *db, void *arg, int limit, int offset, cb_rows **ret, cb_error *e)
{
    decide_args *args = arg;
    cb_process_filter filter = process_filter_of(&args->bulk.filter);

    filter.limit = limit;
    filter.offset = offset;
    return cb_process_tsq_list(db, &filter, ret, e);
}

static const bulk_decision decisions[] = {
    { "retry", "retried", NULL, decide_retry },
    { "cancel", "canceled", "--reason is missing: whoever looks at the process later wants it",
      decide_cancel },
    { "complete", "completed", NULL, decide_complete },
};

static const char *const columns[] = { "process_id",    "process_type", "current", "error_code",
                                       "error_message", "tsq_at",       NULL };

static const bulk_kind processes_in_tsq = {
    .one = "process",
    .many = "processes",
    .leave_out = "ID names one process: leave the filters out",
    .say_which = "say which: an ID, a filter such as --type, or --all",
    .columns = columns,
    .id_column = "process_id",
    .decisions = decisions,
    .check = decide_check,
    .prepare = decide_prepare,
    .select = decide_select,
};

static int process_decide_run(cli *c, void *untyped)
{
    decide_args *args = untyped;
    cb_error e = { 0 };

    if (args->overrides && args->set.n)
        return cli_usage(c, "--set and --overrides exclude each other");
    if (args->overrides && !json_check_object(args->overrides, strlen(args->overrides), &e)) {
        cb_fail_while(&e, "reading --overrides");
        return cli_fail(c, &e);
    }
    return bulk_run(c, &processes_in_tsq, args);
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
    .run = process_decide_run,
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
    .run = process_decide_run,
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
    .run = process_decide_run,
};
