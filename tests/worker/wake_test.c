/* Waking up: at once when somebody sends, by polling when that is all there is. */
#include "embed.h"

#include <pthread.h>

TestSuite(wake, .init = embed_open, .fini = embed_close);

/* Longer than any test waits: whatever happens sooner was not a poll. */
static const double never = 300;

#define sleepers                                                                            \
    "SELECT count(*) FROM commandbus.sleeper WHERE expires_at > statement_timestamp() AND " \
    "queue_name LIKE '%\\_\\_commands'"

/* DESIGN 2, Wake-up */
Test(wake, an_idle_worker_announces_itself_until_two_polls_from_now)
{
    cb_worker *w =
        embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.poll_interval_seconds = 60);

    await_value("1", sleepers);

    expect_value(bus.conn, cb_worker_id(w),
                 "SELECT worker FROM commandbus.sleeper WHERE queue_name = 'fx__commands'");
    expect_value(
        bus.conn, "fx__commands t",
        "SELECT queue_name || CASE WHEN expires_at BETWEEN now() + interval '90 s' AND "
        "now() + interval '122 s' THEN ' t' ELSE ' f' END FROM commandbus.sleeper WHERE queue_name = 'fx__commands'");
}

/* It looks by itself too, but ever more seldom: without notifications each of these takes twice as
 * long as everything before it. */
Test(wake, a_send_wakes_it_at_once)
{
    embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.poll_interval_seconds = never);
    await_value("1", sleepers);

    for (int i = 0; i < 20; i++) {
        cb_uuid id = test_send_one(bus.db, .domain = "fx");
        await_status("COMPLETED", id);
    }
}

/* A retry that is due at once and a command given back are as good as sent. */
static cb_outcome fail_first(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)command, (void)result;
    return cb_context_attempt(ctx) < 3 ? cb_transient(ctx, "AGAIN", "again") : CB_SUCCESS;
}

Test(wake, a_retry_without_a_backoff_wakes_it_too)
{
    embed_start(HANDLERS({ "Test", fail_first }), .domain.poll_interval_seconds = never);
    await_value("1", sleepers);

    cb_uuid id = test_send_one(bus.db, .domain = "fx");

    await_status("COMPLETED", id);
    expect_command("3", id, "attempts");
}

/* A sleeper row costs every sender a notification: a busy worker has none. */
Test(wake, a_busy_worker_takes_its_announcement_back_and_an_idle_one_gives_it_again)
{
    embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.poll_interval_seconds = never,
                .domain.concurrent_messages = 2);
    await_value("1", sleepers);
    gate_close();

    test_send(bus.db, 30, NULL);
    await(gate_waiting() == 2);
    await_value("0", sleepers);
    gate_open();

    await_value("30",
                "SELECT count(*) FROM commandbus.command_metadata WHERE status = 'COMPLETED'");
    await_value("1", sleepers);
}

/* What the freed place of a limited domain is for. */
Test(wake, a_place_that_another_worker_gave_back_wakes_it)
{
    const int limit = 1;
    gate_close();
    for (int i = 0; i < 2; i++)
        embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.poll_interval_seconds = never,
                    .domain.fleet_limit = &limit);
    await_value("2", sleepers);

    test_send(bus.db, 10, NULL);
    await(gate_waiting() == 1);
    gate_open();

    await_value("10",
                "SELECT count(*) FROM commandbus.command_metadata WHERE status = 'COMPLETED'");
    cr_expect_eq(gate_most(), 1);
}

/* WRK.1: use-notify = false */
Test(wake, polling_alone_finds_everything_and_announces_nobody)
{
    embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.no_notify = true);

    for (int i = 0; i < 5; i++) {
        cb_uuid id = test_send_one(bus.db, .domain = "fx");
        await_status("COMPLETED", id);
        expect_value(bus.conn, "0", sleepers);
    }
    cr_expect_eq(embed_told("listen.ready"), 0);
    expect_value(bus.conn, "0",
                 "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                 "AND query ILIKE 'LISTEN%'");
}

/* DESIGN 2: who cannot hear polls and does not announce. */
Test(wake, a_listener_that_cannot_connect_leaves_the_worker_polling)
{
    embed_start(HANDLERS({ "Test", wait_at_gate }),
                .worker.listen_url = "postgresql://127.0.0.1:1/none?user=nobody");
    await(embed_told("listen.failed") > 0);

    cb_uuid id = test_send_one(bus.db, .domain = "fx");
    await_status("COMPLETED", id);

    expect_value(bus.conn, "0", sleepers);
}

/* A domain that is quiet for longer than its announcement lasts renews it. */
Test(wake, the_announcement_is_renewed_before_it_expires)
{
    embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.poll_interval_seconds = 0.5);
    await_value("1", sleepers);
    char *first = test_value(
        bus.conn, "SELECT expires_at FROM commandbus.sleeper WHERE queue_name = 'fx__commands'",
        NULL);

    await_value(
        "t",
        "SELECT expires_at > $1::timestamptz FROM commandbus.sleeper WHERE queue_name = 'fx__commands'",
        first);
    free(first);
}

Test(wake, what_is_delayed_is_found_when_it_is_due)
{
    embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.poll_interval_seconds = 0.2);
    await_value("1", sleepers);

    cb_uuid id = test_send_one(bus.db, .delay_seconds = 1);
    await_status("COMPLETED", id);

    expect_value(bus.conn, "t",
                 "SELECT at >= created_at + interval '1 s' FROM commandbus.audit JOIN "
                 "commandbus.command_metadata USING (command_id) WHERE event_type = 'RECEIVED'");
}

#define newest \
    "SELECT worker FROM commandbus.sleeper WHERE queue_name = 'fx__commands' ORDER BY expires_at DESC LIMIT 1"

/* Longer than a doubt lasts, and shorter than anything else that would find it. */
static const double in_time = 8;

/* It was the last to announce itself, so senders call it, and it never comes. */
static void plant_dead_sleeper(void)
{
    test_exec(bus.conn, "INSERT INTO commandbus.sleeper SELECT queue_name, 'dead', expires_at + "
                        "interval '1 ms' FROM commandbus.sleeper WHERE queue_name = 'fx__commands' "
                        "ORDER BY expires_at DESC LIMIT 1");
}

/* DESIGN 2, Wake-up; section 8.7 */
Test(wake, what_somebody_dead_was_called_for_is_found_by_who_sleeps)
{
    cb_worker *w =
        embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.poll_interval_seconds = never);
    await_value("1", sleepers);
    plant_dead_sleeper();

    /* At first its own looks come soon enough; then it hears that somebody else was called, finds
     * that this one has not come, and is called from then on. */
    char *called = test_value(bus.conn, newest, NULL);
    while (strcmp(called, "dead") == 0) {
        double sent = test_clock();
        cb_uuid id = test_send_one(bus.db, .domain = "fx");
        await_status("COMPLETED", id);
        cr_assert_lt(test_clock() - sent, in_time * test_slowness());
        free(called);
        called = test_value(bus.conn, newest, NULL);
    }
    cr_expect_str_eq(called, cb_worker_id(w));
    free(called);
}

/* Each has room for one. */
Test(wake, who_is_full_calls_another)
{
    PGconn *listener = test_pq_open(bus.conninfo);
    cb_worker *workers[2];
    const cb_send two[] = { { .domain = "fx", .command_type = "Test" },
                            { .domain = "fx", .command_type = "Test" } };
    cb_error e = { 0 };
    test_exec(listener, "LISTEN commandbus_fx__commands");
    gate_close();
    for (int i = 0; i < 2; i++)
        workers[i] =
            embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.poll_interval_seconds = never,
                        .domain.concurrent_messages = 1);
    await_value("2", sleepers);
    char *last = test_value(bus.conn, newest, NULL);
    bool second = strcmp(last, cb_worker_id(workers[1])) == 0;

    cr_assert(cb_send_many(bus.db, two, 2, NULL, NULL, NULL, &e), "%s", e.message);

    char *called = wait_for_call(listener);
    cr_expect_str_eq(called, last);
    free(called);
    called = wait_for_call(listener);
    cr_expect_str_eq(called, cb_worker_id(workers[!second]));
    free(called);
    await(gate_waiting() == 2);
    await_value("0", sleepers); /* Who is full is not to be called. */
    gate_open();
    free(last);
    PQfinish(listener);
}

static void *stop_patiently(void *worker)
{
    (void)!cb_worker_stop(worker, 600);
    return NULL;
}

Test(wake, who_drains_is_called_once_and_passes_it_on)
{
    cb_worker *w =
        embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.poll_interval_seconds = never,
                    .domain.concurrent_messages = 5);
    pthread_t stopping;
    await_value("1", sleepers);
    gate_close();
    test_send_one(bus.db, .domain = "fx");
    await(gate_waiting() == 1);
    expect_value(bus.conn, "1", sleepers);

    cr_assert_eq(pthread_create(&stopping, NULL, stop_patiently, w), 0);
    await(!cb_worker_is_running(w));
    test_send_one(bus.db, .domain = "fx");

    await_value("0", sleepers);
    gate_open();
    pthread_join(stopping, NULL);
}

/* Its claims are refused: whoever sends is to call somebody else. */
Test(wake, who_may_not_claim_is_not_called)
{
    embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.poll_interval_seconds = never);
    await_value("1", sleepers);

    test_exec(bus.conn, "ALTER FUNCTION commandbus.receive RENAME TO receive_no_more");
    test_send_one(bus.db, .domain = "fx");
    await(embed_told("claim.refused") > 0);

    await_value("0", sleepers);
    test_exec(bus.conn, "ALTER FUNCTION commandbus.receive_no_more RENAME TO receive");
    await_value("1", "SELECT count(*) FROM commandbus.command_metadata WHERE status = 'COMPLETED'");
}
