/* One line for each type of field: how its values are compared, copied, freed, written and read.
 *
 * fields.c, fields_read.c   tables: the loops over their fields, and over those of nested structs
 * fields_list.c             lists: the loop over their items
 * date.c, money.c           dates, moments, amounts, decimals
 * fields_types.c            the other types, and the table of all */
#ifndef PROCESS_FIELDS_TYPES_H
#define PROCESS_FIELDS_TYPES_H

#include <commandbus/fields.h>

/* What write and read say when there is none: compare by address. */
extern const char field_no_memory[];

/* Where writing or reading is; and, on the way out of a refusal, where that was. */
typedef struct {
    const cb_field *field; /* of the value in hand */
    int depth;             /* objects and arrays around it, the outermost not counted */
    json_object **unknown; /* where keys that no field has go; NULL: nowhere */
    char path[200];        /* of what was refused: ".lines[3].price" */
    char detail[100];      /* room for a problem that has numbers in it */
} field_place;

/* What is NULL works on the member's bytes. What is wrong is said in static storage or in
 * at->detail, as in "field 'amount' <is not finite>"; NULL: nothing. */
typedef struct {
    size_t size; /* of the member; 0: its table knows */
    bool (*equal)(const cb_field *field, const void *a, const void *b);
    /* Frees what `to` had; false without memory. */
    bool (*copy)(const cb_field *field, void *to, const void *from);
    void (*drop)(const cb_field *field, void *member); /* frees what it owns */
    void (*swap)(const cb_field *field, void *a, void *b);
    const char *(*write)(field_place *at, const void *member, json_object **ret);
    /* The member is zero at entry. */
    const char *(*read)(field_place *at, json_object *value, void *member);
    /* Of types whose change is smaller than they are; of others (NULL) the new value is the
     * change. */
    const char *(*diff)(field_place *at, const void *before, const void *after, json_object **ret);
    const char *(*patch)(field_place *at, json_object *value, void *member);
} field_type;

/* NULL for a type that does not exist. */
const field_type *field_type_of(cb_field_type type);

static inline const void *field_in(const cb_field *field, const void *whole)
{
    return (const char *)whole + field->offset;
}

static inline void *field_of(const cb_field *field, void *whole)
{
    return (char *)whole + field->offset;
}

/* ---- values of any type ---- */
bool field_equal(const cb_field *field, const void *a, const void *b);
bool field_copy(const cb_field *field, void *to, const void *from);
void field_drop(const cb_field *field, void *member);
void field_swap(const cb_field *field, void *a, void *b);
const char *field_write(field_place *at, const cb_field *field, const void *member,
                        json_object **ret);
const char *field_read(field_place *at, const cb_field *field, json_object *value, void *member);

/* NULL when the table has none of this name. */
const cb_field *field_named(const cb_fields *fields, const char *name);

/* ---- what is wrong, and where ---- */
/* Puts a piece in front of the path of what was refused. Returns the problem. */
const char *field_refused_in(field_place *at, const char *problem, const cb_field *field);
const char *field_refused_item(field_place *at, const char *problem, size_t i);
/* Fails with the problem and its path. */
bool fields_fail(const cb_fields *fields, const field_place *at, const char *problem, cb_error *e);

/* ---- nested structs ---- */
const char *field_struct_read(field_place *at, json_object *value, void *member);
const char *field_struct_patch(field_place *at, json_object *value, void *member);
bool field_struct_equal(const cb_field *field, const void *a, const void *b);
bool field_struct_copy(const cb_field *field, void *to, const void *from);
void field_struct_drop(const cb_field *field, void *member);
void field_struct_swap(const cb_field *field, void *a, void *b);
const char *field_struct_write(field_place *at, const void *member, json_object **ret);
const char *field_struct_diff(field_place *at, const void *before, const void *after,
                              json_object **ret);

/* ---- lists ---- */
/* The items as fields: at offset 0 of each. */
cb_field field_item(const cb_field *list);
bool field_list_equal(const cb_field *field, const void *a, const void *b);
bool field_list_copy(const cb_field *field, void *to, const void *from);
void field_list_drop(const cb_field *field, void *member);
const char *field_list_write(field_place *at, const void *member, json_object **ret);
const char *field_list_read(field_place *at, json_object *value, void *member);

/* A copy of a JSON value that can be kept at this depth. */
const char *field_json_keep(json_object *value, int depth, json_object **ret);

/* ---- dates and moments: date.c; amounts: money.c ---- */
const char *field_time_write(field_place *at, const void *member, json_object **ret);
const char *field_time_read(field_place *at, json_object *value, void *member);
const char *field_date_write(field_place *at, const void *member, json_object **ret);
const char *field_date_read(field_place *at, json_object *value, void *member);

bool field_money_equal(const cb_field *field, const void *a, const void *b);
const char *field_money_write(field_place *at, const void *member, json_object **ret);
const char *field_money_read(field_place *at, json_object *value, void *member);
bool field_decimal_equal(const cb_field *field, const void *a, const void *b);
const char *field_decimal_write(field_place *at, const void *member, json_object **ret);
const char *field_decimal_read(field_place *at, json_object *value, void *member);

/* ---- what they share ---- */

/* *ret is a JSON string. */
const char *field_string(const char *text, json_object **ret);
/* The text of a JSON string; NULL when it is none or holds a NUL. */
const char *field_text_of(json_object *value);

#endif
