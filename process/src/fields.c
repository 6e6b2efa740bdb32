/* Structs by their tables: making, copying, comparing, writing. A nested struct is a field whose
 * value is treated by the same loops. */
#include <commandbus/fields.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fields_types.h"

/* ---- values of any type ---- */

bool field_equal(const cb_field *field, const void *a, const void *b)
{
    const field_type *type = field_type_of(field->type);

    return type->equal ? type->equal(field, a, b) : memcmp(a, b, type->size) == 0;
}

bool field_copy(const cb_field *field, void *to, const void *from)
{
    const field_type *type = field_type_of(field->type);

    if (type->copy)
        return type->copy(field, to, from);
    memmove(to, from, type->size);
    return true;
}

void field_drop(const cb_field *field, void *member)
{
    const field_type *type = field_type_of(field->type);

    if (type->drop)
        type->drop(field, member);
}

void field_swap(const cb_field *field, void *a, void *b)
{
    const field_type *type = field_type_of(field->type);
    char *here = a, *there = b;

    if (type->swap) {
        type->swap(field, a, b);
        return;
    }
    for (size_t i = 0; i < type->size; i++) {
        char byte = here[i];
        here[i] = there[i];
        there[i] = byte;
    }
}

const char *field_write(field_place *at, const cb_field *field, const void *member,
                        json_object **ret)
{
    const cb_field *around = at->field;

    at->field = field;
    const char *problem = field_type_of(field->type)->write(at, member, ret);
    at->field = around;
    return problem;
}

/* ---- where something is wrong ---- */

static const char *put_before(field_place *at, const char *problem, const char *piece)
{
    char tail[sizeof at->path];

    memcpy(tail, at->path, sizeof tail);
    snprintf(at->path, sizeof at->path, "%s%.*s", piece, (int)(sizeof tail - 1 - strlen(piece)),
             tail);
    return problem;
}

const char *field_refused_in(field_place *at, const char *problem, const cb_field *field)
{
    char piece[120];

    snprintf(piece, sizeof piece, ".%.100s", field->name);
    return put_before(at, problem, piece);
}

const char *field_refused_item(field_place *at, const char *problem, size_t i)
{
    char piece[30];

    snprintf(piece, sizeof piece, "[%zu]", i);
    return put_before(at, problem, piece);
}

bool fields_fail(const cb_fields *fields, const field_place *at, const char *problem, cb_error *e)
{
    return cb_fail(e, problem == field_no_memory ? CB_MEMORY : CB_INVALID_DATA,
                   "field '%s' of %.100s %s", at->path + (at->path[0] == '.'), fields->name,
                   problem);
}

/* ---- structs ---- */

void *cb_fields_new(const cb_fields *fields)
{
    return calloc(1, fields->size);
}

static void fields_drop(const cb_fields *fields, void *record)
{
    for (size_t i = 0; i < fields->n_fields; i++)
        field_drop(&fields->fields[i], field_of(&fields->fields[i], record));
}

void cb_fields_free(const cb_fields *fields, void *record)
{
    if (!record)
        return;
    fields_drop(fields, record);
    free(record);
}

bool cb_fields_copy(const cb_fields *fields, void *to, const void *from)
{
    for (size_t i = 0; i < fields->n_fields; i++) {
        const cb_field *field = &fields->fields[i];
        if (!field_copy(field, field_of(field, to), field_in(field, from)))
            return false;
    }
    return true;
}

static bool fields_equal(const cb_fields *fields, const void *a, const void *b)
{
    for (size_t i = 0; i < fields->n_fields; i++) {
        const cb_field *field = &fields->fields[i];
        if (!field_equal(field, field_in(field, a), field_in(field, b)))
            return false;
    }
    return true;
}

/* ---- writing ---- */

static const char *add_value(json_object *object, const char *name, json_object **value)
{
    if (json_object_object_add(object, name, *value) != 0)
        return field_no_memory;
    json_object_take(value);
    return NULL;
}

/* Every field; into nowhere when object is NULL. */
static const char *write_all(field_place *at, const cb_fields *fields, const void *record,
                             json_object *object)
{
    for (size_t i = 0; i < fields->n_fields; i++) {
        const cb_field *field = &fields->fields[i];
        OWNED(json_object) value = NULL; /* stays NULL for JSON null */
        const char *problem = field_write(at, field, field_in(field, record), &value);
        if (!problem && object)
            problem = add_value(object, field->name, &value);
        if (problem)
            return field_refused_in(at, problem, field);
    }
    return NULL;
}

json_object *cb_fields_write(const cb_fields *fields, const void *record)
{
    OWNED(json_object) object = json_object_new_object();
    field_place at = { 0 };

    if (!object || write_all(&at, fields, record, object))
        return NULL;
    return json_object_take(&object);
}

bool cb_fields_valid(const cb_fields *fields, const void *record, cb_error *e)
{
    field_place at = { 0 };
    const char *problem = write_all(&at, fields, record, NULL);

    return !problem || fields_fail(fields, &at, problem, e);
}

/* ---- what changed ---- */

static const char *write_change(field_place *at, const cb_field *field, const void *before,
                                const void *after, json_object **ret)
{
    const field_type *type = field_type_of(field->type);
    const cb_field *around = at->field;

    if (!type->diff)
        return field_write(at, field, after, ret);
    at->field = field;
    const char *problem = type->diff(at, before, after, ret);
    at->field = around;
    return problem;
}

static const char *write_changes(field_place *at, const cb_fields *fields, const void *before,
                                 const void *after, json_object **ret)
{
    OWNED(json_object) patch = NULL; /* only made when there is something to say */

    for (size_t i = 0; i < fields->n_fields; i++) {
        const cb_field *field = &fields->fields[i];
        const void *was = field_in(field, before), *is = field_in(field, after);
        OWNED(json_object) value = NULL;
        if (field_equal(field, was, is))
            continue;
        if (!patch && !(patch = json_object_new_object()))
            return field_no_memory;
        const char *problem = write_change(at, field, was, is, &value);
        if (!problem)
            problem = add_value(patch, field->name, &value);
        if (problem)
            return field_refused_in(at, problem, field);
    }
    *ret = json_object_take(&patch);
    return NULL;
}

bool cb_fields_diff(const cb_fields *fields, const void *before, const void *after,
                    json_object **ret)
{
    field_place at = { 0 };

    return write_changes(&at, fields, before, after, ret) == NULL;
}

/* ---- nested structs ---- */

bool field_struct_equal(const cb_field *field, const void *a, const void *b)
{
    return fields_equal(field->fields, a, b);
}

bool field_struct_copy(const cb_field *field, void *to, const void *from)
{
    return cb_fields_copy(field->fields, to, from);
}

void field_struct_drop(const cb_field *field, void *member)
{
    fields_drop(field->fields, member);
}

/* Field by field: members that are not in the table stay where they are. */
void field_struct_swap(const cb_field *field, void *a, void *b)
{
    for (size_t i = 0; i < field->fields->n_fields; i++) {
        const cb_field *inner = &field->fields->fields[i];
        field_swap(inner, field_of(inner, a), field_of(inner, b));
    }
}

const char *field_struct_write(field_place *at, const void *member, json_object **ret)
{
    OWNED(json_object) object = json_object_new_object();

    if (!object)
        return field_no_memory;
    at->depth++;
    const char *problem = write_all(at, at->field->fields, member, object);
    at->depth--;
    if (!problem)
        *ret = json_object_take(&object);
    return problem;
}

const char *field_struct_diff(field_place *at, const void *before, const void *after,
                              json_object **ret)
{
    at->depth++;
    const char *problem = write_changes(at, at->field->fields, before, after, ret);
    at->depth--;
    return problem;
}
