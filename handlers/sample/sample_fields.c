/* Reading the data of a command, field by field; the first thing wrong is remembered. */
#include "sample_fields.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

fields fields_of(cb_context *ctx)
{
    return (fields){ .data = cb_context_data(ctx) };
}

void fields_object(fields *f, const char *fmt, ...)
{
    if (f->problem[0])
        return;

    va_list args;
    va_start(args, fmt);
    vsnprintf(f->problem, sizeof f->problem, fmt, args);
    va_end(args);
}

cb_outcome fields_refuse(const fields *f, cb_context *ctx)
{
    return cb_permanent(ctx, "INVALID_DATA", "%s", f->problem);
}

/* NULL when it is missing or null. */
static json_object *find(const fields *f, const char *name)
{
    json_object *value = NULL;

    json_object_object_get_ex(f->data, name, &value);
    return value;
}

bool field_is_there(const fields *f, const char *name)
{
    return find(f, name) != NULL;
}

const char *field_text(fields *f, const char *name)
{
    json_object *value = find(f, name);

    if (json_object_is_type(value, json_type_string) && json_object_get_string_len(value) > 0)
        return json_object_get_string(value);
    fields_object(f, "\"%s\" must be a text", name);
    return "";
}

const char *field_text_or(fields *f, const char *name, const char *otherwise)
{
    return field_is_there(f, name) ? field_text(f, name) : otherwise;
}

int64_t field_integer(fields *f, const char *name, int64_t least, int64_t most)
{
    json_object *value = find(f, name);
    int64_t number = json_object_get_int64(value);

    if (json_object_is_type(value, json_type_int) && number >= least && number <= most)
        return number;
    fields_object(f, "\"%s\" must be a whole number from %" PRId64 " to %" PRId64, name, least,
                  most);
    return least;
}

int64_t field_integer_or(fields *f, const char *name, int64_t least, int64_t most,
                         int64_t otherwise)
{
    return field_is_there(f, name) ? field_integer(f, name, least, most) : otherwise;
}

double field_seconds_or(fields *f, const char *name, double otherwise)
{
    json_object *value = find(f, name);
    double number = json_object_get_double(value);

    if (!value)
        return otherwise;
    if ((json_object_is_type(value, json_type_int) ||
         json_object_is_type(value, json_type_double)) &&
        number >= 0 && number <= 86400)
        return number;
    fields_object(f, "\"%s\" must be a number of seconds, at most a day", name);
    return otherwise;
}

bool field_flag_or(fields *f, const char *name, bool otherwise)
{
    json_object *value = find(f, name);

    if (!value)
        return otherwise;
    if (!json_object_is_type(value, json_type_boolean))
        fields_object(f, "\"%s\" must be true or false", name);
    return json_object_get_boolean(value);
}
