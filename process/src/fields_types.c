/* The table of field types, and the types that are a number, a word, text or JSON. */
#include "fields_types.h"

#include <json-c/linkhash.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "utf8.h"

const char field_no_memory[] = "could not be kept: out of memory";

const char *field_string(const char *text, json_object **ret)
{
    *ret = json_object_new_string(text);
    return *ret ? NULL : field_no_memory;
}

const char *field_text_of(json_object *value)
{
    if (!json_object_is_type(value, json_type_string))
        return NULL;

    const char *text = json_object_get_string(value);
    return strlen(text) == (size_t)json_object_get_string_len(value) ? text : NULL;
}

static const char *write_bool(field_place *at, const void *member, json_object **ret)
{
    (void)at;
    *ret = json_object_new_boolean(*(const bool *)member);
    return *ret ? NULL : field_no_memory;
}

static const char *read_bool(field_place *at, json_object *value, void *member)
{
    (void)at;
    if (!json_object_is_type(value, json_type_boolean))
        return "must be true or false";
    *(bool *)member = json_object_get_boolean(value);
    return NULL;
}

/* A JSON integer; or 5.0, which says the same as long as a double counts exactly. */
static bool take_integer(json_object *value, int64_t *ret)
{
    const double exact = 9007199254740992.0;

    if (json_object_is_type(value, json_type_double)) {
        double number = json_object_get_double(value);
        if (!(number >= -exact && number <= exact) || number != (double)(int64_t)number)
            return false;
        *ret = (int64_t)number;
        return true;
    }
    if (!json_object_is_type(value, json_type_int))
        return false;
    *ret = json_object_get_int64(value);
    return *ret < 0 || json_object_get_uint64(value) <= INT64_MAX; /* json-c would cut it off */
}

static const char *write_int(field_place *at, const void *member, json_object **ret)
{
    (void)at;
    *ret = json_object_new_int64(*(const int64_t *)member);
    return *ret ? NULL : field_no_memory;
}

static const char *read_int(field_place *at, json_object *value, void *member)
{
    (void)at;
    return take_integer(value, member) ? NULL : "must be a 64-bit integer";
}

static const char *write_int32(field_place *at, const void *member, json_object **ret)
{
    (void)at;
    *ret = json_object_new_int(*(const int *)member);
    return *ret ? NULL : field_no_memory;
}

static const char *read_int32(field_place *at, json_object *value, void *member)
{
    int64_t number;

    (void)at;
    if (!take_integer(value, &number) || number < INT_MIN || number > INT_MAX)
        return "must be a 32-bit integer";
    *(int *)member = (int)number;
    return NULL;
}

static const char *write_enum(field_place *at, const void *member, json_object **ret)
{
    int index = *(const int *)member, n = 0;

    while (at->field->names[n])
        n++;
    if (index < 0 || index >= n)
        return "has a value without a name";
    return field_string(at->field->names[index], ret);
}

static const char *read_enum(field_place *at, json_object *value, void *member)
{
    const char *name = field_text_of(value), *const *names = at->field->names;

    for (int i = 0; name && names[i]; i++) {
        if (strcmp(names[i], name) == 0) {
            *(int *)member = i;
            return NULL;
        }
    }
    return "must be one of its names";
}

/* By text: what lies behind the end of it does not count. */
static bool uuid_equal(const cb_field *field, const void *a, const void *b)
{
    (void)field;
    return strncmp(a, b, sizeof(cb_uuid)) == 0;
}

static const char *write_uuid(field_place *at, const void *member, json_object **ret)
{
    const cb_uuid *id = member;
    cb_uuid same;

    (void)at;
    if (id->text[0] == '\0')
        return NULL;
    if (!memchr(id->text, '\0', sizeof id->text) || !cb_uuid_parse(id->text, &same))
        return "is not a UUID";
    return field_string(same.text, ret);
}

static const char *read_uuid(field_place *at, json_object *value, void *member)
{
    (void)at;
    if (value && !cb_uuid_parse(field_text_of(value), member))
        return "must be a UUID or null";
    return NULL;
}

/* ---- doubles, so that exactly the same one comes back ---- */

/* As many digits as it needs and no more: 0.1 is what people read.
 *
 * From 1e15 on with a point and without an exponent, for jsonb would make an integer of 1e+20, and
 * json-c the nearest 64 bits of that. */
static void print_double(double number, char *text, size_t size)
{
    if (fabs(number) >= 1e15) {
        snprintf(text, size, "%.1f", number);
    } else {
        for (int digits = 15; digits <= 17; digits++) {
            snprintf(text, size, "%.*g", digits, number);
            if (strtod(text, NULL) == number)
                break;
        }
    }
    char *comma = strchr(text, ','); /* the locale's */
    if (comma)
        *comma = '.';
    if (!strpbrk(text, ".e"))
        strcat(text, ".0");
}

static const char *write_double(field_place *at, const void *member, json_object **ret)
{
    double number = *(const double *)member;
    char text[352]; /* the largest double has 309 digits before the point */

    (void)at;
    if (!isfinite(number))
        return "is not a finite number";
    print_double(number, text, sizeof text - sizeof ".0");
    *ret = json_object_new_double_s(number, text);
    return *ret ? NULL : field_no_memory;
}

static const char *read_double(field_place *at, json_object *value, void *member)
{
    double number = json_object_get_double(value);
    bool is_double = json_object_is_type(value, json_type_double);

    (void)at;
    if (!is_double && !json_object_is_type(value, json_type_int))
        return "must be a number";
    /* The ends of 64 bits are what json-c makes of an integer that has no room in them. */
    if (!is_double &&
        (json_object_get_int64(value) == INT64_MIN || json_object_get_uint64(value) == UINT64_MAX))
        return "must be a number that keeps its value: write it with a decimal point";
    if (!isfinite(number))
        return "must be a finite number";
    *(double *)member = number;
    return NULL;
}

/* ---- text and JSON, which own memory ----
 *
 * A copy shares nothing with what it was copied from, so that changing one in place is seen by a
 * comparison with the other. */

/* Deeper, a state would not come back: json-c reads 32 levels, and a history has some of its
 * own. */
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

static bool text_equal(const cb_field *field, const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;

    (void)field;
    return x == y || (x && y && strcmp(x, y) == 0);
}

static bool text_copy(const cb_field *field, void *to, const void *from)
{
    return text_equal(field, to, from) || cb_text_set(to, *(char *const *)from);
}

static void text_drop(const cb_field *field, void *member)
{
    (void)field;
    free(*(char **)member);
}

static const char *write_text(field_place *at, const void *member, json_object **ret)
{
    const char *text = *(char *const *)member;

    (void)at;
    if (!text)
        return NULL;
    return utf8_is_valid(text) ? field_string(text, ret) : "is not UTF-8";
}

static const char *read_text(field_place *at, json_object *value, void *member)
{
    const char *text = field_text_of(value);

    (void)at;
    if (value && (!text || !utf8_is_valid(text)))
        return "must be text or null";
    return cb_text_set(member, text) ? NULL : field_no_memory;
}

static bool json_equal(const cb_field *field, const void *a, const void *b)
{
    (void)field;
    return json_object_equal(*(json_object *const *)a, *(json_object *const *)b);
}

static bool deep_copy(json_object *from, json_object **ret)
{
    return !from || json_object_deep_copy(from, ret, NULL) == 0;
}

static bool json_copy(const cb_field *field, void *to, const void *from)
{
    json_object **target = to, *copy = NULL;

    if (json_equal(field, to, from))
        return true;
    if (!deep_copy(*(json_object *const *)from, &copy))
        return false;
    json_object_put(*target);
    *target = copy;
    return true;
}

static void json_drop(const cb_field *field, void *member)
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
        return field_text_of(value) && utf8_is_valid(field_text_of(value));
    case json_type_array:
        for (size_t i = 0; i < json_object_array_length(value); i++) {
            if (!is_sound(json_object_array_get_idx(value, i), depth + 1))
                return false;
        }
        return true;
    case json_type_object: {
        json_object_object_foreach(value, key, member)
        {
            if (!utf8_is_valid(key) || !is_sound(member, depth + 1))
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
        return "is JSON that cannot be kept: too deep, a number too large or invalid UTF-8";
    return deep_copy(value, ret) ? NULL : field_no_memory;
}

static const char *write_json(field_place *at, const void *member, json_object **ret)
{
    return field_json_keep(*(json_object *const *)member, at->depth, ret);
}

static const char *read_json(field_place *at, json_object *value, void *member)
{
    return field_json_keep(value, at->depth, member);
}

/* ---- the table ---- */

static const field_type types[] = {
    [CB_BOOL] = { .size = sizeof(bool), .write = write_bool, .read = read_bool },
    [CB_INT] = { .size = sizeof(int64_t), .write = write_int, .read = read_int },
    [CB_INT32] = { .size = sizeof(int), .write = write_int32, .read = read_int32 },
    [CB_DOUBLE] = { .size = sizeof(double), .write = write_double, .read = read_double },
    [CB_TEXT] = { .size = sizeof(char *),
                  .equal = text_equal,
                  .copy = text_copy,
                  .drop = text_drop,
                  .write = write_text,
                  .read = read_text },
    [CB_UUID] = { .size = sizeof(cb_uuid),
                  .equal = uuid_equal,
                  .write = write_uuid,
                  .read = read_uuid },
    [CB_TIME] = { .size = sizeof(int64_t), .write = field_time_write, .read = field_time_read },
    [CB_ENUM] = { .size = sizeof(int), .write = write_enum, .read = read_enum },
    [CB_JSON] = { .size = sizeof(json_object *),
                  .equal = json_equal,
                  .copy = json_copy,
                  .drop = json_drop,
                  .write = write_json,
                  .read = read_json },
    [CB_MONEY] = { .size = sizeof(cb_money),
                   .equal = field_money_equal,
                   .write = field_money_write,
                   .read = field_money_read },
    [CB_DECIMAL] = { .size = sizeof(cb_decimal),
                     .equal = field_decimal_equal,
                     .write = field_decimal_write,
                     .read = field_decimal_read },
    [CB_DATE] = { .size = sizeof(cb_date), .write = field_date_write, .read = field_date_read },
    [CB_STRUCT] = { .equal = field_struct_equal,
                    .copy = field_struct_copy,
                    .drop = field_struct_drop,
                    .swap = field_struct_swap,
                    .write = field_struct_write,
                    .read = field_struct_read,
                    .diff = field_struct_diff,
                    .patch = field_struct_patch },
    [CB_LIST] = { .size = sizeof(CB_LIST_OF(void)),
                  .equal = field_list_equal,
                  .copy = field_list_copy,
                  .drop = field_list_drop,
                  .write = field_list_write,
                  .read = field_list_read },
};

const field_type *field_type_of(cb_field_type type)
{
    return (size_t)type < sizeof types / sizeof *types ? &types[type] : NULL;
}
