/* Result tables of queries. */
#ifndef CB_ROWS_H
#define CB_ROWS_H

#include <commandbus/query.h>

#include "statements.h"

/* Runs a statement and wraps its result. */
bool rows_query(cb_db *db, const char *sql, const params *p, cb_rows **ret, cb_error *e);

/* Adopts the result, also on failure. */
bool rows_adopt(PGresult *result, cb_rows **ret, cb_error *e);

#endif
