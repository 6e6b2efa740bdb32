/* Running statements: what every file of the library that talks to the database uses. */
#ifndef CB_PRIVATE_DB_H
#define CB_PRIVATE_DB_H

#include <commandbus/db.h>

#include "owned_pq.h"
#include "params.h"

struct cb_db {
    PGconn *conn; /* NULL after a reconnect that failed */
    char *url;    /* NULL when the connection is borrowed */
    char *application;
    bool lost;
};

typedef enum {
    DB_TEXT = 0,
    DB_BINARY = 1,
} db_format;

/* What a transaction of ours is begun for. */
typedef enum {
    DB_WRITES,
    DB_READS,
} db_access;

/* Runs one unnamed statement; p may be NULL. On success the caller owns *ret. Outside a transaction
 * of the caller's it gets one of its own, in the same round trip: READ COMMITTED and READ WRITE, so
 * that no default_transaction_… of a role or a database matters. */
bool db_run(cb_db *db, const char *sql, const params *p, db_format format, PGresult **ret,
            cb_error *e);

/* The same in a transaction that only reads. */
bool db_read(cb_db *db, const char *sql, const params *p, PGresult **ret, cb_error *e);

/* db_run without a result. */
bool db_do(cb_db *db, const char *sql, const params *p, cb_error *e);

/* The statement alone, as it is: what begins and ends transactions, or does without. */
bool db_exec(cb_db *db, const char *sql, const params *p, db_format format, PGresult **ret,
             cb_error *e);

/* Several statements without parameters, by the simple protocol. */
bool db_do_script(cb_db *db, const char *script, cb_error *e);

/* Fails with CB_LOST when the connection is known to be gone. */
bool db_is_ready(const cb_db *db, cb_error *e);

/* Fills e from a failed result (NULL: from the connection) and remembers a lost connection. */
bool db_fail(cb_db *db, const PGresult *result, cb_error *e);

/* A BEGIN failed. A server that cannot write is a standby: the connection counts as lost, because
 * reconnecting finds the primary. */
void db_begin_failed(cb_db *db, cb_error *e);

/* True inside a transaction that was begun and has not ended, failed ones included. */
bool db_in_transaction(const cb_db *db);

#endif
