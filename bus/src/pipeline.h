/* Several statements, one flush, one transaction. */
#ifndef CB_PIPELINE_H
#define CB_PIPELINE_H

#include <stddef.h>

#include "db.h"

typedef struct {
    const char *sql; /* borrowed */
    params p;
    db_format format;
    PGresult *result; /* out: of the statement, freed by pipeline_done */
    bool refused;     /* out: this is the one that failed */
} pipeline_statement;

/* Runs n > 0 statements in a transaction of their own, BEGIN and COMMIT in the same flush, unless the
 * caller has one open, which they then are a part of. On failure e tells the first one, which is marked
 * unless it was the commit, and no results are left; the connection stays usable unless it is lost. */
bool pipeline_run(cb_db *db, db_access access, pipeline_statement *statements, size_t n,
                  cb_error *e);

/* Frees the results. */
void pipeline_done(pipeline_statement *statements, size_t n);

#endif
