/* --set path=value. */
#include <stdio.h>
#include <string.h>

#include "config_sources.h"

/* "domains.fx.enabled" into section, item and leaf; the item is empty where there is none. */
typedef struct {
    char section[KEY_PATH_SIZE], item[KEY_PATH_SIZE], leaf[KEY_PATH_SIZE];
} path_parts;

static bool split_path(const char *path, size_t length, path_parts *parts)
{
    const char *first = memchr(path, '.', length), *last = memrchr(path, '.', length);

    if (!first || length >= KEY_PATH_SIZE)
        return false;
    snprintf(parts->section, sizeof parts->section, "%.*s", (int)(first - path), path);
    snprintf(parts->leaf, sizeof parts->leaf, "%.*s", (int)(path + length - last - 1), last + 1);
    parts->item[0] = '\0';
    if (last > first)
        snprintf(parts->item, sizeof parts->item, "%.*s", (int)(last - first - 1), first + 1);
    return true;
}

bool config_read_setting(config_loader *l, const char *setting, cb_error *e)
{
    const char *equals = strchr(setting, '='), *origin = "--set";
    path_parts parts;
    char path[KEY_PATH_SIZE];

    l->layer++;
    if (!equals)
        return cb_fail(e, CB_MISUSE, "--set %.100s: write path=value, as in http.port=9464",
                       setting);
    snprintf(path, sizeof path, "%.*s", (int)(equals - setting), setting);
    if (!split_path(setting, (size_t)(equals - setting), &parts))
        return config_unknown(origin, path, NULL, path, e);
    const config_section *section = section_find(parts.section);
    if (!section)
        return config_unknown(origin, path, NULL, parts.section, e);
    const config_section *within = section_within(section, parts.item);
    if (within) {
        section = within;
        parts.item[0] = '\0';
    }
    const config_key *key = key_find(section, parts.leaf);
    if (!key)
        return config_unknown(origin, path, section, parts.leaf, e);
    if (section->is_open && *parts.item)
        return config_assign(l, key, path + strlen(section->name) + 1, equals + 1, origin, e);
    if (!*parts.item != !section->item_size)
        return cb_fail(e, CB_MISUSE, "--set: unknown key '%s'; did you mean %s?", path, key->path);
    return config_assign(l, key, *parts.item ? parts.item : NULL, equals + 1, origin, e);
}
