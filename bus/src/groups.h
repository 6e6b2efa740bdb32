/* Items of several domains, told apart: the database works domain by domain, callers need not. */
#ifndef CB_GROUPS_H
#define CB_GROUPS_H

#include <commandbus/error.h>
#include <stddef.h>

typedef struct {
    size_t count;         /* how many domains */
    const char **domains; /* borrowed, in the order of their names: one lock order for everybody */
    size_t *sizes;        /* items of each */
    size_t *group_of;     /* of each item: the index of its domain */
} groups;

/* A local that is freed when its block ends. */
#define OWNED_GROUPS(name) __attribute__((cleanup(groups_done))) groups name = { 0 }

/* Groups n items of item_size bytes whose domain is the `const char *` at domain_offset. */
bool groups_make(groups *g, const void *items, size_t n, size_t item_size, size_t domain_offset,
                 cb_error *e);
void groups_done(groups *g);

#endif
