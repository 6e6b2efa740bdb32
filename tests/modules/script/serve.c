/* What scripts call, for domains fx and risk: each command does what its data say. */
#include <commandbus/module.h>

#include "script.h"

static cb_outcome serve(cb_context *ctx, const cb_command *command, json_object **result)
{
    switch (script_serve(cb_context_data(ctx), command->attempt, cb_context_key(ctx), result)) {
    case 'S':
        return CB_SUCCESS;
    case 'T':
        return cb_transient(ctx, "TRIED", "told to fail");
    case 'B':
        return cb_business_rule(ctx, "DECLINED", "told to decline");
    default:
        return cb_permanent(ctx, "BROKEN", "told to break");
    }
}

static const cb_handler handlers[] = { { "Do", serve }, { "Undo", serve } };

CB_MODULE(serve, .handlers = handlers, .n_handlers = CB_COUNT(handlers));
