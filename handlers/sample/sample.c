/* The sample set: handlers that do what their data tells them, for tests and for learning.
 *
 * Start reading here, then echo.c (the shortest), record.c (an effect in the database) and hold.c
 * (a call to somebody else). */
#include "sample.h"

#include <commandbus/module.h>

static const cb_handler handlers[] = {
    { "Echo", sample_echo }, { "Noop", sample_noop }, { "Sleep", sample_sleep },
    { "Fail", sample_fail }, { "Hold", sample_hold }, { "Record", sample_record },
};

CB_MODULE(sample, .handlers = handlers, .n_handlers = CB_COUNT(handlers));
