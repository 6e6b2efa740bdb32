/* libpq's pipeline mode. After an error the server skips everything up to the Sync, the COMMIT too; and
 * libpq reads while it writes, so that neither side waits for the other with full buffers. */
#include "pipeline.h"

#include "cb_sql.h"

static bool send_bare(cb_db *db, const char *sql)
{
    return PQsendQueryParams(db->conn, sql, 0, NULL, NULL, NULL, NULL, DB_TEXT) == 1;
}

/* `begin` is NULL inside a transaction of the caller's. */
static bool send_all(cb_db *db, const char *begin, const pipeline_statement *statements, size_t n)
{
    if (begin && !send_bare(db, begin))
        return false;
    for (size_t i = 0; i < n; i++) {
        const params *p = &statements[i].p;
        if (!PQsendQueryParams(db->conn, statements[i].sql, p->n, NULL, p->values, p->lengths,
                               p->formats, statements[i].format))
            return false;
    }
    return (!begin || send_bare(db, cb_sql_commit)) && PQpipelineSync(db->conn) == 1;
}

/* Whatever went wrong before: the caller must know that the connection is gone. */
static bool fail_broken(cb_db *db, bool is_told, cb_error *e)
{
    db->lost = true;
    if (is_told && e && e->code == CB_LOST)
        return false;
    return cb_fail(e, CB_LOST, "the connection broke before the server had answered");
}

/* Reads up to the Sync. The first error wins: what follows it is only "aborted". False when there
 * was one. */
static bool receive_all(cb_db *db, bool begun, pipeline_statement *statements, size_t n,
                        cb_error *e)
{
    size_t before = begun ? 1 : 0; /* BEGIN is the first that is answered, COMMIT the last */
    size_t ended = 0;              /* statements whose results have all come */
    bool failed = false;

    for (;;) {
        OWNED(PGresult) result = PQgetResult(db->conn);
        if (!result && (PQstatus(db->conn) != CONNECTION_OK || ++ended > n + 2 * before + 1))
            return fail_broken(db, failed, e);
        if (!result)
            continue;

        pipeline_statement *s =
            ended >= before && ended - before < n ? &statements[ended - before] : NULL;
        switch (PQresultStatus(result)) {
        case PGRES_PIPELINE_SYNC:
            return !failed;
        case PGRES_TUPLES_OK:
        case PGRES_COMMAND_OK:
            if (s && !s->result)
                s->result = PGresult_take(&result);
            break;
        case PGRES_PIPELINE_ABORTED:
            break;
        default:
            if (failed)
                break;
            failed = true;
            db_fail(db, result, e);
            if (s)
                s->refused = true;
            else if (ended < before)
                db_begin_failed(db, e);
        }
    }
}

void pipeline_done(pipeline_statement *statements, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        PQclear(statements[i].result);
        statements[i].result = NULL;
    }
}

static bool run_alone(cb_db *db, pipeline_statement *s, cb_error *e)
{
    s->refused = !db_exec(db, s->sql, &s->p, s->format, &s->result, e);
    return !s->refused;
}

/* The transaction is in ruins; what has failed is told already. */
static void undo(cb_db *db)
{
    OWNED(PGresult) result = NULL;

    if (!db->lost && db_in_transaction(db) &&
        !db_exec(db, cb_sql_rollback, NULL, DB_TEXT, &result, NULL))
        db->lost = true;
}

static bool run_flush(cb_db *db, const char *begin, pipeline_statement *statements, size_t n,
                      cb_error *e)
{
    if (!PQenterPipelineMode(db->conn) || !send_all(db, begin, statements, n)) {
        db->lost = true; /* Half a pipeline is out: nobody can say what state that leaves. */
        return cb_fail(e, CB_LOST, "the statements could not be sent");
    }
    bool fine = receive_all(db, begin != NULL, statements, n, e);
    if (!db->lost && !PQexitPipelineMode(db->conn)) {
        db->lost = true;
        fine = cb_fail(e, CB_LOST, "the connection did not leave pipeline mode");
    }
    return fine;
}

bool pipeline_run(cb_db *db, db_access access, pipeline_statement *statements, size_t n,
                  cb_error *e)
{
    static const char *const begins[] = {
        [DB_WRITES] = cb_sql_begin, [DB_READS] = cb_sql_begin_reading
    };
    cb_error why = { 0 };

    if (!db_is_ready(db, e))
        return false;
    bool ours = !db_in_transaction(db);
    if (!ours && n == 1)
        return run_alone(db, statements, e);
    if (run_flush(db, ours ? begins[access] : NULL, statements, n, &why))
        return true;
    if (ours)
        undo(db);
    pipeline_done(statements, n);
    if (e)
        *e = why;
    return false;
}
