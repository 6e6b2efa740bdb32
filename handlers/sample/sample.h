/* The handlers of the sample set. What each takes and gives is said in its own file. */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <commandbus/handler.h>

cb_handler_fn sample_echo, sample_noop, sample_sleep, sample_fail, sample_hold, sample_record;

#endif
