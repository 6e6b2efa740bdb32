/* How a run ends: the words of a handler, kept until they are settled. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "context.h"
#include "utf8.h"

/* Nothing of what a handler says may make the database refuse its outcome: bounded, UTF-8. */
static cb_outcome say(cb_context *ctx, cb_outcome outcome, double retry_seconds, const char *code,
                      const char *fmt, va_list args) CB_PRINTF(5, 0);

static cb_outcome say(cb_context *ctx, cb_outcome outcome, double retry_seconds, const char *code,
                      const char *fmt, va_list args)
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

cb_outcome context_say(cb_context *ctx, cb_outcome outcome, const char *code, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    say(ctx, outcome, 0, code, fmt, args);
    va_end(args);
    return outcome;
}

cb_outcome cb_transient(cb_context *ctx, const char *code, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    say(ctx, CB_TRANSIENT, 0, code, fmt, args);
    va_end(args);
    return CB_TRANSIENT;
}

/* What a downstream's Retry-After says is not to be trusted with a command's life: a year at most, as
 * for the delay of a send. */
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
    say(ctx, CB_TRANSIENT, within_a_year(seconds), code, fmt, args);
    va_end(args);
    return CB_TRANSIENT;
}

cb_outcome cb_permanent(cb_context *ctx, const char *code, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    say(ctx, CB_PERMANENT, 0, code, fmt, args);
    va_end(args);
    return CB_PERMANENT;
}

cb_outcome cb_business_rule(cb_context *ctx, const char *code, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    say(ctx, CB_BUSINESS_RULE, 0, code, fmt, args);
    va_end(args);
    return CB_BUSINESS_RULE;
}

cb_outcome cb_interrupted(cb_context *ctx)
{
    return context_say(ctx, CB_INTERRUPTED, NULL, "%s", "");
}
