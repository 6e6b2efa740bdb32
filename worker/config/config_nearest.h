/* "Did you mean ...?": the nearest of the words that were offered. */
#ifndef APP_CONFIG_NEAREST_H
#define APP_CONFIG_NEAREST_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    const char *word;
    const char *best; /* borrowed from the offer, NULL when none is near */
    size_t distance;
} nearest_word;

/* How many letters to add, drop, change or swap; large when a word is very long. */
size_t nearest_distance(const char *a, const char *b);
/* True when it is near, and nearer than what was offered before. */
bool nearest_offer(nearest_word *n, const char *candidate);

#endif
