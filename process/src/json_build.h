/* Building JSON objects with keys that are string literals; what has no value is left out. */
#ifndef PROCESS_JSON_BUILD_H
#define PROCESS_JSON_BUILD_H

#include <json-c/json.h>
#include <stdint.h>

/* Takes over the value. */
static inline void put(json_object *o, const char *key, json_object *value)
{
    json_object_object_add_ex(o, key, value,
                              JSON_C_OBJECT_ADD_KEY_IS_NEW | JSON_C_OBJECT_ADD_CONSTANT_KEY);
}

static inline void put_shared(json_object *o, const char *key, json_object *value)
{
    if (value)
        put(o, key, json_object_get(value));
}

static inline void put_text(json_object *o, const char *key, const char *value)
{
    if (value)
        put(o, key, json_object_new_string(value));
}

static inline void put_int(json_object *o, const char *key, int64_t value)
{
    put(o, key, json_object_new_int64(value));
}

#endif
