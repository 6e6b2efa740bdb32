/* Gathering while work trickles. */
#include <criterion/criterion.h>
#include <pthread.h>

#include "clock.h"
#include "engine.h"
#include "wait.h"

static size_t no_bytes(const outcome *o)
{
    (void)o;
    return 0;
}

static outcomes queue;
static outcome some[3];

static void queue_open(void)
{
    outcomes_init(&queue, no_bytes);
}

static void queue_close(void)
{
    outcomes_done(&queue);
}

TestSuite(pace, .init = queue_open, .fini = queue_close);

static const int64_t long_ns = 600LL * 1000000000;

/* DESIGN 2, Pace: what is alone is not kept waiting. */
Test(pace, trickling_is_several_in_flight_and_nothing_left_behind)
{
    static lane l;

    cr_expect_not(lane_trickles(&l));
    atomic_store(&l.in_flight, 1);
    cr_expect_not(lane_trickles(&l));
    atomic_store(&l.in_flight, 2);
    cr_expect(lane_trickles(&l));
    l.claiming.sleep.hot = true;
    cr_expect_not(lane_trickles(&l));
}

static void *put_the_rest(void *arg)
{
    (void)arg;
    outcomes_put(&queue, &some[1]);
    outcomes_put(&queue, &some[2]);
    return NULL;
}

Test(pace, gathering_ends_when_all_that_is_expected_has_come)
{
    pthread_t other;
    outcome *got[3];
    outcomes_put(&queue, &some[0]);

    outcomes_gather(&queue, 1, long_ns); /* It is there. */
    cr_assert_eq(pthread_create(&other, NULL, put_the_rest, NULL), 0);
    outcomes_gather(&queue, 3, long_ns);

    cr_expect_eq(outcomes_take(&queue, got, 3, 0), 3);
    pthread_join(other, NULL);
}

Test(pace, gathering_ends_when_its_time_is_over_and_at_the_end)
{
    double from = test_clock();

    outcomes_gather(&queue, 1, 20000000);
    cr_expect_geq(test_clock() - from, 0.02);

    outcomes_end(&queue);
    outcomes_gather(&queue, 1, long_ns);
}
