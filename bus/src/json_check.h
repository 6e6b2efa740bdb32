/* Is this JSON that PostgreSQL's jsonb takes and keeps whole, and do its numbers fit where they
 * go? */
#ifndef CB_JSON_CHECK_H
#define CB_JSON_CHECK_H

#include <commandbus/error.h>

typedef enum {
    JSON_OBJECT,
    JSON_ANY,
} json_kind;

/* What numbers may be. jsonb keeps any; a double ends at about 1.8e308; json-c silently makes the
 * nearest 64-bit integer of one that has no room in 64 bits, which is no way to treat an amount. */
typedef enum {
    JSON_NUMBERS_ANY,
    JSON_NUMBERS_FINITE, /* as a double */
    JSON_NUMBERS_HELD,   /* without '.' and exponent: -2^63 to 2^64 - 1; the others finite */
} json_numbers;

/* Arrays and objects inside each other. */
enum {
    JSON_MAX_DEPTH = 32
};

/* Strict RFC 8259, well-formed UTF-8, no \u0000, paired surrogates, and no object with a key
 * twice. Fails with CB_INVALID_DATA; the message says where, calls the text `what` and does not
 * repeat it, but for a key that is there twice. */
bool json_check(const char *text, json_kind kind, const char *what, cb_error *e);

/* The same, and its numbers are as told. */
bool json_check_numbers(const char *text, json_kind kind, json_numbers numbers, const char *what,
                        cb_error *e);

#endif
