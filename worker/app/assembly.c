/* Putting a worker together. */
#include "assembly.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_store.h"
#include "fail.h"

/* Loads a set with the settings that are said for it: handlers.<set>.<key>. */
static bool assembly_load_set(const config *c, const char *name, cb_set **ret, cb_error *e)
{
    cb_setting *settings = calloc(c->n_set_values + 1, sizeof *settings);
    cb_module_config told = { .database_url = c->database_url, .settings = settings };
    size_t length = strlen(name);

    if (!settings)
        return fail_memory(e);
    for (size_t i = 0; i < c->n_set_values; i++) {
        const config_set_value *v = &c->set_values[i];
        if (strncmp(v->name, name, length) == 0 && v->name[length] == '.')
            settings[told.n_settings++] = (cb_setting){ v->name + length + 1, v->value };
    }
    bool loaded = cb_set_load_with(c->modules_dir, name, &told, ret, e);
    free(settings);
    return loaded;
}

/* Loads a set unless it is there already. */
static bool assembly_load(assembly *a, const config *c, const char *name, const cb_module **ret,
                          cb_error *e)
{
    for (size_t i = 0; i < a->n_sets; i++) {
        if (strcmp(a->loaded[i]->name, name) == 0) {
            *ret = a->loaded[i];
            return true;
        }
    }
    if (!assembly_load_set(c, name, &a->sets[a->n_sets], e))
        return false;
    *ret = a->loaded[a->n_sets] = cb_set_module(a->sets[a->n_sets]);
    a->n_sets++;
    return true;
}

static bool assembly_list_types(assembly *a, cb_error *e)
{
    size_t most = 1;

    for (size_t i = 0; i < a->n_sets; i++)
        most += a->loaded[i]->n_processes;
    a->process_types = calloc(most, sizeof *a->process_types);
    if (!a->process_types)
        return fail_memory(e);
    for (size_t i = 0; i < a->n_sets; i++) {
        for (size_t k = 0; k < a->loaded[i]->n_processes; k++)
            a->process_types[a->n_process_types++] = a->loaded[i]->processes[k];
    }
    return true;
}

static bool assembly_add_domain(assembly *a, const config *c, const config_domain *d,
                                const cb_module **modules, cb_error *e)
{
    cb_worker_domain_options *to = &a->domains[a->worker.n_domains];

    *to = (cb_worker_domain_options){
        .domain = d->name,
        .sets = modules,
        .concurrent_messages = (int)d->concurrent_messages,
        .concurrent_processes = (int)d->concurrent_processes,
        .prefetch = (int)d->prefetch,
        .visibility_timeout_seconds = d->visibility_timeout,
        .poll_interval_seconds = d->poll_interval,
        .no_notify = !d->use_notify,
        .handler_timeout_seconds = (int)d->handler_timeout,
        .max_attempts = (int)d->max_attempts,
        .retry_backoff = d->retry_backoff,
        .n_retry_backoff = d->n_retry_backoff,
    };
    for (size_t i = 0; i < d->n_handlers; i++) {
        if (!assembly_load(a, c, d->handlers[i], &modules[i], e))
            return cb_fail_while(e, "loading the handlers of domain '%s'", d->name);
    }
    to->n_sets = d->n_handlers;
    if (d->fleet_limit_is_set) {
        a->fleet_limits[a->worker.n_domains] = (int)d->fleet_limit;
        to->fleet_limit = &a->fleet_limits[a->worker.n_domains];
    }
    a->worker.n_domains++;
    return true;
}

static bool assembly_make_room(assembly *a, const config *c, cb_error *e)
{
    size_t most = 1;

    for (size_t i = 0; i < c->n_domains; i++)
        most += c->domains[i].n_handlers;
    a->sets = calloc(most, sizeof *a->sets);
    a->loaded = calloc(most, sizeof *a->loaded);
    a->modules = calloc(most, sizeof *a->modules);
    a->domains = calloc(c->n_domains + 1, sizeof *a->domains);
    a->fleet_limits = calloc(c->n_domains + 1, sizeof *a->fleet_limits);
    a->sends_to = calloc(c->n_steps + 1, sizeof *a->sends_to);
    a->routes = calloc(c->n_steps + 1, sizeof *a->routes);
    a->settings = calloc(c->n_processes + 2, sizeof *a->settings);
    return (a->sets && a->loaded && a->modules && a->domains && a->fleet_limits && a->sends_to &&
            a->routes && a->settings) ||
           fail_memory(e);
}

/* As PostgreSQL reads it; NULL for 0, which keeps for ever. */
static const char *assembly_interval(double seconds, char text[DURATION_SIZE])
{
    return seconds > 0 ? duration_interval((int64_t)(seconds * 1000 + 0.5), text, DURATION_SIZE)
                       : NULL;
}

/* 0 asks the library for its default. Who configures 0 wants no time at all, and this rounds to
 * it. */
static double assembly_exactly(double seconds)
{
    return seconds > 0 ? seconds : 1e-12;
}

/* What nobody has said is left to the code of the process. */
static bool assembly_is_said(const config *c, const char *key, const char *name)
{
    return config_who_said(c, key, name) != NULL;
}

/* 0: the code's. */
static int64_t assembly_route_wait_ms(const config *c, const config_step *s)
{
    if (!assembly_is_said(c, "command-steps.<s>.wait-timeout", s->name))
        return 0;
    return s->wait_timeout > 0 ? (int64_t)(s->wait_timeout * 1000) : -1;
}

static void assembly_fill_steps(assembly *a, const config *c)
{
    for (size_t i = 0; i < c->n_steps; i++) {
        const config_step *s = &c->steps[i];
        if (s->domain)
            a->sends_to[a->n_sends_to++] = s->domain;
        a->routes[i] = (cb_step_route){
            .step = s->name,
            .domain = s->domain,
            .command_type = s->command_type,
            .timeout_seconds =
                assembly_is_said(c, "command-steps.<s>.timeout", s->name) ? (int)s->timeout : 0,
            .max_attempts = assembly_is_said(c, "command-steps.<s>.max-attempts", s->name)
                                ? (int)s->max_attempts
                                : 0,
            .wait_timeout_ms = assembly_route_wait_ms(c, s),
        };
    }
}

static const cb_deadline_action *assembly_deadline(const char *name)
{
    static const struct {
        const char *name;
        cb_deadline_action action;
    } actions[] = {
        { "TSQ", CB_DEADLINE_TSQ },
        { "COMPENSATE", CB_DEADLINE_COMPENSATE },
        { "FAIL", CB_DEADLINE_FAIL },
    };

    for (size_t i = 0; i < CB_COUNT(actions); i++) {
        if (strcasecmp(actions[i].name, name) == 0)
            return &actions[i].action;
    }
    return NULL;
}

static void assembly_fill_settings(assembly *a, const config *c)
{
    for (size_t i = 0; i < c->n_processes; i++) {
        const config_process *p = &c->processes[i];
        bool waits = assembly_is_said(c, "processes.<Type>.default-wait-timeout", p->name);
        a->settings[i] = (cb_type_setting){
            .process_type = p->name,
            .wait_timeout_ms = waits ? (int64_t)(p->default_wait_timeout * 1000) : 0,
            .deadline_action = p->deadline_action ? assembly_deadline(p->deadline_action) : NULL,
            .reply_queue = p->reply_queue,
        };
    }
    a->n_settings = c->n_processes;
    if (assembly_is_said(c, "worker.defaults.default-wait-timeout", NULL))
        a->settings[a->n_settings++] =
            (cb_type_setting){ .wait_timeout_ms = (int64_t)(c->default_wait_timeout * 1000) };
}

static void assembly_fill_worker(assembly *a, const config *c)
{
    a->worker = (cb_worker_options){
        .url = c->database_url,
        .listen_url = c->listen_url,
        .no_prepared = !c->prepared_statements,
        .name = c->worker_name,
        .profile = *c->profile ? c->profile : NULL,
        .domains = a->domains,
        .sends_to = a->sends_to,
        .n_sends_to = a->n_sends_to,
        .no_commands = !c->command_handlers,
        .no_processes = !c->process_execution,
        .no_replies = !c->reply_processing,
        .routes = a->routes,
        .n_routes = c->n_steps,
        .settings = a->settings,
        .n_settings = a->n_settings,
        .reply_grace_seconds = assembly_exactly(c->reply_grace),
        .kill_grace_seconds = assembly_exactly(c->kill_grace),
        .unknown_type_grace_seconds = assembly_exactly(c->unknown_type_grace),
        .result_limit = (size_t)c->payload_limit,
        .keep_commands = assembly_interval(c->keep_commands, a->keep_commands),
        .keep_audit = assembly_interval(c->keep_audit, a->keep_audit),
        .keep_archives = assembly_interval(c->keep_archives, a->keep_archives),
        .keep_processes = assembly_interval(c->keep_processes, a->keep_processes),
        .event_level = c->log_level,
    };
}

bool assembly_init(assembly *a, const config *c, cb_error *e)
{
    size_t used = 0;

    *a = (assembly){ 0 };
    if (!assembly_make_room(a, c, e))
        return false;
    assembly_fill_steps(a, c);
    assembly_fill_settings(a, c);
    assembly_fill_worker(a, c);
    for (size_t i = 0; i < c->n_domains; i++) {
        const config_domain *d = &c->domains[i];
        if (!d->enabled)
            continue;
        if (!assembly_add_domain(a, c, d, &a->modules[used], e))
            return false;
        used += d->n_handlers;
    }
    if (!c->command_handlers && !c->process_execution && !c->reply_processing)
        a->worker.n_domains = 0;
    return assembly_list_types(a, e);
}

void assembly_done(assembly *a)
{
    for (size_t i = 0; i < a->n_sets; i++)
        cb_set_free(a->sets[i]);
    free(a->sets);
    free(a->loaded);
    free(a->process_types);
    free(a->modules);
    free(a->domains);
    free(a->sends_to);
    free(a->routes);
    free(a->settings);
    free(a->fleet_limits);
    *a = (assembly){ 0 };
}
