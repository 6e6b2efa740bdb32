/* The fleet: who is alive, what is limited over all instances, and keeping house. */
#ifndef COMMANDBUS_FLEET_H
#define COMMANDBUS_FLEET_H

#include <commandbus/query.h>
#include <stdint.h>

/* "I am alive": `details` is a JSON object that `commandbus fleet` shows. */
CB_API bool cb_heartbeat(cb_db *db, const char *worker, const char *details,
                         cb_error *e) CB_NODISCARD;
/* A clean end: takes the heartbeat and the sleepers of this worker away. */
CB_API bool cb_retire(cb_db *db, const char *worker, cb_error *e) CB_NODISCARD;

/* Sets the most leases that a domain may have over the whole fleet; 0 takes the limit away. What
 * is in progress already is counted from then on. Safe to repeat, and cheap when nothing
 * changes. CB_AGAIN when somebody keeps a claim of that domain open for seconds: call again. */
CB_API bool cb_fleet_limit_set(cb_db *db, const char *domain, int limit, cb_error *e) CB_NODISCARD;

/* Instances: worker, name, host, pid, version, profile, state, domains (JSON),
 * heartbeat_age_seconds, uptime_seconds, started_at. Those silent for longer than a minute say
 * so in state. */
CB_API bool cb_fleet_workers(cb_db *db, cb_rows **ret, cb_error *e) CB_NODISCARD;
/* Domains: domain, instances, slots (the sum of concurrent-messages of live instances),
 * slots_each (NULL when they differ), prefetch and in_flight (as they say), live_leases (as the
 * database says), fleet_limit (0: none), depth and visible (as exact as in cb_queue_sample),
 * oldest_age_seconds (since it was sent), waiting_seconds (since the first due message was due),
 * total_sent, problems: a JSON array of LEASES_OVER_LIMIT, LEASES_OVER_SLOTS, NOBODY_SERVES,
 * QUEUE_MISSING. */
CB_API bool cb_fleet_domains(cb_db *db, cb_rows **ret, cb_error *e) CB_NODISCARD;

/* What a domain has had to do in the last `window` (an interval such as "1 hour"), from its
 * audit records: seconds (the window, or the domain's age), arrivals (runs asked for: sent and
 * retried), retries (of those), in_busiest_minute, runs (begun and ended meanwhile),
 * mean_seconds and deviation_seconds (of a run, from claim to outcome; NULL without runs). No
 * row for a domain that is not registered. */
CB_API bool cb_domain_load(cb_db *db, const char *domain, const char *window, cb_rows **ret,
                           cb_error *e) CB_NODISCARD;

/* Every domain of the database, for metrics: domain, instances (live, with slots for its
 * commands), fleet_limit (0: none), live_leases (0 without a limit), in_tsq (10,000 at most),
 * oldest_due_us. */
CB_API bool cb_domain_figures(cb_db *db, cb_rows **ret, cb_error *e) CB_NODISCARD;

/* One queue in figures, cheap whatever its depth: exact up to 10,000 messages, the server's
 * estimate beyond. */
typedef struct {
    const char *domain; /* in, borrowed */
    int64_t depth;      /* out: messages in <domain>__commands; -1 when the queue is gone */
    double
        oldest_due_seconds; /* out: how long the first due message has been waiting; 0 for none */
} cb_queue_sample;

CB_API bool cb_queue_sample_many(cb_db *db, cb_queue_sample *samples, size_t n,
                                 cb_error *e) CB_NODISCARD;

/* Forgets sleepers and places of limited domains whose time is over, and heartbeats older than a
 * day. *removed may be NULL. */
CB_API bool cb_fleet_tidy(cb_db *db, size_t *removed, cb_error *e) CB_NODISCARD;
/* Gives commands of `domain` whose message vanished from the queue a new one, 1000 at most, and
 * makes visible what somebody hid there. Walks the whole table of commands. *restored may be
 * NULL. */
CB_API bool cb_messages_restore(cb_db *db, const char *domain, size_t *restored,
                                cb_error *e) CB_NODISCARD;
/* The same for housekeeping, as often as it likes: the table is walked once an hour over the fleet,
 * and when somebody has taken messages out of the queue by hand. */
CB_API bool cb_messages_keep(cb_db *db, const char *domain, size_t *restored,
                             cb_error *e) CB_NODISCARD;
/* Gives processes replies that were lost on their way, made again from the commands' rows. For
 * housekeeping: does nothing when another instance did so within `every_seconds`. A process has
 * waited, and its command been over, for `grace_seconds` before its reply counts as lost. *restored
 * may be NULL. */
CB_API bool cb_replies_keep(cb_db *db, double every_seconds, double grace_seconds, size_t *restored,
                            cb_error *e) CB_NODISCARD;

#endif
