/* commandbus process start and respond: what comes to a process from outside. */
#include "commands.h"
#include "fail.h"
#include "json_text.h"
#include "jsonl.h"
#include "process_args.h"
#include "process_batch.h"

#include <commandbus/process_request.h>
#include <commandbus/uuid.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_STATE ((size_t)64 << 20)

typedef struct {
    const char *type, *state, *state_file, *id, *deadline, *batch;
    process_batch_args many;
} start_args;

#define AT(field) offsetof(start_args, field)

static const arg_spec start_specs[] = {
    { "TYPE", ARG_TEXT, AT(type), NULL, .help = "a process type that workers have registered",
      .positional = true, .required = true },
    { "state", ARG_TEXT, AT(state), "JSON|@FILE|-", .help = "its first state, an object [{}]" },
    { "state-file", ARG_FILE, AT(state_file), "FILE|-", .help = "the same from a file" },
    { "id", ARG_ID, AT(id), "ID",
      .help = "its id, or with --file the batch's: one that exists is refused [a new one]" },
    PROCESS_DEADLINE(AT(deadline), "when it must have ended: ISO 8601, or +4h [none]"),
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

static bool read_state(const start_args *a, const char **ret, char **owned, cb_error *e)
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

static bool start(cli *c, const start_args *a, const char *state, cb_uuid *id, cb_error *e)
{
    process_deadline deadline = { "" };
    cb_process_request_options options = { .process_id = id->text, .batch_id = a->batch };

    if (!cli_connect(c, true, e) || !process_deadline_of(c->db, a->deadline, &deadline, e))
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

/* What is wrong with the combination; NULL: nothing. */
static const char *misfit(const start_args *a)
{
    const process_batch_args *m = &a->many;

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

static int run_start(cli *c, void *untyped)
{
    const start_args *a = untyped;
    const char *state = NULL;
    char *owned = NULL;
    cb_uuid id = cb_uuid_new();
    cb_error e = { 0 };

    if (misfit(a))
        return cli_usage(c, "%s", misfit(a));
    if (!process_deadline_check(a->deadline, &e))
        return cli_usage_error(c, &e);
    if (a->many.file)
        return process_start_batch(c, &a->many, a->type, a->id, a->deadline);
    if (a->id)
        (void)cb_uuid_parse(a->id, &id); /* args.c has checked it */
    bool good = read_state(a, &state, &owned, &e) && start(c, a, state, &id, &e);
    free(owned);
    if (!good)
        return cli_fail(c, &e);
    if (c->json) {
        json_object *object = json_object_new_object();
        json_object_object_add(object, "process_id", json_object_new_string(id.text));
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
    .run = run_start,
};

typedef struct {
    const char *id, *name, *payload, *response_id;
} respond_args;

#undef AT
#define AT(field) offsetof(respond_args, field)

static const arg_spec respond_specs[] = {
    { "ID", ARG_ID, AT(id), NULL, "the process's id", .positional = true, .required = true },
    { "NAME", ARG_TEXT, AT(name), NULL, "of the response, as its type knows it", .positional = true,
      .required = true },
    { "payload", ARG_TEXT, AT(payload), "JSON|@FILE|-", .help = "what it says [{}]" },
    { "response-id", ARG_ID, AT(response_id), "ID",
      .help = "of this response: a repeated one changes nothing [none]" },
    { 0 },
};

static int run_respond(cli *c, void *untyped)
{
    const respond_args *a = untyped;
    const char *payload = NULL;
    char *owned = NULL;
    bool accepted = false;
    cb_error e = { 0 };

    bool good = read_text_argument(a->payload, &payload, &owned, &e) && cli_connect(c, true, &e) &&
                cb_process_respond(c->db, a->id, a->name, payload, a->response_id, &accepted, &e);
    free(owned);
    if (!good)
        return cli_fail(c, &e);
    if (c->json) {
        json_object *object = json_object_new_object();
        json_object_object_add(object, "process_id", json_object_new_string(a->id));
        json_object_object_add(object, "accepted", json_object_new_boolean(accepted));
        json_print_adopt(object);
    } else {
        puts(accepted ? "accepted" : "it was there already: nothing changed");
    }
    return EXIT_OK;
}

const cli_command process_respond_command = {
    .group = "process",
    .verb = "respond",
    .summary = "Brings a process the response it waits for",
    .details =
        "It is kept whatever the process is doing, and applied when it runs next; one that its type does\n"
        "not take, by name or by payload, is refused. With a --response-id the call can be repeated\n"
        "safely. Operators may bring any response, other logins those that they were allowed:\n"
        "commandbus responder allow.\n",
    .example = "  commandbus process respond 0198c1de-5b1c-7e52-9f5b-6d3c2f1a0b4e riskApproval "
               "--payload '{\"status\": \"APPROVED\"}'\n",
    .args = respond_specs,
    .args_size = sizeof(respond_args),
    .run = run_respond,
};
