/* Numbered files of one component, and applying what is missing of them. */
#ifndef CB_MIGRATION_H
#define CB_MIGRATION_H

#include <commandbus/migrate.h>
#include <stddef.h>

#include "db.h"
#include "sql.h"

typedef struct {
    const char *component;    /* "commandbus", or the name of a handler set */
    const cb_sql_file *files; /* borrowed, ascending */
    size_t n;
    bool is_bus; /* run bootstrap.sql first */
} migration;

/* One transaction under a lock; nothing at all is written when nothing is missing. */
bool migration_apply(cb_db *db, const migration *m, cb_migrate_report *ret, cb_error *e);

#endif
