/* What a handler wants done with its success: copies of its statements, within bounds, and the
 * settle that runs them. */
#include "effects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cb_sql.h"
#include "settle_call.h"
#include "sqlstate.h"
#include "utf8.h"

enum {
    EFFECTS_MAX = 16,
    EFFECT_VALUES_MAX = 32,
    EFFECTS_BYTES_MAX = 1024 * 1024,
    EFFECTS_FAILURE_BYTES = 400,
};

/* One allocation with all its strings. */
typedef struct {
    const char *sql;
    size_t n;
    const char *values[EFFECT_VALUES_MAX];
} effect;

struct effects {
    effect *list[EFFECTS_MAX];
    size_t count;
    size_t bytes;                            /* of all statements and values */
    char failure[EFFECTS_FAILURE_BYTES + 1]; /* what the database said when they were run */
};

/* How a statement that stays inside its transaction begins. A COMMIT among the effects would part
 * them from the outcome. */
static const char *const beginnings[] = { "INSERT", "UPDATE", "DELETE", "MERGE", "SELECT", "WITH" };

static bool begins_well(const char *sql)
{
    size_t word;

    sql += strspn(sql, " \t\r\n");
    word = strspn(sql, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++) {
        if (strlen(beginnings[i]) == word && strncasecmp(beginnings[i], sql, word) == 0)
            return true;
    }
    return false;
}

static const char *effect_problem(const effects *to, const char *sql, size_t n,
                                  const char *const values[])
{
    if (!sql || (n > 0 && !values))
        return "there is no statement, or no values for it";
    if (!begins_well(sql))
        return "an effect must begin with INSERT, UPDATE, DELETE, MERGE, SELECT or WITH";
    if (n > EFFECT_VALUES_MAX)
        return "more than 32 values in one statement";
    return to->count == EFFECTS_MAX ? "more than 16 statements" : NULL;
}

/* What it takes to keep these strings, each with its NUL. */
static size_t effect_bytes(const char *sql, size_t n, const char *const values[])
{
    size_t bytes = strlen(sql) + 1;

    for (size_t i = 0; i < n; i++)
        bytes += values[i] ? strlen(values[i]) + 1 : 0;
    return bytes;
}

static const char *put_text(char **at, const char *text)
{
    char *copy = *at;
    size_t size = strlen(text) + 1;

    memcpy(copy, text, size);
    *at += size;
    return copy;
}

static effect *effect_copy(const char *sql, size_t n, const char *const values[], size_t bytes)
{
    effect *copy = malloc(sizeof *copy + bytes);

    if (!copy)
        return NULL;
    char *at = (char *)(copy + 1);
    copy->sql = put_text(&at, sql);
    copy->n = n;
    for (size_t i = 0; i < n; i++)
        copy->values[i] = values[i] ? put_text(&at, values[i]) : NULL;
    return copy;
}

const char *effects_add(effects **to, const char *sql, size_t n, const char *const values[])
{
    if (!*to)
        *to = calloc(1, sizeof **to);
    if (!*to)
        return "out of memory";
    effects *list = *to;
    const char *problem = effect_problem(list, sql, n, values);
    if (problem)
        return problem;
    size_t bytes = effect_bytes(sql, n, values);
    if (bytes > EFFECTS_BYTES_MAX - list->bytes)
        return "more than 1 MiB together";
    effect *copy = effect_copy(sql, n, values, bytes);
    if (!copy)
        return "out of memory";
    list->list[list->count++] = copy;
    list->bytes += bytes;
    return NULL;
}

size_t effects_count(const effects *of)
{
    return of ? of->count : 0;
}

void effects_free(effects *of)
{
    if (!of)
        return;
    for (size_t i = 0; i < of->count; i++)
        free(of->list[i]);
    free(of);
}

/* ---- settling a success with its effects: fence, effects, settle, one transaction
 *
 *     lock_timeout ─ hold_fence ─ effect … effect ─ settle(all or nothing)
 *
 * The command's row is locked first, so that of two who bring the same outcome the second one finds
 * it settled and runs no effect ---- */

/* The statements before the effects. */
enum {
    LOCK_TIMEOUT,
    FENCE,
    EFFECTS,
};

/* 0 would stand for no limit, and takes the default. An hour at most. */
static int64_t lock_timeout_ms(double seconds)
{
    const double least = 0.001, usual = 2, most = 3600;

    if (!(seconds > 0))
        seconds = usual;
    return (int64_t)(1000 * (seconds < least ? least : seconds > most ? most : seconds));
}

static void fill_effect(pipeline_statement *s, const effect *from)
{
    s->sql = from->sql;
    for (size_t i = 0; i < from->n; i++)
        params_text(&s->p, from->values[i]);
}

static void fill_effect_statements(settle_call *call, const cb_settlement *item,
                                   const effects *wanted, double lock_timeout_seconds)
{
    pipeline_statement *s = call->statements;

    s[LOCK_TIMEOUT].sql = cb_sql_lock_timeout;
    params_int(&s[LOCK_TIMEOUT].p, lock_timeout_ms(lock_timeout_seconds));
    s[FENCE].sql = cb_sql_hold_fence;
    params_text(&s[FENCE].p, item->domain);
    params_text(&s[FENCE].p, item->command_id.text);
    params_int(&s[FENCE].p, item->lease_no);
    for (size_t i = 0; i < wanted->count; i++)
        fill_effect(&s[EFFECTS + i], wanted->list[i]);
}

/* What is said of the error, without its values: the detail has them, and of data exceptions the
 * message too, in quotes. */
static void hide_values(const char *sqlstate, char *message)
{
    char *first = strchr(message, '"'), *last = strrchr(message, '"');

    if (!sqlstate_is_class(sqlstate, "22") || !first)
        return;
    if (first == last) /* The end of a long value was cut off. */
        *first = '\0';
    else
        memmove(first + 1, last, strlen(last) + 1);
}

/* From now on the item is a permanent failure, however often it has to be brought. Its message
 * lives as long as the effects. */
static void make_permanent(cb_settlement *item, effects *wanted, const char *code, const char *what,
                           cb_error *why)
{
    char message[sizeof wanted->failure];

    hide_values(why->sqlstate, why->message);
    snprintf(message, sizeof message, "%s: %s%s%.300s", what, why->sqlstate,
             *why->sqlstate ? ", " : "", why->message);
    utf8_trim(message);
    utf8_copy(wanted->failure, sizeof wanted->failure, message);
    item->outcome = CB_PERMANENT;
    item->result = NULL;
    item->error_code = code;
    item->error_message = wanted->failure;
    item->retry_seconds = 0;
}

/* Which statement it was, or their number when it was the commit: a deferred constraint. */
static size_t refused_at(const settle_call *call)
{
    size_t i = 0, n = call->before + 1;

    while (i < n && !call->statements[i].refused)
        i++;
    return i;
}

/* Has the same call again a chance? Class 55 is about locks, except for this one: a view that
 * cannot be written to, a sequence that has no value yet. */
static bool may_pass(const cb_error *why)
{
    return why->code == CB_LOST || (why->code == CB_AGAIN && strcmp(why->sqlstate, "55000") != 0);
}

static void refuse_effect(cb_settlement *item, effects *wanted, size_t i, cb_error *why)
{
    char what[80] = "the commit of the effects";

    if (i < wanted->count)
        snprintf(what, sizeof what, "effect %zu of %zu", i + 1, wanted->count);
    make_permanent(item, wanted, "EFFECT_FAILED", what, why);
}

/* What becomes of the item after its transaction was rolled back for the reason in *why. */
static bool settle_otherwise(const settle_call *call, cb_db *db, const char *worker,
                             cb_settlement *item, effects *wanted, cb_error *why)
{
    size_t at = refused_at(call);

    if (at == FENCE && strcmp(why->sqlstate, SQLSTATE_FENCE_LOST) == 0)
        return cb_settle(db, worker, item, 1, why); /* No fence comes back: this settles nothing. */
    if (at < EFFECTS || may_pass(why))
        return false;
    if (at != call->before)
        refuse_effect(item, wanted, at - EFFECTS, why);
    else if (why->code != CB_DENIED && why->code != CB_SCHEMA)
        make_permanent(item, wanted, "SETTLE_REFUSED", "the database refused the outcome", why);
    else
        return false;
    return cb_settle(db, worker, item, 1, why);
}

static bool settle_together(cb_db *db, const char *worker, cb_settlement *item, effects *wanted,
                            double lock_timeout_seconds, cb_error *why)
{
    OWNED_SETTLE_CALL(call) = { .sql = cb_sql_settle_held, .before = EFFECTS + wanted->count };

    if (!settle_call_make(&call, worker, item, 1, why))
        return false;
    fill_effect_statements(&call, item, wanted, lock_timeout_seconds);
    return settle_call_run(&call, db, item, 1, why) ||
           settle_otherwise(&call, db, worker, item, wanted, why);
}

bool cb_settle_with_effects(cb_db *db, const char *worker, cb_settlement *item,
                            const cb_context *ctx, double lock_timeout_seconds, cb_error *e)
{
    effects *wanted = context_effects(ctx);
    cb_error why = { 0 };

    if (!db_is_ready(db, e))
        return false;
    if (db_in_transaction(db))
        return cb_fail(e, CB_MISUSE,
                       "settling with effects needs its own transaction, one is open");
    if (item->outcome != CB_SUCCESS || effects_count(wanted) == 0)
        return cb_settle(db, worker, item, 1, e);
    if (settle_together(db, worker, item, wanted, lock_timeout_seconds, &why))
        return true;
    if (e)
        *e = why;
    return false;
}
