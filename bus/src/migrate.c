/* Bringing a database to this binary's schema: is the server fit for it, then the files. */
#include <commandbus/migrate.h>
#include <stdio.h>

#include "cb_sql.h"
#include "fail.h"
#include "look.h"
#include "migration.h"

static const char pgmq_hint[] =
    "On your own machine deploy/local/deps installs it; else ask the database's administrator for "
    "pgmq 1.11 or newer.";

static bool check_pgmq(cb_db *db, cb_error *e)
{
    OWNED(PGresult) versions = NULL;
    int major = 0, minor = 0;

    if (!db_look(db, cb_sql_pgmq_version, NULL, &versions, e))
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
