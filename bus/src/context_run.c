/* One run of a handler: payload in, settlement out. */
#include <commandbus/json.h>
#include <string.h>

#include "context.h"
#include "defaults.h"
#include "json.h"

#include <json-c/json_tokener.h>

static const size_t default_result_limit = (size_t)DEFAULT_PAYLOAD_MIB << 20;
/* What the data of one command may take when it is read: with ten or fifteen slots the smallest worker we
 * ship (256 MiB) survives it. Text of 1 MiB takes some megabytes, unless it is made of tiny values. */
static const size_t data_memory = (size_t)16 << 20;

static cb_outcome refuse_data(cb_context *ctx, const char *problem)
{
    return context_say(ctx, CB_PERMANENT, "INVALID_DATA", "%s", problem);
}

/* CB_SUCCESS with ctx->data, or what becomes of a command that the handler cannot be given. The text
 * is checked by our own rules first: json-c makes what it can of more than RFC 8259 allows. */
static cb_outcome parse_data(cb_context *ctx)
{
    const char *text = ctx->command->data;
    size_t length = strlen(text);
    cb_error e;

    if (!json_check_numbers(text, JSON_OBJECT, JSON_NUMBERS_HELD, "data", &e))
        return refuse_data(ctx, e.message);
    if (length >= INT32_MAX)
        return refuse_data(ctx, "data has more than 2 GiB");
    if (cb_json_memory(text) > data_memory)
        return refuse_data(ctx, "data has too many small values and would take more than 16 MiB of "
                                "memory: send several commands, or keep it elsewhere and name it");

    json_tokener *tokener = json_tokener_new_ex(JSON_MAX_DEPTH + 1); /* values inside too */
    if (tokener) {
        ctx->data = json_tokener_parse_ex(tokener, text, (int)length);
        json_tokener_free(tokener);
    }
    if (!ctx->data) /* Nothing is wrong with the text: no memory. */
        return context_say(ctx, CB_TRANSIENT, "INTERNAL_ERROR", "out of memory for the data");
    return CB_SUCCESS;
}

/* Only a success has a result and effects. */
static void drop_success(cb_context *ctx)
{
    json_object_put(ctx->result);
    ctx->result = NULL;
    effects_free(ctx->effects);
    ctx->effects = NULL;
    ctx->refused_effect = NULL;
}

/* A context can run again; nothing of the last run is left. */
static void forget_last_run(cb_context *ctx)
{
    drop_success(ctx);
    ctx->said = CB_SUCCESS;
}

static cb_outcome checked(cb_context *ctx, cb_outcome outcome)
{
    if (!cb_outcome_name(outcome))
        return context_say(ctx, CB_TRANSIENT, "INTERNAL_ERROR",
                           "the handler returned %d, which is not an outcome", (int)outcome);
    return outcome;
}

static cb_outcome call(cb_context *ctx, cb_handler_fn *handler)
{
    cb_outcome outcome = checked(ctx, handler(ctx, ctx->command, &ctx->result));

    json_object_put(ctx->data);
    ctx->data = NULL;
    if (outcome == CB_SUCCESS && ctx->refused_effect)
        return context_say(ctx, CB_PERMANENT, "EFFECT_FAILED", "an effect was refused: %s",
                           ctx->refused_effect);
    return outcome;
}

static void fill_error(cb_context *ctx, cb_settlement *out)
{
    bool said = ctx->said == out->outcome;

    out->error_code = said && *ctx->code ? ctx->code : "INTERNAL_ERROR";
    out->error_message = said && *ctx->message ? ctx->message : NULL;
    out->retry_seconds = said ? ctx->retry_seconds : 0;
}

static void fill(cb_context *ctx, cb_outcome outcome, const char *result, cb_settlement *out)
{
    out->domain = ctx->command->domain;
    out->command_id = ctx->command->command_id;
    out->lease_no = ctx->command->lease_no;
    out->outcome = outcome;
    out->result = result;
    out->error_code = out->error_message = NULL;
    out->retry_seconds = 0;
    if (outcome == CB_SUCCESS)
        return;
    drop_success(ctx);
    if (outcome != CB_INTERRUPTED)
        fill_error(ctx, out);
}

void cb_context_run(cb_context *ctx, cb_handler_fn *handler, size_t result_limit,
                    cb_settlement *out)
{
    const char *text = NULL;

    forget_last_run(ctx);
    cb_outcome outcome = parse_data(ctx);
    if (outcome == CB_SUCCESS)
        outcome = call(ctx, handler);
    if (outcome == CB_SUCCESS && ctx->result) {
        text = context_result_text(ctx, result_limit ? result_limit : default_result_limit);
        outcome = text ? CB_SUCCESS : CB_PERMANENT;
    }

    fill(ctx, outcome, text, out);
}

void cb_context_call(cb_context *ctx, cb_call_fn *call_fn, void *arg, cb_settlement *out)
{
    forget_last_run(ctx);
    cb_outcome outcome = checked(ctx, call_fn(ctx, arg));
    drop_success(ctx);
    fill(ctx, outcome, NULL, out);
}
