/* One line for each type of field: how its values are compared, copied, freed, written and read. */
#ifndef PROCESS_FIELDS_TYPES_H
#define PROCESS_FIELDS_TYPES_H

#include <commandbus/fields.h>

/* What write and read say when there is none: compare by address. */
extern const char field_no_memory[];

/* What is NULL works on the member's bytes. */
typedef struct {
    size_t size; /* of the member */
    bool (*equal)(const void *a, const void *b);
    bool (*copy)(void *to, const void *from); /* frees what `to` had; false without memory */
    void (*drop)(void *member);               /* frees what it owns */
    /* Both give NULL, or what is wrong: static storage, as in "field 'amount' <is not finite>". */
    const char *(*write)(const cb_field *field, const void *member, json_object **ret);
    /* The member is zero at entry. */
    const char *(*read)(const cb_field *field, json_object *value, void *member);
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

/* ---- the types that own memory ---- */
bool field_text_equal(const void *a, const void *b);
bool field_text_copy(void *to, const void *from);
void field_text_drop(void *member);
const char *field_text_write(const cb_field *field, const void *member, json_object **ret);
const char *field_text_read(const cb_field *field, json_object *value, void *member);

bool field_json_equal(const void *a, const void *b);
bool field_json_copy(void *to, const void *from);
void field_json_drop(void *member);
const char *field_json_write(const cb_field *field, const void *member, json_object **ret);
const char *field_json_read(const cb_field *field, json_object *value, void *member);

/* ---- the others that have a file ---- */
const char *field_double_write(const cb_field *field, const void *member, json_object **ret);
const char *field_double_read(const cb_field *field, json_object *value, void *member);
const char *field_time_write(const cb_field *field, const void *member, json_object **ret);
const char *field_time_read(const cb_field *field, json_object *value, void *member);

bool field_money_equal(const void *a, const void *b);
const char *field_money_write(const cb_field *field, const void *member, json_object **ret);
const char *field_money_read(const cb_field *field, json_object *value, void *member);
bool field_decimal_equal(const void *a, const void *b);
const char *field_decimal_write(const cb_field *field, const void *member, json_object **ret);
const char *field_decimal_read(const cb_field *field, json_object *value, void *member);

/* ---- what they share ---- */

/* *ret is a JSON string. */
const char *field_string(const char *text, json_object **ret);
/* The text of a JSON string; NULL when it is none or holds a NUL. */
const char *field_text_of(json_object *value);
/* Well-formed UTF-8: what the database takes. */
bool field_text_is_utf8(const char *text);
/* Puts a question mark for each byte that is not. */
void field_text_mend(char *text);

#endif
