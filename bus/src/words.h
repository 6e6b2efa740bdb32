/* Reading arrays of plain words as the server prints them: {SETTLED,BUSY}. */
#ifndef CB_WORDS_H
#define CB_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* Sets *value to the index of the next word in `names` (n of them) and moves *at behind it. False
 * at the end, or when the word is none of them. */
bool words_next(const char **at, const char *const *names, size_t n, size_t *value);

#endif
