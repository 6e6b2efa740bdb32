/* The books set: what the flows call, for domains fx and risk. BookFx, ReleaseFx, BookRisk and
 * ReleaseRisk do what their data say ({"processId", "log", "marks", "dieAt", "fail", "sleepMs",
 * "gate"}, see ../flows/deed.h) and give back {"reference": …}, the first eight digits of the
 * idempotency key. */
#include <commandbus/module.h>
#include <stdio.h>

#include "deed.h"

static const char *text_of(json_object *data, const char *key)
{
    json_object *value = NULL;

    return json_object_object_get_ex(data, key, &value) ? json_object_get_string(value) : NULL;
}

static cb_outcome book(cb_context *ctx, const cb_command *command, json_object **result)
{
    json_object *data = cb_context_data(ctx), *sleep_ms = NULL;
    char reference[9];

    json_object_object_get_ex(data, "sleepMs", &sleep_ms);
    deed d = { .name = command->command_type,
               .process_id = text_of(data, "processId"),
               .log = text_of(data, "log"),
               .marks = text_of(data, "marks"),
               .die_at = text_of(data, "dieAt"),
               .fail = text_of(data, "fail"),
               .sleep_ms = json_object_get_int64(sleep_ms),
               .gate = text_of(data, "gate") };
    cb_outcome outcome = deed_do(ctx, &d);
    if (outcome != CB_SUCCESS)
        return outcome;
    snprintf(reference, sizeof reference, "%.8s", cb_context_key(ctx));
    *result = json_object_new_object();
    json_object_object_add(*result, "reference", json_object_new_string(reference));
    return CB_SUCCESS;
}

static const cb_handler handlers[] = {
    { "BookFx", book }, { "ReleaseFx", book }, { "BookRisk", book }, { "ReleaseRisk", book }
};

CB_MODULE(books, .handlers = handlers, .n_handlers = CB_COUNT(handlers));
