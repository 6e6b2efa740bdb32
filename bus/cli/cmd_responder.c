/* commandbus responder: who may bring responses to processes. */
#include "cli.h"
#include "json_text.h"
#include "output.h"

#include <commandbus/responder.h>
#include <json-c/json.h>
#include <stdio.h>

static int responder_list_run(cli *c, void *args)
{
    (void)args;
    return output_all(c, cb_responder_list,
                      "operators and workers only: commandbus responder allow ROLE TYPE RESPONSE");
}

const cli_command responder_list_command = {
    .group = "responder",
    .verb = "list",
    .summary = "Who, beside operators and workers, may bring which response",
    .example = "  commandbus responder list\n",
    .run = responder_list_run,
};

typedef struct {
    const char *role, *types, *responses;
} right_args;

#define AT(field) offsetof(right_args, field)

static const arg_spec right_specs[] = {
    { "ROLE", ARG_TEXT, AT(role), NULL, .help = "a role of the database, such as a login",
      .positional = true, .required = true },
    { "TYPES", ARG_TEXT, AT(types), NULL, .help = "a process type, or several: A,B",
      .positional = true, .required = true },
    { "RESPONSES", ARG_TEXT, AT(responses), NULL, .help = "a response, several: L1,L2, or all: '*'",
      .positional = true, .required = true },
    { 0 },
};

typedef bool responder_change_fn(cb_db *db, const char *role, const char *types,
                                 const char *responses, long *changed, cb_error *e);

static int responder_change(cli *c, const right_args *a, responder_change_fn *call,
                            const char *done)
{
    long changed = 0;
    cb_error e = { 0 };

    if (!cli_connect(c, true, &e) || !call(c->db, a->role, a->types, a->responses, &changed, &e))
        return cli_fail(c, &e);
    if (c->json) {
        json_object *object = json_object_new_object();
        json_put_text(object, "role", a->role);
        json_put_int(object, "changed", changed);
        json_print_adopt(object);
    } else if (changed > 0) {
        printf("%s: %ld %s\n", a->role, changed, done);
    } else {
        puts("nothing changed");
    }
    return EXIT_OK;
}

static int responder_allow_run(cli *c, void *args)
{
    return responder_change(c, args, cb_responder_allow, "allowed");
}

static int responder_forbid_run(cli *c, void *args)
{
    return responder_change(c, args, cb_responder_forbid, "taken back");
}

const cli_command responder_allow_command = {
    .group = "responder",
    .verb = "allow",
    .summary = "Lets a login bring responses to processes of a type",
    .details =
        "Operators and workers may bring any response; every other login only those that it, or a\n"
        "role that it is a member of, was allowed. Needs the login that migrates. Safe to repeat.\n",
    .example = "  commandbus responder allow payments_network PaymentStep,PaymentManager "
               "L1,L2,L3,L4\n"
               "  commandbus responder allow risk_desk PaymentStep riskApproval\n",
    .args = right_specs,
    .args_size = sizeof(right_args),
    .run = responder_allow_run,
};

const cli_command responder_forbid_command = {
    .group = "responder",
    .verb = "forbid",
    .summary = "Takes back what `responder allow` gave",
    .details =
        "Name what was allowed: '*' takes back '*', and nothing that was allowed by its name.\n",
    .example = "  commandbus responder forbid risk_desk PaymentStep riskApproval\n",
    .args = right_specs,
    .args_size = sizeof(right_args),
    .run = responder_forbid_run,
};
