/* Running statements, alone or several in one flush, and turning what the server says into
 * errors. */
#include "statements.h"

#include <stdio.h>
#include <string.h>

#include "cb_sql.h"
#include "fail.h"
#include "sqlstate.h"

bool db_is_ready(const cb_db *db, cb_error *e)
{
    return db->lost ? cb_fail(e, CB_LOST, "the connection to the database is lost") : true;
}

static const char *field(const PGresult *result, int which)
{
    const char *value = result ? PQresultErrorField(result, which) : NULL;

    return value ? value : "";
}

/* A connection is gone when libpq says so, when the server says good-bye (a FATAL always is one),
 * and when it turned into a standby that takes no writes: reconnecting finds the primary. */
static bool means_lost(const cb_db *db, const PGresult *result, const char *sqlstate)
{
    const char *severity = field(result, PG_DIAG_SEVERITY_NONLOCALIZED);

    if (PQstatus(db->conn) != CONNECTION_OK || sqlstate_code(sqlstate) == CB_LOST)
        return true;
    if (strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0)
        return true;
    return strcmp(sqlstate, "25006") == 0 && !db_in_transaction(db);
}

/* Refusals repeat their code in the message, for people with psql. */
static const char *without_code(const char *message, cb_code code)
{
    const char *name = cb_code_name(code);
    size_t length = strlen(name);

    if (cb_code_is_refusal(code) && strncmp(message, name, length) == 0 &&
        strncmp(message + length, ": ", 2) == 0)
        return message + length + 2;
    return message;
}

bool db_fail(cb_db *db, const PGresult *result, cb_error *e)
{
    const char *sqlstate = field(result, PG_DIAG_SQLSTATE);
    const char *message = field(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *hint = field(result, PG_DIAG_MESSAGE_HINT);
    cb_code code = sqlstate_code(sqlstate);

    if (means_lost(db, result, sqlstate)) {
        code = CB_LOST;
        db->lost = true;
    }
    if (!*message)
        message = PQerrorMessage(db->conn);

    cb_fail(e, code, "%s", without_code(message, code));
    if (!e)
        return false;
    e->message[strcspn(e->message, "\n")] = '\0';
    snprintf(e->sqlstate, sizeof e->sqlstate, "%s", sqlstate);
    if (*hint)
        return fail_hint(e, "%s", hint);
    if (code == CB_SCHEMA)
        return fail_hint(e, "Run: commandbus migrate");
    if (code == CB_DENIED)
        return fail_hint(e,
                         "It takes a member of another commandbus_ role: commandbus doctor shows "
                         "which ones this user has.");
    return false;
}

static bool take_result(cb_db *db, PGresult *raw, PGresult **ret, cb_error *e)
{
    OWNED(PGresult) result = raw;
    ExecStatusType status = PQresultStatus(result);

    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        return db_fail(db, result, e);
    *ret = PGresult_take(&result);
    return true;
}

void db_begin_failed(cb_db *db, cb_error *e)
{
    if (strcmp(e->sqlstate, "0A000") != 0)
        return;
    e->code = CB_LOST;
    db->lost = true;
}

bool db_exec(cb_db *db, const char *sql, const params *p, db_format format, PGresult **ret,
             cb_error *e)
{
    static const params none;

    if (!p)
        p = &none;
    if (!db_is_ready(db, e))
        return false;
    return take_result(
        db, PQexecParams(db->conn, sql, p->n, NULL, p->values, p->lengths, p->formats, format), ret,
        e);
}

static bool run_in(cb_db *db, db_access access, pipeline_statement *s, const params *p,
                   PGresult **ret, cb_error *e)
{
    if (p)
        s->p = *p; /* what it points into stays where it is until this has returned */
    if (!pipeline_run(db, access, s, 1, e))
        return false;
    *ret = s->result;
    return true;
}

bool db_run(cb_db *db, const char *sql, const params *p, db_format format, PGresult **ret,
            cb_error *e)
{
    return run_in(db, DB_WRITES, &(pipeline_statement){ .sql = sql, .format = format }, p, ret, e);
}

bool db_read(cb_db *db, const char *sql, const params *p, PGresult **ret, cb_error *e)
{
    return run_in(db, DB_READS, &(pipeline_statement){ .sql = sql }, p, ret, e);
}

bool cb_db_ask(cb_db *db, const char *sql, const char *const values[], size_t n,
               struct pg_result **ret, cb_error *e)
{
    params p = { 0 };

    if (n > PARAMS_MAX)
        return cb_fail(e, CB_MISUSE, "a statement has at most %d parameters, not %zu", PARAMS_MAX,
                       n);
    for (size_t i = 0; i < n; i++)
        params_text(&p, values[i]);
    return db_run(db, sql, &p, DB_TEXT, ret, e);
}

bool db_do(cb_db *db, const char *sql, const params *p, cb_error *e)
{
    OWNED(PGresult) result = NULL;

    return db_run(db, sql, p, DB_TEXT, &result, e);
}

bool db_do_script(cb_db *db, const char *script, cb_error *e)
{
    OWNED(PGresult) result = NULL;

    if (!db_is_ready(db, e))
        return false;
    return take_result(db, PQexec(db->conn, script), &result, e);
}

/* ---- libpq's pipeline mode: after an error the server skips everything up to the Sync, the
 * COMMIT too; and libpq reads while it writes, so that neither side waits for the other with
 * full buffers ---- */

static bool pipeline_send_bare(cb_db *db, const char *sql)
{
    return PQsendQueryParams(db->conn, sql, 0, NULL, NULL, NULL, NULL, DB_TEXT) == 1;
}

/* `begin` is NULL inside a transaction of the caller's. */
static bool pipeline_send(cb_db *db, const char *begin, const pipeline_statement *statements,
                          size_t n)
{
    if (begin && !pipeline_send_bare(db, begin))
        return false;
    for (size_t i = 0; i < n; i++) {
        const params *p = &statements[i].p;
        if (!PQsendQueryParams(db->conn, statements[i].sql, p->n, NULL, p->values, p->lengths,
                               p->formats, statements[i].format))
            return false;
    }
    return (!begin || pipeline_send_bare(db, cb_sql_commit)) && PQpipelineSync(db->conn) == 1;
}

/* Whatever went wrong before: the caller must know that the connection is gone. */
static bool pipeline_fail_broken(cb_db *db, bool is_told, cb_error *e)
{
    db->lost = true;
    if (is_told && e && e->code == CB_LOST)
        return false;
    return cb_fail(e, CB_LOST, "the connection broke before the server had answered");
}

/* Reads up to the Sync. The first error wins: what follows it is only "aborted". False when there
 * was one. */
static bool pipeline_receive(cb_db *db, bool begun, pipeline_statement *statements, size_t n,
                             cb_error *e)
{
    size_t before = begun ? 1 : 0; /* BEGIN is the first that is answered, COMMIT the last */
    size_t ended = 0;              /* statements whose results have all come */
    bool failed = false;

    for (;;) {
        OWNED(PGresult) result = PQgetResult(db->conn);
        if (!result && (PQstatus(db->conn) != CONNECTION_OK || ++ended > n + 2 * before + 1))
            return pipeline_fail_broken(db, failed, e);
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

static bool pipeline_run_alone(cb_db *db, pipeline_statement *s, cb_error *e)
{
    s->refused = !db_exec(db, s->sql, &s->p, s->format, &s->result, e);
    return !s->refused;
}

/* The transaction is in ruins; what has failed is told already. */
static void pipeline_undo(cb_db *db)
{
    OWNED(PGresult) result = NULL;

    if (!db->lost && db_in_transaction(db) &&
        !db_exec(db, cb_sql_rollback, NULL, DB_TEXT, &result, NULL))
        db->lost = true;
}

static bool pipeline_flush(cb_db *db, const char *begin, pipeline_statement *statements, size_t n,
                           cb_error *e)
{
    if (!PQenterPipelineMode(db->conn) || !pipeline_send(db, begin, statements, n)) {
        db->lost = true; /* Half a pipeline is out: nobody can say what state that leaves. */
        return cb_fail(e, CB_LOST, "the statements could not be sent");
    }
    bool fine = pipeline_receive(db, begin != NULL, statements, n, e);
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
        return pipeline_run_alone(db, statements, e);
    if (pipeline_flush(db, ours ? begins[access] : NULL, statements, n, &why))
        return true;
    if (ours)
        pipeline_undo(db);
    pipeline_done(statements, n);
    if (e)
        *e = why;
    return false;
}

/* ---- under our own search_path ---- */

static bool run_guarded(cb_db *db, db_access access, const char *sql, const params *p,
                        PGresult **ret, cb_error *e)
{
    enum {
        GUARDED = 1,
        STATEMENTS = 3
    };
    pipeline_statement statements[STATEMENTS] = { { .sql = cb_sql_search_path_ours },
                                                  { .sql = sql },
                                                  { .sql = cb_sql_search_path_back } };

    if (p)
        statements[GUARDED].p = *p;
    if (!pipeline_run(db, access, statements, STATEMENTS, e))
        return false;
    *ret = PGresult_take(&statements[GUARDED].result);
    pipeline_done(statements, STATEMENTS);
    return true;
}

bool db_read_guarded(cb_db *db, const char *sql, const params *p, PGresult **ret, cb_error *e)
{
    return run_guarded(db, DB_READS, sql, p, ret, e);
}

bool db_run_guarded(cb_db *db, const char *sql, const params *p, PGresult **ret, cb_error *e)
{
    return run_guarded(db, DB_WRITES, sql, p, ret, e);
}
