/* --replay: would this code go on with the processes that are there? */
#ifndef APP_REPLAY_H
#define APP_REPLAY_H

#include "config.h"
#include "refuse.h"
#include "signals.h"

typedef struct {
    const char *process_id;   /* NULL: every process that has not ended, */
    const char *process_type; /* of this type; NULL: of all */
    bool json;
} replay_request;

/* Loads the handler sets, reads the histories, and compares them with the code: executes no step and
 * writes nothing. Prints a line for each process that would diverge, and a summary. ENDED_CLEAN when none
 * would; what cannot be asked (a type that is not here, a process that is not there) is a usage error. */
ended replay(const config *c, const replay_request *request, const signals *s);

#endif
