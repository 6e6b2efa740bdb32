/* Running statements, and turning what the server says into errors. */
#include <stdio.h>
#include <string.h>

#include "db.h"
#include "fail.h"
#include "pipeline.h"
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

static bool take(cb_db *db, PGresult *raw, PGresult **ret, cb_error *e)
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
    return take(db,
                PQexecParams(db->conn, sql, p->n, NULL, p->values, p->lengths, p->formats, format),
                ret, e);
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
    return take(db, PQexec(db->conn, script), &result, e);
}
