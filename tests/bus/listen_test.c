/* Hearing that something was sent. */
#include "claims.h"
#include "parallel.h"
#include "proxy.h"

TestSuite(listener, .init = bus_open, .fini = bus_close);

static const char *const queues[] = { "fx__commands", "risk__commands", "payments__replies" };
enum {
    QUEUES = 3,
    LONG_MS = 10000, /* a wait that only a fault uses up */
};

typedef struct {
    cb_listener *listener;
    cb_call calls[QUEUES];
    bool any;
    cb_error e;
} listening;

static void listen_open(listening *r)
{
    *r = (listening){ 0 };
    cr_assert(cb_listener_open(bus.conninfo, "w", queues, QUEUES, &r->listener, &r->e), "%s",
              r->e.message);
}

static void listen_close(listening *r)
{
    cb_listener_free(r->listener);
}

static void wait_for(listening *r, int timeout_ms)
{
    for (size_t i = 0; i < QUEUES; i++)
        r->calls[i] = CB_CALLED;
    cr_assert(cb_listener_wait(r->listener, timeout_ms, r->calls, &r->any, &r->e), "%s",
              r->e.message);
}

static void expect_calls(const listening *r, cb_call fx, cb_call risk, cb_call replies)
{
    cr_expect(r->calls[0] == fx && r->calls[1] == risk && r->calls[2] == replies,
              "called: %d %d %d", r->calls[0], r->calls[1], r->calls[2]);
    cr_expect_eq(r->any, fx || risk || replies);
}

#define expect_woken(r, fx, risk, replies)                                                \
    expect_calls(r, (fx) ? CB_CALLED : CB_NOT_CALLED, (risk) ? CB_CALLED : CB_NOT_CALLED, \
                 (replies) ? CB_CALLED : CB_NOT_CALLED)

static void announce(listening *r, double seconds)
{
    cr_assert(cb_sleep_announce(bus.db, "w", queues, QUEUES, seconds, &r->e), "%s", r->e.message);
}

Test(listener, hears_a_send_to_a_queue_that_somebody_sleeps_on) /* DESIGN 2: wake-up */
{
    listening r;
    listen_open(&r);
    announce(&r, 60);

    test_send_one(bus.db, .domain = "risk");
    wait_for(&r, LONG_MS);

    expect_woken(&r, false, true, false);
    wait_for(&r, 0);
    expect_woken(&r, false, false, false);
    listen_close(&r);
}

Test(listener, tells_a_call_of_its_own_name_from_one_of_another) /* DESIGN 2: wake-up */
{
    cb_send many[11] = { 0 };
    listening r;
    listen_open(&r);
    announce(&r, 60);
    cr_assert(cb_sleep_announce(bus.db, "z", queues, 1, 61, &r.e), "%s", r.e.message);

    test_send_one(bus.db, .domain = "fx");
    wait_for(&r, LONG_MS);
    expect_calls(&r, CB_CALLED_ANOTHER, CB_NOT_CALLED, CB_NOT_CALLED);

    cr_assert(cb_sleep_pass_on(bus.db, "z", queues, 1, &r.e), "%s", r.e.message);
    wait_for(&r, LONG_MS);
    expect_calls(&r, CB_CALLED, CB_NOT_CALLED, CB_NOT_CALLED);

    /* Many are for everybody, whoever sleeps. */
    cr_assert(cb_sleep_announce(bus.db, "z", queues, 1, 61, &r.e), "%s", r.e.message);
    for (size_t i = 0; i < CB_COUNT(many); i++)
        many[i] = (cb_send){ .domain = "fx", .command_type = "Test" };
    cr_assert(cb_send_many(bus.db, many, CB_COUNT(many), NULL, NULL, NULL, &r.e), "%s",
              r.e.message);
    wait_for(&r, LONG_MS);
    expect_calls(&r, CB_CALLED, CB_NOT_CALLED, CB_NOT_CALLED);
    listen_close(&r);
}

Test(listener, is_not_told_of_a_send_when_nobody_sleeps) /* DESIGN 2: wake-up */
{
    listening r;
    bool heard = false;
    listen_open(&r);

    test_send_one(bus.db, .domain = "fx");

    /* The probe is notified after the send: had there been anything, it would have come before. */
    cr_assert(cb_listener_prove(r.listener, LONG_MS, &heard, &r.e), "%s", r.e.message);
    cr_expect(heard);
    wait_for(&r, 0);
    expect_woken(&r, false, false, false);
    listen_close(&r);
}

Test(listener, hears_a_reply) /* DESIGN 2: wake-up */
{
    listening r;
    listen_open(&r);
    announce(&r, 60);
    test_send_one(bus.db, .domain = "fx", .reply_to = "payments__replies");
    wait_for(&r, LONG_MS);
    expect_woken(&r, true, false, false);

    test_run_one(bus.db, "w", CB_SUCCESS);
    wait_for(&r, LONG_MS);

    expect_woken(&r, false, false, true);
    listen_close(&r);
}

Test(listener, proves_that_it_hears_as_often_as_it_is_asked) /* DESIGN 2: wake-up */
{
    listening r;
    listen_open(&r);

    for (int i = 0; i < 20; i++) {
        bool heard = false;
        cr_assert(cb_listener_prove(r.listener, LONG_MS, &heard, &r.e), "%s", r.e.message);
        cr_expect(heard);
    }

    wait_for(&r, 0);
    expect_woken(&r, false, false, false);
    listen_close(&r);
}

Test(listener, says_so_when_it_does_not_hear) /* DESIGN 2: wake-up */
{
    listening r;
    bool heard = true;
    listen_open(&r);
    /* Like a pooler in transaction mode: every statement succeeds and no notification arrives. */
    test_exec(bus.conn, "SET allow_system_table_mods = on;"
                        "ALTER FUNCTION pg_catalog.pg_notify RENAME TO pg_notify_really;"
                        "CREATE FUNCTION pg_catalog.pg_notify(text, text) RETURNS void "
                        "LANGUAGE sql AS 'SELECT'");

    cr_assert(cb_listener_prove(r.listener, 50, &heard, &r.e), "%s", r.e.message);

    cr_expect_not(heard);
    wait_for(&r, 0);
    expect_woken(&r, false, false, false);
    listen_close(&r);
}

Test(listener, keeps_what_it_hears_while_it_proves_itself) /* DESIGN 2: wake-up */
{
    listening r;
    bool heard = false;
    listen_open(&r);
    announce(&r, 60);

    test_send_one(bus.db, .domain = "fx");
    cr_assert(cb_listener_prove(r.listener, LONG_MS, &heard, &r.e), "%s", r.e.message);
    wait_for(&r, 0);

    cr_expect(heard);
    expect_woken(&r, true, false, false);
    listen_close(&r);
}

Test(listener, gives_up_when_the_time_is_over)
{
    listening r;
    listen_open(&r);
    double before = test_clock();

    wait_for(&r, 50);

    expect_woken(&r, false, false, false);
    cr_expect_geq(test_clock() - before, 0.05);
    listen_close(&r);
}

static void wait_or_wake(size_t i, void *arg)
{
    listening *r = arg;

    if (i == 0)
        r->any = !cb_listener_wait(r->listener, -1, r->calls, &r->any, &r->e) || r->any;
    else
        cb_listener_wake(r->listener);
}

Test(listener, is_woken_by_another_thread) /* WRK.11 */
{
    listening r;
    listen_open(&r);

    for (int i = 0; i < 50; i++) {
        parallel_run(2, wait_or_wake, &r);
        cr_expect_not(r.any, "%s", r.e.message);
    }

    cb_listener_wake(r.listener); /* also when it comes before the wait, */
    cb_listener_wake(r.listener); /* and for once however often */
    wait_for(&r, -1);
    double before = test_clock();
    wait_for(&r, 20);
    cr_expect_geq(test_clock() - before, 0.02);
    listen_close(&r);
}

Test(listener, reports_that_its_connection_is_lost) /* WRK.10 */
{
    listening r;
    bool heard = true;
    listen_open(&r);
    test_exec(bus.conn, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                        "WHERE query LIKE 'LISTEN%' AND datname = current_database()");

    cr_expect_not(cb_listener_wait(r.listener, LONG_MS, r.calls, &r.any, &r.e));

    cr_expect_eq(r.e.code, CB_LOST, "%s", r.e.message);
    cr_expect_not(cb_listener_wait(r.listener, LONG_MS, r.calls, &r.any, &r.e));
    cr_expect_eq(r.e.code, CB_LOST);
    cr_expect_not(cb_listener_prove(r.listener, LONG_MS, &heard, &r.e));
    cr_expect_eq(r.e.code, CB_LOST);
    cr_expect_not(heard);
    listen_close(&r);
}

Test(listener, reports_that_its_connection_was_lost_while_it_proved_itself) /* WRK.10 */
{
    test_proxy *proxy = test_proxy_start(bus.conninfo);
    OWNED(cb_listener) l = NULL;
    cb_error e = { 0 };
    bool heard = true;
    cr_assert(cb_listener_open(test_proxy_conninfo(proxy), "w", queues, QUEUES, &l, &e), "%s",
              e.message);

    test_proxy_cut(proxy, PROXY_CUT_ANSWER);
    cr_expect_not(cb_listener_prove(l, LONG_MS, &heard, &e));

    cr_expect_eq(e.code, CB_LOST, "%s", e.message);
    cr_expect_not(heard);
    cb_listener_free(cb_listener_take(&l));
    test_proxy_stop(proxy);
}

Test(listener, refuses_what_is_not_a_queue)
{
    const char *const bad[] = { "",
                                "Fx",
                                "a;DROP TABLE t",
                                "fx\"",
                                "9fx",
                                "a-b",
                                NULL,
                                "a_name_that_has_one_character_more_than_pgmq_has" };
    cb_listener *l = NULL;

    for (size_t i = 0; i < CB_COUNT(bad); i++) {
        cb_error e = { 0 };
        cr_expect_not(cb_listener_open(bus.conninfo, "w", &bad[i], 1, &l, &e));
        cr_expect_eq(e.code, CB_INVALID_NAME, "%s", e.message);
    }

    cr_expect_null(l);
}

Test(listener, fails_to_open_as_a_connection_does)
{
    cb_listener *l = NULL;
    cb_error e = { 0 };

    cr_expect_not(cb_listener_open("host=127.0.0.1 port=1", "w", queues, QUEUES, &l, &e));
    cr_expect_eq(e.code, CB_LOST);
    cr_expect_not(cb_listener_open(NULL, "w", queues, QUEUES, &l, &e));
    cr_expect_eq(e.code, CB_MISUSE);
    cr_expect_null(l);
    cb_listener_free(NULL);
}
