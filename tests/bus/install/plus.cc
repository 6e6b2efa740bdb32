// A client, a handler set and a worker in C++: every function has C linkage.
#include <commandbus/client.h>
#include <commandbus/handler.h>
#include <commandbus/host.h>
#include <commandbus/process.h>
#include <commandbus/worker.h>

#include <cstring>

static cb_outcome quote(cb_context *ctx, const cb_command *, json_object **)
{
    return cb_business_rule(ctx, "NO_MARKET", "attempt %d", cb_context_attempt(ctx));
}

static const cb_handler handlers[] = { { "Quote", quote } };
CB_MODULE(rates, .handlers = handlers, .n_handlers = CB_COUNT(handlers));

int main()
{
    cb_command command = {};
    cb_settlement out = {};
    cb_error e = {};
    cb_context *ctx = nullptr;
    cb_money amount = {};
    OWNED(cb_db) db = nullptr;

    command.domain = "fx";
    command.data = "{}";
    command.attempt = 1;
    if (!cb_context_open(&command, nullptr, nullptr, &ctx, &e))
        return 1;
    cb_context_run(ctx, cb_module_manifest.handlers[0].run, 0, &out);
    bool declined = out.outcome == CB_BUSINESS_RULE && !strcmp(out.error_message, "attempt 1");
    cb_context_free(ctx);
    return declined && cb_money_parse("12.30", "EUR", &amount, &e) &&
                   !cb_db_open("host=127.0.0.1 port=1", &db, &e) && e.code == CB_LOST &&
                   !strcmp(cb_level_name(CB_LEVEL_WARN), "warn")
               ? 0
               : 1;
}
