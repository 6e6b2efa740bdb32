/* Ending, in a time that is known. */
#ifndef APP_DRAIN_H
#define APP_DRAIN_H

#include <commandbus/worker.h>

#include "log.h"
#include "signals.h"

/* Stops the worker within so many seconds; false: some of what ran is left behind. A second signal stops
 * it now. When even that does not end because the database hangs without a word, and so holds whoever
 * asks it, the program ends here with ENDED_UNDRAINED a few seconds later. */
bool drain(cb_worker *w, double timeout_seconds, const signals *s, log_sink *log);

#endif
