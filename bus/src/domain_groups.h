/* Items of several domains, told apart: the database works domain by domain, callers need not. */
#ifndef CB_DOMAIN_GROUPS_H
#define CB_DOMAIN_GROUPS_H

#include <commandbus/error.h>
#include <stddef.h>

typedef struct {
    size_t count;         /* how many domains */
    const char **domains; /* borrowed, in the order of their names: one lock order for everybody */
    size_t *sizes;        /* items of each */
    size_t *group_of;     /* of each item: the index of its domain */
} domain_groups;

/* Groups n items of item_size bytes whose domain is the `const char *` at domain_offset. */
bool domain_groups_make(domain_groups *g, const void *items, size_t n, size_t item_size,
                        size_t domain_offset, cb_error *e);
void domain_groups_done(domain_groups *g);

/* Reads the answers of one domain, an array of plain words as the server prints it: {SETTLED,BUSY}.
 * Sets *value to the index of the next word in `names` (n of them) and moves *at behind it. False
 * at the end, or when the word is none of them. */
bool words_next(const char **at, const char *const *names, size_t n, size_t *value);

#endif
