/* Which statements are prepared, under which names, and when that is of no use. */
#include "prepared.h"

#include <assert.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cb_sql.h"

/* Known by their addresses: a text of somebody else's is never one of them. */
static const char *const repeated[] = {
    cb_sql_send,
    cb_sql_send_arrays,
    cb_sql_receive,
    cb_sql_extend,
    cb_sql_settle,
    cb_sql_settle_held,
    cb_sql_hold_fence,
    cb_sql_lock_timeout,
    cb_sql_close_batches,
    cb_sql_sleep_announce,
    cb_sql_sleep_end,
    cb_sql_start_process,
    cb_sql_respond,
    cb_sql_deliver_replies,
    cb_sql_claim_processes,
    cb_sql_next_process_wake,
    cb_sql_settle_process_arrays,
    cb_sql_extend_processes,
};
static_assert(sizeof repeated / sizeof *repeated == PREPARED_MOST, "one place for each");

static prepared_statement *find_repeated(prepared_set *set, const char *sql)
{
    for (size_t i = 0; i < PREPARED_MOST; i++) {
        if (repeated[i] == sql)
            return &set->statements[i];
    }
    return NULL;
}

/* A hash of the text (FNV-1a): whoever meets this name on a session, it is this statement. */
static void give_name(prepared_statement *p, const char *sql)
{
    uint64_t hash = 14695981039346656037U;

    for (const char *c = sql; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211U;
    snprintf(p->name, sizeof p->name, "commandbus_%016" PRIx64 "_%u", hash, p->forgotten);
}

prepared_statement *prepared_find(prepared_set *set, const char *sql, bool *look)
{
    enum {
        MOST_FORGOTTEN = 10 /* then it fails for another reason than that it is prepared */
    };
    prepared_statement *p = set->off || set->pooled ? NULL : find_repeated(set, sql);

    if (!p || p->forgotten >= MOST_FORGOTTEN)
        return NULL;
    if (!p->has_run) {
        p->has_run = true;
        return NULL;
    }
    if (!set->looked) {
        *look = true;
        return NULL;
    }
    if (!p->is_there)
        give_name(p, sql);
    return p;
}

/* A pooler makes up the process id that it tells its clients. What is prepared through it stays on
 * a connection that the next transaction need not get. */
void prepared_look(prepared_set *set, const PGconn *conn, const PGresult *answer)
{
    set->looked = true;
    set->pooled = PQntuples(answer) != 1 || atoi(PQgetvalue(answer, 0, 0)) != PQbackendPID(conn);
}

bool prepared_failed(prepared_set *set, prepared_statement *p, const char *sqlstate)
{
    /* "cached plan must not change result type", not now and never again. */
    if (strcmp(sqlstate, "0A000") == 0) {
        p->is_there = false;
        p->forgotten++;
        return true;
    }
    /* No such statement, there is one already, or another one: not the session that we know. */
    if (strcmp(sqlstate, "26000") != 0 && strcmp(sqlstate, "42P05") != 0 &&
        strcmp(sqlstate, "08P01") != 0)
        return false;
    set->off = true;
    return true;
}

void prepared_reset(prepared_set *set)
{
    *set = (prepared_set){ .off = set->off };
}
