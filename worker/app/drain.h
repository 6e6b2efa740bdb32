/* Ending, in a time that is known. */
#ifndef APP_DRAIN_H
#define APP_DRAIN_H

#include <commandbus/worker.h>

#include "http.h"
#include "log.h"
#include "signals.h"

/* Both borrowed, either may be NULL. */
typedef struct {
    cb_worker *worker;
    http *http;
} drain_what;

/* Stops the worker and the routes within so many seconds; false: some of what ran is left behind. A second signal stops
 * them now. When even that does not end, because the database hangs without a word and so holds whoever
 * asks it, or a route does not return, the program ends here with ENDED_UNDRAINED a few seconds later. */
bool drain(const drain_what *what, double timeout_seconds, const signals *s, log_sink *log);

#endif
