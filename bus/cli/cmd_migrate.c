/* commandbus migrate: the schema of the bus, and those of handler sets. */
#include "cli.h"
#include "fail.h"
#include "json_text.h"

#include <commandbus/migrate.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where an installation keeps the SQL of handler sets, seen from the program's folder. */
#ifndef COMMANDBUS_SETS_DIR
#define COMMANDBUS_SETS_DIR "../share/commandbus/sets"
#endif

typedef struct {
    arg_list sets;
    bool status;
} migrate_args;

static const arg_spec migrate_specs[] = {
    { "set", ARG_LIST, offsetof(migrate_args, sets), "NAME|FOLDER|NAME=FOLDER",
      .help = "also the SQL of this handler set; may be repeated" },
    { "status", ARG_FLAG, offsetof(migrate_args, status), NULL,
      .help = "only say what the database has and what migrate would do" },
    { 0 },
};

/* A handler set: its name and the folder of its NNN_what.sql. */
typedef struct {
    char name[64];
    char folder[PATH_MAX];
} handler_set;

static bool set_is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* The folder that the program itself lies in. */
static bool set_program_folder(char *folder, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", folder, size - 1);
    if (length <= 0)
        return false;
    folder[length] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
    return slash != NULL;
}

/* A name alone: the working tree first, then the environment's folder, then the installation. */
static bool set_find_folder(const char *name, char *folder, size_t size, cb_error *e)
{
    const char *from_environment = getenv("COMMANDBUS_SETS_DIR");
    char program[PATH_MAX / 2];

    snprintf(folder, size, "handlers/%s/sql", name);
    if (set_is_folder(folder))
        return true;
    if (from_environment && *from_environment) {
        snprintf(folder, size, "%s/%s/sql", from_environment, name);
        if (set_is_folder(folder))
            return true;
    }
    if (set_program_folder(program, sizeof program)) {
        snprintf(folder, size, "%s/" COMMANDBUS_SETS_DIR "/%s/sql", program, name);
        if (set_is_folder(folder))
            return true;
    }
    cb_fail(e, CB_INVALID_NAME, "there is no handler set '%s'", name);
    return fail_hint(
        e,
        "Looked in handlers/%.60s/sql here, in $COMMANDBUS_SETS_DIR and in the installation. "
        "Give its folder: --set %.60s=FOLDER.",
        name, name);
}

/* .../payments/sql is the folder of set payments. */
static bool set_name_of_folder(const char *folder, char *name, size_t size)
{
    char path[PATH_MAX];

    if (!realpath(folder, path))
        return false;
    char *sql = strrchr(path, '/');
    *sql = '\0';
    char *parent = strrchr(path, '/');
    if (!parent || !parent[1])
        return false;
    snprintf(name, size, "%.63s", parent + 1);
    return true;
}

static bool set_locate(const char *text, handler_set *set, cb_error *e)
{
    const char *equals = strchr(text, '=');

    if (equals) {
        snprintf(set->name, sizeof set->name, "%.*s", (int)(equals - text), text);
        snprintf(set->folder, sizeof set->folder, "%s", equals + 1);
    } else if (strchr(text, '/')) {
        snprintf(set->folder, sizeof set->folder, "%s", text);
        if (!set_name_of_folder(text, set->name, sizeof set->name))
            set->name[0] = '\0';
    } else {
        snprintf(set->name, sizeof set->name, "%s", text);
        return set_find_folder(text, set->folder, sizeof set->folder, e);
    }
    if (!set_is_folder(set->folder))
        return cb_fail(e, CB_INVALID_NAME, "there is no folder '%s'", set->folder);
    return set->name[0] ||
           cb_fail(e, CB_INVALID_NAME, "what is the set in '%s' called? Say NAME=%s", text, text);
}

static void migrate_report(const cli *c, const char *component, const cb_migrate_report *r)
{
    if (c->json) {
        json_object *object = json_object_new_object();
        json_put_text(object, "component", component);
        json_put_int(object, "found", r->found);
        json_put_int(object, "now", r->now);
        json_put_int(object, "applied", r->applied);
        json_put_bool(object, "functions", r->functions);
        json_print_adopt(object);
    } else if (r->applied == 0) {
        printf("%s: already at version %d%s\n", component, r->now,
               r->functions ? ", functions and views replaced" : "");
    } else {
        printf("%s: version %d -> %d, %d %s applied\n", component, r->found, r->now, r->applied,
               r->applied == 1 ? "file" : "files");
    }
}

static void migrate_print_status(const cb_migrate_status *s)
{
    if (s->former)
        printf("schema     of before release 0.1.0; migrate brings it to version %d\n", s->brings);
    else if (s->missing > 0)
        printf("schema     version %d; migrate applies %d %s, up to version %d\n", s->found,
               s->missing, s->missing == 1 ? "file" : "files", s->brings);
    else
        printf("schema     version %d; nothing to do\n", s->found);

    if (!*s->functions)
        printf("functions  none");
    else
        printf("functions  of release %s%s", s->functions,
               s->functions_differ ? ", not this binary's" : "");
    printf("; %s\n", s->functions_wanted   ? "migrate applies this binary's"
                     : s->functions_differ ? "migrate keeps them, for they are newer"
                                           : "nothing to do");
}

static int migrate_show_status(cli *c)
{
    cb_migrate_status s;
    cb_error e = { 0 };

    if (!cli_connect(c, false, &e) || !cb_migrate_look(c->db, &s, &e))
        return cli_fail(c, &e);
    if (!c->json) {
        migrate_print_status(&s);
        return EXIT_OK;
    }
    json_object *object = json_object_new_object();
    json_put_int(object, "found", s.found);
    json_put_int(object, "brings", s.brings);
    json_put_int(object, "missing", s.missing);
    json_put_bool(object, "former", s.former);
    json_put_text(object, "functions", *s.functions ? s.functions : NULL);
    json_put_bool(object, "functions_differ", s.functions_differ);
    json_put_bool(object, "functions_wanted", s.functions_wanted);
    json_print_adopt(object);
    return EXIT_OK;
}

static bool migrate_set(cli *c, const char *text, cb_error *e)
{
    handler_set set;
    cb_migrate_report done;

    if (!set_locate(text, &set, e) || !cb_migrate_set(c->db, set.name, set.folder, &done, e))
        return false;
    migrate_report(c, set.name, &done);
    return true;
}

static int migrate_run(cli *c, void *untyped)
{
    const migrate_args *args = untyped;
    cb_migrate_report done;
    handler_set set;
    cb_error e = { 0 };

    if (args->status)
        return migrate_show_status(c);
    for (size_t i = 0; i < args->sets.n; i++) {
        if (!set_locate(args->sets.items[i], &set, &e))
            return cli_fail(c, &e);
    }
    if (!cli_connect(c, false, &e) || !cb_migrate(c->db, &done, &e))
        return cli_fail(c, &e);
    migrate_report(c, "commandbus", &done);
    for (size_t i = 0; i < args->sets.n; i++) {
        if (!migrate_set(c, args->sets.items[i], &e))
            return cli_fail(c, &e);
    }
    return EXIT_OK;
}

const cli_command migrate_command = {
    .verb = "migrate",
    .summary = "Brings the database to the schema of this version",
    .details =
        "Safe to repeat and to run from many places at once. With --set also the SQL of a\n"
        "handler set: NAME is looked for in ./handlers/NAME/sql, $COMMANDBUS_SETS_DIR/NAME/sql\n"
        "and the installation; a text with a '/' is a folder .../NAME/sql.\n",
    .example = "  commandbus migrate --set payments\n",
    .args = migrate_specs,
    .args_size = sizeof(migrate_args),
    .run = migrate_run,
};
