/* Writing what runs of processes came to: one statement, one transaction; one that the database
 * refuses is parked instead. */
#include <commandbus/process_row.h>
#include <stdio.h>

#include "cb_sql.h"
#include "fail.h"
#include "item_rows.h"
#include "settle_call.h"
#include "utf8.h"

/* ---- many items as the array parameters of one statement ---- */

/* In the order of the parameters. */
enum {
    ITEMS,
    GROWN,
    OPENED,
    OPENED_OF,
    REWRITTEN,
    REWRITTEN_OF,
    COMMANDS,
    COMMANDS_OF,
    CONSUMED,
    CONSUMED_OF,
    ARRAYS,
};

typedef struct {
    buffer arrays[ARRAYS];
    size_t lengths[ARRAYS]; /* 0: it says nothing, and is not sent */
    bool repeats;
} process_arrays;

static void process_arrays_done(process_arrays *a)
{
    for (int i = 0; i < ARRAYS; i++)
        buffer_done(&a->arrays[i]);
}

/* An array of a composite type: its OID is the server's own, which it does not ask for. */
static void begin_rows(process_arrays *a, int array)
{
    if (a->lengths[array])
        array_begin(&a->arrays[array], ARRAY_TEXT, a->lengths[array]);
}

static void begin_owners(process_arrays *a, int rows, int owners)
{
    a->lengths[owners] = a->lengths[rows];
    if (a->lengths[owners])
        array_begin(&a->arrays[owners], ARRAY_INT4, a->lengths[owners]);
}

static void process_arrays_begin(process_arrays *a, const cb_process_settlement *items, size_t n)
{
    a->lengths[ITEMS] = a->lengths[GROWN] = n;
    for (size_t i = 0; i < n; i++) {
        const cb_process_item *item = items[i].item;
        a->lengths[OPENED] += item->opened.n;
        a->lengths[REWRITTEN] += item->rewritten.n;
        a->lengths[COMMANDS] += item->commands.n;
        a->lengths[CONSUMED] += item->n_consumed;
        a->repeats |= item->repeats;
    }
    begin_rows(a, ITEMS);
    array_begin(&a->arrays[GROWN], ARRAY_INT8, n);
    begin_rows(a, OPENED);
    begin_owners(a, OPENED, OPENED_OF);
    begin_rows(a, REWRITTEN);
    begin_owners(a, REWRITTEN, REWRITTEN_OF);
    begin_rows(a, COMMANDS);
    begin_owners(a, COMMANDS, COMMANDS_OF);
    if (a->lengths[CONSUMED])
        array_begin(&a->arrays[CONSUMED], ARRAY_INT4, a->lengths[CONSUMED]);
    begin_owners(a, CONSUMED, CONSUMED_OF);
}

static void add_rows(process_arrays *a, int rows, int owners, const item_rows *of, int item)
{
    if (of->n)
        buffer_add(&a->arrays[rows], of->rows.bytes, of->rows.length);
    for (size_t i = 0; i < of->n; i++)
        array_add_int4(&a->arrays[owners], item);
}

/* The number of an item counts from 1. */
static void process_arrays_add(process_arrays *a, const cb_process_item *item, int number)
{
    buffer_add(&a->arrays[ITEMS], item->row.rows.bytes, item->row.rows.length);
    array_add_int8(&a->arrays[GROWN], (int64_t)item->grown);
    add_rows(a, OPENED, OPENED_OF, &item->opened, number);
    add_rows(a, REWRITTEN, REWRITTEN_OF, &item->rewritten, number);
    add_rows(a, COMMANDS, COMMANDS_OF, &item->commands, number);
    for (size_t i = 0; i < item->n_consumed; i++) {
        array_add_int4(&a->arrays[CONSUMED], item->consumed[i]);
        array_add_int4(&a->arrays[CONSUMED_OF], number);
    }
}

static bool process_arrays_fill(process_arrays *a, const cb_process_settlement *items, size_t n,
                                cb_error *e)
{
    for (size_t i = 0; i < n; i++) {
        if (!items[i].item || !cb_process_item_is_whole(items[i].item))
            return cb_fail(e, CB_MISUSE, "item %zu of %zu has nothing to be settled", i + 1, n);
    }
    process_arrays_begin(a, items, n);
    for (size_t i = 0; i < n; i++)
        process_arrays_add(a, items[i].item, (int)i + 1);
    for (int i = 0; i < ARRAYS; i++) {
        if (a->arrays[i].failed)
            return fail_memory(e);
    }
    return true;
}

static void params_process_arrays(params *p, const process_arrays *a)
{
    for (int i = 0; i < ARRAYS; i++) {
        if (a->lengths[i])
            params_array(p, &a->arrays[i]);
        else
            params_text(p, NULL);
    }
    params_text(p, a->repeats ? "true" : "false");
}

bool cb_process_settle(cb_db *db, const char *worker, cb_process_settlement *items, size_t n,
                       cb_error *e)
{
    __attribute__((cleanup(process_arrays_done))) process_arrays arrays = { 0 };
    OWNED(PGresult) result = NULL;
    params p = { 0 };

    if (!worker)
        return cb_fail(e, CB_MISUSE, "settling needs the name of the worker");
    if (n == 0)
        return true;
    if (!process_arrays_fill(&arrays, items, n, e))
        return false;
    params_text(&p, worker);
    params_process_arrays(&p, &arrays);
    if (!db_run(db, cb_sql_settle_process_arrays, &p, DB_TEXT, &result, e))
        return false;

    const char *at = PQntuples(result) == 1 ? PQgetvalue(result, 0, 0) : "";
    for (size_t i = 0; i < n; i++) {
        if (!verdict_next(&at, &items[i].verdict))
            return cb_fail(e, CB_SERVER, "settle_process_arrays gave no verdict on item %zu",
                           i + 1);
    }
    settle_close_batches(db, result);
    return true;
}

/* ---- where one bad item must not spoil its batch ---- */

/* The same fence, nothing of what was refused: an operator has to look at it. The decision that
 * the run obeyed is answered by that, or there could be no other. */
static cb_process_item *parking_of(const cb_process_item *refused, const cb_error *why)
{
    char raw[400], message[sizeof raw * 3];
    cb_process_outcome outcome = refused->outcome;

    snprintf(raw, sizeof raw, "the database refused what the run came to: %s%s%.300s",
             why->sqlstate, *why->sqlstate ? ", " : "", why->message);
    utf8_copy(message, sizeof message, raw);
    outcome.checkpoint = false;
    outcome.refused = true;
    outcome.status = "WAITING_FOR_TSQ";
    outcome.error_code = "PERMANENT_FAILURE";
    outcome.error_message = message;
    outcome.wake = "NEVER";
    cb_process_item *item = cb_process_item_new(&outcome);
    for (size_t i = 0; item && i < refused->n_consumed; i++)
        cb_process_item_consume(item, refused->consumed[i]);
    return item;
}

static bool settle_processes(const settle_run *run, void *items, size_t n, cb_error *e)
{
    return cb_process_settle(run->db, run->worker, items, n, e);
}

/* Parked with the database's reason. */
static bool replace_process(settle_run *run, void *given, cb_error *why)
{
    cb_process_settlement *item = given, instead = { .process_id = item->process_id };
    OWNED(cb_process_item) parking = item->item ? parking_of(item->item, why) : NULL;

    if (!item->item)
        return false;
    if (!parking || !cb_process_item_is_whole(parking))
        return fail_memory(why);
    instead.item = parking;
    if (!cb_process_settle(run->db, run->worker, &instead, 1, why))
        return false;
    /* A run whose checkpoint was refused must not go on: for it the fence is lost. */
    item->verdict =
        item->item->outcome.checkpoint && instead.verdict != CB_BUSY ? CB_STALE : instead.verdict;
    run->refused += instead.verdict == CB_SETTLED;
    return true;
}

bool cb_process_settle_each(cb_db *db, const char *worker, cb_process_settlement *items, size_t n,
                            size_t *refused, cb_error *e)
{
    static const settle_kind processes = { sizeof *items, settle_processes, replace_process };

    return settle_each(&processes, db, worker, items, n, refused, e);
}
