/* "Did you mean ...?": the nearest of the words that are offered. */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include <stdbool.h>
#include <stddef.h>

/* Start with word and length, offer every known word, then read best. */
typedef struct {
    const char *word; /* not ended at length */
    size_t length;
    const char *best; /* borrowed from the offer; NULL: nothing is near */
    size_t distance;
} nearest_word;

/* Keeps `known` when it is near, and nearer than what was offered before; then true. */
bool nearest_offer(nearest_word *n, const char *known);

#endif
