/* commandbus queue: domains and their queues. */
#include "cli.h"
#include "json_text.h"
#include "output.h"

#include <commandbus/domain.h>
#include <json-c/json.h>
#include <stdio.h>

static int queue_list_run(cli *c, void *args)
{
    (void)args;
    return output_all(c, cb_queue_list, "no queues yet: commandbus queue create DOMAIN");
}

const cli_command queue_list_command = {
    .group = "queue",
    .verb = "list",
    .summary = "Every queue with its depth, visible messages, oldest age and archive",
    .example = "  commandbus queue list\n",
    .run = queue_list_run,
};

typedef struct {
    const char *domain, *reply_queue;
} create_args;

#define AT(field) offsetof(create_args, field)

static const arg_spec create_specs[] = {
    { "DOMAIN", ARG_TEXT, AT(domain), NULL, .help = "a-z first, then a-z, 0-9 and _",
      .positional = true, .required = true },
    { "reply-queue", ARG_TEXT, AT(reply_queue), "NAME", .help = "one more queue for replies" },
    { 0 },
};

static int queue_create_run(cli *c, void *untyped)
{
    const create_args *args = untyped;
    cb_error e = { 0 };

    if (!cli_connect(c, true, &e) ||
        !cb_domain_register(c->db, args->domain, args->reply_queue, &e))
        return cli_fail(c, &e);

    if (c->json) {
        json_object *object = json_object_new_object();
        json_put_text(object, "domain", args->domain);
        json_put_text(object, "reply_queue", args->reply_queue);
        json_print_adopt(object);
    } else {
        printf("domain %s is registered: %s__commands, %s__replies%s%s\n", args->domain,
               args->domain, args->domain, args->reply_queue ? ", " : "",
               args->reply_queue ? args->reply_queue : "");
    }
    return EXIT_OK;
}

const cli_command queue_create_command = {
    .group = "queue",
    .verb = "create",
    .summary = "Registers a domain: makes its queues for commands and replies",
    .details = "Nothing can be sent to a domain before. Safe to repeat.\n",
    .example = "  commandbus queue create payments\n",
    .args = create_specs,
    .args_size = sizeof(create_args),
    .run = queue_create_run,
};
