/* Where values go while they are loaded: items by name, and who said what. */
#include "config_store.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"

/* More than anybody serves, and few enough to look through. */
#define MOST_ITEMS 1000

static void **store_items(const config *c, const config_section *section)
{
    return (void **)(void *)((char *)(uintptr_t)c + section->items);
}

static size_t *store_count(const config *c, const config_section *section)
{
    return (size_t *)(void *)((char *)(uintptr_t)c + section->count);
}

size_t config_count(const config *c, const config_section *section)
{
    return section->item_size ? *store_count(c, section) : 1;
}

void *config_at(const config *c, const config_section *section, size_t i)
{
    if (!section->item_size)
        return (void *)(uintptr_t)c;
    return (char *)*store_items(c, section) + i * section->item_size;
}

const char *config_item_name(const config_section *section, const void *item)
{
    return section->item_size ? *(char *const *)item : NULL;
}

void *config_find(const config *c, const config_section *section, const char *name)
{
    for (size_t i = 0; i < config_count(c, section); i++) {
        void *item = config_at(c, section, i);
        if (!section->item_size || strcmp(config_item_name(section, item), name) == 0)
            return item;
    }
    return NULL;
}

static bool store_set_defaults(const config_section *section, void *item, cb_error *e)
{
    for (const config_key *key = config_keys; key < config_keys + n_config_keys; key++) {
        if (key_section(key) == section && key->initial && !key_parse(key, item, key->initial, e))
            return cb_fail_while(e, "setting the default of %s", key->path);
    }
    return true;
}

static void store_clear(config *c, const config_section *section)
{
    for (size_t i = 0; i < config_count(c, section); i++) {
        void *item = config_at(c, section, i);
        for (const config_key *key = config_keys; key < config_keys + n_config_keys; key++) {
            if (key_section(key) == section)
                key_clear(key, item);
        }
        if (section->item_size)
            free(*(char **)item);
    }
    if (section->item_size)
        free(*store_items(c, section));
}

bool config_need(config *c, const config_section *section, const char *name, void **ret,
                 cb_error *e)
{
    void **items = store_items(c, section);
    size_t *count = store_count(c, section);
    const char *problem = section->item_size ? section->name_rule(name) : NULL;

    if ((*ret = config_find(c, section, name)))
        return true;
    if (problem)
        return cb_fail(e, CB_MISUSE, "%s.%.80s: %s", section->name, name, problem);
    if (*count == MOST_ITEMS)
        return cb_fail(e, CB_MISUSE, "%s has more than %d entries", section->name, MOST_ITEMS);
    void *grown = realloc(*items, (*count + 1) * section->item_size);
    char *copy = strdup(name);
    if (grown)
        *items = grown;
    if (!grown || !copy) {
        free(copy);
        return fail_memory(e);
    }
    void *item = (char *)grown + *count * section->item_size;
    memset(item, 0, section->item_size);
    memcpy(item, &copy, sizeof copy);
    ++*count;
    *ret = item;
    return store_set_defaults(section, item, e);
}

bool config_new(config **ret, cb_error *e)
{
    OWNED(config) c = calloc(1, sizeof *c);

    if (!c || !(c->origins = calloc(1, sizeof *c->origins)))
        return fail_memory(e);
    for (size_t i = 0; i < n_config_sections; i++) {
        if (!config_sections[i].item_size && !store_set_defaults(&config_sections[i], c, e))
            return false;
    }
    *ret = config_take(&c);
    return true;
}

void config_free(config *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < n_config_sections; i++)
        store_clear(c, &config_sections[i]);
    for (size_t i = 0; c->origins && i < c->origins->n; i++) {
        free(c->origins->said[i].item);
        free(c->origins->said[i].origin);
    }
    if (c->origins)
        free(c->origins->said);
    free(c->origins);
    free(c->profile);
    free(c);
}

static config_said *store_find_said(const config *c, const config_key *key, const char *item)
{
    for (size_t i = 0; i < c->origins->n; i++) {
        config_said *said = &c->origins->said[i];
        if (said->key == key && (!item || strcmp(said->item, item) == 0))
            return said;
    }
    return NULL;
}

const config_said *config_who(const config *c, const config_key *key, const char *item)
{
    return store_find_said(c, key, item);
}

const config_said *config_who_said(const config *c, const char *pattern, const char *item)
{
    const config_key *key = key_named(pattern);
    return key ? store_find_said(c, key, item) : NULL;
}

bool config_overrule(config *c, const char *pattern, const char *item, const char *why)
{
    config_said *said = store_find_said(c, key_named(pattern), item);

    if (!said || said->overruled)
        return false;
    said->overruled = why;
    return true;
}

static bool store_add_said(config *c, const config_key *key, const char *item, config_said **ret)
{
    struct config_origins *o = c->origins;

    if (o->n == o->capacity) {
        size_t capacity = o->capacity ? 2 * o->capacity : 64;
        config_said *grown = realloc(o->said, capacity * sizeof *grown);
        if (!grown)
            return false;
        o->said = grown;
        o->capacity = capacity;
    }
    config_said said = { .key = key, .item = item ? strdup(item) : NULL };
    if (item && !said.item)
        return false;
    o->said[o->n] = said;
    *ret = &o->said[o->n++];
    return true;
}

static bool store_remember(config_loader *l, const config_key *key, const char *item,
                           const char *origin, cb_error *e)
{
    config_said *said = store_find_said(l->config, key, item);
    char path[KEY_PATH_SIZE], *copy = strdup(origin);

    if (!copy || (!said && !store_add_said(l->config, key, item, &said))) {
        free(copy);
        return fail_memory(e);
    }
    if (said->origin && said->layer == l->layer) {
        free(copy);
        return cb_fail(e, CB_MISUSE, "%s: %s is said twice, by %.150s too", origin,
                       key_path(key, item, path, sizeof path), said->origin);
    }
    free(said->origin);
    said->origin = copy;
    said->layer = l->layer;
    return true;
}

/* Who and what before the rule that the value breaks. A secret is not repeated. */
static bool store_refuse(const config_key *key, const char *item, const char *text,
                         const char *origin, cb_error *e)
{
    char rule[sizeof e->message], path[KEY_PATH_SIZE];

    snprintf(rule, sizeof rule, "%s", e->message);
    key_path(key, item, path, sizeof path);
    if (e->code != CB_MISUSE)
        return false;
    if (key->secret || !*text)
        return cb_fail(e, CB_MISUSE, "%.200s: %s is %s: %.150s", origin, path,
                       *text ? "wrong" : "empty", rule);
    return cb_fail(e, CB_MISUSE, "%.200s: %s is %.60s: %.150s", origin, path, text, rule);
}

bool config_assign(config_loader *l, const config_key *key, const char *item, const char *text,
                   const char *origin, cb_error *e)
{
    void *where = NULL;
    char problem[sizeof e->message];

    if (!config_need(l->config, key_section(key), item, &where, e)) {
        snprintf(problem, sizeof problem, "%s", e->message);
        return cb_fail(e, e->code, "%.200s: %.250s", origin, problem);
    }
    if (!key_parse(key, where, text, e))
        return store_refuse(key, item, text, origin, e);
    return store_remember(l, key, item, origin, e);
}

void config_warn(const config_loader *l, const char *hint, const char *fmt, ...)
{
    char message[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    if (l->warn)
        l->warn(message, hint, l->warn_arg);
}
