/* Running statements: what every file of the library that talks to the database uses. */
#ifndef CB_PRIVATE_DB_H
#define CB_PRIVATE_DB_H

#include <commandbus/db.h>

#include "owned_pq.h"
#include "params.h"

struct cb_db {
    PGconn *conn; /* NULL after a reconnect that failed */
    char *url;    /* NULL when the connection is borrowed */
    bool lost;
};

typedef enum {
    DB_TEXT = 0,
    DB_BINARY = 1,
} db_format;

/* Runs one unnamed statement; p may be NULL. On success the caller owns *ret. */
bool db_run(cb_db *db, const char *sql, const params *p, db_format format, PGresult **ret,
            cb_error *e);

/* The same for who wants no result. */
bool db_do(cb_db *db, const char *sql, const params *p, cb_error *e);

/* Several statements without parameters, by the simple protocol. */
bool db_do_script(cb_db *db, const char *script, cb_error *e);

/* Fails with CB_LOST when the connection is known to be gone. */
bool db_is_ready(const cb_db *db, cb_error *e);

/* Fills e from a failed result (NULL: from the connection) and remembers a lost connection. */
bool db_fail(cb_db *db, const PGresult *result, cb_error *e);

/* True inside a transaction that was begun and has not ended, failed ones included. */
bool db_in_transaction(const cb_db *db);

#endif
