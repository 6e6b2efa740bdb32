/* Bringing a database to this binary's schema, or to that of a handler set: applying what is
 * missing, numbered files once, functions and views whenever they differ. Everything in one
 * transaction, one client at a time. */
#include <commandbus/migrate.h>
#include <commandbus/version.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cb_sql.h"
#include "fail.h"
#include "name_rules.h"
#include "schema.h"

/* The oldest binary that can work on the schema this one brings. Raised only with a release that
 * takes away what older binaries use (expand/contract). */
enum {
    CB_OLDEST_BINARY = 1
};

static bool record_file(cb_db *db, const schema_files *m, const cb_sql_file *file, cb_error *e)
{
    params p = { 0 };

    params_text(&p, m->component);
    params_int(&p, file->version);
    params_int(&p, CB_OLDEST_BINARY);
    params_text(&p, file->name);
    params_text(&p, file->checksum);
    return db_do(db, cb_sql_schema_record, &p, e);
}

static bool run_file(cb_db *db, const schema_files *m, const cb_sql_file *file, cb_error *e)
{
    if (!db_do_script(db, file->text, e))
        return cb_fail_while(e, "applying %03d_%s.sql", file->version, file->name);
    if (!db_in_transaction(db))
        return cb_fail(e, CB_SCHEMA, "%03d_%s.sql ended the transaction it was run in",
                       file->version, file->name);
    return record_file(db, m, file, e);
}

static bool run_functions(cb_db *db, cb_error *e)
{
    params p = { 0 };

    if (!db_do_script(db, cb_sql_functions_begin, e))
        return false;
    for (size_t i = 0; i < cb_function_files_count; i++) {
        if (!db_do_script(db, cb_function_files[i].text, e))
            return cb_fail_while(e, "applying functions/%s.sql", cb_function_files[i].name);
    }
    if (!db_do_script(db, cb_sql_functions_end, e))
        return cb_fail_while(e, "making the functions of queues");
    params_text(&p, cb_version_string());
    params_text(&p, cb_functions_checksum);
    return db_do(db, cb_sql_functions_record, &p, e);
}

/* What needs more rights than the schema's owner has, and then as the owner. */
static bool become_owner(cb_db *db, const schema_files *m, cb_error *e)
{
    if (m->is_bus && !db_do_script(db, cb_sql_bootstrap, e))
        return cb_fail_while(e, "preparing roles, extension and schema");
    if (!m->is_bus && !db_do_script(db, cb_sql_migrate_grant, e))
        return cb_fail_while(e, "letting commandbus_owner create a schema in this database");
    return db_do_script(db, cb_sql_migrate_as_owner, e);
}

static bool run_missing(cb_db *db, const schema_files *m, cb_migrate_report *report, cb_error *e)
{
    for (size_t i = 0; i < m->n; i++) {
        if (m->files[i].version <= report->found)
            continue;
        if (!run_file(db, m, &m->files[i], e))
            return false;
        report->applied++;
        report->now = m->files[i].version;
    }
    return !report->functions || run_functions(db, e);
}

/* A database of before 0.1.0 has the tables of today's files: only what was recorded differs. */
static bool adopt_former(cb_db *db, const schema_files *m, schema_state *state, cb_error *e)
{
    OWNED(PGresult) adopted = NULL;

    if (!become_owner(db, m, e) || !db_run_guarded(db, cb_sql_schema_adopt, NULL, &adopted, e))
        return false;
    if (PQntuples(adopted) == 0)
        return true; /* made of other files: the comparison says which */
    for (size_t i = 0; i < m->n; i++) {
        if (!record_file(db, m, &m->files[i], e))
            return false;
    }
    schema_state_done(state);
    return db_do_script(db, cb_sql_migrate_as_self, e) && schema_read(db, m->component, state, e);
}

/* Inside the transaction. Sets *write when there is something to commit. */
static bool look_and_run(cb_db *db, const schema_files *m, cb_migrate_report *report, bool *write,
                         cb_error *e)
{
    OWNED_SCHEMA_STATE(state) = { 0 };
    functions_state functions = FUNCTIONS_SAME;
    char release[32];

    if (!schema_read(db, m->component, &state, e))
        return false;
    if (m->is_bus && schema_is_former(&state) && !adopt_former(db, m, &state, e))
        return false;
    if ((m->is_bus && !schema_check_binary(&state, e)) || !schema_check_files(&state, m, e) ||
        (m->is_bus && !schema_read_functions(db, &functions, release, e)))
        return false;
    *report = (cb_migrate_report){ .found = state.version, .now = state.version };
    /* A schema with files that this binary does not know has functions that it does not know. */
    report->functions = functions_want_applying(functions) && state.version <= cb_schema_version();
    *write = report->functions || (m->n > 0 && m->files[m->n - 1].version > state.version);
    return *write ? become_owner(db, m, e) && run_missing(db, m, report, e) : true;
}

static bool apply_once(cb_db *db, const schema_files *m, cb_migrate_report *report, cb_error *e)
{
    bool write = false;
    bool fine = db_do_script(db, cb_sql_migrate_begin, e) && look_and_run(db, m, report, &write, e);

    if (fine && write)
        return cb_db_commit(db, e);
    if (!db->lost)
        cb_db_rollback(db, NULL);
    return fine;
}

/* A lock that was not given in time, a deadlock, or two databases of one server that were creating
 * the same role. */
static bool is_passing(const schema_files *m, const cb_error *e)
{
    if (e->code == CB_AGAIN)
        return true;
    return m->is_bus && (strcmp(e->sqlstate, "23505") == 0 || strcmp(e->sqlstate, "XX000") == 0);
}

/* One transaction under a lock; nothing at all is written when nothing is missing. CB_SCHEMA
 * when the database was made of other files than these. */
static bool migration_apply(cb_db *db, const schema_files *m, cb_migrate_report *ret, cb_error *e)
{
    cb_error own = { 0 };
    cb_migrate_report report = { 0 };

    if (!db_is_ready(db, e))
        return false;
    if (db_in_transaction(db))
        return cb_fail(e, CB_MISUSE, "migrating needs its own transaction, one is open");
    for (int attempt = 1; !apply_once(db, m, &report, &own); attempt++) {
        if (attempt == 5 || !is_passing(m, &own)) {
            if (e)
                *e = own;
            return false;
        }
        struct timespec pause = { 0, attempt * 100000000L };
        nanosleep(&pause, NULL);
    }
    if (ret)
        *ret = report;
    return true;
}

/* ---- the bus: is the server fit for it, then the files ---- */

static const char pgmq_hint[] =
    "On your own machine deploy/local/deps installs it; else ask the database's administrator for "
    "pgmq 1.11 or newer.";

static bool check_pgmq(cb_db *db, cb_error *e)
{
    OWNED(PGresult) versions = NULL;
    int major = 0, minor = 0;

    if (!db_read_guarded(db, cb_sql_pgmq_version, NULL, &versions, e))
        return false;
    bool installed = !PQgetisnull(versions, 0, 0);
    if (!installed && PQgetisnull(versions, 0, 1)) {
        cb_fail(e, CB_SCHEMA, "the server does not offer the extension pgmq");
        return fail_hint(e, "%s", pgmq_hint);
    }
    const char *version = PQgetvalue(versions, 0, installed ? 0 : 1);
    if (sscanf(version, "%d.%d", &major, &minor) == 2 && (major > 1 || (major == 1 && minor >= 11)))
        return true;
    cb_fail(e, CB_SCHEMA, "pgmq 1.11 or newer is needed, %s is %.20s",
            installed ? "this database's" : "what the server offers", version);
    return installed ? fail_hint(e,
                                 "ALTER EXTENSION pgmq UPDATE, if the server offers a newer one. "
                                 "%s",
                                 pgmq_hint)
                     : fail_hint(e, "%s", pgmq_hint);
}

static bool check_server(cb_db *db, cb_error *e)
{
    int version = PQserverVersion(db->conn);

    if (version >= 150000)
        return check_pgmq(db, e);
    cb_fail(e, CB_SCHEMA, "PostgreSQL 15 or newer is needed, this is %d.%d", version / 10000,
            version % 10000);
    return fail_hint(e, "Use another server.");
}

bool cb_migrate_look(cb_db *db, cb_migrate_status *ret, cb_error *e)
{
    const schema_files here = schema_of_bus();
    OWNED_SCHEMA_STATE(bus) = { 0 };
    cb_migrate_status status = { .brings = cb_schema_version() };
    functions_state functions;

    if (!db_is_ready(db, e) || !check_server(db, e) || !schema_read(db, here.component, &bus, e))
        return false;
    status.former = schema_is_former(&bus);
    if (!status.former && (!schema_check_binary(&bus, e) || !schema_check_files(&bus, &here, e)))
        return false;
    if (!schema_read_functions(db, &functions, status.functions, e))
        return false;
    status.found = status.former ? 0 : bus.version;
    for (size_t i = 0; i < here.n && !status.former; i++)
        status.missing += here.files[i].version > bus.version;
    status.functions_differ = functions != FUNCTIONS_SAME;
    status.functions_wanted = functions_want_applying(functions) && status.found <= status.brings;
    *ret = status;
    return true;
}

bool cb_migrate(cb_db *db, cb_migrate_report *ret, cb_error *e)
{
    const schema_files bus = schema_of_bus();

    return db_is_ready(db, e) && check_server(db, e) && migration_apply(db, &bus, ret, e);
}

/* ---- a handler set, read from its folder ---- */

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
        if (!db_read_guarded(db, cb_sql_schema_checksum, &p, &result, e))
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
