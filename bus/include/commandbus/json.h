/* JSON text by the rules of the bus, before anybody reads it. */
#ifndef COMMANDBUS_JSON_H
#define COMMANDBUS_JSON_H

#include <commandbus/api.h>
#include <commandbus/error.h>
#include <stdbool.h>
#include <stddef.h>

/* Whether the text is one JSON value that jsonb keeps: strict RFC 8259, UTF-8, no \u0000,
 * surrogates in pairs, each key once in its object, at most 32 levels. Fails with
 * CB_INVALID_DATA; the message says where, calls the text `what` and repeats nothing of it but a
 * duplicate key. */
CB_API bool cb_json_check(const char *text, const char *what, cb_error *e) CB_NODISCARD;

/* The same for an object that json-c then reads as it was meant: integers have 64 bits, other
 * numbers are finite. */
CB_API bool cb_json_check_object(const char *text, const char *what, cb_error *e) CB_NODISCARD;

/* About how much memory json-c takes to read the text, which need not be JSON. A few bytes of
 * text can be two hundred times as much: [{},{},{}]. Ask before you read what a stranger has
 * sent. */
CB_API size_t cb_json_memory(const char *text);

#endif
