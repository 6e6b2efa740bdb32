/* commandbus process start: one process, or a batch of them from a file. */
#include "batch_view.h"
#include "cli.h"
#include "fail.h"
#include "figures.h"
#include "json_text.h"
#include "terminal.h"

#include <commandbus/batch.h>
#include <commandbus/process_request.h>
#include <commandbus/uuid.h>
#include <json-c/json.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_STATE ((size_t)64 << 20)

/* Of a batch. */
typedef struct {
    const char *file; /* NULL: this is not about a batch */
    const char *name, *reply_to, *custom_data;
    bool wait;
    int64_t timeout; /* ms, 0: none */
} start_batch_args;

typedef struct {
    const char *type, *state, *state_file, *id, *deadline, *batch;
    start_batch_args many;
} start_args;

#define AT(field) offsetof(start_args, field)

static const arg_spec start_specs[] = {
    { "TYPE", ARG_TEXT, AT(type), NULL, .help = "a process type that workers have registered",
      .positional = true, .required = true },
    { "state", ARG_TEXT, AT(state), "JSON|@FILE|-", .help = "its first state, an object [{}]" },
    { "state-file", ARG_FILE, AT(state_file), "FILE|-", .help = "the same from a file" },
    { "id", ARG_ID, AT(id), "ID",
      .help = "its id, or with --file the batch's: one that exists is refused [a new one]" },
    { "deadline", ARG_TEXT, AT(deadline), "TIME|+TIME",
      .help = "when it must have ended: ISO 8601, or +4h [none]" },
    { "batch", ARG_ID, AT(batch), "ID", .help = "adds to this open batch of processes" },
    { "file", ARG_FILE, AT(many.file), "FILE|-",
      .help = "a new batch: JSON lines, the first state of one process each" },
    { "name", ARG_TEXT, AT(many.name), "TEXT", .help = "with --file: a name for people" },
    { "reply-to", ARG_TEXT, AT(many.reply_to), "QUEUE",
      .help = "with --file: where the completion message goes [nowhere]" },
    { "custom-data", ARG_TEXT, AT(many.custom_data), "JSON",
      .help = "with --file: kept with the batch" },
    { "wait", ARG_FLAG, AT(many.wait), NULL, .help = "with --file: until all of them have ended" },
    { "timeout", ARG_DURATION, AT(many.timeout), "TIME", .help = "with --wait: no longer than this",
      .min = 1, .max = 31536000000LL },
    { 0 },
};

static bool start_read_state(const start_args *a, const char **ret, char **owned, cb_error *e)
{
    if (!a->state_file) {
        if (!read_text_argument(a->state, ret, owned, e))
            return false;
    } else {
        if (!read_text_file(a->state_file, LARGEST_STATE, owned, e))
            return false;
        *ret = *owned;
    }
    *ret = *ret ? *ret : "{}";
    return json_check_object(*ret, strlen(*ret), e) || cb_fail_while(e, "reading the state");
}

static bool start_one(cli *c, const start_args *a, const char *state, cb_uuid *id, cb_error *e)
{
    deadline_arg deadline = { "" };
    cb_process_request_options options = { .process_id = id->text, .batch_id = a->batch };

    if (!cli_connect(c, true, e) || !deadline_of(c->db, a->deadline, &deadline, e))
        return false;
    options.deadline = deadline.text[0] ? deadline.text : NULL;
    if (cb_process_request_start(c->db, a->type, state, &options, id, e))
        return true;
    if (e->code == CB_LOST)
        fail_hint(e,
                  "Whether it was started is unknown: commandbus process show %s, and if it is not "
                  "there, the same again with --id %s.",
                  id->text, id->text);
    return false;
}

/* A batch: one process for each line of a file. */

#define LARGEST_FILE ((size_t)1 << 30) /* it is read whole before anything is started */

typedef struct {
    char **states;
    size_t *lines; /* the line each came from */
    size_t n, room, bytes;
} state_list;

static void state_list_free(state_list *list)
{
    if (!list)
        return;
    for (size_t i = 0; i < list->n; i++)
        free(list->states[i]);
    free(list->states);
    free(list->lines);
    free(list);
}
DEFINE_OWNED(state_list, state_list_free)

static bool state_list_make_room(state_list *list, cb_error *e)
{
    if (list->n < list->room)
        return true;
    size_t room = list->room ? list->room * 2 : 1024;
    char **states = realloc(list->states, room * sizeof *states);
    if (states)
        list->states = states;
    size_t *lines = states ? realloc(list->lines, room * sizeof *lines) : NULL;
    if (!lines)
        return fail_memory(e);
    list->lines = lines;
    list->room = room;
    return true;
}

static bool state_list_check_bounds(const state_list *list, cb_error *e)
{
    if (list->n >= CB_BATCH_MOST_PROCESSES)
        return cb_fail(e, CB_INVALID_DATA, "a batch starts with at most %d processes",
                       CB_BATCH_MOST_PROCESSES);
    if (list->bytes > LARGEST_FILE)
        return cb_fail(e, CB_PAYLOAD_TOO_LARGE,
                       "the states before it have %zu bytes, the limit is "
                       "%zu",
                       list->bytes, LARGEST_FILE);
    return true;
}

/* A jsonl_take_fn. */
static bool state_list_add(void *arg, char *line, size_t length, size_t number, cb_error *e)
{
    state_list *list = arg;

    if (!state_list_make_room(list, e) || !state_list_check_bounds(list, e) ||
        !json_check_object(line, length, e))
        return false;
    list->lines[list->n] = number;
    list->states[list->n++] = line;
    list->bytes += length;
    return true;
}

static bool start_on_progress(size_t started, size_t total, void *arg)
{
    (void)total;
    progress_show(arg, started);
    return !progress_is_interrupted();
}

static bool start_all(cli *c, const cb_start_batch_options *options, const state_list *list,
                      cb_uuid *id, cb_error *e)
{
    cb_start_batch_options watched = *options;
    progress bar;

    progress_start(&bar, c, "starting", list->n);
    watched.progress = start_on_progress;
    watched.arg = &bar;
    bool good = cb_start_batch(c->db, &watched, (const char *const *)list->states, list->n, id, e);
    progress_end(&bar);
    return good;
}

/* `id` is the batch's (NULL: a new one), `deadline` each process's. Returns the exit code. */
static int start_batch(cli *c, const start_batch_args *args, const char *type, const char *id,
                       const char *deadline)
{
    deadline_arg moment = { "" };
    OWNED(state_list) list = calloc(1, sizeof *list);
    cb_uuid made = { "" };
    cb_error e = { 0 };

    if (!(list || fail_memory(&e)) || !jsonl_each(args->file, state_list_add, list, &e) ||
        !cli_connect(c, true, &e) || !deadline_of(c->db, deadline, &moment, &e))
        return cli_fail(c, &e);
    const cb_start_batch_options options = { .process_type = type,
                                             .name = args->name,
                                             .custom_data = args->custom_data,
                                             .reply_to = args->reply_to,
                                             .batch_id = id,
                                             .deadline = moment.text[0] ? moment.text : NULL,
                                             .lines = list->lines };
    if (!start_all(c, &options, list, &made, &e))
        return batch_not_made(c, &made, &e);
    if (!args->wait || !c->json)
        batch_made(c, &made, list->n);
    if (!args->wait)
        return EXIT_OK;
    return batch_show(
        c, &(batch_show_args){ .id = made.text, .wait = true, .timeout = args->timeout });
}

/* What is wrong with the combination; NULL: nothing. */
static const char *start_misfit(const start_args *a)
{
    const start_batch_args *m = &a->many;

    if (a->state && a->state_file)
        return "--state and --state-file exclude each other";
    if (m->file && (a->state || a->state_file))
        return "the states are in --file: leave --state and --state-file out";
    if (m->file && a->batch)
        return "--file makes a batch of its own: leave --batch out";
    if (!m->file && (m->name || m->reply_to || m->custom_data || m->wait))
        return "--name, --reply-to, --custom-data and --wait go with --file";
    return m->timeout && !m->wait ? "--timeout goes with --wait" : NULL;
}

static int process_start_run(cli *c, void *untyped)
{
    const start_args *a = untyped;
    const char *state = NULL;
    char *owned = NULL;
    cb_uuid id = cb_uuid_new();
    cb_error e = { 0 };

    if (start_misfit(a))
        return cli_usage(c, "%s", start_misfit(a));
    if (!deadline_check(a->deadline, &e))
        return cli_usage_error(c, &e);
    if (a->many.file)
        return start_batch(c, &a->many, a->type, a->id, a->deadline);
    if (a->id)
        (void)cb_uuid_parse(a->id, &id); /* args.c has checked it */
    bool good = start_read_state(a, &state, &owned, &e) && start_one(c, a, state, &id, &e);
    free(owned);
    if (!good)
        return cli_fail(c, &e);
    if (c->json) {
        json_object *object = json_object_new_object();
        json_put_text(object, "process_id", id.text);
        json_print_adopt(object);
    } else {
        puts(id.text);
    }
    return EXIT_OK;
}

const cli_command process_start_command = {
    .group = "process",
    .verb = "start",
    .summary = "Starts a process, or a batch of them; a worker that has the type runs it",
    .details =
        "Prints the id: the process's, or with --file the batch's. All of a file are started, or\n"
        "none. With --wait the batch is shown when it has ended, whatever became of its processes;\n"
        "with --timeout the exit code is 1 when it is still open then.\n",
    .example =
        "  commandbus process start PaymentStep --state-file payment.json --deadline +4h\n"
        "  commandbus process start PaymentWorkflow --state '{\"debitAccount\": \"ACC-1\", "
        "\"creditAccount\": \"ACC-2\", \"debitAmount\": \"10.00\", \"debitCurrency\": \"EUR\", "
        "\"creditCurrency\": \"EUR\", \"valueDate\": \"2099-01-05\"}'\n"
        "  commandbus process start PaymentStep --file salaries.jsonl --name 'salaries' --wait\n",
    .args = start_specs,
    .args_size = sizeof(start_args),
    .run = process_start_run,
};
