/* Which release this is, and comparing the schema in the database with the one it knows. */
#include "schema.h"

#include <commandbus/migrate.h>
#include <commandbus/version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cb_sql.h"
#include "fail.h"
#include "text.h"

const char *cb_version_string(void)
{
    return COMMANDBUS_VERSION;
}

int cb_schema_version(void)
{
    return cb_schema_files[cb_schema_files_count - 1].version;
}

static bool add_hint_if_denied(cb_error *e)
{
    if (e && e->code == CB_DENIED)
        fail_hint(e, "Make this user a member of commandbus_sender, commandbus_worker, "
                     "commandbus_operator or commandbus_monitor.");
    return false;
}

schema_files schema_of_bus(void)
{
    return (schema_files){ "commandbus", cb_schema_files, cb_schema_files_count, true };
}

/* The columns of the query schema_version. */
enum {
    VERSION,
    OLDEST_BINARY,
    NAME,
    CHECKSUM,
};

static int number_at(const PGresult *rows, int row, int column)
{
    return (int)strtol(PQgetvalue(rows, row, column), NULL, 10);
}

void schema_state_done(schema_state *state)
{
    PQclear(state->applied);
    state->applied = NULL;
}

bool schema_read(cb_db *db, const char *component, schema_state *ret, cb_error *e)
{
    OWNED(PGresult) table = NULL;
    params p = { 0 };

    *ret = (schema_state){ 0 };
    if (!db_read_guarded(db, cb_sql_schema_exists, NULL, &table, e))
        return add_hint_if_denied(e);
    if (PQgetisnull(table, 0, 0))
        return true;

    params_text(&p, component);
    if (!db_read_guarded(db, cb_sql_schema_version, &p, &ret->applied, e))
        return add_hint_if_denied(e);
    for (int row = 0; row < PQntuples(ret->applied); row++) {
        int oldest = number_at(ret->applied, row, OLDEST_BINARY);
        ret->version = number_at(ret->applied, row, VERSION);
        ret->oldest_binary = oldest > ret->oldest_binary ? oldest : ret->oldest_binary;
    }
    return true;
}

/* The row of the file with that number, or -1. */
static int applied_row(const schema_state *state, int version)
{
    for (int row = 0; row < PQntuples(state->applied); row++) {
        if (number_at(state->applied, row, VERSION) == version)
            return row;
    }
    return -1;
}

size_t schema_next_difference(const schema_state *state, const schema_files *here, size_t from)
{
    for (size_t i = from; i < here->n; i++) {
        int row = applied_row(state, here->files[i].version);
        if (row >= 0 &&
            strcmp(PQgetvalue(state->applied, row, CHECKSUM), here->files[i].checksum) != 0)
            return i;
    }
    return here->n;
}

bool schema_fail_difference(const schema_state *state, const schema_files *here, size_t i,
                            cb_error *e)
{
    const cb_sql_file *file = &here->files[i];
    int row = applied_row(state, file->version);
    const char *name = PQgetvalue(state->applied, row, NAME);

    if (PQgetisnull(state->applied, row, CHECKSUM))
        cb_fail(e, CB_SCHEMA,
                "the database keeps no checksums of what was applied: it was made by an older "
                "build, whose %03d_%.80s.sql may be another one",
                file->version, name);
    else if (strcmp(name, file->name) != 0)
        cb_fail(e, CB_SCHEMA,
                "the database was made by another build: it has %03d_%.80s.sql where this one has "
                "%03d_%.80s.sql",
                file->version, name, file->version, file->name);
    else if (here->is_bus)
        cb_fail(e, CB_SCHEMA,
                "the database was made by another build: its %03d_%.80s.sql is not this one's "
                "(checksum %.12s there, %.12s here)",
                file->version, file->name, PQgetvalue(state->applied, row, CHECKSUM),
                file->checksum);
    else
        cb_fail(e, CB_SCHEMA,
                "%03d_%.80s.sql of handler set '%.60s' is not what was applied (checksum %.12s "
                "there, %.12s here)",
                file->version, file->name, here->component,
                PQgetvalue(state->applied, row, CHECKSUM), file->checksum);
    if (!here->is_bus)
        return fail_hint(e, "Use the SQL that this database was migrated with, and bring changes "
                            "as a new file with the next number.");
    return fail_hint(e, "Use the binaries that migrated this database, or migrate a new, empty one "
                        "with these and move the data there (bus/README.md, Migrations).");
}

bool schema_check_files(const schema_state *state, const schema_files *here, cb_error *e)
{
    size_t first = schema_next_difference(state, here, 0), more = 0;
    cb_error why = { 0 };

    if (first == here->n)
        return true;
    for (size_t i = first; (i = schema_next_difference(state, here, i + 1)) < here->n;)
        more++;
    schema_fail_difference(state, here, first, &why);
    if (more > 0)
        text_append(why.message, sizeof why.message, "; %zu more %s", more,
                    more == 1 ? "file differs" : "files differ");
    if (e)
        *e = why;
    return false;
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

/* Those of before 0.1.0 were 21 files, the last of which was 021_grants.sql. */
bool schema_is_former(const schema_state *bus)
{
    int last = PQntuples(bus->applied) - 1;

    return last == 20 && strcmp(PQgetvalue(bus->applied, last, NAME), "grants") == 0;
}

/* "major.minor.patch" as one number; -1 for anything else. */
static long release_number(const char *release)
{
    int major, minor, patch;

    if (sscanf(release, "%d.%d.%d", &major, &minor, &patch) != 3)
        return -1;
    return (major * 1000L + minor) * 1000L + patch;
}

bool schema_read_functions(cb_db *db, functions_state *ret, char release[32], cb_error *e)
{
    OWNED_SCHEMA_STATE(functions) = { 0 };

    release[0] = '\0';
    if (!schema_read(db, "commandbus.functions", &functions, e))
        return false;
    if (functions.version == 0) {
        *ret = FUNCTIONS_MISSING;
        return true;
    }
    snprintf(release, 32, "%.31s", PQgetvalue(functions.applied, 0, NAME));
    if (strcmp(PQgetvalue(functions.applied, 0, CHECKSUM), cb_functions_checksum) == 0) {
        *ret = FUNCTIONS_SAME;
        return true;
    }
    long there = release_number(release), here = release_number(cb_version_string());
    *ret = there < here ? FUNCTIONS_OLDER : there > here ? FUNCTIONS_NEWER : FUNCTIONS_DIFFER;
    return true;
}

bool functions_want_applying(functions_state state)
{
    return state == FUNCTIONS_MISSING || state == FUNCTIONS_OLDER || state == FUNCTIONS_DIFFER;
}

static bool check_functions(cb_db *db, cb_error *e)
{
    functions_state state;
    char release[32];

    if (!schema_read_functions(db, &state, release, e))
        return false;
    if (!functions_want_applying(state))
        return true;
    if (state == FUNCTIONS_MISSING)
        cb_fail(e, CB_SCHEMA, "the database lacks the functions of release %s",
                cb_version_string());
    else if (state == FUNCTIONS_OLDER)
        cb_fail(e, CB_SCHEMA, "the database has the functions of release %s, this binary needs %s",
                release, cb_version_string());
    else
        cb_fail(e, CB_SCHEMA,
                "the database has functions of release %s that were built from other sources",
                release);
    return fail_hint(e, "Run: commandbus migrate");
}

bool cb_db_check_schema(cb_db *db, cb_error *e)
{
    const schema_files here = schema_of_bus();
    OWNED_SCHEMA_STATE(bus) = { 0 };

    if (!schema_read(db, "commandbus", &bus, e))
        return false;
    if (bus.version == 0) {
        cb_fail(e, CB_SCHEMA, "there is no commandbus schema in this database");
        return fail_hint(e, "Run: commandbus migrate");
    }
    if (schema_is_former(&bus)) {
        cb_fail(e, CB_SCHEMA, "the database has the schema of before release 0.1.0");
        return fail_hint(e, "Run: commandbus migrate");
    }
    if (!schema_check_binary(&bus, e) || !schema_check_files(&bus, &here, e))
        return false;
    if (bus.version < cb_schema_version()) {
        cb_fail(e, CB_SCHEMA, "the database has schema version %d, this binary needs %d",
                bus.version, cb_schema_version());
        return fail_hint(e, "Run: commandbus migrate");
    }
    return check_functions(db, e);
}
