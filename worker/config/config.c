/* Loading: defaults, files, environment, --set, then what follows from them. Here are the order,
 * the folder with its profiles, and --set; files are read in config_file.c, the environment in
 * config_env.c. */
#include "config.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config_sources.h"
#include "fail.h"
#include "text.h"
#include "utf8.h"

#ifndef COMMANDBUS_CONFIG_DIR
#define COMMANDBUS_CONFIG_DIR "../etc/commandbus"
#endif
#ifndef COMMANDBUS_MODULES_DIR
#define COMMANDBUS_MODULES_DIR "../lib/commandbus/handlers"
#endif

#define COMMON "commandbus"
#define SUFFIX ".cfg"

/* ---- folders ---- */

static bool folder_is_there(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* A path seen from where this program lies ("../lib/x"): an installation may move. */
static bool folder_beside(const char *relative, char *out, size_t size)
{
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);

    if (length <= 0)
        return false;
    program[length] = '\0';
    for (;;) {
        char *slash = strrchr(program, '/');
        if (!slash)
            return false;
        *slash = '\0';
        if (strncmp(relative, "../", 3) != 0)
            break;
        relative += 3;
    }
    return (size_t)snprintf(out, size, "%s/%s", program, relative) < size;
}

/* The build tree has its libraries in lib, whatever an installation calls that. */
bool config_modules_folder(char *out, size_t size)
{
    static const char in_build_tree[] = "../lib/commandbus/handlers";

    return (folder_beside(COMMANDBUS_MODULES_DIR, out, size) && folder_is_there(out)) ||
           (folder_beside(in_build_tree, out, size) && folder_is_there(out)) ||
           folder_beside(COMMANDBUS_MODULES_DIR, out, size);
}

/* One variable, or NULL when it is not there or empty. Borrowed. */
static const char *config_variable(char *const *environment, const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; environment && environment[i]; i++) {
        if (strncmp(environment[i], name, length) == 0 && environment[i][length] == '=')
            return environment[i][length + 1] ? environment[i] + length + 1 : NULL;
    }
    return NULL;
}

/* ---- commandbus.cfg for everybody, then the profiles asked for ---- */

static int profile_is_file(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name), suffix = strlen(SUFFIX);

    return length > suffix && strcmp(entry->d_name + length - suffix, SUFFIX) == 0 &&
           strcmp(entry->d_name, COMMON SUFFIX) != 0 && entry->d_name[0] != '.';
}

/* Says which there are, in order. */
static bool profile_not_found(const char *folder, const char *profile, cb_error *e)
{
    struct dirent **entries = NULL;
    int n = scandir(folder, &entries, profile_is_file, alphasort);
    char names[256] = "";

    for (int i = 0; i < n; i++) {
        text_append(names, sizeof names, "%s%.*s", *names ? ", " : "",
                    (int)(strlen(entries[i]->d_name) - strlen(SUFFIX)), entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return cb_fail(e, CB_MISUSE, "profile '%.80s' is not in %.120s: %s%.200s", profile, folder,
                   *names ? "there are " : "no profile is", names);
}

static bool profile_read(config_loader *l, const char *folder, const char *name, bool *found,
                         cb_error *e)
{
    char path[PATH_MAX];

    if ((size_t)snprintf(path, sizeof path, "%s/%s" SUFFIX, folder, name) >= sizeof path)
        return cb_fail(e, CB_MISUSE, "the path of the configuration folder is too long");
    return config_read_file_at(l, path, found, e);
}

/* "a, b": each in turn. Remembers the list without spaces. */
static bool profile_read_all(config_loader *l, const char *folder, char *profiles, cb_error *e)
{
    char *names = l->config->profile, *rest = profiles;

    for (char *name; (name = strsep(&rest, ","));) {
        bool found = false;
        name += strspn(name, " \t");
        name[strcspn(name, " \t")] = '\0';
        if (!*name)
            continue;
        /* A profile is a file of the folder, never a path. */
        if (!rule_profile_name(name) && !profile_read(l, folder, name, &found, e))
            return false;
        if (!found)
            return profile_not_found(folder, name, e);
        sprintf(names + strlen(names), "%s%s", *names ? "," : "", name);
    }
    return true;
}

/* Where to look. Only what somebody named must be there. */
static bool folder_find(const config_request *request, char *folder, size_t size, cb_error *e)
{
    const char *named = request->config_dir
                            ? request->config_dir
                            : config_variable(request->environment, "COMMANDBUS_CONFIG_DIR");

    if (!named) {
        if (!folder_beside(COMMANDBUS_CONFIG_DIR, folder, size) || !folder_is_there(folder))
            folder[0] = '\0';
        return true;
    }
    if ((size_t)snprintf(folder, size, "%s", named) >= size || !folder_is_there(folder))
        return cb_fail(e, CB_MISUSE, "configuration folder %.300s: there is no such folder", named);
    return true;
}

/* <folder>/commandbus.cfg and the profiles, as the request or the environment name them. */
static bool folder_read(config_loader *l, const config_request *request, cb_error *e)
{
    char folder[PATH_MAX];
    const char *asked = request->profiles
                            ? request->profiles
                            : config_variable(request->environment, "COMMANDBUS_PROFILE");
    bool found = false;

    l->config->profile = calloc(1, strlen(asked ? asked : "") + 1);
    if (!l->config->profile)
        return fail_memory(e);
    if (!folder_find(request, folder, sizeof folder, e))
        return false;
    if (!*folder)
        return !asked || !*asked ||
               cb_fail(e, CB_MISUSE,
                       "profile '%.80s' needs a configuration folder: name it with --config-dir "
                       "or COMMANDBUS_CONFIG_DIR",
                       asked);
    if (!profile_read(l, folder, COMMON, &found, e))
        return false;
    char *profiles = strdup(asked ? asked : "");
    if (!profiles)
        return fail_memory(e);
    bool good = profile_read_all(l, folder, profiles, e);
    free(profiles);
    return good;
}

/* ---- --set path=value ---- */

/* "domains.fx.enabled" into section, item and leaf; the item is empty where there is none. */
typedef struct {
    char section[KEY_PATH_SIZE], item[KEY_PATH_SIZE], leaf[KEY_PATH_SIZE];
} setting_path;

static bool setting_split(const char *path, size_t length, setting_path *parts)
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

static bool setting_read(config_loader *l, const char *setting, cb_error *e)
{
    const char *equals = strchr(setting, '='), *origin = "--set";
    setting_path parts;
    char path[KEY_PATH_SIZE];

    l->layer++;
    if (!equals)
        return cb_fail(e, CB_MISUSE, "--set %.100s: write path=value, as in http.port=9464",
                       setting);
    snprintf(path, sizeof path, "%.*s", (int)(equals - setting), setting);
    if (!setting_split(setting, (size_t)(equals - setting), &parts))
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

/* ---- all of it ---- */

static bool load_sources(config_loader *l, const config_request *request, cb_error *e)
{
    if (!folder_read(l, request, e) || !config_read_environment(l, request->environment, e))
        return false;
    for (size_t i = 0; i < request->n_settings; i++) {
        if (!setting_read(l, request->settings[i], e))
            return false;
    }
    return config_check(l, e);
}

/* A refusal repeats the value that is wrong, whatever that holds, and is one line of text. */
static bool load_refused(cb_error *e)
{
    utf8_repair(e->message);
    for (char *s = e->message; *s; s++) {
        if ((unsigned char)*s < ' ' || *s == 0x7f)
            *s = '?';
    }
    return false;
}

bool config_load(const config_request *request, config_warn_fn *warn, void *arg, config **ret,
                 cb_error *e)
{
    OWNED(config) c = NULL;

    if (!config_new(&c, e))
        return false;
    config_loader loader = { .config = c, .warn = warn, .warn_arg = arg };
    if (!load_sources(&loader, request, e))
        return load_refused(e);
    *ret = config_take(&c);
    return true;
}
