/* The handlers of the trial set. What each takes and gives is said in its own file. */
#ifndef TRIAL_H
#define TRIAL_H

#include <commandbus/handler.h>

cb_handler_fn trial_hang, trial_crash, trial_bad_outcome, trial_bad_result;
cb_handler_fn trial_many_effects, trial_bad_effect;
cb_handler_fn trial_extend, trial_remaining, trial_started;

#endif
