/* The folder of configuration files: commandbus.cfg for everybody, then the profiles asked for. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_folder.h"
#include "config_sources.h"
#include "fail.h"
#include "keys_rules.h"
#include "text.h"

#define COMMON     "commandbus"
#define SUFFIX     ".cfg"
#define NAMES_SIZE 256

static int is_profile(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name), suffix = strlen(SUFFIX);

    return length > suffix && strcmp(entry->d_name + length - suffix, SUFFIX) == 0 &&
           strcmp(entry->d_name, COMMON SUFFIX) != 0 && entry->d_name[0] != '.';
}

/* "a, b" of the profiles in the folder, in order. */
static void list_profiles(const char *folder, char *names, size_t size)
{
    struct dirent **entries = NULL;
    int n = scandir(folder, &entries, is_profile, alphasort);

    names[0] = '\0';
    for (int i = 0; i < n; i++) {
        text_append(names, size, "%s%.*s", *names ? ", " : "",
                    (int)(strlen(entries[i]->d_name) - strlen(SUFFIX)), entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
}

static bool no_profile(const char *folder, const char *profile, cb_error *e)
{
    char names[NAMES_SIZE];

    list_profiles(folder, names, sizeof names);
    return cb_fail(e, CB_MISUSE, "profile '%.80s' is not in %.120s: %s%.200s", profile, folder,
                   *names ? "there are " : "no profile is", names);
}

static bool read_named(config_loader *l, const char *folder, const char *name, bool *found,
                       cb_error *e)
{
    char path[PATH_MAX];

    if ((size_t)snprintf(path, sizeof path, "%s/%s" SUFFIX, folder, name) >= sizeof path)
        return cb_fail(e, CB_MISUSE, "the path of the configuration folder is too long");
    return config_read_file_at(l, path, found, e);
}

/* "a, b": each in turn. Remembers the list without spaces. */
static bool read_profiles(config_loader *l, const char *folder, char *profiles, cb_error *e)
{
    char *names = l->config->profile, *rest = profiles;

    for (char *name; (name = strsep(&rest, ","));) {
        bool found = false;
        name += strspn(name, " \t");
        name[strcspn(name, " \t")] = '\0';
        if (!*name)
            continue;
        /* A profile is a file of the folder, never a path. */
        if (!rule_profile_name(name) && !read_named(l, folder, name, &found, e))
            return false;
        if (!found)
            return no_profile(folder, name, e);
        sprintf(names + strlen(names), "%s%s", *names ? "," : "", name);
    }
    return true;
}

/* Where to look. Only what somebody named must be there. */
static bool find_folder(const config_request *request, char *folder, size_t size, cb_error *e)
{
    const char *named = request->config_dir
                            ? request->config_dir
                            : config_variable(request->environment, "COMMANDBUS_CONFIG_DIR");

    if (!named) {
        if (!folder_of_config(folder, size) || !folder_is_there(folder))
            folder[0] = '\0';
        return true;
    }
    if ((size_t)snprintf(folder, size, "%s", named) >= size || !folder_is_there(folder))
        return cb_fail(e, CB_MISUSE, "configuration folder %.300s: there is no such folder", named);
    return true;
}

bool config_read_folder(config_loader *l, const config_request *request, cb_error *e)
{
    char folder[PATH_MAX];
    const char *asked = request->profiles
                            ? request->profiles
                            : config_variable(request->environment, "COMMANDBUS_PROFILE");
    bool found = false;

    l->config->profile = calloc(1, strlen(asked ? asked : "") + 1);
    if (!l->config->profile)
        return fail_memory(e);
    if (!find_folder(request, folder, sizeof folder, e))
        return false;
    if (!*folder)
        return !asked || !*asked ||
               cb_fail(e, CB_MISUSE,
                       "profile '%.80s' needs a configuration folder: name it with --config-dir "
                       "or COMMANDBUS_CONFIG_DIR",
                       asked);
    if (!read_named(l, folder, COMMON, &found, e))
        return false;
    char *profiles = strdup(asked ? asked : "");
    if (!profiles)
        return fail_memory(e);
    bool good = read_profiles(l, folder, profiles, e);
    free(profiles);
    return good;
}
