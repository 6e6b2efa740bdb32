/* (domain, command type) → handler. */
#include "registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "set_check.h"

static int compare_types(const void *a, const void *b)
{
    const registry_entry *x = a, *y = b;

    return strcmp(x->command_type, y->command_type);
}

static bool fail_duplicate(const char *domain, const registry_entry *a, const registry_entry *b,
                           cb_error *e)
{
    if (a->set == b->set)
        cb_fail(e, CB_MISUSE, "domain '%s': set '%s' offers command type '%s' twice", domain,
                a->set->name, a->command_type);
    else
        cb_fail(e, CB_MISUSE, "domain '%s': sets '%s' and '%s' both offer command type '%s'",
                domain, a->set->name, b->set->name, a->command_type);
    return fail_hint(e, "Leave one of them out of domains.%.40s.handlers.", domain);
}

/* Sets that a program gives without a file were not checked by cb_set_load. */
static bool check_sets(const char *domain, const cb_module *const *sets, size_t n_sets,
                       size_t *n_handlers, cb_error *e)
{
    char place[96];

    snprintf(place, sizeof place, "a handler set of domain '%.47s'", domain);
    *n_handlers = 0;
    for (size_t i = 0; i < n_sets; i++) {
        if (!sets[i])
            return cb_fail(e, CB_MISUSE, "%s is NULL", place);
        if (!set_check(sets[i], place, NULL, e))
            return false;
        *n_handlers += sets[i]->n_handlers;
    }
    return true;
}

bool registry_init(registry *r, const char *domain, const cb_module *const *sets, size_t n_sets,
                   cb_error *e)
{
    size_t n_handlers;

    *r = (registry){ 0 };
    if (!check_sets(domain, sets, n_sets, &n_handlers, e))
        return false;
    r->entries = calloc(n_handlers ? n_handlers : 1, sizeof *r->entries);
    if (!r->entries)
        return fail_memory(e);
    for (size_t i = 0; i < n_sets; i++) {
        for (size_t j = 0; j < sets[i]->n_handlers; j++) {
            const cb_handler *h = &sets[i]->handlers[j];
            r->entries[r->n++] = (registry_entry){ h->command_type, h->run, sets[i] };
        }
    }

    qsort(r->entries, r->n, sizeof *r->entries, compare_types);
    for (size_t i = 1; i < r->n; i++) {
        const registry_entry *a = &r->entries[i - 1], *b = &r->entries[i];
        if (compare_types(a, b) == 0) {
            fail_duplicate(domain, a, b, e);
            registry_done(r);
            return false;
        }
    }
    return true;
}

void registry_done(registry *r)
{
    free(r->entries);
    *r = (registry){ 0 };
}

int registry_find(const registry *r, const char *command_type)
{
    const registry_entry wanted = { .command_type = command_type };
    const registry_entry *found =
        r->n ? bsearch(&wanted, r->entries, r->n, sizeof wanted, compare_types) : NULL;

    return found ? (int)(found - r->entries) : -1;
}
