/* The connection handle: opening, losing, reconnecting, transactions. */
#include "db.h"

#include <stdlib.h>
#include <string.h>

#include "cb_sql.h"
#include "connect.h"
#include "fail.h"

bool cb_db_open_named(const char *url, const char *application, cb_db **ret, cb_error *e)
{
    PGconn *conn = NULL;

    if (!connect_to(url, application, &conn, e))
        return false;
    cb_db *db = calloc(1, sizeof *db);
    if (db) {
        db->url = strdup(url);
        db->application = strdup(application);
    }
    if (!db || !db->url || !db->application) {
        PQfinish(conn);
        cb_db_free(db);
        return fail_memory(e);
    }
    db->conn = conn;
    *ret = db;
    return true;
}

bool cb_db_open(const char *url, cb_db **ret, cb_error *e)
{
    return cb_db_open_named(url, "commandbus", ret, e);
}

bool cb_db_borrow(PGconn *conn, cb_db **ret, cb_error *e)
{
    if (!conn)
        return cb_fail(e, CB_MISUSE, "there is no connection to borrow");
    if (PQpipelineStatus(conn) != PQ_PIPELINE_OFF)
        return cb_fail(e, CB_MISUSE, "a connection in pipeline mode cannot be borrowed");
    if (!connect_check_settings(conn, e))
        return false;

    cb_db *db = calloc(1, sizeof *db);
    if (!db)
        return fail_memory(e);
    db->conn = conn;
    db->lost = PQstatus(conn) != CONNECTION_OK;
    *ret = db;
    return true;
}

static bool is_borrowed(const cb_db *db)
{
    return db->url == NULL;
}

void cb_db_free(cb_db *db)
{
    if (!db)
        return;
    if (!is_borrowed(db))
        PQfinish(db->conn);
    free(db->url);
    free(db->application);
    free(db);
}

bool cb_db_reconnect(cb_db *db, cb_error *e)
{
    if (is_borrowed(db)) {
        db->lost = PQstatus(db->conn) != CONNECTION_OK;
        return db->lost ? cb_fail(e, CB_LOST,
                                  "the borrowed connection is lost: its owner must "
                                  "reset it first")
                        : true;
    }
    PQfinish(db->conn);
    db->conn = NULL;
    db->lost = true;
    if (!connect_to(db->url, db->application, &db->conn, e))
        return false;
    db->lost = false;
    return true;
}

bool cb_db_is_lost(const cb_db *db)
{
    return db->lost;
}

PGconn *cb_db_conn(cb_db *db)
{
    return db->lost ? NULL : db->conn;
}

int cb_db_socket(const cb_db *db)
{
    return db->lost ? -1 : PQsocket(db->conn);
}

bool db_in_transaction(const cb_db *db)
{
    PGTransactionStatusType status = PQtransactionStatus(db->conn);

    return status == PQTRANS_INTRANS || status == PQTRANS_INERROR;
}

bool cb_db_begin(cb_db *db, cb_error *e)
{
    if (!db_is_ready(db, e))
        return false;
    if (db_in_transaction(db))
        return cb_fail(e, CB_MISUSE, "a transaction is open already");

    OWNED(PGresult) result = NULL;
    cb_error why = { 0 };
    if (db_exec(db, cb_sql_begin, NULL, DB_TEXT, &result, &why))
        return true;
    db_begin_failed(db, &why);
    if (e)
        *e = why;
    return false;
}

bool cb_db_commit(cb_db *db, cb_error *e)
{
    if (!db_is_ready(db, e))
        return false;
    if (!db_in_transaction(db))
        return cb_fail(e, CB_MISUSE, "there is no transaction to commit");

    OWNED(PGresult) result = NULL;
    if (!db_exec(db, cb_sql_commit, NULL, DB_TEXT, &result, e))
        return false;
    if (strcmp(PQcmdStatus(result), "COMMIT") != 0) /* The server's way to say it. */
        return cb_fail(e, CB_SERVER, "a statement of the transaction had failed: rolled back");
    return true;
}

bool cb_db_rollback(cb_db *db, cb_error *e)
{
    OWNED(PGresult) result = NULL;

    if (!db_is_ready(db, e))
        return false;
    return !db_in_transaction(db) || db_exec(db, cb_sql_rollback, NULL, DB_TEXT, &result, e);
}
