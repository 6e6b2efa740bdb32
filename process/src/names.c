/* Open addressing, at most half full. */
#include "names.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static uint64_t hash(const char *name)
{
    uint64_t h = 14695981039346656037u; /* FNV-1a */

    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 1099511628211u;
    return h;
}

/* Where the name is, or would be. */
static const char **place(const names *set, const char *name)
{
    size_t i = hash(name) & (set->room - 1);

    while (set->slots[i] && strcmp(set->slots[i], name) != 0)
        i = (i + 1) & (set->room - 1);
    return &set->slots[i];
}

static bool grow(names *set)
{
    names bigger = { .room = set->room ? 2 * set->room : 32, .n = set->n };

    bigger.slots = calloc(bigger.room, sizeof *bigger.slots);
    if (!bigger.slots)
        return false;
    for (size_t i = 0; i < set->room; i++) {
        if (set->slots[i])
            *place(&bigger, set->slots[i]) = set->slots[i];
    }
    free(set->slots);
    *set = bigger;
    return true;
}

bool names_has(const names *set, const char *name)
{
    return set->n > 0 && *place(set, name);
}

bool names_add(names *set, const char *name)
{
    if (2 * set->n >= set->room && !grow(set))
        return false;
    *place(set, name) = name;
    set->n++;
    return true;
}

void names_clear(names *set)
{
    if (set->n > 0)
        memset(set->slots, 0, set->room * sizeof *set->slots);
    set->n = 0;
}

void names_done(names *set)
{
    free(set->slots);
    *set = (names){ 0 };
}
