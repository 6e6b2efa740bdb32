/* Statements that look things up, where nothing planted in another schema is found. */
#ifndef CB_LOOK_H
#define CB_LOOK_H

#include "db.h"

/* As db_read, but under our own search_path: a function or operator that somebody made in a
 * schema of the caller's path, matching our arguments better than the server's own, would otherwise
 * run with the rights of whoever looks. The caller's path is as before when it returns. */
bool db_look(cb_db *db, const char *sql, const params *p, PGresult **ret, cb_error *e);

/* The same for a statement that writes what it has found. */
bool db_look_and_write(cb_db *db, const char *sql, const params *p, PGresult **ret, cb_error *e);

#endif
