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

/* One flush: BEGIN, what is to be prepared, the statements, the look for a pooler, COMMIT. */
typedef struct {
    const char *begin; /* NULL inside a transaction of the caller's: then no COMMIT either */
    pipeline_statement *statements;
    size_t n;
    pipeline_statement *preparing[PREPARED_MOST]; /* the first that needs it, of each */
    size_t n_preparing;
    bool look;     /* for a pooler */
    bool in_doubt; /* out: it may have failed only because something is prepared */
} pipeline;

static bool is_preparing(const pipeline *call, const prepared_statement *p)
{
    for (size_t i = 0; i < call->n_preparing; i++) {
        if (call->preparing[i]->prepared == p)
            return true;
    }
    return false;
}

static void pipeline_prepare(cb_db *db, pipeline *call)
{
    for (size_t i = 0; i < call->n; i++) {
        pipeline_statement *s = &call->statements[i];
        s->prepared = prepared_find(&db->prepared, s->sql, &call->look);
        if (s->prepared && !s->prepared->is_there && !is_preparing(call, s->prepared))
            call->preparing[call->n_preparing++] = s;
    }
}

static bool pipeline_send_one(cb_db *db, const pipeline_statement *s)
{
    const params *p = &s->p;

    if (s->prepared)
        return PQsendQueryPrepared(db->conn, s->prepared->name, p->n, p->values, p->lengths,
                                   p->formats, s->format) == 1;
    return PQsendQueryParams(db->conn, s->sql, p->n, NULL, p->values, p->lengths, p->formats,
                             s->format) == 1;
}

static bool pipeline_send(cb_db *db, const pipeline *call)
{
    if (call->begin && !pipeline_send_bare(db, call->begin))
        return false;
    for (size_t i = 0; i < call->n_preparing; i++) {
        const pipeline_statement *s = call->preparing[i];
        if (!PQsendPrepare(db->conn, s->prepared->name, s->sql, 0, NULL))
            return false;
    }
    for (size_t i = 0; i < call->n; i++) {
        if (!pipeline_send_one(db, &call->statements[i]))
            return false;
    }
    if (call->look && !pipeline_send_bare(db, cb_sql_backend_pid))
        return false;
    return (!call->begin || pipeline_send_bare(db, cb_sql_commit)) && PQpipelineSync(db->conn) == 1;
}

/* Whatever went wrong before: the caller must know that the connection is gone. */
static bool pipeline_fail_broken(cb_db *db, bool is_told, cb_error *e)
{
    db->lost = true;
    if (is_told && e && e->code == CB_LOST)
        return false;
    return cb_fail(e, CB_LOST, "the connection broke before the server had answered");
}

typedef enum {
    ANSWER_TO_BEGIN,
    ANSWER_TO_PREPARE,
    ANSWER_TO_STATEMENT,
    ANSWER_TO_LOOK,
    ANSWER_TO_COMMIT,
} answer_to;

/* What the next answer is to, when `ended` have had all of theirs. *ret is the statement, if it is
 * one or prepares one. */
static answer_to pipeline_at(const pipeline *call, size_t ended, pipeline_statement **ret)
{
    size_t i = ended;

    *ret = NULL;
    if (call->begin && i-- == 0)
        return ANSWER_TO_BEGIN;
    if (i < call->n_preparing) {
        *ret = call->preparing[i];
        return ANSWER_TO_PREPARE;
    }
    i -= call->n_preparing;
    if (i < call->n) {
        *ret = &call->statements[i];
        return ANSWER_TO_STATEMENT;
    }
    return call->look && i == call->n ? ANSWER_TO_LOOK : ANSWER_TO_COMMIT;
}

static void pipeline_succeeded(cb_db *db, const pipeline *call, size_t ended, PGresult **result)
{
    pipeline_statement *s;
    answer_to what = pipeline_at(call, ended, &s);

    if (what == ANSWER_TO_PREPARE)
        s->prepared->is_there = true; /* even if the transaction is rolled back */
    else if (what == ANSWER_TO_LOOK)
        prepared_look(&db->prepared, db->conn, *result);
    else if (s && !s->result)
        s->result = PGresult_take(result);
}

static void pipeline_failed(cb_db *db, pipeline *call, size_t ended, const PGresult *result,
                            cb_error *e)
{
    pipeline_statement *s;
    answer_to what = pipeline_at(call, ended, &s);

    db_fail(db, result, e);
    if (what == ANSWER_TO_BEGIN)
        db_begin_failed(db, e);
    if (!s)
        return;
    s->refused = true;
    call->in_doubt = s->prepared && prepared_failed(&db->prepared, s->prepared, e->sqlstate);
}

/* Reads up to the Sync. The first error wins: what follows it is only "aborted". False when there
 * was one. */
static bool pipeline_receive(cb_db *db, pipeline *call, cb_error *e)
{
    size_t sent = call->n_preparing + call->n + call->look + (call->begin ? 2 : 0);
    size_t ended = 0; /* of them, those whose results have all come */
    bool failed = false;

    for (;;) {
        OWNED(PGresult) result = PQgetResult(db->conn);
        if (!result && (PQstatus(db->conn) != CONNECTION_OK || ++ended > sent + 1))
            return pipeline_fail_broken(db, failed, e);
        if (!result)
            continue;

        switch (PQresultStatus(result)) {
        case PGRES_PIPELINE_SYNC:
            return !failed;
        case PGRES_TUPLES_OK:
        case PGRES_COMMAND_OK:
            pipeline_succeeded(db, call, ended, &result);
            break;
        case PGRES_PIPELINE_ABORTED:
            break;
        default:
            if (!failed)
                pipeline_failed(db, call, ended, result, e);
            failed = true;
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

static bool pipeline_flush(cb_db *db, pipeline *call, cb_error *e)
{
    if (!PQenterPipelineMode(db->conn) || !pipeline_send(db, call)) {
        db->lost = true; /* Half a pipeline is out: nobody can say what state that leaves. */
        return cb_fail(e, CB_LOST, "the statements could not be sent");
    }
    bool fine = pipeline_receive(db, call, e);
    if (!db->lost && !PQexitPipelineMode(db->conn)) {
        db->lost = true;
        fine = cb_fail(e, CB_LOST, "the connection did not leave pipeline mode");
    }
    return fine;
}

static bool pipeline_try(cb_db *db, pipeline *call, cb_error *e)
{
    if (pipeline_flush(db, call, e))
        return true;
    if (call->begin)
        pipeline_undo(db);
    pipeline_done(call->statements, call->n);
    return false;
}

static void pipeline_unprepare(pipeline *call)
{
    call->n_preparing = 0;
    call->look = false;
    call->in_doubt = false;
    for (size_t i = 0; i < call->n; i++) {
        call->statements[i].prepared = NULL;
        call->statements[i].refused = false;
    }
}

/* In a transaction of our own, which a failure has undone: so it may be tried again as text. */
static bool pipeline_run_prepared(cb_db *db, pipeline *call, cb_error *e)
{
    pipeline_prepare(db, call);
    if (pipeline_try(db, call, e))
        return true;
    if (!call->in_doubt || db->lost)
        return false;
    *e = (cb_error){ 0 };
    pipeline_unprepare(call);
    return pipeline_try(db, call, e);
}

bool pipeline_run(cb_db *db, db_access access, pipeline_statement *statements, size_t n,
                  cb_error *e)
{
    static const char *const begins[] = {
        [DB_WRITES] = cb_sql_begin, [DB_READS] = cb_sql_begin_reading
    };
    cb_error why = { 0 };
    pipeline call = { .statements = statements, .n = n };

    if (!db_is_ready(db, e))
        return false;
    bool ours = !db_in_transaction(db);
    if (!ours && n == 1)
        return pipeline_run_alone(db, statements, e);
    call.begin = ours ? begins[access] : NULL;
    pipeline_unprepare(&call);
    if (ours ? pipeline_run_prepared(db, &call, &why) : pipeline_try(db, &call, &why))
        return true;
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
