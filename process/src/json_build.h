/* Building JSON objects with keys that are string literals; what has no value is left out. And
 * their text. */
#ifndef PROCESS_JSON_BUILD_H
#define PROCESS_JSON_BUILD_H

#include <json-c/json.h>
#include <stdbool.h>
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

/* Borrowed from the value; NULL for none. *whole turns false when there is no memory for the text,
 * for NULL would be taken for "nothing". */
static inline const char *json_plain(json_object *value, bool *whole)
{
    const char *text = value ? json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN) : NULL;

    if (value && !text)
        *whole = false;
    return text;
}

#endif
