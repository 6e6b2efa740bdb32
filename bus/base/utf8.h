/* UTF-8 by the table of well-formed byte sequences in the Unicode standard, which is what the
 * database accepts as text: no overlong forms, no surrogates, nothing beyond U+10FFFF. Texts end
 * with a NUL, and no function reads past it. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many bytes the first character of `text` has; 0 if it is malformed or the text is empty. */
size_t utf8_length(const char *text);

/* Same, and the code point. *character is untouched when the result is 0. */
size_t utf8_decode(const char *text, uint32_t *character);

/* The bytes of a code point, which must be one: not a surrogate, U+10FFFF at most. Writes no NUL
 * and returns how many they are. */
size_t utf8_encode(uint32_t character, char out[4]);

bool utf8_is_valid(const char *text);

/* Characters in a valid text: its width in a table, but for wide and combining ones. */
size_t utf8_count(const char *text);

/* Removes a character that a cut at the end of the text has left incomplete. */
void utf8_trim(char *text);

/* Overwrites each malformed byte with a question mark. */
void utf8_repair(char *text);

/* Copies what fits into `size` bytes, whole characters only, each malformed byte as U+FFFD. */
void utf8_copy(char *to, size_t size, const char *from);

#endif
