/* The table of process types: checked once, then only read. */
#include "types.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const int64_t default_wait_timeout_ms = CB_HOURS(1);

bool type_is_name(const char *name)
{
    size_t n = name ? strlen(name) : 0;

    if (n == 0 || n > 100 || !isalpha((unsigned char)name[0]))
        return false;
    for (size_t i = 1; i < n; i++) {
        if (!isalnum((unsigned char)name[i]) && !strchr("_.-", name[i]))
            return false;
    }
    return true;
}

static bool check_responses(const cb_process_type *type, cb_error *e)
{
    if (type->n_responses > 0 && !type->responses)
        return cb_fail(e, CB_MISUSE, "process type '%s' lacks its responses", type->name);
    for (size_t i = 0; i < type->n_responses; i++) {
        const cb_response *r = &type->responses[i];
        if (!r->name || !*r->name || !r->take)
            return cb_fail(e, CB_MISUSE, "response %zu of process type '%s' lacks %s", i + 1,
                           type->name, r->take ? "a name" : "a function");
        for (size_t k = 0; k < i; k++) {
            if (strcmp(type->responses[k].name, r->name) == 0)
                return cb_fail(e, CB_MISUSE, "process type '%s' has response '%s' twice",
                               type->name, r->name);
        }
    }
    return true;
}

static bool check_redact(const cb_process_type *type, cb_error *e)
{
    for (size_t i = 0; type->redact && type->redact[i]; i++) {
        if (!*type->redact[i])
            return cb_fail(e, CB_MISUSE, "process type '%s' redacts a field without a name",
                           type->name);
    }
    return true;
}

static bool check_type(const cb_process_type *type, cb_error *e)
{
    if (!type || !type_is_name(type->name))
        return cb_fail(e, CB_MISUSE,
                       "'%.100s' is no name of a process type: a letter first, then letters, "
                       "digits, _ . -, 100 at most",
                       type && type->name ? type->name : "");
    if (!type->domain || !type->state || (!type->execute && !type->manager))
        return cb_fail(e, CB_MISUSE, "process type '%s' lacks its %s", type->name,
                       !type->domain  ? "domain"
                       : !type->state ? "state (a field table)"
                                      : "execute function or manager");
    if (type->execute && type->manager)
        return cb_fail(e, CB_MISUSE,
                       "process type '%s' has both an execute function and a manager: choose one",
                       type->name);
    if (type->version < 0)
        return cb_fail(e, CB_MISUSE, "process type '%s' has version %d: 1 or more", type->name,
                       type->version);
    if (!cb_fields_check(type->state, e))
        return cb_fail_while(e, "checking the state of process type '%s'", type->name);
    return check_redact(type, e) && check_responses(type, e) &&
           (!type->manager || manager_check(type, e));
}

/* NULL for the one of all types. */
static const cb_type_setting *setting_of(const cb_type_setting *settings, size_t n,
                                         const char *type)
{
    for (size_t i = 0; i < n; i++) {
        const char *of = settings[i].process_type;
        if (type ? of && strcmp(of, type) == 0 : !of)
            return &settings[i];
    }
    return NULL;
}

static void add(cb_process_types *all, const cb_process_type *type, const cb_type_setting *setting,
                const cb_type_setting *common)
{
    all->entries[all->n] = (type_entry){ type, setting, common };
    all->kinds[all->n] = (cb_process_kind){
        .process_type = type->name,
        .domain = type->domain,
        .version = type_version(type),
        .step_based = type->manager != NULL,
        .redact = type->redact,
        .reply_queue = setting && setting->reply_queue ? setting->reply_queue : type->reply_queue,
    };
    all->n++;
}

bool cb_process_types_open(const cb_process_type *const *types, size_t n,
                           const cb_step_route *routes, size_t n_routes,
                           const cb_type_setting *settings, size_t n_settings,
                           cb_process_types **ret, cb_error *e)
{
    OWNED(cb_process_types) all = calloc(1, sizeof *all);

    if (all) {
        all->entries = calloc(n + 1, sizeof *all->entries);
        all->kinds = calloc(n + 1, sizeof *all->kinds);
    }
    if (!all || !all->entries || !all->kinds)
        return cb_fail(e, CB_MEMORY, "no memory for %zu process types", n);
    all->routes = routes;
    all->n_routes = n_routes;
    for (size_t i = 0; i < n; i++) {
        if (!check_type(types[i], e))
            return false;
        if (types_find(all, types[i]->name))
            return cb_fail(e, CB_MISUSE, "process type '%s' is there twice", types[i]->name);
        add(all, types[i], setting_of(settings, n_settings, types[i]->name),
            setting_of(settings, n_settings, NULL));
    }
    *ret = cb_process_types_take(&all);
    return true;
}

void cb_process_types_free(cb_process_types *types)
{
    if (!types)
        return;
    free(types->entries);
    free(types->kinds);
    free(types);
}

size_t cb_process_types_count(const cb_process_types *types)
{
    return types->n;
}

const cb_process_kind *cb_process_types_kinds(const cb_process_types *types)
{
    return types->kinds;
}

const type_entry *types_find(const cb_process_types *types, const char *name)
{
    for (size_t i = 0; i < types->n; i++) {
        if (strcmp(types->entries[i].type->name, name) == 0)
            return &types->entries[i];
    }
    return NULL;
}

const cb_step_route *types_route(const cb_process_types *types, const char *step)
{
    for (size_t i = 0; i < types->n_routes; i++) {
        if (strcmp(types->routes[i].step, step) == 0)
            return &types->routes[i];
    }
    return NULL;
}

int type_version(const cb_process_type *type)
{
    return type->version > 0 ? type->version : 1;
}

int64_t type_wait_timeout_ms(const type_entry *entry)
{
    if (entry->setting && entry->setting->wait_timeout_ms > 0)
        return entry->setting->wait_timeout_ms;
    if (entry->type->wait_timeout_ms > 0)
        return entry->type->wait_timeout_ms;
    if (entry->common && entry->common->wait_timeout_ms > 0)
        return entry->common->wait_timeout_ms;
    return entry->type->manager ? 0 : default_wait_timeout_ms;
}

const char *type_reply_status(const cb_process_type *type)
{
    return type->manager ? "WAITING_FOR_REPLY" : "WAITING_FOR_ASYNC";
}

cb_deadline_action type_deadline_action(const type_entry *entry, const void *state)
{
    if (entry->type->deadline_action_of)
        return entry->type->deadline_action_of(state);
    if (entry->setting && entry->setting->deadline_action)
        return *entry->setting->deadline_action;
    return entry->type->deadline_action;
}

cb_response_fn *type_response(const cb_process_type *type, const char *name)
{
    for (size_t i = 0; i < type->n_responses; i++) {
        if (strcmp(type->responses[i].name, name) == 0)
            return type->responses[i].take;
    }
    return NULL;
}
