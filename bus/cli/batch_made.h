/* What is said of a batch that was just made, of commands or of processes. */
#ifndef CLI_BATCH_MADE_H
#define CLI_BATCH_MADE_H

#include "cli.h"

#include <commandbus/uuid.h>
#include <stddef.h>

/* Its id, and with --json how many members it has. */
void batch_made(const cli *c, const cb_uuid *id, size_t n);

/* Says the error; after a lost connection also how to find out whether the batch is there. Returns the exit
 * code. */
int batch_not_made(const cli *c, const cb_uuid *id, cb_error *e);

#endif
