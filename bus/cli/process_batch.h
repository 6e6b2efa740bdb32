/* commandbus process start --file: a batch of processes, one for each line. */
#ifndef CLI_PROCESS_BATCH_H
#define CLI_PROCESS_BATCH_H

#include "cli.h"

#include <stdint.h>

typedef struct {
    const char *file; /* NULL: this is not about a batch */
    const char *name, *reply_to, *custom_data;
    bool wait;
    int64_t timeout; /* ms, 0: none */
} process_batch_args;

/* `id` is the batch's (NULL: a new one), `deadline` each process's. Returns the exit code. */
int process_start_batch(cli *c, const process_batch_args *args, const char *type, const char *id,
                        const char *deadline);

#endif
