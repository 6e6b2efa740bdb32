/* Showing a batch, and waiting for its end. */
#ifndef CLI_BATCH_WAIT_H
#define CLI_BATCH_WAIT_H

#include "cli.h"

#include <commandbus/query.h>

typedef struct {
    const char *id;
    bool wait;
    int64_t timeout; /* ms, 0: none */
} batch_show_args;

/* Prints the batch, on a connection that is there; with `wait` as it is when it has closed, or as it
 * was seen last when the time is over, on Ctrl-C and when the database is lost. Returns the exit code. */
int batch_show(cli *c, const batch_show_args *args);

#endif
