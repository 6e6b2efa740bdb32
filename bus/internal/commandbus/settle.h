/* Settling: writing outcomes, many at once, each guarded by its fence. Not installed. */
#ifndef COMMANDBUS_SETTLE_H
#define COMMANDBUS_SETTLE_H

#include <commandbus/db.h>
#include <commandbus/host.h>
#include <stddef.h>

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
