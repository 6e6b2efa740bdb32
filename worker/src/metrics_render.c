/* The text of a scrape, Prometheus' text format 0.0.4. The table of families at the end is all of it;
 * every number is written from integers, so that no locale can put a comma into it. */
#include "metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "metrics_state.h"

/* What one rendering needs. */
typedef struct {
    FILE *out;
    const metrics *m;
    const metrics_now *now;
    bool ready;
    const char *worker, *version;
} scrape;

typedef struct family family;
struct family {
    const char *name; /* without the prefix */
    const char *type;
    const char *help;
    void (*samples)(const scrape *s, const family *f);
    size_t which; /* what `samples` picks: a counter, or an offset */
};

static const char prefix[] = "commandbus_";

/* ---- parts of a line ---- */

static void label(const scrape *s, const char *separator, const char *name, const char *value)
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

/* name{domain="…" — the caller goes on and closes the brace. */
static void open_domain(const scrape *s, const family *f, size_t domain)
{
    fprintf(s->out, "%s%s", prefix, f->name);
    label(s, "{", "domain", s->m->domains[domain].is.domain);
}

static void close_integer(const scrape *s, int64_t value)
{
    fprintf(s->out, "} %" PRId64 "\n", value);
}

static void seconds(const scrape *s, int64_t us)
{
    fprintf(s->out, " %" PRId64 ".%06" PRId64 "\n", us / 1000000, us % 1000000);
}

/* The lines of one histogram. Labels other than le are those of `domain` and `type`, unless NULL. */
static void histogram_lines(const scrape *s, const family *f, const histogram *h,
                            const char *domain, const char *type)
{
    const char *const suffixes[] = { "_bucket", "_sum", "_count" };
    histogram_reading reading;
    bool in_seconds = h->scale != &histogram_items;

    histogram_read(h, &reading);
    for (size_t i = 0; i < h->scale->n + 3; i++) {
        bool bucket = i <= h->scale->n;
        fprintf(s->out, "%s%s%s", prefix, f->name, suffixes[bucket ? 0 : i - h->scale->n]);
        if (domain)
            label(s, "{", "domain", domain);
        if (type)
            label(s, ",", "command_type", type);
        if (bucket)
            label(s, domain ? "," : "{", "le", i < h->scale->n ? h->scale->bounds[i].le : "+Inf");
        fputs(domain || bucket ? "}" : "", s->out);
        if (i == h->scale->n + 1 && in_seconds)
            seconds(s, reading.sum);
        else if (i == h->scale->n + 1)
            fprintf(s->out, " %" PRId64 "\n", reading.sum);
        else
            fprintf(s->out, " %" PRIu64 "\n",
                    i < h->scale->n ? reading.cumulative[i] : reading.count);
    }
}

/* ---- samples ---- */

static void info(const scrape *s, const family *f)
{
    fprintf(s->out, "%s%s", prefix, f->name);
    label(s, "{", "worker", s->worker);
    label(s, ",", "version", s->version);
    close_integer(s, 1);
}

static void ready(const scrape *s, const family *f)
{
    fprintf(s->out, "%s%s %d\n", prefix, f->name, s->ready);
}

static void worker_total(const scrape *s, const family *f)
{
    fprintf(s->out, "%s%s %" PRId64 "\n", prefix, f->name, metrics_get(&s->m->counters[f->which]));
}

static void domain_total(const scrape *s, const family *f)
{
    for (size_t i = 0; i < s->m->n; i++) {
        open_domain(s, f, i);
        close_integer(s, metrics_get(&s->m->domains[i].counters[f->which]));
    }
}

static void slots(const scrape *s, const family *f)
{
    for (size_t i = 0; i < s->m->n; i++) {
        open_domain(s, f, i);
        close_integer(s, s->m->domains[i].is.slots);
    }
}

/* A field of metrics_now. */
static void at_the_moment(const scrape *s, const family *f)
{
    for (size_t i = 0; i < s->m->n; i++) {
        const char *now = (const char *)&s->now[i];
        open_domain(s, f, i);
        close_integer(s, (int64_t) * (const size_t *)(const void *)(now + f->which));
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
            open_domain(s, f, i);
            label(s, ",", "command_type", type->name);
            label(s, ",", "outcome", names[j % METRICS_OUTCOMES]);
            close_integer(s, metrics_get(&type->outcomes[j % METRICS_OUTCOMES]));
        }
    }
}

static void run_durations(const scrape *s, const family *f)
{
    for (size_t i = 0; i < s->m->n; i++) {
        const metrics_part *part = &s->m->domains[i];
        for (size_t j = 0; j < part->n_types; j++)
            histogram_lines(s, f, &part->types[j].run, part->is.domain, part->types[j].name);
    }
}

static void queue_waits(const scrape *s, const family *f)
{
    for (size_t i = 0; i < s->m->n; i++)
        histogram_lines(s, f, &s->m->domains[i].wait, s->m->domains[i].is.domain, NULL);
}

/* A histogram of struct metrics. */
static void worker_histogram(const scrape *s, const family *f)
{
    const char *m = (const char *)s->m;

    histogram_lines(s, f, (const histogram *)(const void *)(m + f->which), NULL, NULL);
}

static void reconnects(const scrape *s, const family *f)
{
    for (size_t i = 0; i < LINKS; i++) {
        fprintf(s->out, "%s%s", prefix, f->name);
        label(s, "{", "connection", link_names[i]);
        close_integer(s, metrics_get(&s->m->links[i].reconnects));
    }
}

static void connections_up(const scrape *s, const family *f)
{
    for (size_t i = 0; i < LINKS; i++) {
        int64_t up = metrics_get(&s->m->links[i].up);
        if (up < 0)
            continue;
        fprintf(s->out, "%s%s", prefix, f->name);
        label(s, "{", "connection", link_names[i]);
        close_integer(s, up);
    }
}

static void queue_depths(const scrape *s, const family *f)
{
    for (size_t i = 0; i < s->m->n; i++) {
        int64_t depth = metrics_get(&s->m->domains[i].depth);
        if (depth < 0)
            continue;
        open_domain(s, f, i);
        close_integer(s, depth);
    }
}

static void oldest_due(const scrape *s, const family *f)
{
    for (size_t i = 0; i < s->m->n; i++) {
        if (metrics_get(&s->m->domains[i].depth) < 0)
            continue;
        open_domain(s, f, i);
        fputc('}', s->out);
        seconds(s, metrics_get(&s->m->domains[i].oldest_due_us));
    }
}

/* ---- families ---- */

static const family families[] = {
    { "worker_info", "gauge", "Which worker and version this is; always 1.", info, 0 },
    { "ready", "gauge", "Whether the worker is ready, as /readyz says: 1 or 0.", ready, 0 },
    { "slots", "gauge", "Handlers that can run at once.", slots, 0 },
    { "in_flight", "gauge", "Commands claimed and not yet settled, or whose handler still runs.",
      at_the_moment, offsetof(metrics_now, in_flight) },
    { "running", "gauge", "Handlers that run.", at_the_moment, offsetof(metrics_now, running) },
    { "overdue", "gauge", "Handlers that run past their timeout.", at_the_moment,
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
};

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
        return cb_fail(e, CB_MEMORY, "out of memory for the metrics");
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const family *f = &families[i];
        fprintf(s.out, "# HELP %s%s %s\n", prefix, f->name, f->help);
        fprintf(s.out, "# TYPE %s%s %s\n", prefix, f->name, f->type);
        f->samples(&s, f);
    }
    bool written = !ferror(s.out);
    if (fclose(s.out) != 0 || !written) {
        free(text);
        return cb_fail(e, CB_MEMORY, "out of memory for the metrics");
    }
    *ret = text;
    return true;
}
