/* What a domain has to do and what it has for that, measured: for plan --from-database. */
#ifndef CLI_PLAN_LOAD_H
#define CLI_PLAN_LOAD_H

#include <commandbus/db.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    double seconds;            /* that the figures are of */
    int64_t arrivals, retries; /* retries are among the arrivals */
    double busiest;            /* a second, in the busiest minute */
    int64_t runs;
    double mean_seconds; /* of a run */
    double variation;    /* of that: 0 always the same, 1 exponential */

    /* Now. */
    int instances, slots_each, slots; /* slots_each 0: they differ */
    int fleet_limit;                  /* 0: none */
    int64_t depth;                    /* of the queue */
} plan_load;

/* Looks back over `window_ms`. */
bool plan_measure(cb_db *db, const char *domain, int64_t window_ms, plan_load *ret, cb_error *e);

#endif
