/* Fail {"outcome": "TRANSIENT", "code": "BANK_DOWN", "message": "…", "until_attempt": 2,
 *       "retry_after": 0.5}: fails as told.
 *
 * outcome is TRANSIENT, PERMANENT or BUSINESS_RULE. Attempts after until_attempt succeed with
 * {"attempt": 3}; without it none does. retry_after, in seconds, goes with TRANSIENT. */
#include "sample.h"
#include "sample_fields.h"

#include <limits.h>
#include <string.h>

typedef cb_outcome failing(cb_context *ctx, const char *code, const char *fmt, ...);

static const struct {
    const char *name;
    failing *fail;
} outcomes[] = {
    { "TRANSIENT", cb_transient },
    { "PERMANENT", cb_permanent },
    { "BUSINESS_RULE", cb_business_rule },
};

static failing *find_outcome(fields *f)
{
    const char *name = field_text(f, "outcome");

    for (size_t i = 0; i < CB_COUNT(outcomes); i++) {
        if (strcmp(name, outcomes[i].name) == 0)
            return outcomes[i].fail;
    }
    fields_object(f, "\"outcome\" must be TRANSIENT, PERMANENT or BUSINESS_RULE");
    return NULL;
}

cb_outcome sample_fail(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)command;
    fields f = fields_of(ctx);
    failing *fail = find_outcome(&f);
    const char *code = field_text_or(&f, "code", "SAMPLE_FAILURE");
    const char *message = field_text_or(&f, "message", "failed as told");
    int64_t until_attempt = field_integer_or(&f, "until_attempt", 0, INT_MAX, INT_MAX);
    double retry_after = field_seconds_or(&f, "retry_after", 0);
    if (retry_after > 0 && fail != cb_transient)
        fields_object(&f, "\"retry_after\" goes with TRANSIENT only");
    if (f.problem[0])
        return fields_refuse(&f, ctx);

    if (cb_context_attempt(ctx) > until_attempt) {
        *result = json_object_new_object();
        json_object_object_add(*result, "attempt", json_object_new_int(cb_context_attempt(ctx)));
        return CB_SUCCESS;
    }
    if (retry_after > 0)
        return cb_transient_after(ctx, retry_after, code, "%s", message);
    return fail(ctx, code, "%s", message);
}
