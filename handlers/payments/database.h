/* The set's tables: a few connections that slots share, because a slot needs one for a moment only. */
#ifndef PAYMENTS_DATABASE_H
#define PAYMENTS_DATABASE_H

#include <commandbus/handler.h>
#include <stdint.h>

typedef enum {
    DATABASE_DONE,
    DATABASE_LATER,   /* nobody knows whether it happened, or it may next time */
    DATABASE_REFUSED, /* it never will */
} database_result;

/* Runs a statement that may run twice: a connection that turns out to be dead is replaced once. `state` gets the SQLSTATE
 * or "". Returns within about ms, but for the time that a name takes to resolve. */
database_result database_run(const char *sql, size_t n, const char *const values[], int64_t ms,
                             char state[6]);

/* The same within a step: its outcome, bounded by its time. */
cb_outcome database_step(cb_context *ctx, const char *sql, size_t n, const char *const values[]);

/* Closes every connection: nobody uses one any more. */
void database_close(void);

#endif
