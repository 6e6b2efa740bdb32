/* Several statements, one transaction. */
#include "statements.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "database.h"

static char *conninfo;
static cb_db *db;

static void open_items(void)
{
    cb_error e = { 0 };

    conninfo = test_database_create();
    cr_assert(cb_db_open(conninfo, &db, &e), "%s", e.message);
    cr_assert(db_do_script(db,
                           "CREATE TABLE item (id integer PRIMARY KEY DEFERRABLE INITIALLY "
                           "DEFERRED, note text)",
                           &e));
}

static void close_items(void)
{
    cb_db_free(db);
    test_database_drop(conninfo);
}

TestSuite(pipeline, .init = open_items, .fini = close_items);

static void insert(pipeline_statement *s, int id)
{
    s->sql = "INSERT INTO item (id) VALUES ($1::integer) RETURNING id";
    params_int(&s->p, id);
}

static int items_in_table(void)
{
    OWNED(PGresult) result = NULL;
    cb_error e = { 0 };

    cr_assert(db_run(db, "SELECT count(*) FROM item", NULL, DB_TEXT, &result, &e), "%s", e.message);
    return atoi(PQgetvalue(result, 0, 0));
}

Test(pipeline, every_statement_has_its_result)
{
    pipeline_statement s[3] = { 0 };
    cb_error e = { 0 };

    insert(&s[0], 1);
    s[1].sql = "SELECT 'between'";
    insert(&s[2], 2);
    cr_assert(pipeline_run(db, DB_WRITES, s, 3, &e), "%s", e.message);

    cr_assert_str_eq(PQgetvalue(s[0].result, 0, 0), "1");
    cr_assert_str_eq(PQgetvalue(s[1].result, 0, 0), "between");
    cr_assert_str_eq(PQgetvalue(s[2].result, 0, 0), "2");
    cr_assert_eq(items_in_table(), 2);
    pipeline_done(s, 3);
}

/* DESIGN section 8: one transition, one transaction. */
Test(pipeline, an_error_undoes_all_of_it_and_leaves_the_connection_usable)
{
    pipeline_statement s[4] = { 0 };
    cb_error e = { 0 };

    insert(&s[0], 1);
    s[1].sql = "SELECT 1 / 0";
    s[2].sql = "SELECT nonsense";
    insert(&s[3], 2);
    cr_assert_not(pipeline_run(db, DB_WRITES, s, 4, &e));
    cr_expect(!s[0].refused && s[1].refused && !s[2].refused && !s[3].refused);

    cr_assert_str_eq(e.sqlstate, "22012", "the first error and not a later one");
    cr_assert_eq(e.code, CB_DATA);
    cr_assert_null(s[0].result);
    cr_assert_not(cb_db_is_lost(db));
    cr_assert_eq(items_in_table(), 0);
}

Test(pipeline, an_error_of_the_commit_itself_is_seen)
{
    pipeline_statement s[2] = { 0 };
    cb_error e = { 0 };

    insert(&s[0], 1);
    insert(&s[1], 1);
    cr_assert_not(pipeline_run(db, DB_WRITES, s, 2, &e));

    cr_assert_str_eq(e.sqlstate, "23505");
    cr_assert_eq(items_in_table(), 0);
}

Test(pipeline, inside_a_transaction_it_is_a_part_of_it)
{
    pipeline_statement s[2] = { 0 };
    cb_error e = { 0 };

    cr_assert(cb_db_begin(db, &e));
    insert(&s[0], 1);
    insert(&s[1], 2);
    cr_assert(pipeline_run(db, DB_WRITES, s, 2, &e), "%s", e.message);
    pipeline_done(s, 2);
    cr_assert_eq(items_in_table(), 2);
    cr_assert(cb_db_rollback(db, &e));

    cr_assert_eq(items_in_table(), 0);
}

Test(pipeline, a_flush_larger_than_every_buffer_goes_through_both_ways)
{
    enum {
        N = 40,
        SIZE = 1 << 20
    };
    pipeline_statement *s = calloc(N, sizeof *s);
    char *large = malloc(SIZE + 1);
    cb_error e = { 0 };

    memset(large, 'x', SIZE);
    large[SIZE] = '\0';
    for (int i = 0; i < N; i++) {
        s[i].sql = "SELECT $1::text";
        params_text(&s[i].p, large);
    }
    cr_assert(pipeline_run(db, DB_WRITES, s, N, &e), "%s", e.message);

    for (int i = 0; i < N; i++)
        cr_assert_eq(PQgetlength(s[i].result, 0, 0), SIZE);
    pipeline_done(s, N);
    free(large);
    free(s);
}

Test(pipeline, a_connection_that_dies_meanwhile_is_lost_and_can_be_reopened)
{
    pipeline_statement s[3] = { 0 };
    cb_error e = { 0 };

    insert(&s[0], 1);
    s[1].sql = "SELECT pg_terminate_backend(pg_backend_pid())";
    insert(&s[2], 2);
    cr_assert_not(pipeline_run(db, DB_WRITES, s, 3, &e));

    cr_assert_eq(e.code, CB_LOST, "%s", e.message);
    cr_assert(cb_db_is_lost(db));
    cr_assert(cb_db_reconnect(db, &e), "%s", e.message);
    cr_assert_eq(items_in_table(), 0);
}
