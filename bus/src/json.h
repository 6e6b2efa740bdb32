/* Is this JSON that PostgreSQL's jsonb takes? */
#ifndef CB_JSON_H
#define CB_JSON_H

#include <commandbus/error.h>

typedef enum {
    JSON_OBJECT,
    JSON_ANY,
} json_kind;

/* Arrays and objects inside each other. */
enum {
    JSON_MAX_DEPTH = 32
};

/* Strict RFC 8259, well-formed UTF-8, no \u0000, paired surrogates. Fails with CB_INVALID_DATA;
 * the message says where, calls the text `what` and does not repeat it. */
bool json_check(const char *text, json_kind kind, const char *what, cb_error *e);

#endif
