/* Looking processes up: lists, counts, and one with everything that happened to it. */
#ifndef COMMANDBUS_PROCESS_QUERY_H
#define COMMANDBUS_PROCESS_QUERY_H

#include <commandbus/query.h>

/* Which processes. NULL or 0 does not filter; limit 0 is 50. */
typedef struct {
    const char *domain;
    const char *process_type;
    const char *
        status; /* in either case; CANCELLED, TSQ, OPEN (has not ended), IN_PROGRESS and WAITING are understood too */
    const char *error_code;
    const char *batch_id;
    const char *created_from; /* ISO 8601, or an interval before now such as "2 hours" */
    const char *created_to;   /* likewise, exclusive */
    const char *older_than;   /* unchanged for at least this interval; in the TSQ: there so long */
    int limit;
    int offset;
} cb_process_filter;

/* Newest first, without their states. */
CB_API bool cb_process_list(cb_db *db, const cb_process_filter *filter, cb_rows **ret,
                            cb_error *e) CB_NODISCARD;
/* Those that wait for an operator, oldest first. */
CB_API bool cb_process_tsq_list(cb_db *db, const cb_process_filter *filter, cb_rows **ret,
                                cb_error *e) CB_NODISCARD;
/* How many, by type, status and error code. Reads every process that matches. */
CB_API bool cb_process_counts(cb_db *db, const cb_process_filter *filter, cb_rows **ret,
                              cb_error *e) CB_NODISCARD;
/* Each registered type with what is due and what waits for an operator: from indexes, cheap
 * enough to be asked every second. */
CB_API bool cb_process_load(cb_db *db, cb_rows **ret, cb_error *e) CB_NODISCARD;

/* Those that have not ended, by process_type, status and error_code: processes,
 * oldest_due_seconds. For metrics. */
CB_API bool cb_process_figures(cb_db *db, cb_rows **ret, cb_error *e) CB_NODISCARD;

/* One process in full, as of one moment. Rows: 0 or 1. Beside its columns it has JSON arrays:
 * `records` (each with its `command` and that one's `trail`), `inbox`, `events`; and `owed`,
 * what a compensation would undo, in the order in which it would. */
CB_API bool cb_process_show(cb_db *db, const char *process_id, cb_rows **ret,
                            cb_error *e) CB_NODISCARD;

/* The moment that lies an interval ("4 hours") after now by the clock of process timers: one row
 * with the column `moment`. */
CB_API bool cb_process_moment(cb_db *db, const char *interval, cb_rows **ret,
                              cb_error *e) CB_NODISCARD;

#endif
