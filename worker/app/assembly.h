/* From the configuration to what a worker is opened with: handler sets loaded, options filled. */
#ifndef APP_ASSEMBLY_H
#define APP_ASSEMBLY_H

#include <commandbus/set.h>
#include <commandbus/worker.h>

#include "config.h"
#include "duration.h"

typedef struct {
    cb_worker_options worker; /* points into the rest of this struct and into the configuration */
    cb_set **sets;            /* each file once, however many domains use it */
    const cb_module **loaded; /* the modules of the same sets */
    size_t n_sets;
    const cb_process_type **process_types; /* of the same sets */
    size_t n_process_types;
    cb_worker_domain_options *domains;
    const cb_module **modules; /* of all domains, one after another */
    int *fleet_limits;
    const char **sends_to; /* targets of command steps */
    size_t n_sends_to;
    cb_step_route *routes;     /* of every step that is configured */
    cb_type_setting *settings; /* of process types */
    size_t n_settings;
    char keep_commands[DURATION_SIZE], keep_audit[DURATION_SIZE], keep_archives[DURATION_SIZE],
        keep_processes[DURATION_SIZE];
} assembly;

/* Loads the sets of every enabled domain, of which a checked configuration has at least one.
 * With every feature off that needs a domain none is served, and worker.n_domains is 0. Borrows
 * the configuration; must not move afterwards. assembly_done in any case. */
bool assembly_init(assembly *a, const config *c, cb_error *e) CB_NODISCARD;

/* Unloads the sets: no worker may use them any more. */
void assembly_done(assembly *a);

#endif
