/* JSON into structs: all of it or nothing. */
#include <commandbus/fields.h>
#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

#include "fields_types.h"

/* A struct to read into before the real one is touched; `present[i]`: field i has been read. */
typedef struct {
    const cb_fields *fields;
    void *record;
    bool *present;
} draft;

static bool draft_open(draft *d, const cb_fields *fields, cb_error *e)
{
    /* One piece of memory: a patch is applied for every record of a history. */
    char *memory = calloc(1, fields->size + fields->n_fields * sizeof(bool));

    *d = (draft){ fields, memory, memory ? (bool *)(memory + fields->size) : NULL };
    return memory || cb_fail(e, CB_MEMORY, "out of memory");
}

static const cb_field *field_named(const cb_fields *fields, const char *name)
{
    for (size_t i = 0; i < fields->n_fields; i++) {
        if (strcmp(fields->fields[i].name, name) == 0)
            return &fields->fields[i];
    }
    return NULL;
}

static bool read_field(draft *d, const cb_field *field, json_object *value, cb_error *e)
{
    const char *problem =
        field_type_of(field->type)->read(field, value, field_of(field, d->record));

    d->present[field - d->fields->fields] = true;
    if (!problem)
        return true;
    return cb_fail(e, problem == field_no_memory ? CB_MEMORY : CB_INVALID_DATA,
                   "field '%.100s' of %.100s %s", field->name, d->fields->name, problem);
}

/* Adds a key that no field has to *unknown. */
static bool keep(const char *key, json_object *value, json_object **unknown, cb_error *e)
{
    if (!*unknown)
        *unknown = json_object_new_object();
    if (!*unknown || json_object_object_add(*unknown, key, json_object_get(value)) != 0)
        return cb_fail(e, CB_MEMORY, "out of memory");
    return true;
}

static bool draft_read(draft *d, json_object *from, json_object **unknown, cb_error *e)
{
    if (!json_object_is_type(from, json_type_object))
        return cb_fail(e, CB_INVALID_DATA, "%.100s must be a JSON object", d->fields->name);

    json_object_object_foreach(from, key, value)
    {
        const cb_field *field = field_named(d->fields, key);
        if (field ? !read_field(d, field, value, e) : unknown && !keep(key, value, unknown, e))
            return false;
    }
    return true;
}

/* Moves what was read into the record; with `all` also the zeros of what was not. What the record had
 * ends in the draft and is freed with it. */
static void draft_move(draft *d, void *record, bool all)
{
    for (size_t i = 0; i < d->fields->n_fields; i++) {
        const cb_field *field = &d->fields->fields[i];
        char *here = field_of(field, record), *there = field_of(field, d->record);
        for (size_t k = 0; k < field->size && (all || d->present[i]); k++) {
            char byte = here[k];
            here[k] = there[k];
            there[k] = byte;
        }
    }
}

bool cb_fields_read(const cb_fields *fields, void *record, json_object *from, json_object **unknown,
                    cb_error *e)
{
    OWNED(json_object) others = NULL;
    draft d;

    if (!draft_open(&d, fields, e))
        return false;
    bool ok = draft_read(&d, from, unknown ? &others : NULL, e);
    if (ok)
        draft_move(&d, record, true);
    if (ok && unknown)
        *unknown = json_object_take(&others);
    cb_fields_free(fields, d.record);
    return ok;
}

bool cb_fields_patch(const cb_fields *fields, void *record, json_object *patch, cb_error *e)
{
    draft d;

    if (!patch)
        return true;
    if (!draft_open(&d, fields, e))
        return false;
    bool ok = draft_read(&d, patch, NULL, e);
    if (ok)
        draft_move(&d, record, false);
    cb_fields_free(fields, d.record);
    return ok;
}
