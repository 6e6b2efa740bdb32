/* A handler's context: what the handler asks it and says to it, and one run of the handler, from
 * the payload to the settlement. */
#include <commandbus/host.h>
#include <commandbus/json.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "defaults.h"
#include "effects.h"
#include "fail.h"
#include "json_check.h"
#include "utf8.h"

#include <json-c/json_object_iterator.h>
#include <json-c/json_tokener.h>

enum {
    CONTEXT_CODE_BYTES = 200,
    CONTEXT_MESSAGE_BYTES = 1000,
};

/* One allocation, and one more for effects if there are any. */
struct cb_context {
    const cb_command *command;  /* borrowed */
    const cb_host *host;        /* borrowed, may be NULL */
    void *host_arg;             /* borrowed */
    json_object *data;          /* while the handler runs */
    json_object *result;        /* of a success; holds the text that the settlement borrows */
    effects *effects;           /* NULL until the first one */
    const char *refused_effect; /* static: why the first one was that was; NULL for none */

    /* What the handler said last, with which outcome: it counts only if that one is returned. */
    cb_outcome said;
    double retry_seconds;
    char code[CONTEXT_CODE_BYTES + 1]; /* empty: none */
    char message[CONTEXT_MESSAGE_BYTES + 1];
};

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
    const char *problem = effects_add(&ctx->effects, sql, n, values);

    if (problem && !ctx->refused_effect)
        ctx->refused_effect = problem;
    return !problem;
}

size_t cb_context_effects(const cb_context *ctx)
{
    return effects_count(ctx->effects);
}

effects *context_effects(const cb_context *ctx)
{
    return ctx->effects;
}

const char *cb_context_key(const cb_context *ctx)
{
    return ctx->command->command_id.text;
}

/* ---- how a run ends: the words of a handler, kept until they are settled ---- */

/* Nothing of what a handler says may make the database refuse its outcome: bounded, UTF-8. */
static cb_outcome context_vsay(cb_context *ctx, cb_outcome outcome, double retry_seconds,
                               const char *code, const char *fmt, va_list args) CB_PRINTF(5, 0);

static cb_outcome context_vsay(cb_context *ctx, cb_outcome outcome, double retry_seconds,
                               const char *code, const char *fmt, va_list args)
{
    char message[sizeof ctx->message] = "";

    if (fmt)
        vsnprintf(message, sizeof message, fmt, args); /* The arguments may point into *ctx. */
    utf8_trim(message);
    utf8_copy(ctx->message, sizeof ctx->message, message);
    utf8_copy(ctx->code, sizeof ctx->code, code ? code : "");
    ctx->said = outcome;
    ctx->retry_seconds = retry_seconds;
    return outcome;
}

static cb_outcome context_say(cb_context *ctx, cb_outcome outcome, const char *code,
                              const char *fmt, ...) CB_PRINTF(4, 5);

static cb_outcome context_say(cb_context *ctx, cb_outcome outcome, const char *code,
                              const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    context_vsay(ctx, outcome, 0, code, fmt, args);
    va_end(args);
    return outcome;
}

cb_outcome cb_transient(cb_context *ctx, const char *code, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    context_vsay(ctx, CB_TRANSIENT, 0, code, fmt, args);
    va_end(args);
    return CB_TRANSIENT;
}

/* What a downstream's Retry-After says is not to be trusted with a command's life: a year at
 * most, as for the delay of a send. */
static double within_a_year(double seconds)
{
    const double year = 31536000;

    if (isnan(seconds) || seconds < 0)
        return 0;
    return seconds > year ? year : seconds;
}

cb_outcome cb_transient_after(cb_context *ctx, double seconds, const char *code, const char *fmt,
                              ...)
{
    va_list args;

    va_start(args, fmt);
    context_vsay(ctx, CB_TRANSIENT, within_a_year(seconds), code, fmt, args);
    va_end(args);
    return CB_TRANSIENT;
}

cb_outcome cb_permanent(cb_context *ctx, const char *code, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    context_vsay(ctx, CB_PERMANENT, 0, code, fmt, args);
    va_end(args);
    return CB_PERMANENT;
}

cb_outcome cb_business_rule(cb_context *ctx, const char *code, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    context_vsay(ctx, CB_BUSINESS_RULE, 0, code, fmt, args);
    va_end(args);
    return CB_BUSINESS_RULE;
}

cb_outcome cb_interrupted(cb_context *ctx)
{
    return context_say(ctx, CB_INTERRUPTED, NULL, "%s", "");
}

/* ---- is what a handler returned a result that the bus can carry? Looked at before it is turned
 * into text: json-c does that by recursion, and slots have small stacks ---- */

typedef struct {
    size_t least; /* bytes that the text has at least */
    size_t limit;
} result_measure;

static const char *problem_of(json_object *value, int depth, result_measure *m);

static const char *problem_of_array(json_object *array, int depth, result_measure *m)
{
    size_t n = json_object_array_length(array);
    const char *problem = NULL;

    for (size_t i = 0; i < n && !problem; i++)
        problem = problem_of(json_object_array_get_idx(array, i), depth, m);
    return problem;
}

static const char *problem_of_object(json_object *object, int depth, result_measure *m)
{
    struct json_object_iterator at = json_object_iter_begin(object);
    struct json_object_iterator end = json_object_iter_end(object);
    const char *problem = NULL;

    for (; !json_object_iter_equal(&at, &end) && !problem; json_object_iter_next(&at)) {
        m->least += strlen(json_object_iter_peek_name(&at));
        problem = problem_of(json_object_iter_peek_value(&at), depth, m);
    }
    return problem;
}

/* Every value takes a byte of the text: a value that contains another one many times over, or
 * itself, ends at the limit too. */
static const char *problem_of(json_object *value, int depth, result_measure *m)
{
    json_type type = json_object_get_type(value);

    m->least += type == json_type_string ? (size_t)json_object_get_string_len(value) : 1;
    if (m->least > m->limit)
        return "it is too large";
    if (type != json_type_array && type != json_type_object)
        return NULL;
    if (depth == JSON_MAX_DEPTH)
        return "nested deeper than 32 levels";
    return type == json_type_array ? problem_of_array(value, depth + 1, m)
                                   : problem_of_object(value, depth + 1, m);
}

static const char *refuse_result(cb_context *ctx, const char *problem, size_t limit)
{
    context_say(ctx, CB_PERMANENT, "RESULT_INVALID",
                "the handler's result is refused: %s (limit %zu bytes)", problem, limit);
    return NULL;
}

/* The JSON text of ctx->result, borrowed from it; NULL when it cannot be one: ctx then says a
 * permanent RESULT_INVALID. */
static const char *result_text(cb_context *ctx, size_t limit)
{
    result_measure m = { .limit = limit };
    size_t length = 0;
    cb_error e;

    const char *problem = problem_of(ctx->result, 0, &m);
    if (problem)
        return refuse_result(ctx, problem, limit);

    const char *text = json_object_to_json_string_length(
        ctx->result, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &length);
    if (!text)
        return refuse_result(ctx, "out of memory for its text", limit);
    if (length > limit)
        return refuse_result(ctx, "it is too large", limit);
    if (strlen(text) != length)
        return refuse_result(ctx, "its text contains a NUL", limit);
    if (!json_check_numbers(text, JSON_ANY, JSON_NUMBERS_FINITE, "it", &e))
        return refuse_result(ctx, e.message, limit);
    return text;
}

/* ---- one run: payload in, settlement out ---- */

static const size_t default_result_limit = (size_t)DEFAULT_PAYLOAD_MIB << 20;
/* What the data of one command may take when it is read: with ten or fifteen slots the smallest
 * worker we ship (256 MiB) survives it. Text of 1 MiB takes some megabytes, unless it is made of
 * tiny values. */
static const size_t data_memory = (size_t)16 << 20;

static cb_outcome refuse_data(cb_context *ctx, const char *problem)
{
    return context_say(ctx, CB_PERMANENT, "INVALID_DATA", "%s", problem);
}

/* CB_SUCCESS with ctx->data, or what becomes of a command that the handler cannot be given. The
 * text is checked by our own rules first: json-c makes what it can of more than RFC 8259 allows. */
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

static cb_outcome check_outcome(cb_context *ctx, cb_outcome outcome)
{
    if (!cb_outcome_name(outcome))
        return context_say(ctx, CB_TRANSIENT, "INTERNAL_ERROR",
                           "the handler returned %d, which is not an outcome", (int)outcome);
    return outcome;
}

static cb_outcome call_handler(cb_context *ctx, cb_handler_fn *handler)
{
    cb_outcome outcome = check_outcome(ctx, handler(ctx, ctx->command, &ctx->result));

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

static void fill_settlement(cb_context *ctx, cb_outcome outcome, const char *result,
                            cb_settlement *out)
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
        outcome = call_handler(ctx, handler);
    if (outcome == CB_SUCCESS && ctx->result) {
        text = result_text(ctx, result_limit ? result_limit : default_result_limit);
        outcome = text ? CB_SUCCESS : CB_PERMANENT;
    }

    fill_settlement(ctx, outcome, text, out);
}

void cb_context_call(cb_context *ctx, cb_call_fn *call_fn, void *arg, cb_settlement *out)
{
    forget_last_run(ctx);
    cb_outcome outcome = check_outcome(ctx, call_fn(ctx, arg));
    drop_success(ctx);
    fill_settlement(ctx, outcome, NULL, out);
}
