/* What is said of a batch, of commands or of processes. */
#ifndef CLI_BATCH_VIEW_H
#define CLI_BATCH_VIEW_H

#include "cli.h"

#include <commandbus/uuid.h>
#include <stddef.h>
#include <stdint.h>

/* One was made: its id, and with --json how many members it has. */
void batch_made(const cli *c, const cb_uuid *id, size_t n);

/* Says the error; after a lost connection also how to find out whether the batch is there.
 * Returns the exit code. */
int batch_not_made(const cli *c, const cb_uuid *id, cb_error *e);

typedef struct {
    const char *id;
    bool wait;
    int64_t timeout; /* ms, 0: none */
} batch_show_args;

/* Prints the batch, on a connection that is there; with `wait` as it is when it has closed, or
 * as it was seen last when the time is over, on Ctrl-C and when the database is lost. Returns
 * the exit code. */
int batch_show(cli *c, const batch_show_args *args);

#endif
