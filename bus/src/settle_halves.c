/* Halving a batch that the database refuses. See settle_halves.h. */
#include "settle_halves.h"

/* Items that the database takes in no form at all. More of them than this in one call is no matter
 * of items any more, and looking for further ones would only load a server in trouble. */
static const size_t most_unsettled = 4;

/* Or would every call get it? */
static bool concerns_an_item(cb_code code)
{
    return code == CB_DATA || code == CB_SERVER || code == CB_MISUSE || cb_code_is_refusal(code);
}

/* False to stop at once, with the reason in *why. */
static bool refuse_item(const settle_kind *kind, settle_run *run, void *item, cb_error *why)
{
    if (kind->replace(run, item, why))
        return true;
    if (!concerns_an_item(why->code))
        return false;
    run->error = *why;
    return ++run->unsettled <= most_unsettled;
}

static bool settle_halves(const settle_kind *kind, settle_run *run, char *items, size_t n,
                          cb_error *why)
{
    if (kind->settle(run, items, n, why))
        return true;
    if (!concerns_an_item(why->code))
        return false;
    if (n == 1)
        return refuse_item(kind, run, items, why);
    return settle_halves(kind, run, items, n / 2, why) &&
           settle_halves(kind, run, items + n / 2 * kind->item_size, n - n / 2, why);
}

bool settle_each(const settle_kind *kind, cb_db *db, const char *worker, void *items, size_t n,
                 size_t *refused, cb_error *e)
{
    settle_run run = { .db = db, .worker = worker };
    cb_error why = { 0 };

    if (refused)
        *refused = 0;
    if (!db_is_ready(db, e))
        return false;
    if (db_in_transaction(db))
        return cb_fail(e, CB_MISUSE, "settling each item needs its own transactions, one is open");

    bool fine = settle_halves(kind, &run, items, n, &why);
    if (refused)
        *refused = run.refused;
    if (fine && run.unsettled == 0)
        return true;
    if (e)
        *e = fine ? run.error : why;
    return false;
}
