/* Ending what runs on a connection from another thread. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <time.h>

#include "database.h"
#include "statements.h"

typedef struct {
    cb_db *looks; /* another connection, to see when there is something to cancel */
    const cb_canceler *canceler;
    char sql[128];
} other;

/* False: it never ran. */
static bool wait_until_it_runs(const other *o)
{
    for (int i = 0; i < 600; i++) {
        OWNED(PGresult) result = NULL;
        cb_error e = { 0 };
        if (!db_run(o->looks, o->sql, NULL, DB_TEXT, &result, &e))
            return false;
        if (PQntuples(result) == 1)
            return true;
        nanosleep(&(struct timespec){ 0, 50000000 }, NULL);
    }
    return false;
}

static void *cancel_other(void *arg)
{
    const other *o = arg;
    cb_error e = { 0 };

    return wait_until_it_runs(o) && cb_canceler_send(o->canceler, &e) ? arg : NULL;
}

Test(cancel, ends_a_statement_and_leaves_the_connection)
{
    OWNED(cb_db) db = NULL;
    OWNED(cb_db) looks = NULL;
    OWNED(cb_canceler) canceler = NULL;
    cb_error e = { 0 };
    pthread_t thread;
    void *sent = NULL;

    cr_assert(cb_db_open(test_server_url(), &db, &e) && cb_db_open(test_server_url(), &looks, &e) &&
                  cb_canceler_open(db, &canceler, &e),
              "%s", e.message);
    other o = { looks, canceler, "" };
    snprintf(o.sql, sizeof o.sql,
             "SELECT FROM pg_stat_activity WHERE pid = %d AND wait_event = 'PgSleep'",
             PQbackendPID(cb_db_conn(db)));
    cr_assert_eq(pthread_create(&thread, NULL, cancel_other, &o), 0);

    cr_expect_not(db_do(db, "SELECT pg_sleep(60)", NULL, &e));
    cr_expect_eq(e.code, CB_AGAIN, "%s", e.message);
    cr_expect_str_eq(e.sqlstate, "57014");
    pthread_join(thread, &sent);
    cr_expect(sent, "nothing was cancelled");
    cr_expect_not(cb_db_is_lost(db));
    cr_expect(db_do(db, "SELECT 1", NULL, &e), "%s", e.message);
}

Test(cancel, of_nothing_does_nothing)
{
    OWNED(cb_db) db = NULL;
    OWNED(cb_canceler) canceler = NULL;
    cb_error e = { 0 };

    cr_assert(cb_db_open(test_server_url(), &db, &e) && cb_canceler_open(db, &canceler, &e));
    cr_expect(cb_canceler_send(canceler, &e), "%s", e.message);
    cr_expect(db_do(db, "SELECT 1", NULL, &e), "%s", e.message);
    cr_expect(cb_db_reconnect(db, &e), "%s", e.message);
    cb_canceler_send(canceler, NULL); /* of a connection that is gone */
    cr_expect(db_do(db, "SELECT 1", NULL, &e), "%s", e.message);
}

Test(cancel, needs_a_connection)
{
    OWNED(cb_db) db = NULL;
    cb_canceler *canceler = NULL;
    cb_error e = { 0 };

    cr_assert(cb_db_open(test_server_url(), &db, &e));
    db->lost = true;
    cr_expect_not(cb_canceler_open(db, &canceler, &e));
    cr_expect_eq(e.code, CB_LOST);
    cr_expect_null(canceler);
    cb_canceler_free(NULL);
}
