/* What a run is told about its time.
 *
 * Remaining: gives back {"remaining_ms", "attempt", "max_attempts", "is_last"}.
 * Started: gives back {"started_ns": "…"}, CLOCK_MONOTONIC at entry, to measure how fast it came.
 * Extend {"ms": 5000, "times": 3, "sleep_ms": 1000}: asks for ms and sleeps, that often; gives back
 * {"granted": [true, …], "remaining_ms": [5000, …], "lost": false}, the time as it was after
 * asking. */
#include "sample_fields.h"
#include "trial.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

cb_outcome trial_started(cb_context *ctx, const cb_command *command, json_object **result)
{
    struct timespec now;
    char text[32];

    (void)ctx, (void)command;
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(text, sizeof text, "%" PRId64, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
    *result = json_object_new_object();
    json_object_object_add(*result, "started_ns", json_object_new_string(text));
    return CB_SUCCESS;
}

cb_outcome trial_remaining(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)command;
    json_object *all = json_object_new_object();

    json_object_object_add(all, "remaining_ms",
                           json_object_new_int64(cb_context_remaining_ms(ctx)));
    json_object_object_add(all, "attempt", json_object_new_int(cb_context_attempt(ctx)));
    json_object_object_add(all, "max_attempts", json_object_new_int(cb_context_max_attempts(ctx)));
    json_object_object_add(all, "is_last",
                           json_object_new_boolean(cb_context_is_last_attempt(ctx)));
    *result = all;
    return CB_SUCCESS;
}

cb_outcome trial_extend(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)command;
    fields f = fields_of(ctx);
    int64_t ms = field_integer(&f, "ms", 0, 86400000);
    int64_t times = field_integer_or(&f, "times", 1, 1000, 1);
    int64_t sleep_ms = field_integer_or(&f, "sleep_ms", 0, 86400000, 0);
    if (f.problem[0])
        return fields_refuse(&f, ctx);

    json_object *granted = json_object_new_array(), *remaining = json_object_new_array();
    for (int64_t i = 0; i < times; i++) {
        bool yes = cb_context_extend(ctx, ms);
        json_object_array_add(granted, json_object_new_boolean(yes));
        json_object_array_add(remaining, json_object_new_int64(cb_context_remaining_ms(ctx)));
        nanosleep(&(struct timespec){ sleep_ms / 1000, sleep_ms % 1000 * 1000000 }, NULL);
    }
    *result = json_object_new_object();
    json_object_object_add(*result, "granted", granted);
    json_object_object_add(*result, "remaining_ms", remaining);
    json_object_object_add(*result, "lost", json_object_new_boolean(cb_context_lost(ctx)));
    return CB_SUCCESS;
}
