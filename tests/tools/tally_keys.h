/* How often each of many keys came. */
#ifndef TOOLS_KEYS_H
#define TOOLS_KEYS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    char *text;
    size_t times;
} key_count;

/* A hash table with open addressing, {0} is an empty one. It lives as long as its program. */
typedef struct {
    key_count *places;
    size_t n_places; /* a power of two, or 0 */
    size_t n;        /* different keys */
    size_t repeated; /* keys that came more than once */
} keys;

/* Counts the first `length` characters of text. False when memory ran out. */
bool keys_count(keys *k, const char *text, size_t length);

#endif
