/* Is a table sound? Asked once for each, so that nobody else has to. */
#include <commandbus/fields.h>
#include <string.h>

#include "fields_types.h"

static bool names_are_sound(const char *const *names)
{
    if (!names || !names[0])
        return false;
    for (size_t i = 0; names[i]; i++) {
        for (size_t k = 0; k < i; k++) {
            if (strcmp(names[i], names[k]) == 0)
                return false;
        }
        if (!names[i][0] || !field_text_is_utf8(names[i]))
            return false;
    }
    return true;
}

static bool field_is_sound(const cb_fields *fields, const cb_field *field, cb_error *e)
{
    const field_type *type = field_type_of(field->type);

    if (!field->name || !field->name[0] || !field_text_is_utf8(field->name))
        return cb_fail(e, CB_MISUSE, "field %zu of %.100s has no name",
                       (size_t)(field - fields->fields) + 1, fields->name);
    if (!type)
        return cb_fail(e, CB_MISUSE, "field '%.100s' of %.100s has a type that does not exist",
                       field->name, fields->name);
    if (field->size != type->size)
        return cb_fail(e, CB_MISUSE,
                       "field '%.100s' of %.100s has %zu bytes where its type has %zu", field->name,
                       fields->name, field->size, type->size);
    if (field->size > fields->size || field->offset > fields->size - field->size)
        return cb_fail(e, CB_MISUSE, "field '%.100s' lies outside of %.100s", field->name,
                       fields->name);
    if (field->type == CB_ENUM && !names_are_sound(field->names))
        return cb_fail(e, CB_MISUSE, "field '%.100s' of %.100s needs names, each once", field->name,
                       fields->name);
    return true;
}

static bool pair_is_sound(const cb_fields *fields, const cb_field *a, const cb_field *b,
                          cb_error *e)
{
    if (strcmp(a->name, b->name) == 0)
        return cb_fail(e, CB_MISUSE, "%.100s has field '%.100s' twice", fields->name, a->name);
    if (a->offset < b->offset + b->size && b->offset < a->offset + a->size)
        return cb_fail(e, CB_MISUSE, "fields '%.100s' and '%.100s' of %.100s are one member",
                       a->name, b->name, fields->name);
    return true;
}

bool cb_fields_check(const cb_fields *fields, cb_error *e)
{
    if (!fields || !fields->name || !fields->size || (fields->n_fields && !fields->fields))
        return cb_fail(e, CB_MISUSE, "a table of fields needs a name, a size and fields");
    for (size_t i = 0; i < fields->n_fields; i++) {
        if (!field_is_sound(fields, &fields->fields[i], e))
            return false;
        for (size_t k = 0; k < i; k++) {
            if (!pair_is_sound(fields, &fields->fields[k], &fields->fields[i], e))
                return false;
        }
    }
    return true;
}
