/* JSON into structs: all of it or nothing. */
#include <commandbus/fields.h>
#include <json-c/linkhash.h>
#include <string.h>

#include "fail.h"
#include "fields_types.h"

const cb_field *field_named(const cb_fields *fields, const char *name)
{
    for (size_t i = 0; i < fields->n_fields; i++) {
        if (strcmp(fields->fields[i].name, name) == 0)
            return &fields->fields[i];
    }
    return NULL;
}

const char *field_read(field_place *at, const cb_field *field, json_object *value, void *member)
{
    const cb_field *around = at->field;

    at->field = field;
    const char *problem = field_type_of(field->type)->read(at, value, member);
    at->field = around;
    return problem;
}

/* Instead of what the member has. */
static const char *replace(field_place *at, const cb_field *field, json_object *value, void *member)
{
    field_drop(field, member);
    memset(member, 0, field->size);
    return field_read(at, field, value, member);
}

/* A part of it, where the type has parts. */
static const char *patch_field(field_place *at, const cb_field *field, json_object *value,
                               void *member)
{
    const field_type *type = field_type_of(field->type);
    const cb_field *around = at->field;

    if (!type->patch || !json_object_is_type(value, json_type_object))
        return replace(at, field, value, member);
    at->field = field;
    const char *problem = type->patch(at, value, member);
    at->field = around;
    return problem;
}

/* Adds a key that no field has to *unknown. */
static const char *keep(const char *key, json_object *value, json_object **unknown)
{
    if (!*unknown)
        *unknown = json_object_new_object();
    if (!*unknown || json_object_object_add(*unknown, key, json_object_get(value)) != 0)
        return field_no_memory;
    return NULL;
}

/* Reads a JSON object; with `patch` what it lacks stays as it is. After a refusal the record may
 * be half read. */
static const char *fields_read_object(field_place *at, const cb_fields *fields, json_object *from,
                                      bool patch, void *record)
{
    json_object_object_foreach(from, key, value)
    {
        const cb_field *field = field_named(fields, key);
        const char *problem = NULL;
        if (field)
            problem = (patch ? patch_field : replace)(at, field, value, field_of(field, record));
        else if (at->unknown)
            problem = keep(key, value, at->unknown);
        if (problem)
            return field ? field_refused_in(at, problem, field) : problem;
    }
    return NULL;
}

/* ---- nested structs ---- */

/* What nobody knows in here goes under the name of the struct. */
static const char *read_nested(field_place *at, json_object *value, bool patch, void *member)
{
    OWNED(json_object) others = NULL;
    json_object **around = at->unknown;
    const cb_field *field = at->field;

    at->unknown = around ? &others : NULL;
    at->depth++;
    const char *problem = fields_read_object(at, field->fields, value, patch, member);
    at->depth--;
    at->unknown = around;
    return !problem && others ? keep(field->name, others, around) : problem;
}

const char *field_struct_read(field_place *at, json_object *value, void *member)
{
    if (!value)
        return NULL;
    if (!json_object_is_type(value, json_type_object))
        return "must be an object or null";
    return read_nested(at, value, false, member);
}

const char *field_struct_patch(field_place *at, json_object *value, void *member)
{
    return read_nested(at, value, true, member);
}

/* ---- all or nothing ---- */

static bool read_draft(field_place *at, const cb_fields *fields, json_object *from, bool patch,
                       void *draft, cb_error *e)
{
    if (!json_object_is_type(from, json_type_object))
        return cb_fail(e, CB_INVALID_DATA, "%.100s must be a JSON object", fields->name);
    const char *problem = fields_read_object(at, fields, from, patch, draft);
    return !problem || fields_fail(fields, at, problem, e);
}

bool cb_fields_read(const cb_fields *fields, void *record, json_object *from, json_object **unknown,
                    cb_error *e)
{
    OWNED(json_object) others = NULL;
    field_place at = { .unknown = unknown ? &others : NULL };
    void *draft = cb_fields_new(fields);

    if (!draft)
        return fail_memory(e);
    bool ok = read_draft(&at, fields, from, false, draft, e);
    for (size_t i = 0; ok && i < fields->n_fields; i++) {
        const cb_field *field = &fields->fields[i];
        field_swap(field, field_of(field, record), field_of(field, draft));
    }
    if (ok && unknown)
        *unknown = json_object_take(&others);
    cb_fields_free(fields, draft); /* with what the record had */
    return ok;
}

/* Fields that are patched in part begin with what they have. */
static bool copy_parted(const cb_fields *fields, json_object *patch, void *draft,
                        const void *record)
{
    for (size_t i = 0; i < fields->n_fields; i++) {
        const cb_field *field = &fields->fields[i];
        if (field_type_of(field->type)->patch &&
            json_object_object_get_ex(patch, field->name, NULL) &&
            !field_copy(field, field_of(field, draft), field_in(field, record)))
            return false;
    }
    return true;
}

bool cb_fields_patch(const cb_fields *fields, void *record, json_object *patch, cb_error *e)
{
    field_place at = { 0 };
    void *draft = patch ? cb_fields_new(fields) : NULL;

    if (!patch)
        return true;
    if (!draft || !copy_parted(fields, patch, draft, record)) {
        cb_fields_free(fields, draft);
        return fail_memory(e);
    }
    bool ok = read_draft(&at, fields, patch, true, draft, e);
    if (ok) {
        json_object_object_foreach(patch, key, ignored)
        {
            const cb_field *field = field_named(fields, key);
            (void)ignored;
            if (field)
                field_swap(field, field_of(field, record), field_of(field, draft));
        }
    }
    cb_fields_free(fields, draft); /* with what the record had */
    return ok;
}
