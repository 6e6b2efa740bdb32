/* What a scrape tells of the domains of the database, served here or not. Every instance shows the same: whoever is
 * left can tell of a domain that nobody serves. */
#include <stdlib.h>

#include "scrape.h"

void metrics_fleet_adopt(metrics *m, metrics_fleet_figure *figures, size_t n)
{
    pthread_mutex_lock(&m->fleet.mutex);
    free(m->fleet.all);
    m->fleet.all = figures;
    m->fleet.n = n;
    pthread_mutex_unlock(&m->fleet.mutex);
}

typedef enum {
    NUMBER,
    NUMBER_OF_LIMITED, /* only of domains that have a limit */
    MICROSECONDS,
} unit;

/* A field of metrics_fleet_figure, a line for each domain. */
static void lines(const scrape *s, const family *f, unit in)
{
    metrics *m = (metrics *)s->m; /* the lock is no part of what a scrape leaves as it was */

    pthread_mutex_lock(&m->fleet.mutex);
    for (size_t i = 0; i < m->fleet.n; i++) {
        const metrics_fleet_figure *figure = &m->fleet.all[i];
        const char *at = (const char *)figure + f->which;
        int64_t value = *(const int64_t *)(const void *)at;
        if (in == NUMBER_OF_LIMITED && figure->limit == 0)
            continue;
        fprintf(s->out, "%s%s", SCRAPE_PREFIX, f->name);
        scrape_label(s, "{", "domain", figure->domain);
        if (in == MICROSECONDS) {
            fputc('}', s->out);
            scrape_seconds(s, value);
        } else {
            scrape_integer(s, value);
        }
    }
    pthread_mutex_unlock(&m->fleet.mutex);
}

static void numbers(const scrape *s, const family *f)
{
    lines(s, f, NUMBER);
}

static void numbers_of_limited(const scrape *s, const family *f)
{
    lines(s, f, NUMBER_OF_LIMITED);
}

static void seconds(const scrape *s, const family *f)
{
    lines(s, f, MICROSECONDS);
}

const family fleet_families[] = {
    { "fleet_instances", "gauge", "Live instances with slots for the commands of the domain.",
      numbers, offsetof(metrics_fleet_figure, instances) },
    { "fleet_limit", "gauge", "The fleet-limit in force, of domains that have one.",
      numbers_of_limited, offsetof(metrics_fleet_figure, limit) },
    { "fleet_leases", "gauge", "Leases over the whole fleet, of domains that have a limit.",
      numbers_of_limited, offsetof(metrics_fleet_figure, leases) },
    { "fleet_oldest_due_seconds", "gauge",
      "How long the first due command has been waiting, also where nobody serves.", seconds,
      offsetof(metrics_fleet_figure, oldest_due_us) },
    { "tsq_commands", "gauge", "Commands in the troubleshooting queue, counted up to 10,000.",
      numbers, offsetof(metrics_fleet_figure, in_tsq) },
};
const size_t n_fleet_families = sizeof fleet_families / sizeof *fleet_families;
