/* Numbered files of one component, and applying what is missing of them. */
#ifndef CB_MIGRATION_H
#define CB_MIGRATION_H

#include <commandbus/migrate.h>

#include "schema.h"

/* One transaction under a lock; nothing at all is written when nothing is missing. CB_SCHEMA when the
 * database was made of other files than these. */
bool migration_apply(cb_db *db, const schema_files *m, cb_migrate_report *ret, cb_error *e);

#endif
