/* The text of a scrape, Prometheus' text format 0.0.4. The table of families at the end is all of
 * it, beside those of processes and of the fleet. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "fail.h"
#include "scrape.h"

/* ---- lines: numbers are written from integers, so that no locale can put a comma into them
 * ---- */

void scrape_label(const scrape *s, const char *separator, const char *name, const char *value)
{
    fprintf(s->out, "%s%s=\"", separator, name);
    for (; *value; value++) {
        if (*value == '\n')
            fputs("\\n", s->out);
        else if (*value == '"' || *value == '\\')
            fprintf(s->out, "\\%c", *value);
        else
            fputc(*value, s->out);
    }
    fputc('"', s->out);
}

void scrape_domain(const scrape *s, const family *f, size_t domain)
{
    fprintf(s->out, "%s%s", SCRAPE_PREFIX, f->name);
    scrape_label(s, "{", "domain", s->m->domains[domain].is.domain);
}

void scrape_integer(const scrape *s, int64_t value)
{
    fprintf(s->out, "} %" PRId64 "\n", value);
}

void scrape_seconds(const scrape *s, int64_t us)
{
    fprintf(s->out, " %" PRId64 ".%06" PRId64 "\n", us / 1000000, us % 1000000);
}

void scrape_histogram(const scrape *s, const family *f, const histogram *h,
                      const scrape_labels *labels)
{
    const char *domain = labels->domain;
    const char *const suffixes[] = { "_bucket", "_sum", "_count" };
    histogram_reading reading;
    bool in_seconds = h->scale != &histogram_items;

    histogram_read(h, &reading);
    for (size_t i = 0; i < h->scale->n + 3; i++) {
        bool bucket = i <= h->scale->n;
        fprintf(s->out, "%s%s%s", SCRAPE_PREFIX, f->name, suffixes[bucket ? 0 : i - h->scale->n]);
        if (domain)
            scrape_label(s, "{", "domain", domain);
        if (labels->key)
            scrape_label(s, ",", labels->key, labels->value);
        if (labels->key2)
            scrape_label(s, ",", labels->key2, labels->value2);
        if (bucket)
            scrape_label(s, domain ? "," : "{", "le",
                         i < h->scale->n ? h->scale->bounds[i].le : "+Inf");
        fputs(domain || bucket ? "}" : "", s->out);
        if (i == h->scale->n + 1 && in_seconds)
            scrape_seconds(s, reading.sum);
        else if (i == h->scale->n + 1)
            fprintf(s->out, " %" PRId64 "\n", reading.sum);
        else
            fprintf(s->out, " %" PRIu64 "\n",
                    i < h->scale->n ? reading.cumulative[i] : reading.count);
    }
}

void scrape_at_the_moment(const scrape *s, const family *f)
{
    for (size_t i = 0; i < s->m->n; i++) {
        const char *now = (const char *)&s->now[i];
        scrape_domain(s, f, i);
        scrape_integer(s, (int64_t) * (const size_t *)(const void *)(now + f->which));
    }
}

/* ---- samples ---- */

static void info(const scrape *s, const family *f)
{
    fprintf(s->out, "%s%s", SCRAPE_PREFIX, f->name);
    scrape_label(s, "{", "worker", s->worker);
    scrape_label(s, ",", "version", s->version);
    scrape_integer(s, 1);
}

static void ready(const scrape *s, const family *f)
{
    fprintf(s->out, "%s%s %d\n", SCRAPE_PREFIX, f->name, s->ready);
}

static void worker_total(const scrape *s, const family *f)
{
    fprintf(s->out, "%s%s %" PRId64 "\n", SCRAPE_PREFIX, f->name,
            metrics_get(&s->m->counters[f->which]));
}

static void domain_total(const scrape *s, const family *f)
{
    for (size_t i = 0; i < s->m->n; i++) {
        scrape_domain(s, f, i);
        scrape_integer(s, metrics_get(&s->m->domains[i].counters[f->which]));
    }
}

static void slots(const scrape *s, const family *f)
{
    for (size_t i = 0; i < s->m->n; i++) {
        scrape_domain(s, f, i);
        scrape_integer(s, s->m->domains[i].is.slots);
    }
}

static void outcomes(const scrape *s, const family *f)
{
    static const char *const names[METRICS_OUTCOMES] = {
        [CB_SUCCESS] = "success",         [CB_TRANSIENT] = "transient",
        [CB_PERMANENT] = "permanent",     [CB_BUSINESS_RULE] = "business_rule",
        [CB_INTERRUPTED] = "interrupted",
    };

    for (size_t i = 0; i < s->m->n; i++) {
        const metrics_part *part = &s->m->domains[i];
        for (size_t j = 0; j < part->n_types * METRICS_OUTCOMES; j++) {
            const metrics_type *type = &part->types[j / METRICS_OUTCOMES];
            scrape_domain(s, f, i);
            scrape_label(s, ",", "command_type", type->name);
            scrape_label(s, ",", "outcome", names[j % METRICS_OUTCOMES]);
            scrape_integer(s, metrics_get(&type->outcomes[j % METRICS_OUTCOMES]));
        }
    }
}

static void run_durations(const scrape *s, const family *f)
{
    for (size_t i = 0; i < s->m->n; i++) {
        const metrics_part *part = &s->m->domains[i];
        for (size_t j = 0; j < part->n_types; j++)
            scrape_histogram(s, f, &part->types[j].run,
                             &(scrape_labels){ .domain = part->is.domain,
                                               .key = "command_type",
                                               .value = part->types[j].name });
    }
}

static void queue_waits(const scrape *s, const family *f)
{
    for (size_t i = 0; i < s->m->n; i++)
        scrape_histogram(s, f, &s->m->domains[i].wait,
                         &(scrape_labels){ .domain = s->m->domains[i].is.domain });
}

/* A histogram of struct metrics. */
static void worker_histogram(const scrape *s, const family *f)
{
    const char *m = (const char *)s->m;

    scrape_histogram(s, f, (const histogram *)(const void *)(m + f->which), &(scrape_labels){ 0 });
}

static void reconnects(const scrape *s, const family *f)
{
    for (size_t i = 0; i < CONNECTIONS; i++) {
        fprintf(s->out, "%s%s", SCRAPE_PREFIX, f->name);
        scrape_label(s, "{", "connection", connection_names[i]);
        scrape_integer(s, metrics_get(&s->m->connections[i].reconnects));
    }
}

static void connections_up(const scrape *s, const family *f)
{
    for (size_t i = 0; i < CONNECTIONS; i++) {
        int64_t up = metrics_get(&s->m->connections[i].up);
        if (up < 0)
            continue;
        fprintf(s->out, "%s%s", SCRAPE_PREFIX, f->name);
        scrape_label(s, "{", "connection", connection_names[i]);
        scrape_integer(s, up);
    }
}

static void queue_depths(const scrape *s, const family *f)
{
    for (size_t i = 0; i < s->m->n; i++) {
        int64_t depth = metrics_get(&s->m->domains[i].depth);
        if (depth < 0)
            continue;
        scrape_domain(s, f, i);
        scrape_integer(s, depth);
    }
}

static void oldest_due(const scrape *s, const family *f)
{
    for (size_t i = 0; i < s->m->n; i++) {
        if (metrics_get(&s->m->domains[i].depth) < 0)
            continue;
        scrape_domain(s, f, i);
        fputc('}', s->out);
        scrape_seconds(s, metrics_get(&s->m->domains[i].oldest_due_us));
    }
}

/* ---- families ---- */

static const family families[] = {
    { "worker_info", "gauge", "Which worker and version this is; always 1.", info, 0 },
    { "ready", "gauge", "Whether the worker is ready, as /readyz says: 1 or 0.", ready, 0 },
    { "slots", "gauge", "Handlers that can run at once.", slots, 0 },
    { "in_flight", "gauge", "Commands claimed and not yet settled, or whose handler still runs.",
      scrape_at_the_moment, offsetof(metrics_now, in_flight) },
    { "running", "gauge", "Handlers that run.", scrape_at_the_moment,
      offsetof(metrics_now, running) },
    { "overdue", "gauge", "Handlers that run past their timeout.", scrape_at_the_moment,
      offsetof(metrics_now, overdue) },
    { "claimed_total", "counter", "Commands claimed.", domain_total, DOMAIN_CLAIMED },
    { "outcomes_total", "counter",
      "Outcomes settled, by command type; types that no handler set offers are 'unknown'.",
      outcomes, 0 },
    { "handler_timeouts_total", "counter", "Runs that went past their timeout.", domain_total,
      DOMAIN_TIMEOUTS },
    { "stale_outcomes_total", "counter",
      "Outcomes that came after their lease was lost and changed nothing.", domain_total,
      DOMAIN_STALE },
    { "poison_archived_total", "counter", "Messages that could not be understood, archived.",
      domain_total, DOMAIN_POISONED },
    { "lease_exhausted_total", "counter",
      "Commands moved to the troubleshooting queue because their workers kept dying.", domain_total,
      DOMAIN_EXHAUSTED },
    { "handler_duration_seconds", "histogram", "How long handlers ran.", run_durations, 0 },
    { "queue_wait_seconds", "histogram", "From a command being due to its claim.", queue_waits, 0 },
    { "settle_batch_size", "histogram", "Outcomes written by one flush.", worker_histogram,
      offsetof(metrics, settle_size) },
    { "settle_duration_seconds", "histogram", "How long one flush of outcomes took.",
      worker_histogram, offsetof(metrics, settle_duration) },
    { "settle_refused_total", "counter", "Outcomes that the database did not take.", worker_total,
      WORKER_REFUSED },
    { "renewals_total", "counter", "Leases renewed.", domain_total, DOMAIN_RENEWALS },
    { "leases_lost_total", "counter", "Leases that a renewal found lost.", domain_total,
      DOMAIN_LEASES_LOST },
    { "released_unknown_total", "counter",
      "Commands given back whose claim was answered but never arrived.", domain_total,
      DOMAIN_RELEASED },
    { "reconnects_total", "counter", "Connections to the database opened again.", reconnects, 0 },
    { "connection_up", "gauge", "Whether a connection to the database is there: 1 or 0.",
      connections_up, 0 },
    { "notifications_total", "counter", "Wake-ups by NOTIFY.", worker_total, WORKER_NOTIFIED },
    { "queue_depth", "gauge", "Messages in the queue of commands; an estimate when very many.",
      queue_depths, 0 },
    { "queue_oldest_due_seconds", "gauge", "How long the first due message has been waiting.",
      oldest_due, 0 },
    { "housekeeping_batches_closed_total", "counter", "Batches that housekeeping closed.",
      worker_total, WORKER_BATCHES_CLOSED },
    { "housekeeping_rows_purged_total", "counter", "Rows that retention removed.", worker_total,
      WORKER_ROWS_PURGED },
    { "housekeeping_messages_restored_total", "counter",
      "Commands whose message had vanished and was sent again.", worker_total,
      WORKER_MESSAGES_RESTORED },
    { "housekeeping_replies_restored_total", "counter",
      "Replies that were lost on their way to a process and made again.", worker_total,
      WORKER_REPLIES_RESTORED },
};

/* ---- the domains of the database, served here or not: whoever is left can tell of one that nobody
 * serves ---- */

typedef enum {
    NUMBER,
    NUMBER_OF_LIMITED, /* only of domains that have a limit */
    MICROSECONDS,
} unit;

/* A field of metrics_fleet_figure, a line for each domain. */
static void fleet_lines(const scrape *s, const family *f, unit in)
{
    metrics *m = (metrics *)s->m; /* the lock is not part of what a scrape leaves as it was */

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

static void fleet_numbers(const scrape *s, const family *f)
{
    fleet_lines(s, f, NUMBER);
}

static void fleet_numbers_of_limited(const scrape *s, const family *f)
{
    fleet_lines(s, f, NUMBER_OF_LIMITED);
}

static void fleet_seconds(const scrape *s, const family *f)
{
    fleet_lines(s, f, MICROSECONDS);
}

static const family fleet_families[] = {
    { "fleet_instances", "gauge", "Live instances with slots for the commands of the domain.",
      fleet_numbers, offsetof(metrics_fleet_figure, instances) },
    { "fleet_limit", "gauge", "The fleet-limit in force, of domains that have one.",
      fleet_numbers_of_limited, offsetof(metrics_fleet_figure, limit) },
    { "fleet_leases", "gauge", "Leases over the whole fleet, of domains that have a limit.",
      fleet_numbers_of_limited, offsetof(metrics_fleet_figure, leases) },
    { "fleet_oldest_due_seconds", "gauge",
      "How long the first due command has been waiting, also where nobody serves.", fleet_seconds,
      offsetof(metrics_fleet_figure, oldest_due_us) },
    { "tsq_commands", "gauge", "Commands in the troubleshooting queue, counted up to 10,000.",
      fleet_numbers, offsetof(metrics_fleet_figure, in_tsq) },
};

/* ---- all of it ---- */

static void render(const scrape *s, const family *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const family *f = &list[i];
        fprintf(s->out, "# HELP %s%s %s\n", SCRAPE_PREFIX, f->name, f->help);
        fprintf(s->out, "# TYPE %s%s %s\n", SCRAPE_PREFIX, f->name, f->type);
        f->samples(s, f);
    }
}

bool metrics_render(const metrics *m, const metrics_now *now, bool is_ready, const char *worker_id,
                    const char *version, char **ret, cb_error *e)
{
    char *text = NULL;
    size_t size = 0;
    scrape s = { .out = open_memstream(&text, &size),
                 .m = m,
                 .now = now,
                 .ready = is_ready,
                 .worker = worker_id,
                 .version = version };

    if (!s.out)
        return fail_memory(e);
    render(&s, families, CB_COUNT(families));
    render(&s, process_families, n_process_families);
    render(&s, fleet_families, CB_COUNT(fleet_families));
    bool written = !ferror(s.out);
    if (fclose(s.out) != 0 || !written) {
        free(text);
        return fail_memory(e);
    }
    *ret = text;
    return true;
}
