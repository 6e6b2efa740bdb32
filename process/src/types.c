/* The table of process types: checked once, then only read. */
#include "types.h"

#include <stdlib.h>
#include <string.h>

#include "defaults.h"

static const int64_t default_wait_timeout_ms = CB_HOURS(DEFAULT_WAIT_TIMEOUT_HOURS);

/* ---- which responses a type takes, for the database to refuse others ---- */

/* What commandbus.fits_field calls them; ? admits null. A type that is not here admits anything. */
static const char *const kinds_of_fields[] = {
    [CB_BOOL] = "boolean",    [CB_INT] = "integer", [CB_INT32] = "integer", [CB_DOUBLE] = "number",
    [CB_TEXT] = "text?",      [CB_UUID] = "uuid?",  [CB_TIME] = "text?",    [CB_MONEY] = "object?",
    [CB_DECIMAL] = "decimal", [CB_DATE] = "text?",
};

/* Of an enum that is needed the first name, which is what it is without being said, is no
 * answer. */
static json_object *describe_field(const cb_field *field, bool is_needed)
{
    const char *kind =
        (size_t)field->type < CB_COUNT(kinds_of_fields) ? kinds_of_fields[field->type] : NULL;

    if (field->type != CB_ENUM)
        return json_object_new_string(kind ? kind : "any");
    json_object *names = json_object_new_array();
    for (size_t i = is_needed; field->names[i]; i++)
        json_object_array_add(names, json_object_new_string(field->names[i]));
    return names;
}

static json_object *split_words(const char *words)
{
    json_object *list = json_object_new_array();

    for (const char *at = words; *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        json_object_array_add(list, json_object_new_string_len(at, (int)n));
        at += n;
    }
    return list;
}

static bool is_word_of(const char *words, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = words; at && *at; at += strspn(at, " ")) {
        if (strcspn(at, " ") == n && strncmp(at, word, n) == 0)
            return true;
        at += strcspn(at, " ");
    }
    return false;
}

static void describe_response(json_object *all, const char *name, const cb_fields *payload,
                              const char *needs)
{
    json_object *one = json_object_new_object();

    json_object_object_add(all, name, one);
    if (!payload)
        return;
    json_object *fields = json_object_new_object();
    json_object_object_add(one, "fields", fields);
    for (size_t i = 0; i < payload->n_fields; i++)
        json_object_object_add(
            fields, payload->fields[i].name,
            describe_field(&payload->fields[i], is_word_of(needs, payload->fields[i].name)));
    if (needs && *needs)
        json_object_object_add(one, "needs", split_words(needs));
}

/* malloc'd; NULL without memory. */
static char *describe_responses(const cb_process_type *type)
{
    OWNED(json_object) all = json_object_new_object();

    for (size_t i = 0; i < type->n_responses; i++)
        describe_response(all, type->responses[i].name, NULL, NULL);
    for (size_t i = 0; i < type->n_payloads; i++)
        describe_response(all, type->payloads[i].response, type->payloads[i].fields,
                          type->payloads[i].needs);
    for (size_t i = 1; type->manager && i < type->manager->n_steps; i++) {
        const cb_manager_step *s = &type->manager->steps[i];
        if (s->response)
            describe_response(all, s->response, s->reply, s->needs);
    }
    const char *text = all ? json_object_to_json_string_ext(all, JSON_C_TO_STRING_PLAIN) : NULL;
    return text ? strdup(text) : NULL;
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

static bool add(cb_process_types *all, const cb_process_type *type, const cb_type_setting *setting,
                const cb_type_setting *common, cb_error *e)
{
    all->entries[all->n] = (type_entry){ type, setting, common };
    all->kinds[all->n] = (cb_process_kind){
        .process_type = type->name,
        .domain = type->domain,
        .version = type_version(type),
        .step_based = type->manager != NULL,
        .redact = type->redact,
        .reply_queue = setting && setting->reply_queue ? setting->reply_queue : type->reply_queue,
        .responses = describe_responses(type),
    };
    return all->kinds[all->n++].responses ||
           cb_fail(e, CB_MEMORY, "out of memory for process type '%s'", type->name);
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
        return cb_fail(e, CB_MEMORY, "out of memory for %zu process types", n);
    all->routes = routes;
    all->n_routes = n_routes;
    for (size_t i = 0; i < n; i++) {
        if (!type_check(types[i], e))
            return false;
        if (types_find(all, types[i]->name))
            return cb_fail(e, CB_MISUSE, "process type '%s' is defined twice", types[i]->name);
        if (!add(all, types[i], setting_of(settings, n_settings, types[i]->name),
                 setting_of(settings, n_settings, NULL), e))
            return false;
    }
    *ret = cb_process_types_take(&all);
    return true;
}

void cb_process_types_free(cb_process_types *types)
{
    if (!types)
        return;
    for (size_t i = 0; i < types->n; i++)
        free((char *)types->kinds[i].responses);
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

bool cb_process_types_register(cb_db *db, const cb_process_types *types, const char *type,
                               cb_error *e)
{
    const type_entry *entry = types_find(types, type);

    if (!entry)
        return cb_fail(e, CB_UNKNOWN_PROCESS_TYPE, "this program has no process type '%s'", type);
    return cb_process_register(db, &types->kinds[entry - types->entries], 1, e);
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

process_status type_reply_status(const cb_process_type *type)
{
    return type->manager ? STATUS_WAITING_FOR_REPLY : STATUS_WAITING_FOR_ASYNC;
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
