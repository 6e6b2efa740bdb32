/* Settings that the code of a handler set overrules. */
#include "overruled.h"

#include <commandbus/process.h>
#include <commandbus/set.h>
#include <stdio.h>
#include <string.h>

#include "config_store.h"

static const char deadline_key[] = "processes.<Type>.deadline-action";

static void check_type(config *c, const cb_process_type *type, config_warn_fn *warn, void *arg)
{
    char message[300];

    if (!type->deadline_action_of ||
        !config_overrule(c, deadline_key, type->name, "the code decides by the state"))
        return;
    snprintf(message, sizeof message,
             "processes.%.100s.deadline-action is ignored: the code of %.100s decides by the state "
             "of the process",
             type->name, type->name);
    warn(message, "remove the key", arg);
}

static void check_set(config *c, const char *name, config_warn_fn *warn, void *arg)
{
    OWNED(cb_set) set = NULL;

    if (!cb_set_inspect(c->modules_dir, name, &set, NULL))
        return;
    const cb_module *module = cb_set_module(set);
    for (size_t i = 0; i < module->n_processes; i++)
        check_type(c, module->processes[i], warn, arg);
}

void overruled_find(config *c, config_warn_fn *warn, void *arg)
{
    bool said = false;

    for (size_t i = 0; i < c->n_processes; i++)
        said = said || c->processes[i].deadline_action;
    for (size_t i = 0; said && i < c->n_domains; i++) {
        const config_domain *d = &c->domains[i];
        for (size_t k = 0; d->enabled && k < d->n_handlers; k++)
            check_set(c, d->handlers[k], warn, arg);
    }
}
