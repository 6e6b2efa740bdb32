/* Hello {"name": "Ada"}: gives back {"greeting": "Hello, Ada"}. */
#include "greetings.h"

#include <stdio.h>

cb_outcome greetings_hello(cb_context *ctx, const cb_command *command, json_object **result)
{
    json_object *name = NULL;
    char greeting[200];

    (void)command;
    if (!json_object_object_get_ex(cb_context_data(ctx), "name", &name) ||
        !json_object_is_type(name, json_type_string))
        return cb_permanent(ctx, "INVALID_DATA", "\"name\" must be a text");
    snprintf(greeting, sizeof greeting, "Hello, %s", json_object_get_string(name));
    *result = json_object_new_object();
    json_object_object_add(*result, "greeting", json_object_new_string(greeting));
    return CB_SUCCESS;
}
