/* Settling where one bad item must not spoil its batch. */
#include <stdio.h>

#include "settle_call.h"
#include "utf8.h"

/* Items that the database takes in no form at all. More of them than this in one call is no matter
 * of items any more, and looking for further ones would only load a server in trouble. */
static const size_t most_unsettled = 4;

typedef struct {
    cb_db *db;
    const char *worker;
    size_t refused;
    size_t unsettled;
    cb_error error; /* of the last item that could not be settled */
} settle_run;

bool settle_concerns_an_item(cb_code code)
{
    return code == CB_DATA || code == CB_SERVER || code == CB_MISUSE || cb_code_is_refusal(code);
}

/* False to stop at once, with the reason in *why. */
static bool refuse_item(settle_run *run, cb_settlement *item, cb_error *why)
{
    char message[200];
    cb_settlement instead = *item;

    snprintf(message, sizeof message, "the database refused the outcome: %s%s%.120s", why->sqlstate,
             *why->sqlstate ? ", " : "", why->message);
    utf8_mend(message);
    instead.outcome = CB_PERMANENT;
    instead.result = NULL;
    instead.error_code = "SETTLE_REFUSED";
    instead.error_message = message;
    instead.retry_seconds = 0; /* it may have been the culprit: NaN, or beyond any calendar */
    if (cb_settle(run->db, run->worker, &instead, 1, why)) {
        item->verdict = instead.verdict;
        run->refused++;
        return true;
    }
    if (!settle_concerns_an_item(why->code))
        return false;
    run->error = *why;
    return ++run->unsettled <= most_unsettled;
}

static bool settle_halves(settle_run *run, cb_settlement *items, size_t n, cb_error *why)
{
    if (cb_settle(run->db, run->worker, items, n, why))
        return true;
    if (!settle_concerns_an_item(why->code))
        return false;
    if (n == 1)
        return refuse_item(run, items, why);
    return settle_halves(run, items, n / 2, why) &&
           settle_halves(run, items + n / 2, n - n / 2, why);
}

bool cb_settle_each(cb_db *db, const char *worker, cb_settlement *items, size_t n, size_t *refused,
                    cb_error *e)
{
    settle_run run = { .db = db, .worker = worker };
    cb_error why = { 0 };

    if (refused)
        *refused = 0;
    if (!db_is_ready(db, e))
        return false;
    if (db_in_transaction(db))
        return cb_fail(e, CB_MISUSE, "settling each item needs its own transactions, one is open");

    bool fine = settle_halves(&run, items, n, &why);
    if (refused)
        *refused = run.refused;
    if (fine && run.unsettled == 0)
        return true;
    if (e)
        *e = fine ? run.error : why;
    return false;
}
