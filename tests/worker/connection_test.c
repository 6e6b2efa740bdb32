/* A connection that comes back: how long it waits before it tries. */
#include "clock.h"
#include "engine.h"

#include <criterion/criterion.h>
#include <stdlib.h>

/* A worker that has nothing but what a connection asks for, and ends: each pause is over at
 * once. */
static cb_worker *w;

static void open_worker(void)
{
    cb_error e = { 0 };

    w = calloc(1, sizeof *w);
    pthread_mutex_init(&w->pausing, NULL);
    waiting_init(&w->unpause);
    atomic_store(&w->ending, true);
    cr_assert(metrics_open(NULL, 0, &w->metrics, &e), "%s", e.message);
}

static void close_worker(void)
{
    metrics_free(w->metrics);
    pthread_cond_destroy(&w->unpause);
    pthread_mutex_destroy(&w->pausing);
    free(w);
}

TestSuite(connection, .init = open_worker, .fini = close_worker);

static void expect_waits(connection_name name, const double *seconds, size_t n)
{
    db_connection *c = &w->connections[name];

    connection_init(c, w, name);
    for (size_t i = 0; i < n; i++) {
        cr_expect_float_eq(c->wait_seconds, seconds[i], 1e-9, "wait %zu is %g s and not %g", i + 1,
                           c->wait_seconds, seconds[i]);
        cr_expect_not(connection_ready(c, NULL), "it believes that it is connected");
    }
    connection_worked(c);
    cr_expect_float_eq(c->wait_seconds, seconds[0], 1e-9, "after a success it is %g",
                       c->wait_seconds);
}

/* WRK.10 */
Test(connection, waits_twice_as_long_each_time_up_to_30_seconds)
{
    static const double seconds[] = { 1, 2, 4, 8, 16, 30, 30 };

    expect_waits(CONNECTION_CLAIM, seconds, CB_COUNT(seconds));
    expect_waits(CONNECTION_SETTLE, seconds, CB_COUNT(seconds));
}

/* WRK.10: leases run out meanwhile. */
Test(connection, of_renewal_never_waits_longer_than_2_seconds)
{
    static const double seconds[] = { 0.1, 0.2, 0.4, 0.8, 1.6, 2, 2 };

    expect_waits(CONNECTION_RENEW, seconds, CB_COUNT(seconds));
}

/* WRK.10 */
Test(connection, is_down_and_the_worker_unready_from_the_first_error)
{
    static const connection_name needed[] = { CONNECTION_CLAIM, CONNECTION_SETTLE,
                                              CONNECTION_RENEW };
    const cb_error lost = { .code = CB_LOST, .message = "gone" };
    char reason[64];

    atomic_store(&w->running, true);
    for (size_t i = 0; i < CB_COUNT(needed); i++) {
        for (size_t k = 0; k < CB_COUNT(needed); k++) {
            connection_init(&w->connections[needed[k]], w, needed[k]);
            atomic_store(&w->connections[needed[k]].up, true);
        }
        cr_expect(cb_worker_is_ready(w, reason, sizeof reason), "%s", reason);

        connection_failed(&w->connections[needed[i]], &lost, "test");

        cr_expect_not(cb_worker_is_ready(w, reason, sizeof reason));
        cr_expect_str_eq(reason, "no connection to the database");
    }
}
