/* A handler and its test: json-c comes with the package, for handlers get and give its objects. */
#include <commandbus/handler.h>
#include <commandbus/host.h>
#include <string.h>

const char *handler(void);

static cb_outcome echo(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)command;
    *result = json_object_get(cb_context_data(ctx));
    return CB_SUCCESS;
}

const char *handler(void)
{
    const cb_command command = { .domain = "fx", .command_type = "Echo", .data = "{\"a\":1}" };
    OWNED(cb_context) ctx = NULL;
    cb_settlement out;
    cb_error e;

    if (!cb_context_open(&command, NULL, NULL, &ctx, &e))
        return "?";
    cb_context_run(ctx, echo, 0, &out);
    return out.outcome == CB_SUCCESS && strcmp(out.result, command.data) == 0 ? "echo" : "?";
}
