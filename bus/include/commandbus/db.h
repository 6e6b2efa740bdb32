/* A connection to the database.
 *
 * Thread-safety: a cb_db and everything opened on it belong to one thread at a time; different
 * handles are independent. The library keeps no globals. */
#ifndef COMMANDBUS_DB_H
#define COMMANDBUS_DB_H

#include <commandbus/api.h>
#include <commandbus/error.h>
#include <commandbus/owned.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct cb_db cb_db;
struct pg_conn;   /* libpq's PGconn */
struct pg_result; /* libpq's PGresult */

/* Connects. `url` is a libpq connection string or URL; its password never appears in a message.
 * Fails with CB_LOST when nobody answers, CB_DENIED when the login is refused, and CB_SERVER
 * when it comes with standard_conforming_strings = off. */
CB_API bool cb_db_open(const char *url, cb_db **ret, cb_error *e) CB_NODISCARD;
/* The same with an application_name of the caller's, unless the URL has one [commandbus]: what
 * pg_stat_activity calls the connection. */
CB_API bool cb_db_open_named(const char *url, const char *application, cb_db **ret,
                             cb_error *e) CB_NODISCARD;

/* Works on a connection of the caller's, for example inside its own transaction. The connection
 * is borrowed: it must outlive the handle, and neither cb_db_free nor cb_db_reconnect closes it. */
CB_API bool cb_db_borrow(struct pg_conn *conn, cb_db **ret, cb_error *e) CB_NODISCARD;

/* Closes the connection unless it is borrowed. NULL is fine. */
CB_API void cb_db_free(cb_db *db);
DEFINE_OWNED(cb_db, cb_db_free)

/* Drops what is left of the connection and connects anew with the same URL. A borrowed connection
 * is reset by its owner: this then only looks whether it works again. */
CB_API bool cb_db_reconnect(cb_db *db, cb_error *e) CB_NODISCARD;

/* Whether calls that repeat are prepared on the connection [true; a borrowed one: false]. Behind a
 * pooler nothing is, which is found out; this is for one that hides too well. */
CB_API void cb_db_set_prepared(cb_db *db, bool on);

/* True after a CB_LOST: every call fails until cb_db_reconnect. */
CB_API bool cb_db_is_lost(const cb_db *db);

/* The file descriptor of the connection, for poll; -1 when lost. */
CB_API int cb_db_socket(const cb_db *db);

/* One statement of yours beside the bus's, such as on tables of a handler set, with n ≤ 32 text
 * parameters (NULL is SQL's NULL). In a transaction of its own, READ COMMITTED and READ WRITE
 * whatever role and database have for a default, in one round trip; or as a part of the one that
 * is open. On success the caller owns *ret (PQclear). */
CB_API bool cb_db_ask(cb_db *db, const char *sql, const char *const values[], size_t n,
                      struct pg_result **ret, cb_error *e) CB_NODISCARD;

/* libpq's connection, for what cb_db_ask cannot do. Borrowed, until the next reconnect; NULL
 * when lost. Leave it as it was: no transaction, no session settings. A statement outside a
 * transaction that says otherwise gets whatever isolation and access the role and the database
 * have for a default. */
CB_API struct pg_conn *cb_db_conn(cb_db *db);

/* Ends what runs on a connection: the one thing about it that another thread may do. */
typedef struct cb_canceler cb_canceler;

/* Of the connection as it is now; after a reconnect it ends nothing. It may outlive db. */
CB_API bool cb_canceler_open(cb_db *db, cb_canceler **ret, cb_error *e) CB_NODISCARD;
CB_API void cb_canceler_free(cb_canceler *canceler);
DEFINE_OWNED(cb_canceler, cb_canceler_free)

/* Tells the server, on a connection of its own, and returns when it has heard: the statement
 * that runs, if one does, fails with CB_AGAIN, and the connection is as good as before. Waits
 * for as long as the server does not answer. */
CB_API bool cb_canceler_send(const cb_canceler *canceler, cb_error *e);

/* A transaction around several calls, for example two sends that must both happen. */
CB_API bool cb_db_begin(cb_db *db, cb_error *e) CB_NODISCARD;
/* Fails also when a statement before had failed and the server rolled back instead. */
CB_API bool cb_db_commit(cb_db *db, cb_error *e) CB_NODISCARD;
/* Fine when there is none. */
CB_API bool cb_db_rollback(cb_db *db, cb_error *e);

/* Fails with CB_SCHEMA or CB_SCHEMA_TOO_NEW unless this binary can work on the schema it finds. */
CB_API bool cb_db_check_schema(cb_db *db, cb_error *e) CB_NODISCARD;

#endif
