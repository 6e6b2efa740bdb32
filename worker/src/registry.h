/* (domain, command type) → handler: a sorted table a domain. */
#ifndef WORKER_REGISTRY_H
#define WORKER_REGISTRY_H

#include <commandbus/module.h>

typedef struct {
    const char *command_type; /* borrowed from the set */
    cb_handler_fn *run;
    const cb_module *set;
} registry_entry;

typedef struct {
    registry_entry *entries; /* sorted by command_type */
    size_t n;
} registry;

/* Takes the handlers of all sets. Fails with CB_MISUSE when two offer one type, naming both. */
bool registry_init(registry *r, const char *domain, const cb_module *const *sets, size_t n_sets,
                   cb_error *e);
void registry_done(registry *r);

/* Its index, which is stable, or -1. */
int registry_find(const registry *r, const char *command_type);

#endif
