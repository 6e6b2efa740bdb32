/* The SQL of a handler set: numbered files of a folder, each applied once, all or none. */
#include "expect.h"
#include "fixture.h"
#include "parallel.h"

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

static char folder[64];

static void open_with_folder(void)
{
    bus_open();
    /* What migrate grants on the database does not come along when a database is copied. */
    test_exec(bus.conn, "DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO "
                        "commandbus_owner', current_database()); END $$");
    strcpy(folder, "/tmp/commandbus-set-XXXXXX");
    cr_assert(mkdtemp(folder));
}

static void close_with_folder(void)
{
    char path[512];
    DIR *dir = opendir(folder);

    for (struct dirent *entry; (entry = readdir(dir));) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        unlink(path);
    }
    closedir(dir);
    rmdir(folder);
    bus_close();
}

static void write_migration(const char *name, const char *sql)
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "w");
    cr_assert(out, "%s", path);
    fputs(sql, out);
    fclose(out);
}

TestSuite(handler_set, .init = open_with_folder, .fini = close_with_folder);

/* BUS.11 */
Test(handler_set, is_applied_in_the_order_of_its_numbers_and_only_once)
{
    cb_error e = { 0 };
    cb_migrate_report first, second;
    write_migration("010_rows.sql", "INSERT INTO ledger.entry VALUES (1);");
    write_migration("002_tables.sql", "CREATE TABLE ledger.entry (id integer);");
    write_migration("001_schema.sql", "CREATE SCHEMA ledger;");
    write_migration("README.md", "not SQL, not looked at");

    expect_ok(cb_migrate_set(bus.db, "ledger", folder, &first, &e), e);
    expect_ok(cb_migrate_set(bus.db, "ledger", folder, &second, &e), e);

    cr_assert_eq(first.applied, 3);
    cr_assert_eq(first.now, 10);
    cr_assert_eq(second.applied, 0);
    cr_assert_eq(second.found, 10);
    expect_number(bus.conn, 1, "SELECT count(*) FROM ledger.entry");
    expect_value(bus.conn, "1 2 10",
                 "SELECT string_agg(version::text, ' ' ORDER BY version) "
                 "FROM commandbus.schema_version WHERE component = 'ledger'");
}

/* BUS.11 */
Test(handler_set, gets_only_the_files_that_are_new)
{
    cb_error e = { 0 };
    cb_migrate_report report;
    write_migration("001_schema.sql", "CREATE SCHEMA ledger;");
    expect_ok(cb_migrate_set(bus.db, "ledger", folder, NULL, &e), e);

    write_migration("002_tables.sql", "CREATE TABLE ledger.entry (id integer);");
    expect_ok(cb_migrate_set(bus.db, "ledger", folder, &report, &e), e);

    cr_assert_eq(report.found, 1);
    cr_assert_eq(report.applied, 1);
    cr_assert_eq(report.now, 2);
}

/* A dump of a database has no rights in the database itself. */
Test(handler_set, may_come_to_a_database_that_was_restored)
{
    cb_error e = { 0 };
    cb_migrate_report report;
    write_migration("001_schema.sql", "CREATE SCHEMA ledger;");
    test_exec(bus.conn, "DO $$ BEGIN EXECUTE format('REVOKE ALL ON DATABASE %I FROM "
                        "commandbus_owner', current_database()); END $$");

    expect_ok(cb_migrate_set(bus.db, "ledger", folder, &report, &e), e);

    cr_assert_eq(report.applied, 1);
}

/* BUS.11 */
Test(handler_set, has_versions_of_its_own_beside_other_sets)
{
    cb_error e = { 0 };
    cb_migrate_report report;
    write_migration("001_nothing.sql", "SELECT 1;");
    expect_ok(cb_migrate_set(bus.db, "ledger", folder, NULL, &e), e);

    expect_ok(cb_migrate_set(bus.db, "reporting", folder, &report, &e), e);

    cr_assert_eq(report.found, 0);
    cr_assert_eq(report.applied, 1);
}

/* BUS.11, BUS.12 */
Test(handler_set, whose_file_was_changed_after_it_was_applied_is_refused_by_its_name)
{
    cb_error e = { 0 };
    write_migration("001_schema.sql", "CREATE SCHEMA ledger;");
    expect_ok(cb_migrate_set(bus.db, "ledger", folder, NULL, &e), e);

    write_migration("001_schema.sql", "CREATE SCHEMA ledger; -- ü");
    write_migration("002_tables.sql", "CREATE TABLE ledger.entry (id integer);");
    expect_error(CB_SCHEMA, cb_migrate_set(bus.db, "ledger", folder, NULL, &e), e);

    cr_expect(strstr(e.message, "001_schema.sql") && strstr(e.message, "ledger"), "%s", e.message);
    cr_expect(strstr(e.hint, "a new file"), "%s", e.hint);
    expect_value(bus.conn, "", "SELECT to_regclass('ledger.entry')::text");
}

/* BUS.11: what is kept is what sha256sum prints */
Test(handler_set, keeps_the_sha256_of_its_file)
{
    cb_error e = { 0 };
    write_migration("001_nothing.sql", "SELECT 1;");

    expect_ok(cb_migrate_set(bus.db, "ledger", folder, NULL, &e), e);

    expect_value(bus.conn, "17db4fd369edb9244b9f91d9aeed145c3d04ad8ba6e95d06247f07a63527d11a",
                 "SELECT checksum FROM commandbus.schema_version WHERE component = 'ledger'");
}

typedef struct {
    cb_db *db;
    bool fine;
    cb_error e;
    cb_migrate_report report;
} client;

static void migrate_one_set(size_t i, void *arg)
{
    client *c = (client *)arg + i;

    c->fine = cb_migrate_set(c->db, "ledger", folder, &c->report, &c->e);
}

/* BUS.11 */
Test(handler_set, from_eight_clients_at_once_is_applied_once)
{
    client clients[8] = { 0 };
    int applied = 0;
    write_migration("001_schema.sql", "CREATE SCHEMA ledger;");
    write_migration("002_tables.sql", "CREATE TABLE ledger.entry (id integer);");
    for (int i = 0; i < 8; i++)
        clients[i].db = test_bus_open(bus.conninfo);

    parallel_run(8, migrate_one_set, clients);

    for (int i = 0; i < 8; i++) {
        expect_ok(clients[i].fine, clients[i].e);
        applied += clients[i].report.applied;
        cb_db_free(clients[i].db);
    }
    cr_assert_eq(applied, 2);
}

/* BUS.11 */
Test(handler_set, with_broken_sql_leaves_nothing_of_its_earlier_files_either)
{
    cb_error e = { 0 };
    write_migration("001_schema.sql", "CREATE SCHEMA ledger;");
    write_migration("002_broken.sql", "CREATE TABEL ledger.entry (id integer);");
    char *before = bus_contents();

    cr_assert_not(cb_migrate_set(bus.db, "ledger", folder, NULL, &e));

    cr_assert_str_eq(e.sqlstate, "42601");
    cr_assert(strstr(e.message, "002_broken.sql"), "%s", e.message);
    expect_value(bus.conn, "", "SELECT to_regnamespace('ledger')::text");
    expect_unchanged(before, bus_contents());
}

/* BUS.11: it runs as the schema's owner, which is not a superuser */
Test(handler_set, cannot_do_what_the_owner_of_the_schema_may_not)
{
    cb_error e = { 0 };
    write_migration("001_greedy.sql", "CREATE ROLE test_greedy SUPERUSER;");
    char *before = bus_contents();

    expect_error(CB_DENIED, cb_migrate_set(bus.db, "ledger", folder, NULL, &e), e);

    expect_unchanged(before, bus_contents());
}

/* BUS.11 */
Test(handler_set, whose_files_are_not_numbered_is_refused)
{
    static const char *const names[] = {
        "tables.sql", "1_tables.sql",    "01_tables.sql",      "001tables.sql", "001_.sql",
        "-01_x.sql",  "001_Ta bles.sql", "0000001_tables.sql", "000_zero.sql",
    };
    cb_error e = { 0 };
    char path[512];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        write_migration(names[i], "CREATE SCHEMA ledger;");

        expect_error(CB_MISUSE, cb_migrate_set(bus.db, "ledger", folder, NULL, &e), e);

        cr_assert(strstr(e.message, names[i]), "%s", e.message);
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    expect_value(bus.conn, "", "SELECT to_regnamespace('ledger')::text");
}

/* BUS.11 */
Test(handler_set, with_the_same_number_twice_is_refused)
{
    cb_error e = { 0 };
    write_migration("001_schema.sql", "CREATE SCHEMA ledger;");
    write_migration("0001_other.sql", "CREATE SCHEMA ledger2;");

    expect_error(CB_MISUSE, cb_migrate_set(bus.db, "ledger", folder, NULL, &e), e);

    cr_assert(strstr(e.message, "number 1"), "%s", e.message);
    expect_value(bus.conn, "", "SELECT to_regnamespace('ledger')::text");
}

/* BUS.11 */
Test(handler_set, needs_a_folder_with_files_and_a_name_of_its_own)
{
    static const char *const names[] = { "commandbus", "", "Ledger", "1st", "a-b", "l'", NULL };
    cb_error e = { 0 };

    expect_error(CB_MISUSE, cb_migrate_set(bus.db, "ledger", folder, NULL, &e), e);
    expect_error(CB_MISUSE, cb_migrate_set(bus.db, "ledger", "/nowhere", NULL, &e), e);

    write_migration("001_schema.sql", "CREATE SCHEMA ledger;");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        expect_error(CB_INVALID_NAME, cb_migrate_set(bus.db, names[i], folder, NULL, &e), e);
    expect_value(bus.conn, "", "SELECT to_regnamespace('ledger')::text");
}

/* BUS.11 */
Test(handler_set, needs_the_bus_first)
{
    cb_error e = { 0 };
    write_migration("001_schema.sql", "CREATE SCHEMA ledger;");
    test_exec(bus.conn, "DROP SCHEMA commandbus CASCADE");

    expect_error(CB_SCHEMA, cb_migrate_set(bus.db, "ledger", folder, NULL, &e), e);

    cr_assert(strstr(e.hint, "commandbus migrate"), "%s", e.hint);
}
