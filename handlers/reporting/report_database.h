/* Asking the set's tables: one connection for one run, bounded by the time that the run has. */
#ifndef REPORTING_DATABASE_H
#define REPORTING_DATABASE_H

#include <commandbus/handler.h>
#include <libpq-fe.h>

DEFINE_OWNED(PGresult, PQclear)

/* Runs one statement with text parameters. False: *failed is the run's outcome, transient but for
 * what the database will never take. The caller clears *ret. */
bool database_ask(cb_context *ctx, const char *sql, size_t n, const char *const values[],
                  PGresult **ret, cb_outcome *failed);

#endif
