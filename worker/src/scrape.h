/* Writing a scrape: what the families of metrics_render.c and metrics_process_render.c share. */
#ifndef WORKER_SCRAPE_H
#define WORKER_SCRAPE_H

#include <stdio.h>

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

#define SCRAPE_PREFIX "commandbus_"

/* name=value, escaped, after the separator. */
void scrape_label(const scrape *s, const char *separator, const char *name, const char *value);
/* name{domain="…" — the caller goes on and closes the brace. */
void scrape_domain(const scrape *s, const family *f, size_t domain);
void scrape_integer(const scrape *s, int64_t value); /* } value */
void scrape_seconds(const scrape *s, int64_t us);

/* What the lines of a histogram are labelled with beside le; NULL: not. */
typedef struct {
    const char *domain;
    const char *key, *value; /* a further one */
    const char *key2, *value2;
} scrape_labels;

void scrape_histogram(const scrape *s, const family *f, const histogram *h,
                      const scrape_labels *labels);

/* A field of metrics_now. */
void scrape_at_the_moment(const scrape *s, const family *f);

extern const family process_families[];
extern const size_t n_process_families;

#endif
