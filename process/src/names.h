/* A set of names, for "was this called before?". Borrows them. */
#ifndef PROCESS_NAMES_H
#define PROCESS_NAMES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    const char **slots;
    size_t room, n;
} names;

bool names_has(const names *set, const char *name);
/* One that is not there yet. False without memory. */
bool names_add(names *set, const char *name);
void names_clear(names *set);
void names_done(names *set);

#endif
