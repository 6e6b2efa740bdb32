/* Bringing a database to this binary's schema. */
#ifndef COMMANDBUS_MIGRATE_H
#define COMMANDBUS_MIGRATE_H

#include <commandbus/db.h>

typedef struct {
    int found;      /* version before, 0 when there was none */
    int now;        /* version after */
    int applied;    /* files applied by this call */
    bool functions; /* whether functions and views were replaced by this binary's */
} cb_migrate_report;

/* What is in the database, and what cb_migrate would do about it. */
typedef struct {
    int found;             /* schema version in the database, 0: none */
    int brings;            /* schema version of this binary */
    int missing;           /* numbered files that would be applied */
    bool former;           /* the layout of before 0.1.0, which would be brought over */
    char functions[32];    /* release of the functions in the database, "": none */
    bool functions_differ; /* they are not this binary's */
    bool functions_wanted; /* and would be replaced by them */
} cb_migrate_status;

/* The schema version this binary brings and needs. */
CB_API int cb_schema_version(void);

/* Applies what is missing, in one transaction. Idempotent, safe from many clients at once.
 * Refuses a server without PGMQ or too old (CB_SCHEMA), and a schema that has outgrown this
 * binary (CB_SCHEMA_TOO_NEW). */
CB_API bool cb_migrate(cb_db *db, cb_migrate_report *ret, cb_error *e) CB_NODISCARD;

/* Changes nothing. Refuses what cb_migrate would refuse. */
CB_API bool cb_migrate_look(cb_db *db, cb_migrate_status *ret, cb_error *e) CB_NODISCARD;

/* The same for a handler set: `folder` holds its files NNN_name.sql, `set` names it. */
CB_API bool cb_migrate_set(cb_db *db, const char *set, const char *folder, cb_migrate_report *ret,
                           cb_error *e) CB_NODISCARD;

#endif
