/* The environment: COMMANDBUS_ and the path in capitals, dots and hyphens as underscores. A name is
 * matched by the beginning and the end of its key; what is between names the item. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config_sources.h"
#include "nearest.h"

#define PREFIX    "COMMANDBUS_"
#define NAME_SIZE 256

/* Ours, but no keys: read elsewhere, by the command line tool or by the tests. */
static const char *const others[] = {
    "PROFILE",    "CONFIG_DIR", "URL",       "SETS_DIR",   "BIN",
    "WORKER_BIN", "SOURCE_DIR", "BUILD_DIR", "INSTRUMENT",
};

/* A variable that matched: its key, and the name between prefix and suffix. */
typedef struct {
    const config_key *key;
    char item[NAME_SIZE];
} env_match;

/* "command-steps" → "COMMAND_STEPS". */
static void env_shout(const char *path, char *out, size_t size)
{
    size_t i = 0;

    for (; path[i] && i + 1 < size; i++)
        out[i] = strchr(".-", path[i]) ? '_' : (char)toupper((unsigned char)path[i]);
    out[i] = '\0';
}

/* The two ends of the environment name of a key: "DOMAINS_" and "_ENABLED", or "HTTP_PORT" and
 * ""; of an open section "HANDLERS_" and "", for all the rest names the item. */
static void env_ends(const config_key *key, char *head, char *tail, size_t size)
{
    char path[KEY_PATH_SIZE], *open;

    snprintf(path, sizeof path, "%s", key->path);
    open = strchr(path, '<');
    env_shout(open && !key_section(key)->is_open ? strchr(path, '>') + 1 : "", tail, size);
    if (open)
        *open = '\0';
    env_shout(path, head, size);
}

static bool env_fits(const config_key *key, const char *name, const char *head, const char *tail)
{
    size_t length = strlen(name), before = strlen(head), after = strlen(tail);

    if (!strchr(key->path, '<'))
        return strcmp(name, head) == 0;
    return length > before + after && length - before - after < NAME_SIZE &&
           strncmp(name, head, before) == 0 && strcmp(name + length - after, tail) == 0;
}

/* Of several keys the one with the longest tail is meant: WAIT_TIMEOUT and not TIMEOUT. */
static bool env_find_key(const char *name, env_match *m)
{
    size_t length = strlen(name), best = 0;

    m->key = NULL;
    for (const config_key *key = config_keys; key < config_keys + n_config_keys; key++) {
        char head[NAME_SIZE], tail[NAME_SIZE];
        env_ends(key, head, tail, sizeof head);
        size_t before = strlen(head), after = strlen(tail);

        if (!env_fits(key, name, head, tail))
            continue;
        if (m->key && after <= best)
            continue;
        best = after;
        m->key = key;
        snprintf(m->item, sizeof m->item, "%.*s", (int)(length - before - after), name + before);
    }
    return m->key != NULL;
}

/* The same name for the environment, which has no hyphens and cares for no case. */
static bool env_is_called(const char *name, const char *shouted)
{
    char mine[NAME_SIZE], theirs[NAME_SIZE];

    env_shout(name, mine, sizeof mine);
    env_shout(shouted, theirs, sizeof theirs);
    return strcmp(mine, theirs) == 0;
}

/* Domains and sets are in small letters, so that the environment can name new ones; other items
 * must be known from the files, for it cannot say bookFx. Of a setting, REPORTING_OUTPUT_FOLDER,
 * the first word is taken for the set: one with an _ in its name must be known from the files,
 * too. */
static bool env_resolve(const config *c, env_match *m)
{
    const config_section *section = key_section(m->key);

    for (size_t i = 0; i < config_count(c, section); i++) {
        const char *known = config_item_name(section, config_at(c, section, i));
        if (known && env_is_called(known, m->item)) {
            snprintf(m->item, sizeof m->item, "%s", known);
            return true;
        }
    }
    if (strcmp(section->name, "domains") != 0 && !section->is_open)
        return false;
    for (char *letter = m->item; *letter; letter++)
        *letter =
            (char)(section->is_open && *letter == '_' ? '-' : tolower((unsigned char)*letter));
    char *end_of_set = section->is_open ? strchr(m->item, '-') : NULL;
    if (end_of_set)
        *end_of_set = '.';
    return true;
}

/* Kubernetes describes each Service of the namespace in variables. A Service called commandbus-http
 * makes COMMANDBUS_HTTP_PORT=tcp://10.0.0.1:80, which is nobody's mistake. */
static bool env_is_service_link(const char *name, const char *value)
{
    const char *port = strstr(name, "PORT_");

    return strncmp(value, "tcp://", 6) == 0 || strncmp(value, "udp://", 6) == 0 ||
           strstr(name, "SERVICE_HOST") || strstr(name, "SERVICE_PORT") ||
           (port && isdigit((unsigned char)port[5]));
}

static bool env_is_other(const char *name)
{
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (strcmp(others[i], name) == 0)
            return true;
    }
    return strncmp(name, "TEST_", 5) == 0;
}

/* The nearest name there is: of each key, with each beginning of the rest taken for the item's
 * name. */
static void env_find_nearest(const char *name, char *out, size_t size)
{
    nearest_word nearest = { .word = name, .length = strlen(name) };

    for (const config_key *key = config_keys; key < config_keys + n_config_keys; key++) {
        char head[NAME_SIZE], tail[NAME_SIZE], candidate[2 * NAME_SIZE];
        env_ends(key, head, tail, sizeof head);
        if (!*tail && nearest_offer(&nearest, head))
            snprintf(out, size, "%s", head);
        if (!*tail || strncmp(name, head, strlen(head)) != 0)
            continue;
        for (const char *end = strchr(name + strlen(head) + 1, '_'); end;
             end = strchr(end + 1, '_')) {
            snprintf(candidate, sizeof candidate, "%.*s%s", (int)(end - name), name, tail);
            if (nearest_offer(&nearest, candidate))
                snprintf(out, size, "%s", candidate);
        }
    }
}

static void env_warn_unknown(const config_loader *l, const char *name)
{
    char nearest[2 * NAME_SIZE] = "", hint[3 * NAME_SIZE] = "";

    env_find_nearest(name, nearest, sizeof nearest);
    if (*nearest)
        snprintf(hint, sizeof hint, "did you mean " PREFIX "%s?", nearest);
    config_warn(l, *hint ? hint : "commandbus-worker --check-config lists the keys",
                "ignored unknown setting " PREFIX "%.200s", name);
}

static bool env_read_variable(config_loader *l, const char *name, const char *value, cb_error *e)
{
    char origin[NAME_SIZE + sizeof PREFIX];
    env_match m;

    snprintf(origin, sizeof origin, PREFIX "%.250s", name);
    if (env_is_other(name) || env_is_service_link(name, value))
        return true;
    if (!env_find_key(name, &m)) {
        env_warn_unknown(l, name);
        return true;
    }
    if (!*m.item)
        return config_assign(l, m.key, NULL, value, origin, e);
    if (!env_resolve(l->config, &m)) {
        config_warn(l, "say it in a file, or with --set and the exact name",
                    "%s: no file has a '%.80s' in %s, so it is ignored", origin, m.item,
                    key_section(m.key)->name);
        return true;
    }
    return config_assign(l, m.key, m.item, value, origin, e);
}

bool config_read_environment(config_loader *l, char *const *environment, cb_error *e)
{
    l->layer++;
    for (size_t i = 0; environment && environment[i]; i++) {
        const char *equals = strchr(environment[i], '=');
        char name[NAME_SIZE];

        if (!equals || strncmp(environment[i], PREFIX, strlen(PREFIX)) != 0)
            continue;
        const char *rest = environment[i] + strlen(PREFIX);
        if (equals - rest >= NAME_SIZE || equals <= rest)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(equals - rest), rest);
        if (!env_read_variable(l, name, equals + 1, e))
            return false;
    }
    return true;
}
