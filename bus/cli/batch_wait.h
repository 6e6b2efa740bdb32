/* Waiting for the end of a batch. */
#ifndef CLI_BATCH_WAIT_H
#define CLI_BATCH_WAIT_H

#include "cli.h"

#include <commandbus/query.h>

typedef struct {
    const char *id;
    bool wait;
    int64_t timeout; /* ms, 0: none */
} batch_show_args;

/* The batch as it is now, in place of *rows. Fails when there is none. */
bool batch_look(cli *c, const char *id, cb_rows **rows, cb_error *e);

/* Looks again and again until the batch is closed. Fails when the time is over, on Ctrl-C and when
 * the database is lost; *rows is then what it saw last. */
bool batch_wait(cli *c, const batch_show_args *args, cb_rows **rows, cb_error *e);

#endif
