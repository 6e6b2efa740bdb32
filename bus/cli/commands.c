/* The table of commands. */
#include "cli.h"

#include <string.h>

/* clang-format off */
const cli_command *const cli_commands[] = {
    &migrate_command,
    &send_command,
    &command_list_command, &command_show_command,
    &tsq_list_command, &tsq_retry_command, &tsq_cancel_command, &tsq_complete_command,
    &batch_create_command, &batch_show_command, &batch_list_command,
    &process_start_command, &process_list_command, &process_show_command, &process_respond_command,
    &process_retry_command, &process_cancel_command, &process_complete_command,
    &responder_list_command, &responder_allow_command, &responder_forbid_command,
    &queue_list_command, &queue_create_command,
    &fleet_command, &top_command, &plan_command,
    &purge_command,
    &doctor_command,
    NULL,
};
/* clang-format on */

#define AT(field) offsetof(cli, field)

const arg_spec cli_globals[] = {
    { "json", ARG_FLAG, AT(json), NULL, .help = "print JSON; errors too, on stderr" },
    { "url", ARG_TEXT, AT(url), "URL",
      .help = "database [$COMMANDBUS_DATABASE_URL, else postgresql:///commandbus]" },
    { "quiet", ARG_FLAG, AT(quiet), NULL,
      .help = "no remarks and no progress, only results and errors" },
    { "help", ARG_FLAG, AT(help), NULL, .help = "this text" },
    { "version", ARG_FLAG, AT(version), NULL, .help = "the version" },
    { 0 },
};

static bool command_is(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

const cli_command *cli_find(const char *group, const char *verb)
{
    for (const cli_command *const *c = cli_commands; *c; c++) {
        if (command_is((*c)->group, group) && command_is((*c)->verb, verb))
            return *c;
    }
    return NULL;
}

bool cli_is_group(const char *word)
{
    for (const cli_command *const *c = cli_commands; *c; c++) {
        if ((*c)->group && strcmp((*c)->group, word) == 0)
            return true;
    }
    return false;
}
