/* Texts in arrays of a fixed size. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <commandbus/api.h>
#include <stddef.h>

/* Appends to the text in an array of `size` bytes what fits, cut between characters. */
void text_append(char *text, size_t size, const char *fmt, ...) CB_PRINTF(3, 4);

#endif
