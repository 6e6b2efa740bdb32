/* --help and completion, both from the tables. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include "cli.h"

/* What the manual page says too. */
extern const char help_about[], help_passwords[], help_durations[];
extern const arg_exit help_exits[];

/* Every command, or those of a group. */
void help_overview(const char *group);

/* One command in full. */
void help_command(const cli_command *command);

/* What may stand in place of the last of these words of a command line (without the program's
 * name), one a line. Nothing where a file or a free text is expected. */
void complete_words(int n, char **words);

#endif
