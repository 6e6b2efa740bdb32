/* Statements that a handler leaves to be run with its success. */
#ifndef CB_EFFECTS_H
#define CB_EFFECTS_H

#include <stddef.h>

enum {
    EFFECTS_MAX = 16,
    EFFECT_VALUES_MAX = 32,
    EFFECTS_BYTES_MAX = 1024 * 1024,
    EFFECTS_FAILURE_BYTES = 400,
};

/* One allocation with all its strings. */
typedef struct {
    const char *sql;
    size_t n;
    const char *values[EFFECT_VALUES_MAX];
} effect;

typedef struct {
    effect *list[EFFECTS_MAX];
    size_t count;
    size_t bytes;                            /* of all statements and values */
    char failure[EFFECTS_FAILURE_BYTES + 1]; /* what the database said when they were run */
} effects;

/* NULL, or why it has no room or is nothing that may be run: static storage. */
const char *effects_add(effects *to, const char *sql, size_t n, const char *const values[]);

/* NULL is fine. */
void effects_free(effects *of);

#endif
