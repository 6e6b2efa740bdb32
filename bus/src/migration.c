/* Applying what is missing: numbered files once, functions and views whenever they differ. Everything in
 * one transaction, one client at a time. */
#include "migration.h"

#include <commandbus/version.h>
#include <string.h>
#include <time.h>

#include "cb_sql.h"
#include "look.h"

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

    if (!become_owner(db, m, e) || !db_look_and_write(db, cb_sql_schema_adopt, NULL, &adopted, e))
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

bool migration_apply(cb_db *db, const schema_files *m, cb_migrate_report *ret, cb_error *e)
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
