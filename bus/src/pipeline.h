/* Several statements, one flush, one transaction. */
#ifndef CB_PIPELINE_H
#define CB_PIPELINE_H

#include <stddef.h>

#include "db.h"

typedef struct {
    const char *sql; /* borrowed */
    params p;
    PGresult *result; /* out: of the statement, freed by pipeline_done */
    bool refused;     /* out: this is the one that failed */
} pipeline_statement;

/* Runs n > 0 statements up to one Sync: they commit together or not at all, unless the caller has a
 * transaction open, which they then are a part of. On failure e tells the first one, which is marked
 * unless it was the commit, and no results are left; the connection stays usable unless it is lost. */
bool pipeline_run(cb_db *db, pipeline_statement *statements, size_t n, cb_error *e);

/* Frees the results. */
void pipeline_done(pipeline_statement *statements, size_t n);

#endif
