/* Migrating: once whoever comes first, and refusing what this binary cannot work on. */
#include "expect.h"
#include "fixture.h"
#include "parallel.h"

#include <commandbus/version.h>

#include <stdio.h>

TestSuite(migrate, .init = bus_open_empty, .fini = bus_close);

enum {
    CLIENTS = 8
};

typedef struct {
    cb_db *db;
    bool fine;
    cb_error e;
    cb_migrate_report report;
} client;

static void migrate_one(size_t i, void *arg)
{
    client *c = (client *)arg + i;

    c->fine = cb_migrate(c->db, &c->report, &c->e);
}

/* BUS.1, BUS.11 */
Test(migrate, from_eight_clients_at_once_all_succeed_and_each_file_is_applied_once)
{
    client clients[CLIENTS] = { 0 };
    int applied = 0, found_nothing = 0, functions = 0;
    for (int i = 0; i < CLIENTS; i++)
        clients[i].db = test_bus_open(bus.conninfo);

    parallel_run(CLIENTS, migrate_one, clients);

    for (int i = 0; i < CLIENTS; i++) {
        expect_ok(clients[i].fine, clients[i].e);
        cr_assert_eq(clients[i].report.now, cb_schema_version());
        applied += clients[i].report.applied;
        found_nothing += clients[i].report.found == 0;
        functions += clients[i].report.functions;
        cb_db_free(clients[i].db);
    }
    cr_assert_eq(found_nothing, 1, "%d clients found no schema", found_nothing);
    expect_number(bus.conn, applied,
                  "SELECT count(*) FROM commandbus.schema_version WHERE component = 'commandbus'");
    expect_number(bus.conn, cb_schema_version(),
                  "SELECT max(version) FROM commandbus.schema_version");
    expect_number(bus.conn, 1,
                  "SELECT count(*) FROM commandbus.schema_version "
                  "WHERE component = 'commandbus.functions'");
    cr_assert_eq(functions, 1, "%d clients applied the functions", functions);
    expect_number(bus.conn, 1, "SELECT count(*) FROM pg_extension WHERE extname = 'pgmq'");
}

/* BUS.11 */
Test(migrate, a_second_time_applies_nothing_and_changes_nothing)
{
    cb_migrate_report first, second;
    cb_error e = { 0 };
    expect_ok(cb_migrate(bus.db, &first, &e), e);
    char *before = bus_contents();

    expect_ok(cb_migrate(bus.db, &second, &e), e);

    cr_assert_eq(first.found, 0);
    cr_assert_gt(first.applied, 0);
    cr_assert_eq(second.applied, 0);
    cr_assert(first.functions && !second.functions);
    cr_assert_eq(second.found, cb_schema_version());
    expect_unchanged(before, bus_contents());
}

/* BUS.11 */
Test(migrate, makes_a_bus_that_works)
{
    cb_error e = { 0 };
    expect_ok(cb_migrate(bus.db, NULL, &e), e);

    expect_ok(cb_domain_register(bus.db, "fx", NULL, &e), e);
    expect_ok(
        cb_send_command(bus.db, &(cb_send){ .domain = "fx", .command_type = "BookFx" }, NULL, &e),
        e);

    expect_number(bus.conn, 1, "SELECT count(*) FROM commandbus.receive('fx', 'w', 10)");
}

/* BUS.11 */
Test(migrate, inside_a_transaction_of_the_caller_is_refused)
{
    cb_error e = { 0 };
    expect_ok(cb_db_begin(bus.db, &e), e);

    expect_error(CB_MISUSE, cb_migrate(bus.db, NULL, &e), e);

    expect_ok(cb_db_rollback(bus.db, &e), e);
    expect_value(bus.conn, "", "SELECT to_regnamespace('commandbus')::text");
}

/* As the migration of another database of the server has left them. */
static void create_the_roles(void)
{
    static const char *const roles[] = { "owner", "sender", "worker", "operator", "monitor" };
    char sql[256];

    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        snprintf(sql, sizeof sql,
                 "DO $$ BEGIN CREATE ROLE commandbus_%s NOLOGIN; "
                 "EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$",
                 roles[i]);
        test_exec(bus.conn, sql);
    }
    test_exec(bus.conn,
              "DO $$ BEGIN "
              "IF NOT pg_has_role('commandbus_worker', 'commandbus_sender', 'MEMBER') THEN "
              "GRANT commandbus_sender TO commandbus_worker; END IF; "
              "IF NOT pg_has_role('commandbus_operator', 'commandbus_monitor', 'MEMBER') THEN "
              "GRANT commandbus_monitor TO commandbus_operator; END IF; END $$");
}

/* BUS.11 */
Test(migrate, a_login_without_rights_is_denied_and_leaves_nothing)
{
    char conninfo[1024], sql[256];
    cb_db *db;
    cb_error e = { 0 };
    char *name = test_value(bus.conn, "SELECT 'test_nobody_' || pg_backend_pid()", NULL);
    snprintf(sql, sizeof sql, "CREATE ROLE %s LOGIN PASSWORD 'nobody'", name);
    test_exec(bus.conn, sql);
    snprintf(conninfo, sizeof conninfo, "%s user='%s' password='nobody'", bus.conninfo, name);
    db = test_bus_open(conninfo);

    create_the_roles();

    expect_error(CB_DENIED, cb_migrate(db, NULL, &e), e);

    cr_assert(strstr(e.hint, "GRANT commandbus_owner TO test_nobody_"), "%s", e.hint);
    expect_value(bus.conn, "", "SELECT to_regnamespace('commandbus')::text");
    cb_db_free(db);
    snprintf(sql, sizeof sql, "DROP ROLE %s", name);
    test_exec(bus.conn, sql);
    free(name);
}

/* What the server offers is a view in each database: there it can be made to offer less. */
static void let_the_server_offer_pgmq(const char *version_or_null)
{
    char sql[1024];

    test_exec(bus.conn, "SET allow_system_table_mods = on");
    snprintf(sql, sizeof sql,
             "CREATE OR REPLACE VIEW pg_catalog.pg_available_extensions AS "
             "SELECT e.name, %s AS default_version, x.extversion AS installed_version, e.comment "
             "FROM pg_available_extensions() e LEFT JOIN pg_extension x ON e.name = x.extname "
             "WHERE e.name <> 'pgmq' OR %s",
             version_or_null ? "CASE e.name WHEN 'pgmq' THEN '1.10.9' ELSE e.default_version END"
                             : "e.default_version",
             version_or_null ? "true" : "false");
    test_exec(bus.conn, sql);
}

/* BUS.1 */
Test(migrate, a_server_without_pgmq_is_refused_with_advice_and_stays_as_it_is)
{
    cb_error e = { 0 };
    let_the_server_offer_pgmq(NULL);

    expect_error(CB_SCHEMA, cb_migrate(bus.db, NULL, &e), e);

    cr_assert(strstr(e.message, "pgmq"), "%s", e.message);
    cr_assert(strstr(e.hint, "deploy/local/deps"), "%s", e.hint);
    expect_value(bus.conn, "", "SELECT to_regnamespace('commandbus')::text");
}

/* BUS.1 */
Test(migrate, a_server_that_offers_only_an_old_pgmq_is_refused_with_both_versions)
{
    cb_error e = { 0 };
    let_the_server_offer_pgmq("1.10.9");

    expect_error(CB_SCHEMA, cb_migrate(bus.db, NULL, &e), e);

    cr_assert(strstr(e.message, "1.11") && strstr(e.message, "1.10.9"), "%s", e.message);
    cr_assert(*e.hint);
    expect_value(bus.conn, "", "SELECT to_regnamespace('commandbus')::text");
}

/* PGMQ without the extension, as on a server that does not offer it: its SQL, run by who
 * migrates. */
static const char pgmq_as_sql[] =
    "CREATE SCHEMA pgmq;"
    "DO $$ BEGIN EXECUTE pg_read_file("
    "    (SELECT setting FROM pg_config WHERE name = 'SHAREDIR') || '/extension/pgmq--' ||"
    "    (SELECT default_version FROM pg_available_extensions WHERE name = 'pgmq') || '.sql'); END $$";

/* BUS.1 */
Test(migrate, takes_pgmq_that_was_installed_as_sql)
{
    cb_error e = { 0 };
    test_exec(bus.conn, pgmq_as_sql);
    let_the_server_offer_pgmq(NULL);

    expect_ok(cb_migrate(bus.db, NULL, &e), e);

    expect_number(bus.conn, 0, "SELECT count(*) FROM pg_extension WHERE extname = 'pgmq'");
    test_exec(bus.conn, "SELECT commandbus.register_domain('fx')");
    test_exec(bus.conn, "SELECT commandbus.send('fx', 'BookFx', '{}')");
    expect_number(bus.conn, 1, "SELECT count(*) FROM commandbus.receive('fx', 'w', 10)");
}

/* BUS.1 */
Test(migrate, refuses_pgmq_as_sql_that_is_too_old)
{
    cb_error e = { 0 };
    test_exec(bus.conn, pgmq_as_sql);
    test_exec(bus.conn, "DROP TABLE pgmq.topic_bindings");

    expect_error(CB_SCHEMA, cb_migrate(bus.db, NULL, &e), e);

    cr_assert(strstr(e.message, "1.11"), "%s", e.message);
}

/* Our code would call what a stranger has put there, with the rights of the schema's owner. */
Test(migrate, refuses_a_schema_pgmq_of_somebody_else)
{
    char conninfo[1024], sql[512];
    cb_error e = { 0 };
    char *pid = test_value(bus.conn, "SELECT pg_backend_pid()", NULL);
    test_exec(bus.conn, pgmq_as_sql);
    create_the_roles();
    snprintf(sql, sizeof sql,
             "CREATE ROLE test_squatter_%s; ALTER SCHEMA pgmq OWNER TO test_squatter_%s;"
             "CREATE ROLE test_admin_%s LOGIN CREATEROLE PASSWORD 'admin' IN ROLE commandbus_owner;"
             "GRANT USAGE ON SCHEMA pgmq TO test_admin_%s",
             pid, pid, pid, pid);
    test_exec(bus.conn, sql);
    snprintf(
        sql, sizeof sql,
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I OWNER TO test_admin_%s', current_database()); END $$",
        pid);
    test_exec(bus.conn, sql);
    snprintf(conninfo, sizeof conninfo, "%s user='test_admin_%s' password='admin'", bus.conninfo,
             pid);
    cb_db *db = test_bus_open(conninfo);

    expect_error(CB_DENIED, cb_migrate(db, NULL, &e), e);

    cr_assert(strstr(e.message, "pgmq belongs to"), "%s", e.message);
    cb_db_free(db);
    snprintf(
        sql, sizeof sql,
        "REASSIGN OWNED BY test_squatter_%s, test_admin_%s TO CURRENT_USER;"
        "DROP OWNED BY test_squatter_%s, test_admin_%s; DROP ROLE test_squatter_%s, test_admin_%s",
        pid, pid, pid, pid, pid, pid);
    test_exec(bus.conn, sql);
    free(pid);
}

TestSuite(schema, .init = bus_open, .fini = bus_close);

/* BUS.1 */
Test(schema, with_an_old_pgmq_in_the_database_is_refused)
{
    cb_error e = { 0 };
    test_exec(bus.conn, "SET allow_system_table_mods = on;"
                        "UPDATE pg_extension SET extversion = '1.9.0' WHERE extname = 'pgmq'");
    char *before = bus_contents();

    expect_error(CB_SCHEMA, cb_migrate(bus.db, NULL, &e), e);

    cr_assert(strstr(e.message, "1.11") && strstr(e.message, "1.9.0"), "%s", e.message);
    cr_assert(strstr(e.hint, "ALTER EXTENSION"), "%s", e.hint);
    expect_unchanged(before, bus_contents());
}

/* BUS.11 */
Test(schema, whose_oldest_binary_is_newer_is_refused_and_left_alone)
{
    cb_error e = { 0 };
    test_exec(bus.conn, "INSERT INTO commandbus.schema_version (component, version, oldest_binary, "
                        "name, checksum) VALUES ('commandbus', 999, 998, 'from_the_future', 'x')");
    char *before = bus_contents();

    expect_error(CB_SCHEMA_TOO_NEW, cb_migrate(bus.db, NULL, &e), e);
    cr_assert(strstr(e.message, "998"), "%s", e.message);
    cr_assert(*e.hint);
    expect_error(CB_SCHEMA_TOO_NEW, cb_db_check_schema(bus.db, &e), e);

    expect_unchanged(before, bus_contents());
}

/* BUS.11: expand and contract */
Test(schema, that_is_newer_but_still_takes_this_binary_is_accepted)
{
    cb_error e = { 0 };
    cb_migrate_report report;
    test_exec(bus.conn, "INSERT INTO commandbus.schema_version (component, version, oldest_binary, "
                        "name, checksum) VALUES ('commandbus', 999, 1, 'an_addition', 'x')");
    char *before = bus_contents();

    expect_ok(cb_db_check_schema(bus.db, &e), e);
    expect_ok(cb_migrate(bus.db, &report, &e), e);

    cr_assert_eq(report.applied, 0);
    cr_assert_eq(report.now, 999);
    expect_unchanged(before, bus_contents());
}

/* BUS.11: a handler set's own numbers say nothing about the bus */
Test(schema, is_not_too_new_because_a_handler_set_has_a_higher_version)
{
    cb_error e = { 0 };
    test_exec(bus.conn, "INSERT INTO commandbus.schema_version (component, version, oldest_binary, "
                        "name, checksum) VALUES ('fx', 999, 999, 'of_a_set', 'x')");

    expect_ok(cb_db_check_schema(bus.db, &e), e);
    expect_ok(cb_migrate(bus.db, NULL, &e), e);
}

/* BUS.11 */
Test(schema, older_than_the_binary_asks_for_a_migrate)
{
    cb_error e = { 0 };
    test_exec(bus.conn, "DELETE FROM commandbus.schema_version WHERE version = "
                        "(SELECT max(version) FROM commandbus.schema_version)");

    expect_error(CB_SCHEMA, cb_db_check_schema(bus.db, &e), e);

    cr_assert(strstr(e.hint, "commandbus migrate"), "%s", e.hint);
}

/* ---- a database that was made of other files: BUS.12 ---- */

/* The file with that number, as its name is here. The caller frees it. */
static char *file_name(const char *version)
{
    return test_value(bus.conn,
                      "SELECT lpad(version::text, 3, '0') || '_' || name || '.sql' FROM "
                      "commandbus.schema_version WHERE component = 'commandbus' AND version = $1",
                      version, NULL);
}

/* Refused by everybody who asks, and nothing is changed by it. *e is the last refusal. */
static void expect_migration_refused(cb_error *e)
{
    char *before = bus_contents();

    expect_error(CB_SCHEMA, cb_migrate(bus.db, NULL, e), *e);
    expect_error(CB_SCHEMA, cb_db_check_schema(bus.db, e), *e);
    cr_assert(strstr(e->hint, "Use the binaries that migrated this database"), "%s", e->hint);
    expect_unchanged(before, bus_contents());
}

/* How many lines of doctor's report about the schema fail and name that file. */
static size_t doctor_names(const char *file)
{
    OWNED(cb_rows) rows = NULL;
    cb_error e = { 0 };
    size_t n = 0;

    expect_ok(cb_doctor(bus.db, &rows, &e), e);
    for (size_t i = 0; i < cb_rows_count(rows); i++)
        n += strcmp(cb_rows_get(rows, i, "check_name"), "schema") == 0 &&
             strcmp(cb_rows_get(rows, i, "status"), "fail") == 0 &&
             strstr(cb_rows_get(rows, i, "detail"), file) != NULL;
    return n;
}

/* BUS.11 */
Test(schema, that_was_made_of_another_file_is_refused_by_its_name)
{
    cb_error e = { 0 };
    char *file = file_name("2");
    test_exec(bus.conn, "UPDATE commandbus.schema_version SET checksum = repeat('0', 64) "
                        "WHERE component = 'commandbus' AND version = 2");

    expect_migration_refused(&e);

    cr_expect(strstr(e.message, file), "%s", e.message);
    cr_expect(strstr(e.message, "another build"), "%s", e.message);
    cr_expect_eq(doctor_names(file), 1);
    free(file);
}

/* BUS.11 */
Test(schema, that_was_made_of_several_other_files_names_the_first_and_doctor_all)
{
    cb_error e = { 0 };
    char *first = file_name("1"), *second = file_name("2");
    test_exec(bus.conn, "UPDATE commandbus.schema_version SET checksum = repeat('0', 64) "
                        "WHERE component = 'commandbus' AND version IN (1, 2)");

    expect_migration_refused(&e);

    cr_expect(strstr(e.message, first) && strstr(e.message, "1 more file differs"), "%s",
              e.message);
    cr_expect_eq(doctor_names(first), 1);
    cr_expect_eq(doctor_names(second), 1);
    free(second);
    free(first);
}

/* BUS.11 */
Test(schema, that_was_made_when_the_files_had_other_numbers_names_both)
{
    cb_error e = { 0 };
    char *file = file_name("2");
    test_exec(bus.conn, "UPDATE commandbus.schema_version SET checksum = repeat('0', 64), "
                        "name = 'claim' WHERE component = 'commandbus' AND version = 2");

    expect_migration_refused(&e);

    cr_expect(strstr(e.message, file) && strstr(e.message, "002_claim.sql"), "%s", e.message);
    free(file);
}

/* BUS.11: as the tree before made it */
Test(schema, of_a_build_that_kept_no_checksums_is_refused_and_says_so)
{
    cb_error e = { 0 };
    test_exec(bus.conn, "ALTER TABLE commandbus.schema_version DROP COLUMN checksum");

    expect_migration_refused(&e);

    cr_expect(strstr(e.message, "keeps no checksums"), "%s", e.message);
    cr_expect_geq(doctor_names("keeps no checksums"), 1);
}

/* BUS.11: a database that is behind gets no files on top of others than these */
Test(schema, that_is_older_and_made_of_other_files_gets_nothing_on_top)
{
    cb_error e = { 0 };
    test_exec(bus.conn, "DELETE FROM commandbus.schema_version WHERE version = "
                        "(SELECT max(version) FROM commandbus.schema_version);"
                        "UPDATE commandbus.schema_version SET checksum = 'x' WHERE version = 1");

    expect_migration_refused(&e);
}

/* BUS.11: what is kept is what sha256sum prints */
Test(schema, keeps_the_sha256_of_each_file)
{
    expect_value(
        bus.conn, "t",
        "SELECT bool_and(checksum ~ '^[0-9a-f]{64}$') AND count(DISTINCT checksum) = count(*)"
        " FROM commandbus.schema_version");
}

/* BUS.11 */
Test(migrate, is_what_a_database_without_the_schema_asks_for)
{
    cb_error e = { 0 };

    expect_error(CB_SCHEMA, cb_db_check_schema(bus.db, &e), e);

    cr_assert(strstr(e.hint, "commandbus migrate"), "%s", e.hint);
}

/* ---- functions and views: replaced as a whole whenever they differ ---- */

TestSuite(functions, .init = bus_open, .fini = bus_close);

/* The body of a function that everybody calls, so that a difference would show. */
static const char spoil_now[] =
    "CREATE OR REPLACE FUNCTION commandbus.now() RETURNS timestamptz LANGUAGE sql STABLE "
    "AS 'SELECT ''-infinity''::timestamptz'";

static void record_functions(const char *release, const char *checksum)
{
    free(test_value(bus.conn,
                    "UPDATE commandbus.schema_version SET name = $1, checksum = $2 "
                    "WHERE component = 'commandbus.functions' RETURNING 1",
                    release, checksum, NULL));
}

/* BUS.11 */
Test(functions, of_an_older_release_are_replaced_and_asked_for_until_then)
{
    cb_migrate_report report;
    cb_error e = { 0 };
    test_exec(bus.conn, spoil_now);
    record_functions("0.0.9", "x");

    expect_error(CB_SCHEMA, cb_db_check_schema(bus.db, &e), e);
    cr_expect(strstr(e.message, "0.0.9"), "%s", e.message);
    cr_expect(strstr(e.hint, "commandbus migrate"), "%s", e.hint);
    expect_ok(cb_migrate(bus.db, &report, &e), e);

    cr_expect(report.functions && report.applied == 0);
    expect_value(bus.conn, "t", "SELECT commandbus.now() > '2000-01-01'");
    expect_ok(cb_db_check_schema(bus.db, &e), e);
}

/* BUS.11: what another build of this release has left is replaced too */
Test(functions, of_another_build_of_this_release_are_replaced)
{
    cb_migrate_report report;
    cb_error e = { 0 };
    test_exec(bus.conn, spoil_now);
    record_functions(cb_version_string(), "x");

    expect_error(CB_SCHEMA, cb_db_check_schema(bus.db, &e), e);
    expect_ok(cb_migrate(bus.db, &report, &e), e);

    cr_expect(report.functions);
    expect_value(bus.conn, "t", "SELECT commandbus.now() > '2000-01-01'");
}

/* BUS.11: expand and contract. A migrate of the release before comes last and changes nothing. */
Test(functions, of_a_newer_release_are_kept_and_serve_this_binary)
{
    cb_migrate_report report;
    cb_error e = { 0 };
    record_functions("999.0.0", "x");
    char *before = bus_contents();

    expect_ok(cb_db_check_schema(bus.db, &e), e);
    expect_ok(cb_migrate(bus.db, &report, &e), e);

    cr_expect_not(report.functions);
    expect_unchanged(before, bus_contents());
}

/* BUS.11 */
Test(functions, of_each_queue_are_made_again_with_the_others)
{
    cb_error e = { 0 };
    test_exec(bus.conn, "CREATE OR REPLACE FUNCTION commandbus.\"fx__commands.put\"(messages "
                        "jsonb[], vts timestamptz[] DEFAULT NULL, headers jsonb[] DEFAULT NULL) "
                        "RETURNS bigint[] LANGUAGE sql AS 'SELECT NULL::bigint[]'");
    record_functions("0.0.9", "x");

    expect_ok(cb_migrate(bus.db, NULL, &e), e);

    free(test_value(bus.conn, "SELECT commandbus.send('fx', 'BookFx')", NULL));
    expect_number(bus.conn, 1, "SELECT count(*) FROM pgmq.q_fx__commands");
}

/* BUS.11 */
Test(functions, are_reported_by_a_look_that_changes_nothing)
{
    cb_migrate_status status;
    cb_error e = { 0 };
    expect_ok(cb_migrate_look(bus.db, &status, &e), e);
    cr_expect(status.found == cb_schema_version() && status.missing == 0);
    cr_expect_not(status.functions_differ);
    cr_expect_str_eq(status.functions, cb_version_string());

    record_functions("0.0.9", "x");
    char *before = bus_contents();
    expect_ok(cb_migrate_look(bus.db, &status, &e), e);

    cr_expect(status.functions_differ && status.functions_wanted);
    cr_expect_str_eq(status.functions, "0.0.9");
    expect_unchanged(before, bus_contents());
}
