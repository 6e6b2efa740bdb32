/* Sleeping on an empty domain, and waking up. */
#include "embed.h"

#include <stdatomic.h>

#include "engine.h"

#include "clock.h"
#include "sleep.h"

TestSuite(sleeping, .init = embed_open, .fini = embed_close);

static atomic_int runs;

static cb_outcome count_run(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)ctx, (void)command, (void)result;
    atomic_fetch_add(&runs, 1);
    return CB_SUCCESS;
}

#define asleep "SELECT count(*) FROM commandbus.sleeper WHERE queue_name = 'fx__commands'"

/* It has announced itself, has looked once more, as it does at once, and waits. */
static bool has_looked(cb_worker *w)
{
    pthread_mutex_lock(&w->claims[COMMANDS].mutex);
    bool waits =
        w->claims[COMMANDS].waiting && w->claims[COMMANDS].lanes[0]->claiming.sleep.announced > 0;
    pthread_mutex_unlock(&w->claims[COMMANDS].mutex);
    return waits;
}

/* The sender looked for sleepers before the worker was one, so it notifies nobody when it commits,
 * after the worker has looked. Neither a poll interval nor the housekeeping that wakes sleepers now
 * and then comes in time: the worker looks again by itself. */
Test(sleeping, finds_what_was_committed_by_a_sender_that_had_not_seen_the_sleeper)
{
    OWNED(cb_db) sender = test_bus_open(bus.conninfo);
    cb_error e = { 0 };
    cr_assert(cb_db_begin(sender, &e), "%s", e.message);
    test_send_one(sender, .domain = "fx");
    cb_worker *w =
        embed_start(HANDLERS({ "Test", count_run }), .domain.poll_interval_seconds = 3600);
    await_value("1", asleep);
    await(has_looked(w));

    cr_assert(cb_db_commit(sender, &e), "%s", e.message);

    double committed = test_clock();
    await(atomic_load(&runs) == 1);
    cr_expect_lt(test_clock() - committed, 8 * test_slowness());
}

/* STP.15: by sleeping until the next timer, whatever the poll interval. */
Test(sleeping_at_most, until_the_next_timer_and_never_longer_than_before)
{
    int64_t now = now_ns();
    sleeper s = { .poll_at = now + seconds_to_ns(3600) };

    sleep_at_most(&s, 2);
    cr_expect(s.poll_at >= now + seconds_to_ns(2) && s.poll_at < now + seconds_to_ns(100));

    s.poll_at = now + seconds_to_ns(1);
    sleep_at_most(&s, 50);
    cr_expect_eq(s.poll_at, now + seconds_to_ns(1));
}
