/* Uses what the public headers use, json-c, without asking for it. */
#include <json-c/json.h>

const char *another(void);

const char *another(void)
{
    json_object *object = json_object_new_object();
    const char *word = json_object_is_type(object, json_type_object) ? "commandbus" : "?";

    json_object_put(object);
    return word;
}
