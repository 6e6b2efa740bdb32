/* Which schema is in the database? */
#ifndef CB_SCHEMA_H
#define CB_SCHEMA_H

#include "db.h"

typedef struct {
    bool exists;       /* the table of versions is there */
    int version;       /* the component's, 0 when it was never migrated */
    int oldest_binary; /* binaries below this cannot work on it */
} schema_state;

bool schema_read(cb_db *db, const char *component, schema_state *ret, cb_error *e);

/* CB_SCHEMA_TOO_NEW when this binary is below the oldest that can work on the bus's schema. */
bool schema_check_binary(const schema_state *bus, cb_error *e);

#endif
