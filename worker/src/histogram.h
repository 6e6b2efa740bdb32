/* A histogram that many threads fill at once without a lock. */
#ifndef WORKER_HISTOGRAM_H
#define WORKER_HISTOGRAM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_MOST 20

/* One bucket: values up to `most` (inclusive), and how the text format writes that bound in base
 * units. */
typedef struct {
    int64_t most;
    const char *le;
} histogram_bound;

/* Ascending bounds; what is above the last one goes to +Inf. */
typedef struct {
    const histogram_bound *bounds;
    size_t n; /* at most HISTOGRAM_MOST */
} histogram_scale;

extern const histogram_scale histogram_run;   /* microseconds: from a no-op to minutes */
extern const histogram_scale histogram_wait;  /* microseconds: from a wake-up to a day's backlog */
extern const histogram_scale histogram_brief; /* microseconds: one call of the database */
extern const histogram_scale histogram_items; /* how many in one call */

typedef struct {
    const histogram_scale *scale; /* static */
    _Atomic uint64_t counts[HISTOGRAM_MOST + 1];
    _Atomic int64_t sum;
} histogram;

void histogram_init(histogram *h, const histogram_scale *scale);
/* Below 0 counts as 0: a clock that was set back is no reason for a negative wait. */
void histogram_add(histogram *h, int64_t value);

/* What it held at one moment. The buckets are cumulative and agree with `count`; `sum` may be a few
 * values ahead or behind. */
typedef struct {
    uint64_t cumulative[HISTOGRAM_MOST];
    uint64_t count;
    int64_t sum;
} histogram_reading;

void histogram_read(const histogram *h, histogram_reading *ret);

#endif
