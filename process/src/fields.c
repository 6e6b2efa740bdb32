/* Structs by their tables: making, copying, comparing, writing. */
#include <commandbus/fields.h>
#include <stdlib.h>
#include <string.h>

#include "fields_types.h"

void *cb_fields_new(const cb_fields *fields)
{
    return calloc(1, fields->size);
}

void cb_fields_free(const cb_fields *fields, void *record)
{
    if (!record)
        return;
    for (size_t i = 0; i < fields->n_fields; i++) {
        const cb_field *field = &fields->fields[i];
        const field_type *type = field_type_of(field->type);
        if (type->drop)
            type->drop(field_of(field, record));
    }
    free(record);
}

bool cb_fields_copy(const cb_fields *fields, void *to, const void *from)
{
    for (size_t i = 0; i < fields->n_fields; i++) {
        const cb_field *field = &fields->fields[i];
        const field_type *type = field_type_of(field->type);
        if (!type->copy)
            memmove(field_of(field, to), field_in(field, from), type->size);
        else if (!type->copy(field_of(field, to), field_in(field, from)))
            return false;
    }
    return true;
}

/* Puts one value into the object. NULL, or what is wrong with it. */
static const char *write_field(const cb_field *field, const void *record, json_object *object)
{
    OWNED(json_object) value = NULL; /* stays NULL for JSON null */
    const char *problem = field_type_of(field->type)->write(field, field_in(field, record), &value);

    if (!problem && json_object_object_add(object, field->name, value) != 0)
        problem = field_no_memory;
    if (!problem)
        json_object_take(&value);
    return problem;
}

json_object *cb_fields_write(const cb_fields *fields, const void *record)
{
    OWNED(json_object) object = json_object_new_object();

    for (size_t i = 0; object && i < fields->n_fields; i++) {
        if (write_field(&fields->fields[i], record, object))
            return NULL;
    }
    return json_object_take(&object);
}

bool cb_fields_valid(const cb_fields *fields, const void *record, cb_error *e)
{
    for (size_t i = 0; i < fields->n_fields; i++) {
        const cb_field *field = &fields->fields[i];
        OWNED(json_object) value = NULL;
        const char *problem =
            field_type_of(field->type)->write(field, field_in(field, record), &value);
        if (problem)
            return cb_fail(e, problem == field_no_memory ? CB_MEMORY : CB_INVALID_DATA,
                           "field '%.100s' of %.100s %s", field->name, fields->name, problem);
    }
    return true;
}

static bool is_equal(const cb_field *field, const void *a, const void *b)
{
    const field_type *type = field_type_of(field->type);

    if (type->equal)
        return type->equal(field_in(field, a), field_in(field, b));
    return memcmp(field_in(field, a), field_in(field, b), type->size) == 0;
}

bool cb_fields_diff(const cb_fields *fields, const void *before, const void *after,
                    json_object **ret)
{
    OWNED(json_object) patch = NULL; /* only made when there is something to say */

    for (size_t i = 0; i < fields->n_fields; i++) {
        const cb_field *field = &fields->fields[i];
        if (is_equal(field, before, after))
            continue;
        if (!patch && !(patch = json_object_new_object()))
            return false;
        if (write_field(field, after, patch))
            return false;
    }
    *ret = json_object_take(&patch);
    return true;
}
