/* Comparing the schema in the database with the one this binary knows. */
#include "schema.h"

#include <commandbus/migrate.h>
#include <stdlib.h>

#include "cb_sql.h"
#include "fail.h"
#include "look.h"

int cb_schema_version(void)
{
    return cb_migrations_count ? cb_migrations[cb_migrations_count - 1].version : 0;
}

static bool add_hint_if_denied(cb_error *e)
{
    if (e && e->code == CB_DENIED)
        fail_hint(e, "Make this user a member of commandbus_sender, commandbus_worker, "
                     "commandbus_operator or commandbus_monitor.");
    return false;
}

bool schema_read(cb_db *db, const char *component, schema_state *ret, cb_error *e)
{
    OWNED(PGresult) table = NULL;
    OWNED(PGresult) versions = NULL;
    params p = { 0 };

    *ret = (schema_state){ 0 };
    if (!db_look(db, cb_sql_schema_exists, NULL, &table, e))
        return add_hint_if_denied(e);
    if (PQgetisnull(table, 0, 0))
        return true;

    params_text(&p, component);
    if (!db_look(db, cb_sql_schema_version, &p, &versions, e))
        return add_hint_if_denied(e);
    ret->exists = true;
    ret->version = (int)strtol(PQgetvalue(versions, 0, 0), NULL, 10);
    ret->oldest_binary = (int)strtol(PQgetvalue(versions, 0, 1), NULL, 10);
    return true;
}

bool schema_check_binary(const schema_state *bus, cb_error *e)
{
    if (bus->oldest_binary <= cb_schema_version())
        return true;
    cb_fail(e, CB_SCHEMA_TOO_NEW,
            "the database has schema version %d, which needs binaries of version %d or newer; this "
            "one is of version %d",
            bus->version, bus->oldest_binary, cb_schema_version());
    return fail_hint(e, "Upgrade this binary.");
}

bool cb_db_check_schema(cb_db *db, cb_error *e)
{
    schema_state bus;

    if (!schema_read(db, "commandbus", &bus, e))
        return false;
    if (bus.version == 0) {
        cb_fail(e, CB_SCHEMA, "there is no commandbus schema in this database");
        return fail_hint(e, "Run: commandbus migrate");
    }
    if (!schema_check_binary(&bus, e))
        return false;
    if (bus.version < cb_schema_version()) {
        cb_fail(e, CB_SCHEMA, "the database has schema version %d, this binary needs %d",
                bus.version, cb_schema_version());
        return fail_hint(e, "Run: commandbus migrate");
    }
    return true;
}
