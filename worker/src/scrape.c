/* The lines of a scrape. Every number is written from integers, so that no locale can put a comma into
 * it. */
#include "scrape.h"

#include <inttypes.h>

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
