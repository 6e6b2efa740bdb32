/* What a run of a process came to. A piece of test.h. */
#ifndef COMMANDBUS_RUN_RESULT_H
#define COMMANDBUS_RUN_RESULT_H

#include <commandbus/host.h>

/* For metrics, logs and tests. Strings are borrowed from the run, until the next one. */
typedef struct {
    cb_process_settlement settlement; /* to be settled; its item is borrowed from the run */
    const char *status;               /* the one it leaves with */
    const char *error_code;           /* NULL when there is none */
    const char *error_message;
    int steps;           /* that ran, compensations too */
    int replayed;        /* records that were passed */
    int sent;            /* commands */
    const char *sent_to; /* the domain that they all went to; NULL: several, or none was sent */
    bool lost;           /* a checkpoint failed: nothing is to be settled */
    const char *misuse;  /* what the code did that it must not, for the log; NULL: nothing */
} cb_run_result;

#endif
