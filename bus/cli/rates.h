/* What happened between two looks at the domains: messages in and out a second, and the trend. */
#ifndef CLI_RATES_H
#define CLI_RATES_H

#include <commandbus/query.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RATES_TREND = 8
};

typedef struct {
    char domain[48];
    bool known; /* there were two looks: in and out mean something */
    double in, out;
    double at;                  /* seconds, of the last look */
    int64_t sent, depth;        /* of the last look */
    int64_t trend[RATES_TREND]; /* the last depths, oldest first */
    size_t n_trend;
} domain_rate;

/* Start with { 0 }. */
typedef struct {
    domain_rate *items; /* owned */
    size_t n;
} rates;

/* Takes in the rows of cb_fleet_domains, read at `now` (seconds of a clock that only goes forward). */
void rates_update(rates *r, const cb_rows *domains, double now);

/* NULL for a domain never seen. */
const domain_rate *rates_find(const rates *r, const char *domain);
void rates_done(rates *r);

#endif
