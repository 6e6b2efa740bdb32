/* One look at processes: replies delivered, what is due claimed, the next timer asked for. */
#include <stdlib.h>
#include <string.h>

#include "cb_sql.h"
#include "defaults.h"
#include "fail.h"
#include "pipeline.h"
#include "process_rows.h"

/* The columns of deliver_replies.sql. */
enum {
    DELIVERED,
    LATE,
    DEAD_LETTERED,
    TAKEN,
    LOCKED,
};

/* Who has a process locked has it for a moment: its reply is worth another look soon. */
static const double look_again_seconds = 0.01;

static const int64_t default_claim_bytes = 8 * 1024 * 1024;

/* Everything about one look, freed together. The statements: one a queue, the claim unless the caller has no
 * room, the next timer; what the caller does not want is left out. */
typedef struct {
    buffer types;
    buffer versions;
    pipeline_statement *statements;
    size_t n, n_replies;
    const pipeline_statement *claim, *timer; /* NULL: not asked for */
} look_call;

static void look_call_done(look_call *call)
{
    buffer_done(&call->types);
    buffer_done(&call->versions);
    if (call->statements)
        pipeline_done(call->statements, call->n);
    free(call->statements);
}

static void add_replies(look_call *call, const cb_process_claim_options *o, const char *queue)
{
    pipeline_statement *s = &call->statements[call->n++];

    s->sql = cb_sql_deliver_replies;
    params_text(&s->p, queue);
    params_text(&s->p, o->worker);
    params_int(&s->p, o->most_replies ? o->most_replies : 100);
    params_seconds(&s->p,
                   o->reply_grace_seconds ? o->reply_grace_seconds : DEFAULT_REPLY_GRACE_SECONDS);
    call->n_replies++;
}

static void add_claim(look_call *call, const cb_process_claim_options *o, int quantity)
{
    pipeline_statement *s = &call->statements[call->n++];

    s->sql = cb_sql_claim_processes;
    params_text(&s->p, o->worker);
    params_array(&s->p, &call->types);
    params_array(&s->p, &call->versions);
    params_int(&s->p, quantity);
    params_seconds(&s->p, o->vt_seconds ? o->vt_seconds : DEFAULT_VISIBILITY_SECONDS);
    params_int(&s->p, o->claim_bytes ? o->claim_bytes : default_claim_bytes);
    call->claim = s;
}

static void add_timer(look_call *call, const cb_process_claim_options *o)
{
    pipeline_statement *s = &call->statements[call->n++];

    s->sql = cb_sql_next_process_wake;
    params_array(&s->p, &call->types);
    params_array(&s->p, &call->versions);
    params_seconds(&s->p, o->vt_seconds ? o->vt_seconds : DEFAULT_VISIBILITY_SECONDS);
    call->timer = s;
}

static int64_t count_at(const PGresult *result, int column)
{
    return PQntuples(result) == 1 ? strtoll(PQgetvalue(result, 0, column), NULL, 10) : 0;
}

static void read_look(const look_call *call, const cb_process_claim_options *o,
                      cb_process_look *look)
{
    const PGresult *next = call->timer ? call->timer->result : NULL;
    bool locked = false;

    *look = (cb_process_look){ .next_seconds = -1 };
    if (PQntuples(next) == 1 && !PQgetisnull(next, 0, 0))
        look->next_seconds = strtod(PQgetvalue(next, 0, 0), NULL);
    for (size_t i = 0; i < call->n_replies; i++) {
        const PGresult *r = call->statements[i].result;
        int64_t gone = count_at(r, DELIVERED) + count_at(r, LATE) + count_at(r, DEAD_LETTERED);
        look->delivered += count_at(r, DELIVERED);
        look->late += count_at(r, LATE);
        look->dead_lettered += count_at(r, DEAD_LETTERED);
        look->more_replies |=
            gone > 0 && count_at(r, TAKEN) >= (o->most_replies ? o->most_replies : 100);
        locked |= count_at(r, LOCKED) > 0;
    }
    look->more_processes = call->claim && process_rows_left_some(call->claim->result);
    if (locked && (look->next_seconds < 0 || look->next_seconds > look_again_seconds))
        look->next_seconds = look_again_seconds;
}

bool cb_process_claim_due(cb_db *db, const cb_process_claim_options *options, int quantity,
                          cb_process_claim **ret, cb_process_look *look, cb_error *e)
{
    __attribute__((cleanup(look_call_done))) look_call call = { 0 };
    PGresult *rows = NULL;

    if (!options->worker || quantity < 0)
        return cb_fail(e, CB_MISUSE, "a claim of processes needs the name of its worker and room");
    call.statements = calloc(options->n_reply_queues + 2, sizeof *call.statements);
    if (!call.statements)
        return fail_memory(e);
    if (!process_kind_arrays(options->kinds, options->n_kinds, &call.types, &call.versions, e))
        return false;
    for (size_t i = 0; !options->leave_replies && i < options->n_reply_queues; i++)
        add_replies(&call, options, options->reply_queues[i]);
    if (quantity > 0)
        add_claim(&call, options, quantity);
    if (!options->leave_timer)
        add_timer(&call, options);

    if (!pipeline_run(db, DB_WRITES, call.statements, call.n, e))
        return false;
    if (look)
        read_look(&call, options, look);
    if (call.claim)
        rows = PGresult_take((PGresult **)&call.claim->result);
    return process_rows_adopt(rows, ret, e);
}

bool cb_process_deliver_former(cb_db *db, const cb_process_claim_options *options,
                               int64_t *delivered, cb_error *e)
{
    OWNED(PGresult) result = NULL;
    OWNED_BUFFER(types);
    OWNED_BUFFER(versions);
    params p = { 0 };

    *delivered = 0;
    if (!process_kind_arrays(options->kinds, options->n_kinds, &types, &versions, e))
        return false;
    params_text(&p, options->worker);
    params_array(&p, &types);
    params_seconds(&p, options->reply_grace_seconds ? options->reply_grace_seconds
                                                    : DEFAULT_REPLY_GRACE_SECONDS);
    if (!db_run(db, cb_sql_deliver_former_replies, &p, DB_TEXT, &result, e))
        return false;
    *delivered = count_at(result, 0);
    return true;
}
