/* A struct described by a table: the table serialises it, compares it, checks it and documents it.
 *
 *     typedef struct {
 *         char *street;
 *         char *city;
 *     } address;
 *
 *     typedef struct {
 *         char *debit_account;
 *         cb_money amount;
 *         cb_date value_date;
 *         address creditor;
 *         CB_LIST_OF(char *) references;
 *     } payment;
 *
 *     CB_FIELDS(address_fields, address,
 *         CB_FIELD(address, street, CB_TEXT),
 *         CB_FIELD(address, city, CB_TEXT));
 *     CB_FIELDS(payment_fields, payment,
 *         CB_FIELD_AS(payment, debit_account, CB_TEXT, "debitAccount"),
 *         CB_FIELD(payment, amount, CB_MONEY),
 *         CB_FIELD_AS(payment, value_date, CB_DATE, "valueDate"),
 *         CB_FIELD_STRUCT(payment, creditor, &address_fields),
 *         CB_FIELD_LIST(payment, references, CB_TEXT, 20));
 *
 * A table that several files use is CB_FIELDS_DECLARE(table); in a header and
 * CB_FIELDS_DEFINE(table, T, …); in one .c file.
 *
 * Memory: a struct made by cb_fields_new is all zeros and owns everything below it: strings
 * (malloc'd; replace one with cb_text_set), JSON (reference-counted), the items of lists (malloc'd;
 * cb_list_add, cb_list_remove, …) and what those own. cb_fields_free frees all of it; a copy shares
 * nothing with what it was copied from. So never assign a string, a list or a nested struct from
 * one struct to another: copy it.
 *
 * What is wrong with a value is said with its path: field 'creditor.city' of payment must be text
 * or null, field 'references[3]' of payment …
 *
 * Bounds: a list has as many items as its field says, tables nest CB_FIELDS_DEPTH deep, and a
 * struct with all its lists full has CB_FIELDS_LARGEST bytes at most, not counting texts and JSON;
 * cb_fields_check refuses a table that allows more.
 *
 * Thread-safety: tables are const; a struct belongs to whoever has it. */
#ifndef COMMANDBUS_FIELDS_H
#define COMMANDBUS_FIELDS_H

#include <commandbus/api.h>
#include <commandbus/context.h>
#include <commandbus/date.h>
#include <commandbus/error.h>
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
    CB_DATE,    /* cb_date: "2026-01-31"; zeros are JSON null */
    CB_STRUCT,  /* a struct with a table of its own, by value: a JSON object */
    CB_LIST,    /* CB_LIST_OF(T): a JSON array of one type of items; none is [] */
} cb_field_type;

enum {
    CB_FIELDS_DEPTH = 8,                 /* of tables in tables; one without any is 1 deep */
    CB_FIELDS_LARGEST = 4 * 1024 * 1024, /* bytes of a struct with all its lists full */
};

typedef struct cb_fields cb_fields;

typedef struct {
    const char *name; /* on the wire */
    cb_field_type type;
    size_t offset;
    size_t size; /* of the member, checked against the type */
    /* The rest is for some types only; of a list, `names` and `fields` are those of its items. */
    const char *const *names; /* of a CB_ENUM, NULL-terminated */
    const cb_fields *fields;  /* of a CB_STRUCT */
    cb_field_type item_type;  /* of a CB_LIST: anything but a list */
    size_t item_size;
    size_t max_items;
} cb_field;

struct cb_fields {
    const char *name; /* the struct's */
    size_t size;
    const cb_field *fields;
    size_t n_fields;
};

/* The member of a CB_LIST: items[0] to items[n - 1], all zeros when there are none. */
#define CB_LIST_OF(T) \
    struct {          \
        T *items;     \
        size_t n;     \
    }

/* Each with the member's name on the wire; with _AS another name. */
#define CB_FIELD(T, member, type)         CB_FIELD_AS(T, member, type, #member)
#define CB_FIELD_ENUM(T, member, names)   CB_FIELD_ENUM_AS(T, member, names, #member)
#define CB_FIELD_STRUCT(T, member, table) CB_FIELD_STRUCT_AS(T, member, table, #member)
/* Of at most `max` items: of a type that needs no more said, of names, or of structs. */
#define CB_FIELD_LIST(T, member, type, max) CB_FIELD_LIST_AS(T, member, type, max, #member)
#define CB_FIELD_LIST_ENUM(T, member, names, max) \
    CB_FIELD_LIST_ENUM_AS(T, member, names, max, #member)
#define CB_FIELD_LIST_OF(T, member, table, max) CB_FIELD_LIST_OF_AS(T, member, table, max, #member)

#define CB_FIELD_AS(T, member, type, name) \
    {                                      \
        CB_FIELD_(T, member, type, name)   \
    }
#define CB_FIELD_ENUM_AS(T, member, list, name)              \
    {                                                        \
        CB_FIELD_(T, member, CB_ENUM, name), .names = (list) \
    }
#define CB_FIELD_STRUCT_AS(T, member, table, name)               \
    {                                                            \
        CB_FIELD_(T, member, CB_STRUCT, name), .fields = (table) \
    }
#define CB_FIELD_LIST_AS(T, member, type, max, name) \
    {                                                \
        CB_FIELD_LIST_(T, member, type, max, name)   \
    }
#define CB_FIELD_LIST_ENUM_AS(T, member, list, max, name)              \
    {                                                                  \
        CB_FIELD_LIST_(T, member, CB_ENUM, max, name), .names = (list) \
    }
#define CB_FIELD_LIST_OF_AS(T, member, table, max, name)                   \
    {                                                                      \
        CB_FIELD_LIST_(T, member, CB_STRUCT, max, name), .fields = (table) \
    }
/* What they are made of. */
#define CB_FIELD_(T, member, kind, wire) \
    .name = (wire), .type = (kind), .offset = offsetof(T, member), .size = sizeof(((T *)0)->member)
#define CB_FIELD_LIST_(T, member, kind, max, wire) \
    CB_FIELD_(T, member, CB_LIST, wire),           \
        .item_type = (kind), .item_size = sizeof(*((T *)0)->member.items), .max_items = (max)

/* A table for this file; one for several. */
#define CB_FIELDS(table, T, ...) CB_FIELDS_(static, table, T, __VA_ARGS__)
#define CB_FIELDS_DECLARE(table) extern const cb_fields table
#define CB_FIELDS_DEFINE(table, T, ...) \
    CB_FIELDS_DECLARE(table);           \
    CB_FIELDS_(, table, T, __VA_ARGS__)
#define CB_FIELDS_(storage, table, T, ...)                         \
    static const cb_field table##_list[] = { __VA_ARGS__ };        \
    storage const cb_fields table = { #T, sizeof(T), table##_list, \
                                      sizeof table##_list / sizeof *table##_list }

/* Whether the table itself, and every table in it, is sound: sizes fit their types, names are
 * unique and not empty, bounds hold. A table that holds itself is refused. */
CB_API bool cb_fields_check(const cb_fields *fields, cb_error *e) CB_NODISCARD;

/* All zeros; NULL without memory. */
CB_API void *cb_fields_new(const cb_fields *fields);
/* Frees what its members own, and the struct. NULL is fine. */
CB_API void cb_fields_free(const cb_fields *fields, void *record);
/* Makes `to`, a struct of this table, equal to `from`. False without memory: `to` is then
 * unspecified but can be freed. */
CB_API bool cb_fields_copy(const cb_fields *fields, void *to, const void *from) CB_NODISCARD;

/* Whether every value can be written: doubles are finite, text is UTF-8, an enum has its name, a
 * time lies in the years 1 to 9999, a date is in the calendar, money has a currency of ISO 4217,
 * a list has its items and not too many, JSON is at most 24 deep and its numbers fit. Refuses
 * (CB_INVALID_DATA) naming the field; what a step left behind is worth asking when writing it
 * failed. */
CB_API bool cb_fields_valid(const cb_fields *fields, const void *record, cb_error *e) CB_NODISCARD;

/* The whole struct as a JSON object, every field present. The caller owns it; NULL without
 * memory or when a value is not valid. What it holds is a copy: the struct may change
 * afterwards. */
CB_API json_object *cb_fields_write(const cb_fields *fields, const void *record);
/* Reads an object: what it lacks becomes zero, what is of the wrong type is refused naming the
 * field (CB_INVALID_DATA; the struct is then unchanged). JSON null for a struct or a list is all
 * zeros. Keys that the table does not have are left alone, and unless `unknown` is NULL
 * collected there (a new object, NULL when there are none; the caller owns it): those of nested
 * structs as an object under the struct's name, those in items of lists not at all. */
CB_API bool cb_fields_read(const cb_fields *fields, void *record, json_object *from,
                           json_object **unknown, cb_error *e) CB_NODISCARD;

/* What changed from `before` to `after`: an object of the changed fields with their new values;
 * of a nested struct what changed in it, of a list all of it. *ret is NULL when nothing did.
 * False without memory or when a changed value is not valid. */
CB_API bool cb_fields_diff(const cb_fields *fields, const void *before, const void *after,
                           json_object **ret) CB_NODISCARD;
/* Sets the fields that the object has; others stay, also in nested structs; unknown keys are
 * ignored. NULL, as cb_fields_diff gives it, changes nothing; nor does a patch that is refused. */
CB_API bool cb_fields_patch(const cb_fields *fields, void *record, json_object *patch,
                            cb_error *e) CB_NODISCARD;

/* Replaces an owned string by a copy of `value` (NULL: none). False without memory; *text is
 * then as before. */
CB_API bool cb_text_set(char **text, const char *value);

/* ---- lists: `list` is the address of a CB_LIST member of `record`, a struct of this table ----
 *
 *     line *l = cb_list_add(&order_fields, o, &o->lines);
 *     if (!l || !cb_text_set(&l->article, "A-1"))
 *         return false;
 */

/* A new item at the end, all zeros. It belongs to the list; items move when one is added or
 * removed. NULL: the list is full, there is no memory, or the table has no such list. */
CB_API void *cb_list_add(const cb_fields *fields, void *record, void *list) CB_NODISCARD;
/* Frees item i; those behind it move up. Nothing happens when there is none. */
CB_API void cb_list_remove(const cb_fields *fields, void *record, void *list, size_t i);
/* Frees all items. */
CB_API void cb_list_clear(const cb_fields *fields, void *record, void *list);
/* Makes the list equal to `from`, a list of items of the same type, of this struct or of any other.
 * False when it has too many, without memory, or for no such list: the list is then as before. */
CB_API bool cb_list_copy(const cb_fields *fields, void *record, void *list,
                         const void *from) CB_NODISCARD;

#endif
