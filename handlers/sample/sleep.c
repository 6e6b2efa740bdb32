/* Sleep {"ms": 250, "interruptible": false}: takes that long, as if somebody slow had been called.
 *
 * Gives back {"slept_ms": 250}. An interruptible one gives the command back when the worker wants
 * to end; one that has called somebody must not. */
#include "rest.h"
#include "sample.h"
#include "sample_fields.h"

static const int64_t day_ms = 86400000;

cb_outcome sample_sleep(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)command;
    fields f = fields_of(ctx);
    int64_t ms = field_integer(&f, "ms", 0, day_ms);
    bool interruptible = field_flag_or(&f, "interruptible", false);
    if (f.problem[0])
        return fields_refuse(&f, ctx);

    rest_end end = rest(ctx, ms, interruptible);
    if (end != REST_DONE)
        return rest_outcome(ctx, end);

    *result = json_object_new_object();
    json_object_object_add(*result, "slept_ms", json_object_new_int64(ms));
    return CB_SUCCESS;
}
