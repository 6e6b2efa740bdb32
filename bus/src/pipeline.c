/* libpq's pipeline mode. The server runs everything up to a Sync as one implicit transaction, and
 * libpq reads while it writes, so that neither side waits for the other with full buffers. */
#include "pipeline.h"

static bool send_all(cb_db *db, const pipeline_statement *statements, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const params *p = &statements[i].p;
        if (!PQsendQueryParams(db->conn, statements[i].sql, p->n, NULL, p->values, p->lengths,
                               p->formats, DB_TEXT))
            return false;
    }
    return PQpipelineSync(db->conn) == 1;
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
static bool receive_all(cb_db *db, pipeline_statement *statements, size_t n, cb_error *e)
{
    size_t ended = 0; /* statements whose results have all come */
    bool failed = false;

    for (;;) {
        OWNED(PGresult) result = PQgetResult(db->conn);
        if (!result && (PQstatus(db->conn) != CONNECTION_OK || ++ended > n + 1))
            return fail_broken(db, failed, e);
        if (!result)
            continue;

        switch (PQresultStatus(result)) {
        case PGRES_PIPELINE_SYNC:
            return !failed;
        case PGRES_TUPLES_OK:
        case PGRES_COMMAND_OK:
            if (ended < n && !statements[ended].result)
                statements[ended].result = PGresult_take(&result);
            break;
        case PGRES_PIPELINE_ABORTED:
            break;
        default:
            if (failed)
                break;
            failed = true;
            db_fail(db, result, e);
            if (ended < n)
                statements[ended].refused = true;
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
    s->refused = !db_run(db, s->sql, &s->p, DB_TEXT, &s->result, e);
    return !s->refused;
}

bool pipeline_run(cb_db *db, pipeline_statement *statements, size_t n, cb_error *e)
{
    if (n == 1)
        return run_alone(db, statements, e);
    if (!db_is_ready(db, e))
        return false;
    if (!PQenterPipelineMode(db->conn) || !send_all(db, statements, n)) {
        db->lost = true; /* Half a pipeline is out: nobody can say what state that leaves. */
        return cb_fail(e, CB_LOST, "the statements could not be sent");
    }

    bool fine = receive_all(db, statements, n, e);
    if (!db->lost && !PQexitPipelineMode(db->conn)) {
        db->lost = true;
        fine = cb_fail(e, CB_LOST, "the connection did not leave pipeline mode");
    }
    if (!fine)
        pipeline_done(statements, n);
    return fine;
}
