/* "Did you mean ...?": the nearest known word. */
#ifndef CLI_SUGGEST_H
#define CLI_SUGGEST_H

#include <stddef.h>

/* Start with word and length, offer every known word, then read nearest. */
typedef struct {
    const char *word; /* not ended at length */
    size_t length;
    const char *nearest; /* NULL: nothing is near */
    size_t distance;
} suggestion;

/* Remembers `known` when it is near, and nearer than what was offered before. */
void suggest(suggestion *s, const char *known);

#endif
