/* Echo: gives back its data. Noop: does nothing, as fast as can be. */
#include "sample.h"

cb_outcome sample_echo(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)command;
    /* The data is borrowed and the result will belong to the caller: that takes a reference. */
    *result = json_object_get(cb_context_data(ctx));
    return CB_SUCCESS;
}

cb_outcome sample_noop(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)ctx, (void)command, (void)result;
    return CB_SUCCESS;
}
