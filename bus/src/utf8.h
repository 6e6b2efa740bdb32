/* What the database accepts as text: well-formed UTF-8. */
#ifndef CB_UTF8_H
#define CB_UTF8_H

#include <stddef.h>

/* How many bytes the character at `s` has; 0 when it is malformed (cut off, overlong, a surrogate,
 * beyond U+10FFFF) or the end of the string. */
size_t utf8_length(const unsigned char *s);

/* Takes a character away that a cut at the end of `s` has left incomplete. */
void utf8_mend(char *s);

/* Copies what fits into `size` bytes, whole characters only, each malformed byte as U+FFFD. */
void utf8_copy(char *to, size_t size, const char *from);

#endif
