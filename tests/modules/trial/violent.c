/* Hang {"ms", "until_attempt": 1}: looks at nothing, neither time nor lease, and comes back after
 * that long; at once in attempts after until_attempt, when there is one.
 * Crash: takes the whole worker with it. BadOutcome: returns something that is not an outcome. */
#include "sample_fields.h"
#include "trial.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <time.h>

cb_outcome trial_hang(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)command, (void)result;
    fields f = fields_of(ctx);
    int64_t ms = field_integer(&f, "ms", 0, 86400000);
    int64_t until_attempt = field_integer_or(&f, "until_attempt", 0, INT_MAX, INT_MAX);
    if (f.problem[0])
        return fields_refuse(&f, ctx);
    if (cb_context_attempt(ctx) > until_attempt)
        return CB_SUCCESS;

    struct timespec left = { ms / 1000, ms % 1000 * 1000000 };
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
    return CB_SUCCESS;
}

cb_outcome trial_crash(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)ctx, (void)command, (void)result;
    abort();
}

cb_outcome trial_bad_outcome(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)ctx, (void)command, (void)result;
    return (cb_outcome)99;
}
