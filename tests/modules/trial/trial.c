/* The trial set: what a worker must survive, and what tests and benchmarks want to look at.
 *
 * With TRIAL_LOG set, opening and closing the set adds a line to the file it names. */
#include "trial.h"

#include <commandbus/module.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cb_handler handlers[] = {
    { "Hang", trial_hang },
    { "Crash", trial_crash },
    { "BadOutcome", trial_bad_outcome },
    { "BadResult", trial_bad_result },
    { "ManyEffects", trial_many_effects },
    { "BadEffect", trial_bad_effect },
    { "Extend", trial_extend },
    { "Remaining", trial_remaining },
    { "Started", trial_started },
};

static void note(const char *what)
{
    const char *path = getenv("TRIAL_LOG");
    FILE *log = path ? fopen(path, "ae") : NULL;

    if (log) {
        fprintf(log, "%s\n", what);
        fclose(log);
    }
}

/* Takes the setting "colour", and that one alone. */
static bool trial_configure(const cb_module_config *config, cb_error *e)
{
    for (size_t i = 0; i < config->n_settings; i++) {
        if (strcmp(config->settings[i].name, "colour") != 0)
            return cb_fail(e, CB_MISUSE, "there is no setting %s", config->settings[i].name);
        note(config->settings[i].value);
    }
    return true;
}

static bool trial_open(cb_error *e)
{
    (void)e;
    note("opened");
    return true;
}

static void trial_close(void)
{
    note("closed");
}

CB_MODULE(trial, .handlers = handlers, .n_handlers = CB_COUNT(handlers),
          .configure = trial_configure, .open = trial_open, .close = trial_close);
