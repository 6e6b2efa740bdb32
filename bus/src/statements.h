/* Running statements: what every file of the library that talks to the database uses. */
#ifndef CB_STATEMENTS_H
#define CB_STATEMENTS_H

#include <commandbus/db.h>
#include <commandbus/owned.h>
#include <libpq-fe.h>
#include <stddef.h>

#include "params.h"
#include "prepared.h"

/* A PGresult local is cleared when its block ends. */
DEFINE_OWNED(PGresult, PQclear)

struct cb_db {
    PGconn *conn; /* NULL after a reconnect that failed */
    char *url;    /* NULL when the connection is borrowed */
    char *application;
    bool lost;
    prepared_set prepared; /* on conn */
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

/* Runs one statement; p may be NULL. On success the caller owns *ret. Outside a transaction of the
 * caller's it gets one of its own, in the same round trip: READ COMMITTED and READ WRITE, so that
 * no default_transaction_… of a role or a database matters. */
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

/* ---- several statements, one flush, one transaction ---- */

typedef struct {
    const char *sql; /* borrowed */
    params p;
    db_format format;
    PGresult *result;             /* out: of the statement, freed by pipeline_done */
    bool refused;                 /* out: this is the one that failed */
    prepared_statement *prepared; /* of pipeline_run: NULL when it is sent as text */
} pipeline_statement;

/* Runs n > 0 statements in a transaction of their own, BEGIN and COMMIT in the same flush,
 * unless the caller has one open, which they then are a part of. In one of their own those that
 * repeat are prepared, and all are run again as text if that is why they failed. On failure e tells
 * the first one, which is marked unless it was the commit, and no results are left; the connection
 * stays usable unless it is lost. */
bool pipeline_run(cb_db *db, db_access access, pipeline_statement *statements, size_t n,
                  cb_error *e);

/* Frees the results. */
void pipeline_done(pipeline_statement *statements, size_t n);

/* ---- where nothing planted in another schema is found ---- */

/* As db_read, but under our own search_path: a function or operator that somebody made in a
 * schema of the caller's path, matching our arguments better than the server's own, would otherwise
 * run with the rights of whoever asks. The caller's path is as before when it returns. */
bool db_read_guarded(cb_db *db, const char *sql, const params *p, PGresult **ret, cb_error *e);

/* The same for a statement that writes what it has found. */
bool db_run_guarded(cb_db *db, const char *sql, const params *p, PGresult **ret, cb_error *e);

#endif
