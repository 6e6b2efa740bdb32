/* Loading handler sets from files. */
#include <commandbus/set.h>

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fail.h"
#include "name_rules.h"
#include "set_check.h"

struct cb_set {
    char *file;
    void *handle;
    const cb_module *module; /* lives in the file */
    bool is_open;            /* open() has said yes */
};

/* ---- what lies in a folder of sets, for those who misspelt one ---- */

enum {
    NAME_SIZE = 48,
    MOST_NAMES = 24 /* a hint has room for few more */
};

/* The sets of one folder, in the order of their names. */
typedef struct {
    char names[MOST_NAMES][NAME_SIZE];
    size_t n;
    bool more; /* than fit */
} set_names;

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void add_name(set_names *sets, const char *file)
{
    char name[NAME_SIZE] = "";
    const char *ending = strstr(file, ".so");
    size_t length = ending ? (size_t)(ending - file) : 0;

    if (length == 0 || length >= sizeof name || strcmp(ending, ".so") != 0)
        return;
    memcpy(name, file, length);
    if (name_rule_set(name))
        return;
    if (sets->n == MOST_NAMES)
        sets->more = true;
    else
        memcpy(sets->names[sets->n++], name, sizeof name);
}

static bool read_names(const char *dir, set_names *sets)
{
    DIR *folder = opendir(dir);

    if (!folder)
        return false;
    for (const struct dirent *entry; (entry = readdir(folder));)
        add_name(sets, entry->d_name);
    closedir(folder);
    qsort(sets->names, sets->n, sizeof *sets->names, compare_names);
    return true;
}

static void say_names(const set_names *sets, char *text, size_t size)
{
    if (sets->n == 0) {
        snprintf(text, size, "The folder holds no handler set: check worker.modules-dir.");
        return;
    }
    int used = snprintf(text, size, "The folder holds:");
    for (size_t i = 0; i < sets->n; i++) {
        if ((size_t)used + strlen(sets->names[i]) + sizeof ", …" > size) {
            snprintf(text + used, size - (size_t)used, " …");
            return;
        }
        used += snprintf(text + used, size - (size_t)used, "%s %s", i ? "," : "", sets->names[i]);
    }
    snprintf(text + used, size - (size_t)used, "%s", sets->more ? " …" : ".");
}

/* Fails with CB_MISUSE: <dir>/<name>.so is not there. Says which sets are. */
static bool set_folder_lacks(const char *dir, const char *name, cb_error *e)
{
    set_names sets = { 0 };

    if (!read_names(dir, &sets)) {
        cb_fail(e, CB_MISUSE, "cannot read handler sets from %.300s: %s", dir, strerror(errno));
        return fail_hint(e, "Say where %s.so is: worker.modules-dir.", name);
    }
    cb_fail(e, CB_MISUSE, "there is no handler set '%s': %.300s holds no %s.so", name, dir, name);
    if (e)
        say_names(&sets, e->hint, sizeof e->hint);
    return false;
}

/* ---- loading ---- */

static bool name_file(cb_set *set, const char *dir, const char *name)
{
    if (asprintf(&set->file, "%s/%s.so", dir, name) >= 0)
        return true;
    set->file = NULL; /* asprintf may have left anything */
    return false;
}

/* Asked before dlopen, which would wait for ever at a pipe and whose words for a missing file help
 * nobody. */
static bool check_file(const char *dir, const char *name, const char *file, cb_error *e)
{
    struct stat status;

    if (stat(file, &status) != 0)
        return errno == ENOENT || errno == ENOTDIR
                   ? set_folder_lacks(dir, name, e)
                   : cb_fail(e, CB_MISUSE, "cannot load %.300s: %s", file, strerror(errno));
    return S_ISREG(status.st_mode) || cb_fail(e, CB_MISUSE, "%.300s is not a file", file);
}

static bool open_file(cb_set *set, cb_error *e)
{
    /* NOW: a symbol that is missing is found at the start and not in the middle of a payment. */
    set->handle = dlopen(set->file, RTLD_NOW | RTLD_LOCAL);
    if (set->handle)
        return true;
    const char *why = dlerror(); /* mostly begins with the file */
    bool names_it = strncmp(why, set->file, strlen(set->file)) == 0;
    cb_fail(e, CB_MISUSE, "cannot load %.200s%s%.300s", names_it ? "" : set->file,
            names_it ? "" : ": ", why);
    return fail_hint(
        e, "Build it as a shared object for this machine and this version of commandbus.");
}

static bool find_manifest(const cb_set *set, const cb_module **ret, cb_error *e)
{
    *ret = dlsym(set->handle, CB_MODULE_SYMBOL);
    return *ret || cb_fail(e, CB_MISUSE,
                           "%.300s is not a handler set: it has no symbol " CB_MODULE_SYMBOL
                           "; say CB_MODULE(…) in one of its files",
                           set->file);
}

static bool refuse_start(const cb_set *set, const cb_error *why, const char *who, cb_error *e)
{
    cb_fail(e, CB_MISUSE, "%.200s failed to open: %.280s%s", set->file,
            why->message[0] ? why->message : who,
            why->message[0] ? "" : " failed without a reason");
    if (e)
        memcpy(e->hint, why->hint, sizeof e->hint);
    return false;
}

static bool call_configure(const cb_set *set, const cb_module *m, const cb_module_config *config,
                           cb_error *e)
{
    static const cb_module_config nothing = { 0 };
    cb_error why = { 0 };

    if (!config)
        config = &nothing;
    if (!m->configure && config->n_settings > 0)
        return cb_fail(e, CB_MISUSE, "%.200s takes no settings: drop handlers.%s.%.100s", set->file,
                       m->name, config->settings[0].name);
    if (!m->configure || m->configure(config, &why))
        return true;
    return refuse_start(set, &why, "its configure()", e);
}

static bool call_open(const cb_set *set, const cb_module *m, cb_error *e)
{
    cb_error why = { 0 };

    return !m->open || m->open(&why) || refuse_start(set, &why, "its open()", e);
}

bool cb_set_load(const char *dir, const char *name, cb_set **ret, cb_error *e)
{
    return cb_set_load_with(dir, name, NULL, ret, e);
}

bool cb_set_inspect(const char *dir, const char *name, cb_set **ret, cb_error *e)
{
    if (!dir || !*dir)
        return cb_fail(e, CB_MISUSE, "no folder of handler sets: set worker.modules-dir");
    if (name_rule_set(name))
        return cb_fail(e, CB_MISUSE, "invalid handler set name '%.60s'; %s", name ? name : "",
                       name_rule_set(name));
    OWNED(cb_set) set = calloc(1, sizeof *set);
    if (!set || !name_file(set, dir, name))
        return fail_memory(e);
    if (!check_file(dir, name, set->file, e) || !open_file(set, e) ||
        !find_manifest(set, &set->module, e) || !set_check(set->module, set->file, name, e))
        return false;
    *ret = cb_set_take(&set);
    return true;
}

bool cb_set_load_with(const char *dir, const char *name, const cb_module_config *config,
                      cb_set **ret, cb_error *e)
{
    OWNED(cb_set) set = NULL;

    if (!cb_set_inspect(dir, name, &set, e) || !call_configure(set, set->module, config, e) ||
        !call_open(set, set->module, e))
        return false;
    set->is_open = true;
    *ret = cb_set_take(&set);
    return true;
}

const cb_module *cb_set_module(const cb_set *set)
{
    return set->module;
}

const char *cb_set_file(const cb_set *set)
{
    return set->file;
}

void cb_set_free(cb_set *set)
{
    if (!set)
        return;
    if (set->is_open && set->module->close)
        set->module->close();
    if (set->handle)
        dlclose(set->handle);
    free(set->file);
    free(set);
}
