/* Characters in strings of JSON. */
#ifndef BASE_JSON_ESCAPE_H
#define BASE_JSON_ESCAPE_H

#include <stddef.h>

#define JSON_ESCAPE_SIZE 7 /* "\u001f" and its NUL */

/* Writes the escape of a byte that cannot stand for itself in a string: the quote, the backslash,
 * control characters. Returns its length, 0 for every other byte, those of UTF-8 included. */
size_t json_escape(unsigned char byte, char out[JSON_ESCAPE_SIZE]);

#endif
