/* UTF-8: what may be printed and sent. */
#ifndef CLI_UTF8_H
#define CLI_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the character at `text` of which `length` bytes are there; 0 when it is none: too long a
 * form, a surrogate, above U+10FFFF, cut off. */
size_t utf8_character(const char *text, size_t length);

bool utf8_is_valid(const char *text, size_t length);

/* Characters in a valid text: its width in a table, but for wide and combining ones. */
size_t utf8_count(const char *text);

#endif
