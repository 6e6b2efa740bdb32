/* A struct described by a table: the table serialises it, compares it, checks it and documents it.
 *
 *     typedef struct {
 *         char *debit_account;
 *         int64_t amount;
 *         bool approved;
 *     } payment;
 *
 *     CB_FIELDS(payment_fields, payment,
 *         CB_FIELD_AS(payment, debit_account, CB_TEXT, "debitAccount"),
 *         CB_FIELD(payment, amount, CB_INT),
 *         CB_FIELD(payment, approved, CB_BOOL));
 *
 * A struct made by cb_fields_new is all zeros; pointers in it belong to it and are malloc'd (strings) or
 * reference-counted (JSON): replace a string with cb_text_set. Thread-safety: tables are const; a struct
 * belongs to whoever has it. */
#ifndef COMMANDBUS_FIELDS_H
#define COMMANDBUS_FIELDS_H

#include <commandbus/api.h>
#include <commandbus/error.h>
#include <commandbus/handler.h>
#include <commandbus/money.h>
#include <commandbus/uuid.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    CB_BOOL,    /* bool */
    CB_INT,     /* int64_t: a JSON number without a fraction */
    CB_INT32,   /* int */
    CB_DOUBLE,  /* double: finite */
    CB_TEXT,    /* char *: owned; NULL is JSON null */
    CB_UUID,    /* cb_uuid: "" is JSON null */
    CB_TIME,    /* int64_t: milliseconds since 1970; on the wire ISO 8601 in UTC; 0 is JSON null */
    CB_ENUM,    /* int: an index into `names`; on the wire the name */
    CB_JSON,    /* json_object *: owned; any value */
    CB_MONEY,   /* cb_money: {"amount":"12.34","currency":"EUR"}; without a currency JSON null */
    CB_DECIMAL, /* cb_decimal: "1.0837" */
} cb_field_type;

typedef struct {
    const char *name; /* on the wire */
    cb_field_type type;
    size_t offset;
    size_t size;              /* of the member, checked against the type */
    const char *const *names; /* of a CB_ENUM, NULL-terminated */
} cb_field;

typedef struct {
    const char *name; /* the struct's */
    size_t size;
    const cb_field *fields;
    size_t n_fields;
} cb_fields;

#define CB_FIELD(T, member, type) CB_FIELD_AS(T, member, type, #member)
#define CB_FIELD_AS(T, member, type, name)                                  \
    {                                                                       \
        (name), (type), offsetof(T, member), sizeof(((T *)0)->member), NULL \
    }
#define CB_FIELD_ENUM(T, member, names)                                          \
    {                                                                            \
#member, CB_ENUM, offsetof(T, member), sizeof(((T *)0)->member), (names) \
    }
#define CB_FIELDS(table, T, ...)                                  \
    static const cb_field table##_list[] = { __VA_ARGS__ };       \
    static const cb_fields table = { #T, sizeof(T), table##_list, \
                                     sizeof table##_list / sizeof *table##_list }

/* Whether the table itself is sound: sizes fit their types, names are unique and not empty. */
CB_API bool cb_fields_check(const cb_fields *fields, cb_error *e) CB_NODISCARD;

/* All zeros; NULL without memory. */
CB_API void *cb_fields_new(const cb_fields *fields);
/* Frees what its members own, and the struct. NULL is fine. */
CB_API void cb_fields_free(const cb_fields *fields, void *record);
/* Makes `to`, a struct of this table, equal to `from`. False without memory: `to` is then unspecified but
 * can be freed. */
CB_API bool cb_fields_copy(const cb_fields *fields, void *to, const void *from) CB_NODISCARD;

/* Whether every value can be written: doubles are finite, text is UTF-8, an enum has its name, a time lies
 * in the years 1 to 9999, money has a currency of ISO 4217, JSON is at most 24 deep and its numbers fit. Refuses (CB_INVALID_DATA) naming the
 * field; what a step left behind is worth asking when writing it failed. */
CB_API bool cb_fields_valid(const cb_fields *fields, const void *record, cb_error *e) CB_NODISCARD;

/* The whole struct as a JSON object, every field present. The caller owns it; NULL without memory or when
 * a value is not valid. What it holds is a copy: the struct may change afterwards. */
CB_API json_object *cb_fields_write(const cb_fields *fields, const void *record);
/* Reads an object: what it lacks becomes zero, what is of the wrong type is refused naming the field
 * (CB_INVALID_DATA; the struct is then unchanged). Keys that the table does not have are left alone, and
 * unless `unknown` is NULL collected there (a new object, NULL when there are none; the caller owns it). */
CB_API bool cb_fields_read(const cb_fields *fields, void *record, json_object *from,
                           json_object **unknown, cb_error *e) CB_NODISCARD;

/* What changed from `before` to `after`: an object of the changed fields with their new values. *ret is NULL
 * when nothing did. False without memory or when a changed value is not valid. */
CB_API bool cb_fields_diff(const cb_fields *fields, const void *before, const void *after,
                           json_object **ret) CB_NODISCARD;
/* Sets the fields that the object has; others stay; unknown keys are ignored. NULL, as cb_fields_diff gives
 * it, changes nothing; nor does a patch that is refused. */
CB_API bool cb_fields_patch(const cb_fields *fields, void *record, json_object *patch,
                            cb_error *e) CB_NODISCARD;

/* Replaces an owned string by a copy of `value` (NULL: none). False without memory; *text is then as before. */
CB_API bool cb_text_set(char **text, const char *value);

#endif
