/* The set's tables: a few connections that slots share, because a slot needs one for a moment
 * only. */
#ifndef PAYMENTS_DATABASE_H
#define PAYMENTS_DATABASE_H

#include <commandbus/handler.h>

/* Runs a statement that may run twice, within a step: a connection that turns out to be dead is
 * replaced once. Its outcome, bounded by the step's time but for what a name takes to resolve. */
cb_outcome database_step(cb_context *ctx, const char *sql, size_t n, const char *const values[]);

/* Closes every connection: nobody uses one any more. */
void database_close(void);

#endif
