/* Bringing a database to this binary's schema. */
#ifndef COMMANDBUS_MIGRATE_H
#define COMMANDBUS_MIGRATE_H

#include <commandbus/db.h>

typedef struct {
    int found;   /* version before, 0 when there was none */
    int now;     /* version after */
    int applied; /* files applied by this call */
} cb_migrate_report;

/* The schema version this binary brings and needs. */
CB_API int cb_schema_version(void);

/* Applies what is missing, in one transaction. Idempotent, safe from many clients at once. Refuses a
 * server without PGMQ or too old (CB_SCHEMA), and a schema that has outgrown this binary
 * (CB_SCHEMA_TOO_NEW). */
CB_API bool cb_migrate(cb_db *db, cb_migrate_report *ret, cb_error *e) CB_NODISCARD;

/* The same for a handler set: `folder` holds its files NNN_name.sql, `set` names it. */
CB_API bool cb_migrate_set(cb_db *db, const char *set, const char *folder, cb_migrate_report *ret,
                           cb_error *e) CB_NODISCARD;

#endif
