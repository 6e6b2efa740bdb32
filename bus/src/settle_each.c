/* Settling commands where one bad item must not spoil its batch. */
#include <stdio.h>

#include "settle_halves.h"
#include "utf8.h"

static bool settle(const settle_run *run, void *items, size_t n, cb_error *e)
{
    return cb_settle(run->db, run->worker, items, n, e);
}

/* As a permanent failure with the database's reason. */
static bool replace(settle_run *run, void *refused, cb_error *why)
{
    cb_settlement *item = refused, instead = *item;
    char message[200];

    snprintf(message, sizeof message, "the database refused the outcome: %s%s%.120s", why->sqlstate,
             *why->sqlstate ? ", " : "", why->message);
    utf8_trim(message);
    instead.outcome = CB_PERMANENT;
    instead.result = NULL;
    instead.error_code = "SETTLE_REFUSED";
    instead.error_message = message;
    instead.retry_seconds = 0; /* it may have been the culprit: NaN, or beyond any calendar */
    if (!cb_settle(run->db, run->worker, &instead, 1, why))
        return false;
    item->verdict = instead.verdict;
    run->refused++;
    return true;
}

bool cb_settle_each(cb_db *db, const char *worker, cb_settlement *items, size_t n, size_t *refused,
                    cb_error *e)
{
    static const settle_kind commands = { sizeof *items, settle, replace };

    return settle_each(&commands, db, worker, items, n, refused, e);
}
