/* The types that a program can run, as its runs look them up. */
#ifndef PROCESS_TYPES_H
#define PROCESS_TYPES_H

#include <commandbus/run.h>

typedef struct {
    const cb_process_type *type;
    const cb_type_setting *setting; /* NULL: none */
} type_entry;

struct cb_process_types {
    type_entry *entries;
    cb_process_kind *kinds;
    size_t n;
    const cb_step_route *routes;
    size_t n_routes;
};

/* NULL when this program does not have it. */
const type_entry *types_find(const cb_process_types *types, const char *name);
const cb_step_route *types_route(const cb_process_types *types, const char *step);
int type_version(const cb_process_type *type);
int64_t type_wait_timeout_ms(const type_entry *entry);
cb_deadline_action type_deadline_action(const type_entry *entry, const void *state);
cb_response_fn *type_response(const cb_process_type *type, const char *name);

#endif
