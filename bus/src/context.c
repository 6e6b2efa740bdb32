/* A handler's context: making one, and what a handler asks it. */
#include "context.h"

#include <stdlib.h>

#include "fail.h"

bool cb_context_open(const cb_command *command, const cb_host *host, void *arg, cb_context **ret,
                     cb_error *e)
{
    if (!command || !command->domain || !command->data)
        return cb_fail(e, CB_MISUSE, "a context needs a command with its domain and data");

    cb_context *ctx = calloc(1, sizeof *ctx);
    if (!ctx)
        return fail_memory(e);
    ctx->command = command;
    ctx->host = host;
    ctx->host_arg = arg;
    *ret = ctx;
    return true;
}

void cb_context_free(cb_context *ctx)
{
    if (!ctx)
        return;
    json_object_put(ctx->data);
    json_object_put(ctx->result);
    effects_free(ctx->effects);
    free(ctx);
}

json_object *cb_context_data(cb_context *ctx)
{
    return ctx->data;
}

int cb_context_attempt(const cb_context *ctx)
{
    return ctx->command->attempt;
}

int cb_context_max_attempts(const cb_context *ctx)
{
    return ctx->command->max_attempts;
}

bool cb_context_is_last_attempt(const cb_context *ctx)
{
    return ctx->command->attempt >= ctx->command->max_attempts;
}

int64_t cb_context_remaining_ms(const cb_context *ctx)
{
    if (!ctx->host || !ctx->host->remaining_ms)
        return INT64_MAX;
    int64_t left = ctx->host->remaining_ms(ctx->host_arg);
    return left > 0 ? left : 0;
}

bool cb_context_extend(cb_context *ctx, int64_t ms)
{
    return ms > 0 && ctx->host && ctx->host->extend && ctx->host->extend(ctx->host_arg, ms);
}

bool cb_context_lost(const cb_context *ctx)
{
    return ctx->host && ctx->host->is_lost && ctx->host->is_lost(ctx->host_arg);
}

bool cb_context_stopping(const cb_context *ctx)
{
    return ctx->host && ctx->host->is_stopping && ctx->host->is_stopping(ctx->host_arg);
}

bool cb_context_effect(cb_context *ctx, const char *sql, size_t n, const char *const values[])
{
    if (!ctx->effects)
        ctx->effects = calloc(1, sizeof *ctx->effects);
    const char *problem =
        ctx->effects ? effects_add(ctx->effects, sql, n, values) : "out of memory";
    if (problem && !ctx->refused_effect)
        ctx->refused_effect = problem;
    return !problem;
}

size_t cb_context_effects(const cb_context *ctx)
{
    return ctx->effects ? ctx->effects->count : 0;
}

const char *cb_context_key(const cb_context *ctx)
{
    return ctx->command->command_id.text;
}
