/* What a login plants in schema public is not called when an administrator looks at the bus. */
#include "claims.h"
#include "fixture.h"
#include "login.h"

#include <stdio.h>

TestSuite(hostile_path, .init = bus_open, .fini = bus_close);

/* Arguments of functions and operators that the queries use, exactly as they use them: an exact
 * match in public is preferred to a near one of the server's. */
static const struct {
    const char *name, *arguments, *returns;
} functions[] = {
    { "format", "text, text", "text" },
    { "format", "text, bigint", "text" },
    { "format", "text, bigint, text", "text" },
    { "format", "text, bigint, timestamptz", "text" },
    { "format", "text, name, text", "text" },
    { "format", "text, text, bigint, bigint, text", "text" },
    { "format", "text, bigint, bigint, text, bigint", "text" },
    { "floor", "numeric", "numeric" },
    { "upper", "text", "text" },
    { "split_part", "text, text, integer", "text" },
    { "string_to_array", "text, text", "text[]" },
    { "current_setting", "text", "text" },
    { "pg_backend_pid", "", "integer" },
    { "statement_timestamp", "", "timestamptz" },
    { "set_config", "text, text, boolean", "text" },
    { "pg_get_userbyid", "oid", "name" },
    { "pg_has_role", "oid, text", "boolean" },
};

static const struct {
    const char *name, *left, *right, *returns;
} operators[] = {
    { "||", "text", "integer", "text" },
    { "||", "text", "text", "text" },
    { "||", "text", "bigint", "text" },
    { "||", "bigint", "text", "text" },
    { "=", "text", "text", "boolean" },
    { "=", "name", "text", "boolean" },
    { "=", "name", "name", "boolean" },
    { "=", "uuid", "uuid", "boolean" },
    { "<>", "integer", "integer", "boolean" },
    { "*", "numeric", "integer", "numeric" },
    { ">", "bigint", "integer", "boolean" },
    { "~", "text", "text", "boolean" },
    { "-", "timestamptz", "interval", "timestamptz" },
};

static const size_t n_functions = sizeof functions / sizeof *functions;
static const size_t n_operators = sizeof operators / sizeof *operators;

static void plant_function(PGconn *conn, const char *name, const char *arguments,
                           const char *returns)
{
    char sql[512];

    snprintf(sql, sizeof sql,
             "CREATE FUNCTION public.%s(%s) RETURNS %s LANGUAGE plpgsql AS "
             "$$ BEGIN INSERT INTO public.caught VALUES ('%s(%s)'); RETURN NULL; END $$",
             name, arguments, returns, name, arguments);
    test_exec(conn, sql);
}

/* A login that may create in public; who calls what it left there is in public.caught. */
static login open_planter(void)
{
    login l = login_open("pg_read_all_stats");
    char sql[512], arguments[64], name[32];

    snprintf(sql, sizeof sql, "GRANT CREATE ON SCHEMA public TO %s", l.name);
    test_exec(bus.conn, sql);
    test_exec(l.conn, "CREATE TABLE public.caught (who text)");
    for (size_t i = 0; i < n_operators; i++) {
        snprintf(name, sizeof name, "planted_%zu", i);
        snprintf(arguments, sizeof arguments, "%s, %s", operators[i].left, operators[i].right);
        plant_function(l.conn, name, arguments, operators[i].returns);
        snprintf(sql, sizeof sql,
                 "CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = public.%s)",
                 operators[i].name, operators[i].left, operators[i].right, name);
        test_exec(l.conn, sql);
    }
    for (size_t i = 0; i < n_functions; i++)
        plant_function(l.conn, functions[i].name, functions[i].arguments, functions[i].returns);
    return l;
}

#define expect_nothing_caught()                                                      \
    expect_value(bus.conn, "no: ",                                                   \
                 "SELECT 'no: ' OPERATOR(pg_catalog.||) pg_catalog.concat_ws(', ', " \
                 "VARIADIC ARRAY(SELECT DISTINCT who FROM public.caught))")

typedef bool look(cb_db *db, cb_rows **ret, cb_error *e);

static const char unknown_id[] = "00000000-0000-4000-8000-000000000001";
static const cb_command_filter filter = {
    .domain = "fx", .command_type = "Test", .created_from = "2 hours", .created_to = "0 s"
};

static bool list_commands(cb_db *db, cb_rows **ret, cb_error *e)
{
    return cb_command_list(db, &filter, ret, e);
}

static bool show_command(cb_db *db, cb_rows **ret, cb_error *e)
{
    return cb_command_show(db, "fx", unknown_id, ret, e);
}

static bool show_trail(cb_db *db, cb_rows **ret, cb_error *e)
{
    return cb_command_trail(db, "fx", unknown_id, ret, e);
}

static bool list_tsq(cb_db *db, cb_rows **ret, cb_error *e)
{
    return cb_tsq_list(db, &filter, ret, e);
}

static bool count_tsq(cb_db *db, cb_rows **ret, cb_error *e)
{
    return cb_tsq_counts(db, &filter, ret, e);
}

static bool list_batches(cb_db *db, cb_rows **ret, cb_error *e)
{
    return cb_batch_list(db, "fx", "pending", 10, 0, ret, e);
}

static bool schema_is_fine(cb_db *db, cb_rows **ret, cb_error *e)
{
    (void)ret;
    return cb_db_check_schema(db, e);
}

static look *const looks[] = { cb_queue_list, cb_doctor, list_commands, show_command,  show_trail,
                               list_tsq,      count_tsq, list_batches,  schema_is_fine };

/* Something to look at, and the path that is looked from. Returns what waits for a decision. */
static cb_uuid prepare_path(PGconn *conn, const char *path)
{
    cb_error e = { 0 };
    const cb_send member = { .command_type = "Test" };
    char sql[128];

    cb_uuid stuck = test_send_one(bus.db, .reply_to = "payments__replies");
    expect_verdict(CB_SETTLED, test_run_one(bus.db, "w", CB_PERMANENT));
    test_send_one(bus.db, .command_id = unknown_id, .delay_seconds = 60);
    cr_assert(cb_batch_create(bus.db, &(cb_batch_options){ .domain = "fx" }, &member, 1, NULL, &e));
    test_exec(bus.conn, "DELETE FROM pgmq.q_fx__commands WHERE vt > now()");
    snprintf(sql, sizeof sql, "SET search_path = %s", path);
    test_exec(conn, sql);
    return stuck;
}

/* What an administrator does besides looking. */
static void decide_in_path(PGconn *conn, const cb_uuid *stuck)
{
    OWNED(cb_db) db = NULL;
    cb_error e = { 0 };
    const cb_tsq_action action = { "fx", stuck->text, "ann", "enough", NULL };

    cr_assert(cb_db_borrow(conn, &db, &e), "%s", e.message);
    cr_expect(cb_tsq_cancel(db, &action, &e), "%s", e.message);
    cr_expect(cb_migrate(db, NULL, &e), "%s", e.message);
}

static void expect_untouched(PGconn *conn, const char *path)
{
    OWNED(cb_db) db = NULL;
    cb_error e = { 0 };

    cr_assert(cb_db_borrow(conn, &db, &e), "%s", e.message);
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
        OWNED(cb_rows) rows = NULL;
        cr_expect(looks[i](db, &rows, &e), "look %zu: %s", i, e.message);
        expect_value(conn, path, "SHOW search_path");
    }
    expect_nothing_caught();
}

static void expect_blind_to_traps(const char *path)
{
    login l = open_planter();
    PGconn *admin = test_pq_open(bus.conninfo);
    cb_uuid stuck = prepare_path(admin, path);

    decide_in_path(admin, &stuck);
    expect_untouched(admin, path);
    test_exec(admin, "BEGIN");
    expect_untouched(admin, path);
    test_exec(admin, "SET LOCAL search_path = pg_temp, public");
    expect_untouched(admin, "pg_temp, public");
    test_exec(admin, "COMMIT");

    expect_value(admin, path, "SHOW search_path");
    PQfinish(admin);
    login_close(&l);
}

Test(hostile_path, traps_catch_whoever_walks_into_them) /* BUS.14 */
{
    login l = open_planter();

    test_exec(bus.conn, "SELECT format('%s', 'a'::text), 'a'::text || 1");
    expect_value(bus.conn, "2", "SELECT pg_catalog.count(*) FROM public.caught");
    login_close(&l);
}

Test(hostile_path, an_administrator_who_looks_calls_nothing_that_was_planted) /* BUS.14 */
{
    expect_blind_to_traps("\"$user\", public");
}

Test(hostile_path, nor_one_whose_path_puts_public_before_the_servers_own) /* BUS.14 */
{
    expect_blind_to_traps("public, pg_catalog");
}

TestSuite(hostile_schema, .init = bus_open_empty, .fini = bus_close);

Test(hostile_schema, of_somebody_else_is_refused_and_its_code_not_run) /* BUS.14 */
{
    login l = login_open("pg_read_all_stats");
    OWNED(cb_rows) rows = NULL;
    cb_error e = { 0 };
    char sql[256];
    snprintf(sql, sizeof sql, "CREATE SCHEMA commandbus AUTHORIZATION %s", l.name);
    test_exec(bus.conn, sql);
    snprintf(sql, sizeof sql, "GRANT CREATE ON SCHEMA public TO %s", l.name);
    test_exec(bus.conn, sql);
    test_exec(l.conn, "CREATE TABLE public.caught (who text)");
    plant_function(l.conn, "versions", "", "integer");
    test_exec(l.conn,
              "CREATE VIEW commandbus.schema_version AS SELECT 'commandbus'::text AS "
              "component, coalesce(public.versions(), 1000) AS version, 1 AS oldest_binary");

    cr_expect_not(cb_db_check_schema(bus.db, &e));
    cr_expect_eq(e.code, CB_SCHEMA, "%s", e.message);
    cr_expect_not(cb_migrate(bus.db, NULL, &e));
    cr_expect_eq(e.code, CB_DENIED, "%s", e.message);
    cr_expect(cb_doctor(bus.db, &rows, &e), "%s", e.message);

    expect_nothing_caught();
    expect_value(bus.conn, l.name, "SELECT nspowner::regrole FROM pg_namespace WHERE nspname = $1",
                 "commandbus");
    login_close(&l);
}
