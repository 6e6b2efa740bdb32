/* The connection handle: opening, losing, reconnecting, transactions. */
#include "db.h"

#include <stdlib.h>
#include <string.h>

#include "cb_sql.h"
#include "connect.h"
#include "fail.h"

bool cb_db_open(const char *url, cb_db **ret, cb_error *e)
{
    OWNED(cb_db) db = calloc(1, sizeof *db);

    if (!db)
        return fail_memory(e);
    if (!connect_to(url, &db->conn, e))
        return false;
    db->url = strdup(url);
    if (!db->url)
        return fail_memory(e);
    *ret = cb_db_take(&db);
    return true;
}

bool cb_db_borrow(PGconn *conn, cb_db **ret, cb_error *e)
{
    if (!conn)
        return cb_fail(e, CB_MISUSE, "there is no connection to borrow");
    if (PQpipelineStatus(conn) != PQ_PIPELINE_OFF)
        return cb_fail(e, CB_MISUSE, "a connection in pipeline mode cannot be borrowed");

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
    if (!connect_to(db->url, &db->conn, e))
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
    return db_do(db, cb_sql_begin, NULL, e);
}

bool cb_db_commit(cb_db *db, cb_error *e)
{
    if (!db_is_ready(db, e))
        return false;
    if (!db_in_transaction(db))
        return cb_fail(e, CB_MISUSE, "there is no transaction to commit");

    OWNED(PGresult) result = NULL;
    if (!db_run(db, cb_sql_commit, NULL, DB_TEXT, &result, e))
        return false;
    if (strcmp(PQcmdStatus(result), "COMMIT") != 0) /* The server's way to say it. */
        return cb_fail(e, CB_SERVER, "a statement of the transaction had failed: rolled back");
    return true;
}

bool cb_db_rollback(cb_db *db, cb_error *e)
{
    if (!db_is_ready(db, e))
        return false;
    return db_in_transaction(db) ? db_do(db, cb_sql_rollback, NULL, e) : true;
}
