/* Handlers that do nothing, for benchmarks: what the processes of pace book. */
#include <commandbus/module.h>

static cb_outcome book(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)ctx;
    (void)command;
    *result = json_object_new_object();
    json_object_object_add(*result, "contractId", json_object_new_string("FX-20261116-000042"));
    json_object_object_add(*result, "reference", json_object_new_string("RISK-000042"));
    return CB_SUCCESS;
}

static const cb_handler handlers[] = {
    { "BookFx", book },
    { "BookRisk", book },
    { "ReleaseFx", book },
    { "ReleaseRisk", book },
};

CB_MODULE(booking, .handlers = handlers, .n_handlers = CB_COUNT(handlers));
