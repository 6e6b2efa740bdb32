/* The table of field types, and the types that are a number or a word. */
#include "fields_types.h"

#include <limits.h>
#include <string.h>

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
    return take_integer(value, member) ? NULL : "must be an integer of 64 bits";
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
        return "must be an integer of 32 bits";
    *(int *)member = (int)number;
    return NULL;
}

static const char *write_enum(field_place *at, const void *member, json_object **ret)
{
    int index = *(const int *)member, n = 0;

    while (at->field->names[n])
        n++;
    if (index < 0 || index >= n)
        return "has no name for its value";
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

static const field_type types[] = {
    [CB_BOOL] = { .size = sizeof(bool), .write = write_bool, .read = read_bool },
    [CB_INT] = { .size = sizeof(int64_t), .write = write_int, .read = read_int },
    [CB_INT32] = { .size = sizeof(int), .write = write_int32, .read = read_int32 },
    [CB_DOUBLE] = { .size = sizeof(double),
                    .write = field_double_write,
                    .read = field_double_read },
    [CB_TEXT] = { .size = sizeof(char *),
                  .equal = field_text_equal,
                  .copy = field_text_copy,
                  .drop = field_text_drop,
                  .write = field_text_write,
                  .read = field_text_read },
    [CB_UUID] = { .size = sizeof(cb_uuid),
                  .equal = uuid_equal,
                  .write = write_uuid,
                  .read = read_uuid },
    [CB_TIME] = { .size = sizeof(int64_t), .write = field_time_write, .read = field_time_read },
    [CB_ENUM] = { .size = sizeof(int), .write = write_enum, .read = read_enum },
    [CB_JSON] = { .size = sizeof(json_object *),
                  .equal = field_json_equal,
                  .copy = field_json_copy,
                  .drop = field_json_drop,
                  .write = field_json_write,
                  .read = field_json_read },
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
