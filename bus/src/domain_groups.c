/* Grouping items by domain without moving them, and reading what the database says of each. */
#include "domain_groups.h"

#include <stdlib.h>
#include <string.h>

#include "fail.h"

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The index of a domain, `count` when it is not there. Most items share the caller's pointer. */
static size_t domain_index(const domain_groups *g, const char *domain)
{
    for (size_t i = 0; i < g->count; i++) {
        if (g->domains[i] == domain || strcmp(g->domains[i], domain) == 0)
            return i;
    }
    return g->count;
}

bool domain_groups_make(domain_groups *g, const void *items, size_t n, size_t item_size,
                        size_t domain_offset, cb_error *e)
{
    const char *first = (const char *)items + domain_offset;

    g->domains = calloc(n ? n : 1, sizeof *g->domains);
    g->sizes = calloc(n ? n : 1, sizeof *g->sizes);
    g->group_of = calloc(n ? n : 1, sizeof *g->group_of);
    if (!g->domains || !g->sizes || !g->group_of)
        return fail_memory(e);

    for (size_t i = 0; i < n; i++) {
        const char *domain = *(const char *const *)(first + i * item_size);
        if (!domain)
            return cb_fail(e, CB_MISUSE, "item %zu of %zu has no domain", i + 1, n);
        size_t at = domain_index(g, domain);
        if (at == g->count)
            g->domains[g->count++] = domain;
    }
    qsort(g->domains, g->count, sizeof *g->domains, compare_names);
    for (size_t i = 0; i < n; i++) {
        g->group_of[i] = domain_index(g, *(const char *const *)(first + i * item_size));
        g->sizes[g->group_of[i]]++;
    }
    return true;
}

void domain_groups_done(domain_groups *g)
{
    free(g->domains);
    free(g->sizes);
    free(g->group_of);
}

bool words_next(const char **at, const char *const *names, size_t n, size_t *value)
{
    const char *word = *at + strspn(*at, "{,");
    size_t length = strcspn(word, ",}");

    for (size_t i = 0; i < n; i++) {
        if (strlen(names[i]) == length && memcmp(word, names[i], length) == 0) {
            *value = i;
            *at = word + length;
            return true;
        }
    }
    return false;
}
