/* What a step or a handler of these sets does: leaves a line where tests can count it, takes its
 * time or waits until it may go on, fails or kills its worker as it was told. */
#ifndef FLOWS_DEED_H
#define FLOWS_DEED_H

#include <commandbus/handler.h>
#include <stdint.h>

/* What is NULL or 0 is not done. */
typedef struct {
    const char *name;       /* of the step or the command type */
    const char *process_id; /* whose deed it is */
    const char *log;        /* a file: gets "process_id name attempt key", one line for each run */
    const char *marks;      /* a folder: remembers who has died, so that it happens once */
    const char *die_at;     /* "in:<name>" before the line is written, "effect:<name>" after it */
    const char *fail; /* "TRANSIENT", "PERMANENT" or "BUSINESS"; ":2" behind it: at most twice */
    int64_t sleep_ms; /* between the line and the end */
    const char *gate; /* a file: behind the line it waits until there is one */
} deed;

cb_outcome deed_do(cb_context *ctx, const deed *d);

/* Kills the program with SIGKILL if die_at is "<when>:<name>", or pauses it with SIGSTOP if it is
 * "stop:<when>:<name>": once for a process where `marks` is given, else each time. */
void deed_die(const deed *d, const char *when);

#endif
