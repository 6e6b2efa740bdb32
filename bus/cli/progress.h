/* How far a long piece of work is, on a terminal; and Ctrl-C between two of its pieces. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include "cli.h"

#include <stddef.h>
#include <time.h>

typedef struct {
    const char *what;
    size_t total;            /* 0: nobody knows */
    bool quiet, shown, told; /* told: in plain lines */
    struct timespec start, last;
} progress;

/* From here on Ctrl-C only asks to stop; a second one ends the program. Nothing is ever drawn
 * unless stderr is a terminal, nor with --quiet. */
void progress_start(progress *p, const cli *c, const char *what, size_t total);

/* For work that others do, and that may take hours: where no bar is drawn, a plain line now and then,
 * unless --quiet. */
void progress_tell(progress *p);

/* Draws at most ten times a second. */
void progress_show(progress *p, size_t done);

/* Wipes the line. Ctrl-C is itself again. */
void progress_end(progress *p);

double progress_seconds(const progress *p);

/* True after Ctrl-C or SIGTERM since progress_start: finish what is running, then report. */
bool progress_is_interrupted(void);

#endif
