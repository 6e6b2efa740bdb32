/* Asking the set's tables. */
#include "report_database.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report_settings.h"
#include "sqlstate.h"

DEFINE_OWNED(PGconn, PQfinish)

enum {
    LEAST_MS = 1000 /* with less than that there is no use in asking */
};

/* Messages of the server can hold data, a code cannot. */
static cb_outcome refuse(cb_context *ctx, const PGresult *result)
{
    const char *state = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;

    if (!state)
        return cb_transient(ctx, "DATABASE_LOST", "the database did not answer");
    /* 22: data exceptions. 42: no such table or no right; for both a person has to do something. */
    if (sqlstate_is_class(state, "22") || sqlstate_is_class(state, "42") ||
        sqlstate_is_class(state, "3F"))
        return cb_permanent(ctx, "DATABASE_REFUSED",
                            "SQLSTATE %s: was it migrated with --set reporting?", state);
    return cb_transient(ctx, "DATABASE_FAILED", "SQLSTATE %s", state);
}

/* Nothing in libpq bounds a whole connect to several hosts or a dead peer but these. */
static PGconn *connect_within(int64_t ms)
{
    char seconds[24], dead[24];
    const char *const names[] = { "dbname", "connect_timeout", "tcp_user_timeout",
                                  "fallback_application_name", NULL };
    const char *const values[] = { settings.database_url ? settings.database_url : "", seconds,
                                   dead, "commandbus-reporting", NULL };

    snprintf(seconds, sizeof seconds, "%" PRId64, ms / 1000 < 2 ? 2 : ms / 1000);
    snprintf(dead, sizeof dead, "%" PRId64, ms);
    return PQconnectdbParams(names, values, 1);
}

static bool bound_statement(PGconn *conn, int64_t ms)
{
    char text[24];
    const char *const values[] = { text };

    snprintf(text, sizeof text, "%" PRId64, ms);
    OWNED(PGresult) begun = PQexec(conn, "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY");
    if (PQresultStatus(begun) != PGRES_COMMAND_OK)
        return false;
    OWNED(PGresult) set = PQexecParams(conn, "SELECT set_config('statement_timeout', $1, true)", 1,
                                       NULL, values, NULL, NULL, 0);
    return PQresultStatus(set) == PGRES_TUPLES_OK;
}

/* A day at most: what no worker bounds would not fit into the server's numbers. */
static int64_t time_left(const cb_context *ctx)
{
    int64_t ms = cb_context_remaining_ms(ctx);

    return ms > 86400000 ? 86400000 : ms;
}

bool database_ask(cb_context *ctx, const char *sql, size_t n, const char *const values[],
                  PGresult **ret, cb_outcome *failed)
{
    *failed = cb_transient(ctx, "OUT_OF_TIME", "no time left to ask the database");
    if (time_left(ctx) < LEAST_MS)
        return false;
    OWNED(PGconn) conn = connect_within(time_left(ctx));
    if (time_left(ctx) < LEAST_MS)
        return false;
    if (PQstatus(conn) != CONNECTION_OK || !bound_statement(conn, time_left(ctx))) {
        *failed = cb_transient(ctx, "DATABASE_LOST", "there is no connection to the database");
        return false;
    }
    OWNED(PGresult) result = PQexecParams(conn, sql, (int)n, NULL, values, NULL, NULL, 0);
    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
        *failed = refuse(ctx, result);
        return false;
    }
    *ret = PGresult_take(&result);
    return true;
}
