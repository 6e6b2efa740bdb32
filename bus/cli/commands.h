/* The table of commands: the one place that knows them all. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli.h"

/* NULL ends it. Commands of a group stand together. */
extern const cli_command *const cli_commands[];

/* The options every command takes; they fill a cli. */
extern const arg_spec cli_globals[];

/* The command, or NULL. `group` is NULL for a verb that stands alone. */
const cli_command *cli_find(const char *group, const char *verb);
bool cli_is_group(const char *word);

/* Each noun's file defines its own. */
extern const cli_command migrate_command, send_command, command_list_command, command_show_command,
    tsq_list_command, tsq_retry_command, tsq_cancel_command, tsq_complete_command,
    batch_create_command, batch_show_command, batch_list_command, process_start_command,
    process_list_command, process_show_command, process_respond_command, process_retry_command,
    process_cancel_command, process_complete_command, responder_list_command,
    responder_allow_command, responder_forbid_command, queue_list_command, queue_create_command,
    fleet_command, top_command, plan_command, purge_command, doctor_command;

#endif
