/* What happened between two looks at the domains. */
#include "rates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const domain_rate *rates_find(const rates *r, const char *domain)
{
    for (size_t i = 0; i < r->n; i++) {
        if (strcmp(r->items[i].domain, domain) == 0)
            return &r->items[i];
    }
    return NULL;
}

/* NULL when there is no memory. */
static domain_rate *find_or_add(rates *r, const char *domain, bool *is_new)
{
    const domain_rate *known = rates_find(r, domain);
    domain_rate *items;

    *is_new = !known;
    if (known)
        return &r->items[known - r->items];
    items = realloc(r->items, (r->n + 1) * sizeof *items);
    if (!items)
        return NULL;
    r->items = items;
    items[r->n] = (domain_rate){ 0 };
    snprintf(items[r->n].domain, sizeof items->domain, "%s", domain);
    return &items[r->n++];
}

static void add_trend(domain_rate *d, int64_t depth)
{
    if (d->n_trend == RATES_TREND) {
        memmove(d->trend, d->trend + 1, (RATES_TREND - 1) * sizeof *d->trend);
        d->n_trend--;
    }
    d->trend[d->n_trend++] = depth;
}

/* What was sent and is not there any more has gone out. Depths beyond 10,000 are estimates, so a
 * difference may claim that messages came out of nowhere. */
static void measure(domain_rate *d, int64_t sent, int64_t depth, double now)
{
    double seconds = now - d->at;

    if (seconds <= 0)
        return;
    d->in = (double)(sent - d->sent) / seconds;
    d->out = d->in - (double)(depth - d->depth) / seconds;
    d->in = d->in > 0 ? d->in : 0;
    d->out = d->out > 0 ? d->out : 0;
    d->known = true;
}

void rates_update(rates *r, const cb_rows *domains, double now)
{
    for (size_t row = 0; row < cb_rows_count(domains); row++) {
        const char *name = cb_rows_get(domains, row, "domain");
        const char *sent = cb_rows_get(domains, row, "total_sent"),
                   *depth = cb_rows_get(domains, row, "depth");
        bool is_new;
        domain_rate *d = name && sent && depth ? find_or_add(r, name, &is_new) : NULL;
        if (!d)
            continue;
        if (!is_new)
            measure(d, strtoll(sent, NULL, 10), strtoll(depth, NULL, 10), now);
        d->at = now;
        d->sent = strtoll(sent, NULL, 10);
        d->depth = strtoll(depth, NULL, 10);
        add_trend(d, d->depth);
    }
}

void rates_done(rates *r)
{
    free(r->items);
    *r = (rates){ 0 };
}
