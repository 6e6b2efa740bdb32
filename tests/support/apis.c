/* The sets fx and risk as a worker would have them. */
#include "apis.h"

#include "expect.h"

#include <commandbus/set.h>
#include <stdio.h>

static cb_set *sets[2];

void apis_open(const char *url)
{
    static const char *const names[] = { "fx", "risk" };
    const cb_setting setting = { "url", url };
    const cb_module_config config = { NULL, &setting, 1 };
    cb_error e = { 0 };

    for (size_t i = 0; i < CB_COUNT(sets); i++)
        expect_ok(
            cb_set_load_with(getenv("COMMANDBUS_MODULES_DIR"), names[i], &config, &sets[i], &e), e);
}

void apis_close(void)
{
    for (size_t i = 0; i < CB_COUNT(sets); i++) {
        cb_set_free(sets[i]);
        sets[i] = NULL;
    }
}

static cb_handler_fn *api_handler(const char *type)
{
    for (size_t s = 0; s < CB_COUNT(sets); s++) {
        const cb_module *m = cb_set_module(sets[s]);
        for (size_t i = 0; i < m->n_handlers; i++) {
            if (strcmp(m->handlers[i].command_type, type) == 0)
                return m->handlers[i].run;
        }
    }
    return NULL;
}

cb_command api_command(const char *type, const char *data)
{
    return (cb_command){ .command_id = cb_uuid_new(),
                         .correlation_id = cb_uuid_new(),
                         .domain = strstr(type, "Fx") ? "fx" : "risk",
                         .command_type = type,
                         .data = data,
                         .lease_no = 1,
                         .attempt = 1,
                         .max_attempts = 3,
                         .timeout_seconds = 30 };
}

api_run api_do(const cb_command *command, const cb_host *host, void *arg)
{
    api_run run = { .outcome = "no context" };
    cb_context *ctx = NULL;
    cb_settlement out;
    cb_error e = { 0 };

    if (!cb_context_open(command, host, arg, &ctx, &e))
        return run;
    cb_context_run(ctx, api_handler(command->command_type), 0, &out);
    snprintf(run.outcome, sizeof run.outcome, "%s%s%s", cb_outcome_name(out.outcome),
             out.error_code ? " " : "", out.error_code ? out.error_code : "");
    snprintf(run.result, sizeof run.result, "%s", out.result ? out.result : "");
    snprintf(run.message, sizeof run.message, "%s", out.error_message ? out.error_message : "");
    run.retry_seconds = out.retry_seconds;
    cb_context_free(ctx);
    return run;
}

api_run api_do_once(const char *type, const char *data)
{
    cb_command command = api_command(type, data);

    return api_do(&command, NULL, NULL);
}
