/* Fields that own memory: text and JSON. A copy shares nothing with what it was copied from, so that
 * changing one in place is seen by a comparison with the other. */
#include <json-c/linkhash.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fields_types.h"

/* Deeper, a state would not come back: json-c reads 32 levels, and a history has some of its own. */
enum {
    MAX_DEPTH = 24
};

bool cb_text_set(char **text, const char *value)
{
    char *copy = value ? strdup(value) : NULL;

    if (value && !copy)
        return false;
    free(*text); /* not earlier: value may be it */
    *text = copy;
    return true;
}

bool field_text_equal(const cb_field *field, const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;

    (void)field;
    return x == y || (x && y && strcmp(x, y) == 0);
}

bool field_text_copy(const cb_field *field, void *to, const void *from)
{
    return field_text_equal(field, to, from) || cb_text_set(to, *(char *const *)from);
}

void field_text_drop(const cb_field *field, void *member)
{
    (void)field;
    free(*(char **)member);
}

const char *field_text_write(field_place *at, const void *member, json_object **ret)
{
    const char *text = *(char *const *)member;

    (void)at;
    if (!text)
        return NULL;
    return field_text_is_utf8(text) ? field_string(text, ret) : "is not UTF-8";
}

const char *field_text_read(field_place *at, json_object *value, void *member)
{
    const char *text = field_text_of(value);

    (void)at;
    if (value && (!text || !field_text_is_utf8(text)))
        return "must be text or null";
    return cb_text_set(member, text) ? NULL : field_no_memory;
}

bool field_json_equal(const cb_field *field, const void *a, const void *b)
{
    (void)field;
    return json_object_equal(*(json_object *const *)a, *(json_object *const *)b);
}

static bool deep_copy(json_object *from, json_object **ret)
{
    return !from || json_object_deep_copy(from, ret, NULL) == 0;
}

bool field_json_copy(const cb_field *field, void *to, const void *from)
{
    json_object **target = to, *copy = NULL;

    if (field_json_equal(field, to, from))
        return true;
    if (!deep_copy(*(json_object *const *)from, &copy))
        return false;
    json_object_put(*target);
    *target = copy;
    return true;
}

void field_json_drop(const cb_field *field, void *member)
{
    (void)field;
    json_object_put(*(json_object **)member);
}

/* Of doubles: those that jsonb would make an integer of which json-c could not read. */
static bool fits(double number)
{
    return isfinite(number) && fabs(number) < 9223372036854775808.0;
}

static bool is_sound(json_object *value, int depth)
{
    if (depth > MAX_DEPTH)
        return false;
    switch (json_object_get_type(value)) {
    case json_type_double:
        return fits(json_object_get_double(value));
    case json_type_string:
        return field_text_of(value) && field_text_is_utf8(field_text_of(value));
    case json_type_array:
        for (size_t i = 0; i < json_object_array_length(value); i++) {
            if (!is_sound(json_object_array_get_idx(value, i), depth + 1))
                return false;
        }
        return true;
    case json_type_object: {
        json_object_object_foreach(value, key, member)
        {
            if (!field_text_is_utf8(key) || !is_sound(member, depth + 1))
                return false;
        }
        return true;
    }
    default:
        return true;
    }
}

const char *field_json_keep(json_object *value, int depth, json_object **ret)
{
    if (!is_sound(value, depth))
        return "is JSON that cannot be kept: too deep, a number too large or text that is not UTF-8";
    return deep_copy(value, ret) ? NULL : field_no_memory;
}

const char *field_json_write(field_place *at, const void *member, json_object **ret)
{
    return field_json_keep(*(json_object *const *)member, at->depth, ret);
}

const char *field_json_read(field_place *at, json_object *value, void *member)
{
    return field_json_keep(value, at->depth, member);
}
