/* The types that a program can run, as its runs look them up. */
#ifndef PROCESS_TYPES_H
#define PROCESS_TYPES_H

#include <commandbus/run.h>

#include "process_status.h"

typedef struct {
    const cb_process_type *type;
    const cb_type_setting *setting; /* NULL: none */
    const cb_type_setting *common;  /* of all types; NULL: none */
} type_entry;

struct cb_process_types {
    type_entry *entries;
    cb_process_kind *kinds;
    size_t n;
    const cb_step_route *routes;
    size_t n_routes;
    char caller[128]; /* who runs what is started here; empty: nobody said */
};

/* NULL when this program does not have it. */
const type_entry *types_find(const cb_process_types *types, const char *name);
const cb_step_route *types_route(const cb_process_types *types, const char *step);
int type_version(const cb_process_type *type);
/* Of a wait for a response that says none. 0: none; only a manager has none. */
int64_t type_wait_timeout_ms(const type_entry *entry);
cb_deadline_action type_deadline_action(const type_entry *entry, const void *state);
/* What a process that waits for the reply to a command is. */
process_status type_reply_status(const cb_process_type *type);
cb_response_fn *type_response(const cb_process_type *type, const char *name);

/* ---- type_check.c ---- */
/* Whether a type is sound, with its manager if it has one. */
bool type_check(const cb_process_type *type, cb_error *e);
/* What no step of a manager may be called: the record of create_state. */
extern const char manager_creation[];

#endif
