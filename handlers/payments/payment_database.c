/* A small pool of connections. */
#include "payment_database.h"

#include <inttypes.h>
#include <libpq-fe.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "payment_settings.h"
#include "sqlstate.h"

DEFINE_OWNED(PGresult, PQclear)

enum {
    MOST = 4,       /* connections of an instance */
    LEAST_MS = 100, /* with less than that there is no use in asking */
};

typedef enum {
    DATABASE_DONE,
    DATABASE_LATER,   /* nobody knows whether it happened, or it may next time */
    DATABASE_REFUSED, /* it never will */
} database_result;

static struct {
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t freed;
    PGconn *idle[MOST];
    int n_idle, n_open;
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER, .freed = PTHREAD_COND_INITIALIZER };

/* ---- time ---- */

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t); /* what a condition waits by */
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static struct timespec moment(int64_t ms)
{
    return (struct timespec){ ms / 1000, (ms % 1000) * 1000000 };
}

/* ---- the pool ---- */

/* Waits for a place. *conn is NULL when a new connection may be made in it. */
static bool take(int64_t until, PGconn **conn)
{
    struct timespec end = moment(until);
    int timed_out = 0;

    *conn = NULL;
    pthread_mutex_lock(&pool.lock);
    while (!timed_out && pool.n_idle == 0 && pool.n_open == MOST)
        timed_out = pthread_cond_timedwait(&pool.freed, &pool.lock, &end);
    bool taken = pool.n_idle > 0 || pool.n_open < MOST;
    if (taken && pool.n_idle > 0)
        *conn = pool.idle[--pool.n_idle];
    else if (taken)
        pool.n_open++;
    pthread_mutex_unlock(&pool.lock);
    return taken;
}

/* NULL: its place is free, the connection is not there any more. */
static void give(PGconn *conn)
{
    pthread_mutex_lock(&pool.lock);
    if (conn)
        pool.idle[pool.n_idle++] = conn;
    else
        pool.n_open--;
    pthread_cond_signal(&pool.freed);
    pthread_mutex_unlock(&pool.lock);
}

void database_close(void)
{
    while (pool.n_idle > 0) {
        PQfinish(pool.idle[--pool.n_idle]);
        pool.n_open--;
    }
}

/* ---- one statement ---- */

static PGconn *connect_until(int64_t until)
{
    char seconds[24];
    int64_t left = (until - now_ms()) / 1000;
    const char *const names[] = { "dbname", "connect_timeout", "fallback_application_name", NULL };
    const char *const values[] = { settings.database_url ? settings.database_url : "", seconds,
                                   "commandbus-payments", NULL };

    snprintf(seconds, sizeof seconds, "%" PRId64, left < 2 ? 2 : left); /* libpq's least is 2 */
    PGconn *conn = PQconnectdbParams(names, values, 1);
    if (PQstatus(conn) == CONNECTION_OK)
        return conn;
    PQfinish(conn);
    return NULL;
}

/* Until the answer is there. */
static bool await(PGconn *conn, int64_t until)
{
    while (PQisBusy(conn)) {
        struct pollfd look = { .fd = PQsocket(conn), .events = POLLIN };
        int64_t left = until - now_ms();
        if (left <= 0 || poll(&look, 1, (int)(left > 1000 ? 1000 : left)) < 0 ||
            (look.revents && !PQconsumeInput(conn)))
            return false;
    }
    return true;
}

/* 0A: a standby begins no transaction that writes; the next connection finds the primary. */
static bool passes(const char *state)
{
    return sqlstate_passes(state) || sqlstate_is_class(state, "0A");
}

static database_result judge(const PGresult *result, char state[6])
{
    const char *said = PQresultErrorField(result, PG_DIAG_SQLSTATE);

    if (PQresultStatus(result) == PGRES_TUPLES_OK || PQresultStatus(result) == PGRES_COMMAND_OK)
        return DATABASE_DONE;
    snprintf(state, 6, "%s", said ? said : "");
    return !said || passes(said) ? DATABASE_LATER : DATABASE_REFUSED;
}

static bool send_bare(PGconn *conn, const char *sql)
{
    return PQsendQueryParams(conn, sql, 0, NULL, NULL, NULL, NULL, 0) == 1;
}

/* A transaction in one flush. It says what it needs: a role or a database may have other
 * defaults. */
static bool send(PGconn *conn, const char *sql, size_t n, const char *const values[])
{
    return PQenterPipelineMode(conn) &&
           send_bare(conn, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE") &&
           PQsendQueryParams(conn, sql, (int)n, NULL, values, NULL, NULL, 0) &&
           send_bare(conn, "COMMIT") && PQpipelineSync(conn);
}

/* *alive: the connection may be used again. After an error it is not: the transaction is open. */
static database_result ask(PGconn *conn, const char *sql, size_t n, const char *const values[],
                           int64_t until, char state[6], bool *alive)
{
    database_result judged = DATABASE_DONE;
    bool is_over = false;

    *alive = false;
    if (!send(conn, sql, n, values))
        return DATABASE_LATER;
    while (!is_over) {
        if (!await(conn, until) || PQstatus(conn) != CONNECTION_OK)
            return DATABASE_LATER;
        OWNED(PGresult) r = PQgetResult(conn); /* NULL between two statements */
        is_over = PQresultStatus(r) == PGRES_PIPELINE_SYNC;
        if (r && !is_over && judged == DATABASE_DONE)
            judged = judge(r, state);
    }
    *alive = judged == DATABASE_DONE && PQexitPipelineMode(conn);
    return judged;
}

/* Within about ms. `state` gets the SQLSTATE, or "". */
static database_result run(const char *sql, size_t n, const char *const values[], int64_t ms,
                           char state[6])
{
    int64_t until = now_ms() + ms;
    database_result result = DATABASE_LATER;
    bool alive = false;
    PGconn *conn;

    state[0] = '\0';
    if (!take(until, &conn))
        return DATABASE_LATER;
    if (conn) {
        result = ask(conn, sql, n, values, until, state, &alive);
        if (!alive) {
            PQfinish(conn);
            conn = NULL;
        }
    }
    if (!conn && result == DATABASE_LATER && now_ms() < until && (conn = connect_until(until))) {
        result = ask(conn, sql, n, values, until, state, &alive);
        if (!alive) {
            PQfinish(conn);
            conn = NULL;
        }
    }
    give(conn);
    return result;
}

cb_outcome database_step(cb_context *ctx, const char *sql, size_t n, const char *const values[])
{
    int64_t ms = cb_context_remaining_ms(ctx);
    char state[6];

    if (ms < LEAST_MS)
        return cb_transient(ctx, "OUT_OF_TIME", "no time left to ask the database");
    switch (run(sql, n, values, ms > 60000 ? 60000 : ms - LEAST_MS / 2, state)) {
    case DATABASE_DONE:
        return CB_SUCCESS;
    case DATABASE_LATER:
        return cb_transient(ctx, "DATABASE_LOST", "the database did not answer%s%s",
                            state[0] ? ": SQLSTATE " : "", state);
    default: /* Messages of the server can hold data, a code cannot. */
        return cb_permanent(
            ctx, "DATABASE_REFUSED", "SQLSTATE %s: %s", state,
            strcmp(state, "23505") == 0
                ? "the payment is another process's, has other facts or is at its end"
                : "was it migrated with --set payments?");
    }
}
