/* Settling in its parts, for who settles more than plain outcomes of commands: one call of settle,
 * and halving a batch that the database refuses. */
#ifndef CB_SETTLE_CALL_H
#define CB_SETTLE_CALL_H

#include <commandbus/settle.h>

#include "domain_groups.h"
#include "statements.h"

/* ---- one call: cb_settle runs it alone, cb_settle_with_effects behind other statements of the
 * same transaction ---- */

typedef struct settle_arrays settle_arrays;

/* Everything about one call, freed together. Set `sql` and `before`, the rest is { 0 }. */
typedef struct {
    const char *sql; /* takes the parameters of settle.sql, answers its columns */
    size_t before;   /* statements that the caller fills in, to be run first */

    domain_groups by_domain;
    settle_arrays *arrays;          /* one a domain */
    pipeline_statement *statements; /* `before`, then one a domain */
} settle_call;

#define OWNED_SETTLE_CALL(name) __attribute__((cleanup(settle_call_done))) settle_call name
void settle_call_done(settle_call *call);

/* Makes the statements for n > 0 items. */
bool settle_call_make(settle_call *call, const char *worker, const cb_settlement *items, size_t n,
                      cb_error *e);

/* One transaction, then the verdicts; and after it has ended, batches whose last member was among
 * the items are closed. */
bool settle_call_run(settle_call *call, cb_db *db, cb_settlement *items, size_t n, cb_error *e);

/* Closes batches whose last member was settled, named in column 1 of the settle's answer. After
 * the commit, in a transaction of its own, so that two settlers see each other's members; left
 * out when the caller has one open. A failure is no error of the settle, which has happened:
 * housekeeping closes them later. */
void settle_close_batches(cb_db *db, const PGresult *answer);

/* Reads the next verdict of an array as the server prints it. */
bool verdict_next(const char **at, cb_verdict *ret);

/* ---- one bad item must not spoil its batch: the batch is halved until the culprit is alone,
 * and that one is settled in another form. The same for commands and for processes; what differs
 * is the kind ---- */

typedef struct {
    cb_db *db;
    const char *worker;
    size_t refused; /* items that were settled in another form */
    size_t unsettled;
    cb_error error; /* of the last item that could not be settled */
} settle_run;

typedef struct {
    size_t item_size;
    bool (*settle)(const settle_run *run, void *items, size_t n, cb_error *e);
    /* Settles one that is refused so that an operator sees it. False with *why, the old or a new
     * reason. */
    bool (*replace)(settle_run *run, void *item, cb_error *why);
} settle_kind;

/* *refused (may be NULL): how many were settled in another form. False: some, or all, could not
 * be. */
bool settle_each(const settle_kind *kind, cb_db *db, const char *worker, void *items, size_t n,
                 size_t *refused, cb_error *e) CB_NODISCARD;

#endif
