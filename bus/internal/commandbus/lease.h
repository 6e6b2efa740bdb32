/* Keeping, giving back and finding leases; sleeping on queues. Not installed. */
#ifndef COMMANDBUS_LEASE_H
#define COMMANDBUS_LEASE_H

#include <commandbus/db.h>
#include <commandbus/uuid.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    CB_LEASE_EXTENDED,
    CB_LEASE_BUSY, /* Row locked, being settled most likely: ask again. */
    CB_LEASE_GONE, /* Settled, or held by somebody else now. */
} cb_lease_state;

typedef struct {
    const char *domain; /* borrowed */
    cb_uuid command_id;
    int64_t lease_no;

    cb_lease_state state; /* out */
} cb_lease;

/* Moves the end of each lease to now + vt_seconds. One transaction, never waits for a lock. */
CB_API bool cb_lease_extend(cb_db *db, const char *worker, cb_lease *leases, size_t n,
                            double vt_seconds, cb_error *e) CB_NODISCARD;

/* After a reconnect: frees, uncharged, what the database says `worker` holds in `domain` and is not
 * among `held` (a claim whose answer was lost). *released may be NULL. */
CB_API bool cb_lease_release_unknown(cb_db *db, const char *domain, const char *worker,
                                     const cb_lease *held, size_t n, size_t *released,
                                     cb_error *e) CB_NODISCARD;

/* Announces that `worker` sleeps on these queues for `seconds` at most: senders notify channel
 * commandbus_<queue> only then, with the name of whoever announced itself last. */
CB_API bool cb_sleep_announce(cb_db *db, const char *worker, const char *const *queues, size_t n,
                              double seconds, cb_error *e) CB_NODISCARD;
/* It woke up: on these queues, or with n = 0 on all of its queues. */
CB_API bool cb_sleep_end(cb_db *db, const char *worker, const char *const *queues, size_t n,
                         cb_error *e) CB_NODISCARD;
/* The same for these queues, and wakes somebody else who sleeps on them: it may not take all that
 * it was woken for. */
CB_API bool cb_sleep_pass_on(cb_db *db, const char *worker, const char *const *queues, size_t n,
                             cb_error *e) CB_NODISCARD;

#endif
