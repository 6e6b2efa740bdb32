/* What lies in a folder of handler sets, for those who misspelt one. */
#include "set_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "set_check.h"

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
    if (!set_is_name(name))
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

bool set_folder_lacks(const char *dir, const char *name, cb_error *e)
{
    set_names sets = { 0 };

    if (!read_names(dir, &sets)) {
        cb_fail(e, CB_MISUSE, "no folder of handler sets %.300s: %s", dir, strerror(errno));
        return fail_hint(e, "Say where %s.so is: worker.modules-dir.", name);
    }
    cb_fail(e, CB_MISUSE, "there is no handler set '%s': %.300s holds no %s.so", name, dir, name);
    if (e)
        say_names(&sets, e->hint, sizeof e->hint);
    return false;
}
