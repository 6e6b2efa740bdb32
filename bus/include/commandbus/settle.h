/* Settling: writing outcomes, many at once, each guarded by its fence. */
#ifndef COMMANDBUS_SETTLE_H
#define COMMANDBUS_SETTLE_H

#include <commandbus/db.h>
#include <commandbus/outcome.h>
#include <commandbus/uuid.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    CB_SETTLED,
    CB_ALREADY, /* This fence has its outcome: a resend after a lost COMMIT. */
    CB_BUSY,    /* Somebody holds a row of it: bring it again with the next flush. */
    CB_STALE,   /* The fence was lost: audited STALE_OUTCOME, nothing changed. */
} cb_verdict;

CB_API const char *cb_verdict_name(cb_verdict verdict);

/* One outcome. Strings are borrowed for the call. */
typedef struct {
    const char *domain;
    cb_uuid command_id;
    int64_t lease_no;
    cb_outcome outcome;
    const char *result;        /* JSON value of a success, or NULL */
    const char *error_code;    /* for all but a success [INTERNAL_ERROR] */
    const char *error_message; /* or NULL */
    double retry_seconds;      /* transient and interrupted: visible again after this long */
    bool still_running;        /* a timeout: the handler keeps its place of the fleet's limit until
                                * its late outcome is settled under the same fence */

    cb_verdict verdict; /* out */
} cb_settlement;

/* Writes n outcomes of any domains in one transaction, and answers per item. On CB_LOST nobody
 * knows whether it committed: call again with the same items, the verdicts tell. An error of class
 * CB_DATA concerns some item: halve the batch until the culprit is alone (cb_settle_each does).
 *
 * All items travel in one flush: keep n to some thousands and results and messages to some
 * megabytes. Batches whose last member is among the items are closed afterwards in a second
 * transaction, which is left out when the caller has one open (then call cb_batch_close after the
 * commit) and whose failure is no failure of the settle: housekeeping repeats it. */
CB_API bool cb_settle(cb_db *db, const char *worker, cb_settlement *items, size_t n,
                      cb_error *e) CB_NODISCARD;

/* The same, but an item that the database does not take never spoils its batch: the batch is halved
 * until the culprit is alone, which is then settled permanent as SETTLE_REFUSED. *refused, unless
 * NULL, counts those. Not inside a transaction of the caller's (CB_MISUSE): it needs several of its
 * own. On failure (CB_LOST, CB_AGAIN, or an item that cannot even be refused) some items may be
 * settled: call again with the same, the verdicts tell. */
CB_API bool cb_settle_each(cb_db *db, const char *worker, cb_settlement *items, size_t n,
                           size_t *refused, cb_error *e) CB_NODISCARD;

#endif
