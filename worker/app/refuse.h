/* How the program ends, and what it says when it does not even begin. */
#ifndef APP_REFUSE_H
#define APP_REFUSE_H

#include <commandbus/error.h>

typedef enum {
    ENDED_CLEAN = 0,
    ENDED_UNDRAINED = 1,     /* some outcome was not settled: it is redelivered */
    ENDED_DIVERGED = 1,      /* --replay: some process would not go on */
    ENDED_CONFIGURATION = 2, /* also what this machine cannot give */
    ENDED_NO_DATABASE = 3,   /* or not one to work on */
    ENDED_STUCK = 4,         /* a handler did not return: its thread cannot be ended otherwise */
} ended;

/* Says on stderr, in one line and one for the hint, why there is no start. Returns the exit code that
 * goes with the error. */
ended refuse(const cb_error *e);

#endif
