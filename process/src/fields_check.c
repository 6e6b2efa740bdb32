/* Is a table sound? Asked once for each, so that nobody else has to. */
#include <commandbus/fields.h>
#include <stdio.h>
#include <string.h>

#include "fields_types.h"
#include "utf8.h"

static bool names_are_sound(const char *const *names)
{
    if (!names || !names[0])
        return false;
    for (size_t i = 0; names[i]; i++) {
        for (size_t k = 0; k < i; k++) {
            if (strcmp(names[i], names[k]) == 0)
                return false;
        }
        if (!names[i][0] || !utf8_is_valid(names[i]))
            return false;
    }
    return true;
}

/* What a member of this type has; 0: there is no such type, or it has no table. */
static size_t size_of(cb_field_type type, const cb_fields *fields)
{
    const field_type *known = field_type_of(type);

    if (type == CB_STRUCT)
        return fields ? fields->size : 0;
    return known ? known->size : 0;
}

static bool type_is_sound(const cb_fields *fields, const cb_field *field, cb_error *e)
{
    if (!field_type_of(field->type))
        return cb_fail(e, CB_MISUSE, "field '%.100s' of %.100s has a type that does not exist",
                       field->name, fields->name);
    if (field->type == CB_STRUCT && !field->fields)
        return cb_fail(e, CB_MISUSE, "field '%.100s' of %.100s needs a table of its own",
                       field->name, fields->name);
    if (field->size != size_of(field->type, field->fields))
        return cb_fail(e, CB_MISUSE,
                       "field '%.100s' of %.100s has %zu bytes where its type has %zu", field->name,
                       fields->name, field->size, size_of(field->type, field->fields));
    if (field->type == CB_ENUM && !names_are_sound(field->names))
        return cb_fail(e, CB_MISUSE, "field '%.100s' of %.100s needs distinct names", field->name,
                       fields->name);
    return true;
}

static bool list_is_sound(const cb_fields *fields, const cb_field *field, cb_error *e)
{
    cb_field item = field_item(field);
    char name[120];

    snprintf(name, sizeof name, "%.100s[]", field->name);
    item.name = name;
    if (item.type == CB_LIST)
        return cb_fail(e, CB_MISUSE,
                       "field '%.100s' of %.100s is a list of lists: name the inner "
                       "one in a struct",
                       field->name, fields->name);
    if (field->max_items == 0)
        return cb_fail(e, CB_MISUSE, "field '%.100s' of %.100s is a list that may have no items",
                       field->name, fields->name);
    return type_is_sound(fields, &item, e);
}

static bool field_is_sound(const cb_fields *fields, const cb_field *field, cb_error *e)
{
    if (!field->name || !field->name[0] || !utf8_is_valid(field->name))
        return cb_fail(e, CB_MISUSE, "field %zu of %.100s has no name",
                       (size_t)(field - fields->fields) + 1, fields->name);
    if (!type_is_sound(fields, field, e) ||
        (field->type == CB_LIST && !list_is_sound(fields, field, e)))
        return false;
    if (field->size > fields->size || field->offset > fields->size - field->size)
        return cb_fail(e, CB_MISUSE, "field '%.100s' lies outside %.100s", field->name,
                       fields->name);
    return true;
}

static bool pair_is_sound(const cb_fields *fields, const cb_field *a, const cb_field *b,
                          cb_error *e)
{
    if (strcmp(a->name, b->name) == 0)
        return cb_fail(e, CB_MISUSE, "%.100s has field '%.100s' twice", fields->name, a->name);
    if (a->offset < b->offset + b->size && b->offset < a->offset + a->size)
        return cb_fail(e, CB_MISUSE, "fields '%.100s' and '%.100s' of %.100s share one member",
                       a->name, b->name, fields->name);
    return true;
}

/* Bytes of the items of all its lists when they are full; no more than one above what is
 * allowed. */
static size_t size_of_items(const cb_fields *fields)
{
    const size_t most = CB_FIELDS_LARGEST;
    size_t sum = 0;

    for (size_t i = 0; i < fields->n_fields && sum <= most; i++) {
        const cb_field *field = &fields->fields[i];
        size_t inner = field->fields ? size_of_items(field->fields) : 0;
        if (field->type != CB_LIST)
            sum += inner;
        else if (field->max_items > most / (field->item_size + inner))
            sum = most + 1;
        else
            sum += field->max_items * (field->item_size + inner);
    }
    return sum;
}

static bool check_at(const cb_fields *fields, int depth, cb_error *e)
{
    if (!fields || !fields->name || !fields->size || (fields->n_fields && !fields->fields))
        return cb_fail(e, CB_MISUSE, "a table of fields needs a name, a size and fields");
    if (depth > CB_FIELDS_DEPTH)
        return cb_fail(e, CB_MISUSE, "%.100s is nested more than %d tables deep", fields->name,
                       CB_FIELDS_DEPTH);
    for (size_t i = 0; i < fields->n_fields; i++) {
        const cb_field *field = &fields->fields[i];
        if (!field_is_sound(fields, field, e))
            return false;
        for (size_t k = 0; k < i; k++) {
            if (!pair_is_sound(fields, &fields->fields[k], field, e))
                return false;
        }
        if (field->fields && !check_at(field->fields, depth + 1, e))
            return false;
    }
    return true;
}

bool cb_fields_check(const cb_fields *fields, cb_error *e)
{
    if (!check_at(fields, 1, e))
        return false;
    return (fields->size <= CB_FIELDS_LARGEST &&
            size_of_items(fields) <= CB_FIELDS_LARGEST - fields->size) ||
           cb_fail(e, CB_MISUSE, "%.100s may exceed %d bytes when its lists are full", fields->name,
                   CB_FIELDS_LARGEST);
}
