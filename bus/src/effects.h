/* Statements that a handler leaves to be run with its success. */
#ifndef CB_EFFECTS_H
#define CB_EFFECTS_H

#include <commandbus/host.h>
#include <stddef.h>

typedef struct effects effects;

/* Keeps a copy; *to is made with the first. NULL, or why it has no room or is nothing that may
 * be run: static storage. */
const char *effects_add(effects **to, const char *sql, size_t n, const char *const values[]);

/* 0 for NULL. */
size_t effects_count(const effects *of);

/* NULL is fine. */
void effects_free(effects *of);

/* Those of a context, which owns them; NULL: none. */
effects *context_effects(const cb_context *ctx);

#endif
