/* Histograms: a counter a bucket, and the scales. */
#include "histogram.h"

#define SCALE(array)                           \
    {                                          \
        array, sizeof(array) / sizeof *(array) \
    }

static const histogram_bound run_bounds[] = {
    { 500, "0.0005" },    { 1000, "0.001" },  { 2500, "0.0025" }, { 5000, "0.005" },
    { 10000, "0.01" },    { 25000, "0.025" }, { 50000, "0.05" },  { 100000, "0.1" },
    { 250000, "0.25" },   { 500000, "0.5" },  { 1000000, "1" },   { 2500000, "2.5" },
    { 5000000, "5" },     { 10000000, "10" }, { 30000000, "30" }, { 60000000, "60" },
    { 300000000, "300" },
};
const histogram_scale histogram_run = SCALE(run_bounds);

static const histogram_bound wait_bounds[] = {
    { 1000, "0.001" },        { 2000, "0.002" },      { 4000, "0.004" },
    { 10000, "0.01" },        { 25000, "0.025" },     { 50000, "0.05" },
    { 100000, "0.1" },        { 250000, "0.25" },     { 500000, "0.5" },
    { 1000000, "1" },         { 2500000, "2.5" },     { 10000000, "10" },
    { 30000000, "30" },       { 60000000, "60" },     { 300000000, "300" },
    { 900000000, "900" },     { 3600000000, "3600" }, { 14400000000, "14400" },
    { 86400000000, "86400" },
};
const histogram_scale histogram_wait = SCALE(wait_bounds);

static const histogram_bound brief_bounds[] = {
    { 500, "0.0005" },  { 1000, "0.001" },  { 2500, "0.0025" }, { 5000, "0.005" },
    { 10000, "0.01" },  { 25000, "0.025" }, { 50000, "0.05" },  { 100000, "0.1" },
    { 250000, "0.25" }, { 500000, "0.5" },  { 1000000, "1" },   { 2500000, "2.5" },
    { 10000000, "10" },
};
const histogram_scale histogram_brief = SCALE(brief_bounds);

static const histogram_bound items_bounds[] = {
    { 1, "1" },     { 2, "2" },       { 5, "5" },       { 10, "10" },
    { 20, "20" },   { 50, "50" },     { 100, "100" },   { 200, "200" },
    { 500, "500" }, { 1000, "1000" }, { 2000, "2000" },
};
const histogram_scale histogram_items = SCALE(items_bounds);

_Static_assert(sizeof run_bounds / sizeof *run_bounds <= HISTOGRAM_MOST, "too many buckets");
_Static_assert(sizeof wait_bounds / sizeof *wait_bounds <= HISTOGRAM_MOST, "too many buckets");
_Static_assert(sizeof brief_bounds / sizeof *brief_bounds <= HISTOGRAM_MOST, "too many buckets");
_Static_assert(sizeof items_bounds / sizeof *items_bounds <= HISTOGRAM_MOST, "too many buckets");

void histogram_init(histogram *h, const histogram_scale *scale)
{
    h->scale = scale;
    for (size_t i = 0; i <= HISTOGRAM_MOST; i++)
        atomic_init(&h->counts[i], 0);
    atomic_init(&h->sum, 0);
}

void histogram_add(histogram *h, int64_t value)
{
    size_t i = 0;

    if (value < 0)
        value = 0;
    while (i < h->scale->n && value > h->scale->bounds[i].most)
        i++;
    /* Nobody infers anything else from a count, so no order is needed. */
    atomic_fetch_add_explicit(&h->counts[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->sum, value, memory_order_relaxed);
}

void histogram_read(const histogram *h, histogram_reading *ret)
{
    ret->count = 0;
    for (size_t i = 0; i < h->scale->n; i++) {
        ret->count += atomic_load_explicit(&h->counts[i], memory_order_relaxed);
        ret->cumulative[i] = ret->count;
    }
    ret->count += atomic_load_explicit(&h->counts[h->scale->n], memory_order_relaxed);
    ret->sum = atomic_load_explicit(&h->sum, memory_order_relaxed);
}
