/* One release: a checked id, one POST. */
#include "http_release.h"

#include <stdio.h>
#include <string.h>

#include "input.h"

enum {
    LONGEST_PATH = 128
};

/* NULL: there is no such text. */
static const char *text_of(cb_context *ctx, const char *name)
{
    json_object *value = NULL;

    json_object_object_get_ex(cb_context_data(ctx), name, &value);
    return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
}

static bool was_declined(cb_context *ctx)
{
    const char *status = text_of(ctx, "status");

    return status && strcmp(status, "DECLINED") == 0;
}

/* Answers that have nothing to give back: it is done, or there never was anything. */
static bool is_empty_yes(cb_context *ctx, long status)
{
    return status == 204 || ((status == 404 || status == 410) && was_declined(ctx));
}

cb_outcome http_release(http_client *c, cb_context *ctx, const char *bookings, const char *name,
                        json_object **result)
{
    const char *id = text_of(ctx, name);
    char path[LONGEST_PATH];
    long status = 0;

    if (!id)
        return cb_permanent(ctx, "INVALID_DATA", "\"%s\" must be a text", name);
    cb_outcome outcome = input_reference(ctx, name, id);
    if (outcome != CB_SUCCESS)
        return outcome;
    snprintf(path, sizeof path, "%s/%s/release", bookings, id);
    outcome = http_call(c, ctx, path, NULL, result, &status);
    if (!is_empty_yes(ctx, status))
        return outcome;
    *result = json_object_new_object();
    return CB_SUCCESS;
}
