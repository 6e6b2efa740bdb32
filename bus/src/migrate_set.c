/* Migrations of a handler set, read from its folder. */
#include <commandbus/migrate.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cb_sql.h"
#include "fail.h"
#include "look.h"
#include "migration.h"
#include "name_rules.h"

/* More than this is data and no schema. */
static const size_t most_bytes = 1 << 20;

/* The files of one folder; owns their texts and names. */
typedef struct {
    cb_sql_file *files;
    size_t n;
} file_list;

static void file_list_done(file_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free((char *)list->files[i].name);
        free((char *)list->files[i].text);
        free((char *)list->files[i].checksum);
    }
    free(list->files);
}

static bool is_set_name(const char *name)
{
    return !name_rule_set(name) && strcmp(name, "commandbus") != 0;
}

/* NNN_name.sql: the number, and how long the name is. */
static bool parse_name(const char *file, int *version, size_t *name_at, size_t *name_length)
{
    size_t digits = strspn(file, "0123456789");
    size_t length = strspn(file + digits, NAME_LOWER NAME_DIGITS "_");

    if (digits < 3 || digits > 6 || length < 2 || file[digits] != '_' ||
        strcmp(file + digits + length, ".sql") != 0)
        return false;
    *version = (int)strtol(file, NULL, 10);
    *name_at = digits + 1;
    *name_length = length - 1;
    return *version > 0;
}

static bool read_text(const char *folder, const char *file, char **ret, cb_error *e)
{
    char path[4096];
    char *text = malloc(most_bytes + 1);

    if (!text)
        return fail_memory(e);
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *in = fopen(path, "rbe");
    size_t n = in ? fread(text, 1, most_bytes + 1, in) : 0;
    bool failed = !in || ferror(in);
    int reason = errno;
    if (in)
        fclose(in);
    if (failed || n > most_bytes || memchr(text, '\0', n)) {
        free(text);
        return cb_fail(e, CB_MISUSE, "%s: %s", file,
                       failed           ? strerror(reason)
                       : n > most_bytes ? "larger than 1 MiB"
                                        : "contains a NUL byte");
    }
    text[n] = '\0';
    *ret = text;
    return true;
}

static bool add_file(file_list *list, const char *folder, const char *file, cb_error *e)
{
    cb_sql_file entry = { 0 };
    size_t name_at, name_length;
    char *text = NULL;

    if (!parse_name(file, &entry.version, &name_at, &name_length))
        return cb_fail(e, CB_MISUSE, "%.200s: name the files of a set 001_what.sql, 002_…", file);
    cb_sql_file *files = realloc(list->files, (list->n + 1) * sizeof *files);
    if (!files)
        return fail_memory(e);
    list->files = files;
    if (!read_text(folder, file, &text, e))
        return false;
    entry.text = text;
    entry.name = strndup(file + name_at, name_length);
    list->files[list->n++] = entry;
    return entry.name ? true : fail_memory(e);
}

static int compare_versions(const void *a, const void *b)
{
    const cb_sql_file *x = a, *y = b;

    return (x->version > y->version) - (x->version < y->version);
}

static bool is_sql(const char *file)
{
    size_t length = strlen(file);

    return length > 4 && strcmp(file + length - 4, ".sql") == 0;
}

static bool read_folder(const char *folder, file_list *list, cb_error *e)
{
    DIR *dir = opendir(folder);
    bool fine = true;

    if (!dir)
        return cb_fail(e, CB_MISUSE, "%.300s: %s", folder, strerror(errno));
    for (struct dirent *entry; fine && (entry = readdir(dir));) {
        if (is_sql(entry->d_name))
            fine = add_file(list, folder, entry->d_name, e);
    }
    closedir(dir);
    if (!fine)
        return false;
    if (list->n == 0)
        return cb_fail(e, CB_MISUSE, "%.300s holds no file NNN_name.sql", folder);

    qsort(list->files, list->n, sizeof *list->files, compare_versions);
    for (size_t i = 1; i < list->n; i++) {
        if (list->files[i - 1].version == list->files[i].version)
            return cb_fail(e, CB_MISUSE, "%.200s: two files have the number %d", folder,
                           list->files[i].version);
    }
    return true;
}

/* The server computes them: a library for one function would be one too many. */
static bool add_checksums(cb_db *db, file_list *list, cb_error *e)
{
    for (size_t i = 0; i < list->n; i++) {
        cb_sql_file *file = &list->files[i];
        OWNED(PGresult) result = NULL;
        params p = { 0 };
        params_bytes(&p, file->text, strlen(file->text));
        if (!db_look(db, cb_sql_schema_checksum, &p, &result, e))
            return cb_fail_while(e, "computing the checksum of %03d_%s.sql", file->version,
                                 file->name);
        file->checksum = strdup(PQgetvalue(result, 0, 0));
        if (!file->checksum)
            return fail_memory(e);
    }
    return true;
}

bool cb_migrate_set(cb_db *db, const char *set, const char *folder, cb_migrate_report *ret,
                    cb_error *e)
{
    __attribute__((cleanup(file_list_done))) file_list list = { 0 };

    if (!is_set_name(set)) {
        cb_fail(e, CB_INVALID_NAME, "invalid handler set name '%.60s'", set ? set : "");
        return fail_hint(e, "Use a-z first, then a-z, 0-9 and _; not 'commandbus'.");
    }
    if (!read_folder(folder, &list, e) || !cb_db_check_schema(db, e) ||
        !add_checksums(db, &list, e))
        return false;
    const schema_files m = { set, list.files, list.n, false };
    return migration_apply(db, &m, ret, e);
}
