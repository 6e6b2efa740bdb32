/* Sending the commands of a file, or copies of one. Both return the exit code. */
#ifndef CLI_SEND_MANY_H
#define CLI_SEND_MANY_H

#include "cli.h"

#include <commandbus/send.h>

/* Checks the whole file first. What a line lacks comes from `defaults`; the first `skip` commands
 * are left out. `print` prints every id. */
int send_file(cli *c, const cb_send *defaults, const char *path, size_t skip, bool print);

/* `total` copies of a command, each with an id of its own. */
int send_copies(cli *c, const cb_send *command, size_t total, bool print);

#endif
