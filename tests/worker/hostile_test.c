/* Attempts to make it lose money, send it twice or get it stuck. */
#include "embed.h"

#include <pthread.h>
#include <stdatomic.h>

#include "engine.h"

TestSuite(hostile, .init = embed_open, .fini = embed_close);

/* Section 8.7: the longest timeout that send takes makes the longest lease that extend takes. */
Test(hostile, a_command_with_the_longest_timeout_keeps_nobody_from_its_lease)
{
    cb_uuid longest = test_send_one(bus.db, .timeout_seconds = 86400);
    embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.concurrent_messages = 1);

    await_status("COMPLETED", longest);
}

/* Section 8.7: renewals go out together, and a domain that somebody deletes must not take the
 * leases of the others with it. */
Test(hostile, a_domain_that_is_gone_does_not_cost_another_one_its_leases)
{
    const cb_handler handlers[] = { { "Test", wait_at_gate } };
    const cb_module *set = embed_set("other", handlers, 1);
    const cb_worker_domain_options other = { .domain = "doomed", .sets = &set, .n_sets = 1 };

    gate_close();
    embed_start(HANDLERS({ "Test", wait_at_gate }), .more = &other, .n_more = 1);
    cb_uuid id = test_send_one(bus.db, .timeout_seconds = 9, .max_attempts = 1);
    test_send_one(bus.db, .domain = "doomed", .timeout_seconds = 9);
    await(gate_waiting() == 2);
    test_exec(bus.conn, "DELETE FROM commandbus.reply_queue WHERE domain = 'doomed'; "
                        "DELETE FROM commandbus.domain WHERE domain = 'doomed'");
    await(embed_told("database.refused") > 0);
    test_exec(bus.conn, "CREATE TABLE before AS SELECT * FROM commandbus.command_metadata");

    await_value("t",
                "SELECT c.lease_until > b.lease_until FROM commandbus.command_metadata c JOIN "
                "before b USING (command_id) WHERE command_id = $1",
                id.text);
    gate_open();
    await_status("COMPLETED", id);
    cr_expect_eq(embed_told("lease.lost"), 0);
}

/* Every connection but the one that looks. */
static void cut_connections(void)
{
    cb_error e = { 0 };

    test_exec(bus.conn, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                        "WHERE datname = current_database() AND pid <> pg_backend_pid()");
    cr_assert(cb_db_reconnect(bus.db, &e), "%s", e.message);
}

/* Section 8.7: after a reconnect the worker asks for leases that it does not know of. Where that
 * cannot be answered, the others are claimed as before: these are more than one a second would get
 * done. */
Test(hostile, a_domain_whose_queue_is_gone_does_not_slow_down_another_one)
{
    const cb_handler handlers[] = { { "Test", wait_at_gate } };
    const cb_module *set = embed_set("other", handlers, 1);
    const cb_worker_domain_options other = { .domain = "doomed", .sets = &set, .n_sets = 1 };

    embed_start(HANDLERS({ "Test", wait_at_gate }), .more = &other, .n_more = 1,
                .domain.concurrent_messages = 1);
    free(test_value(bus.conn, "SELECT pgmq.drop_queue('doomed__commands')", NULL));
    cut_connections();
    await(embed_told("connection.lost") > 0);

    test_send(bus.db, 100, NULL);
    await_value("100", "SELECT count(*) FROM commandbus.command_metadata WHERE status = "
                       "'COMPLETED'");
}

/* Section 8.1: messages are put back for every domain that has a queue. */
Test(hostile, a_domain_whose_queue_is_gone_does_not_keep_another_one_from_its_messages)
{
    const cb_handler handlers[] = { { "Test", wait_at_gate } };
    const cb_module *set = embed_set("other", handlers, 1);
    const cb_worker_domain_options other = { .domain = "fx", .sets = &set, .n_sets = 1 };
    cb_worker *w = embed_worker(HANDLERS({ "Test", wait_at_gate }), .domain.domain = "doomed",
                                .more = &other, .n_more = 1);

    w->chore_seconds[CHORE_MESSAGES] = 0.5;
    embed_started(w);
    free(test_value(bus.conn, "SELECT pgmq.drop_queue('doomed__commands')", NULL));
    cb_uuid id = test_send_one(bus.db, .delay_seconds = 3600);
    test_exec(bus.conn, "DELETE FROM pgmq.q_fx__commands");

    await_status("COMPLETED", id);
}

static void take_settle_away(void)
{
    test_exec(bus.conn, "ALTER FUNCTION commandbus.settle RENAME TO settle_away");
}

static void bring_settle_back(void)
{
    test_exec(bus.conn, "ALTER FUNCTION commandbus.settle_away RENAME TO settle");
}

/* WRK.3, WRK.10: a right that was taken away for a moment, a migration half-way. The handler has
 * paid; with one attempt it must never pay again, also when a reconnect compares what is held. */
Test(hostile, an_outcome_that_the_database_refuses_is_kept_until_it_does_not)
{
    gate_close();
    cb_uuid id = test_send_one(bus.db, .max_attempts = 1);
    cb_worker *w = embed_start(HANDLERS({ "Test", wait_at_gate }));
    await(gate_waiting() == 1);

    take_settle_away();
    gate_open();
    await(embed_told("settle.refused") > 0);
    cr_expect_eq(cb_worker_in_flight(w, NULL), 1);
    cut_connections();
    await(embed_told("connection.restored") >= 3);
    bring_settle_back();

    await_status("COMPLETED", id);
    expect_command("1 1", id, "attempts, lease_no");
    cr_expect_eq(gate_entered(), 1);
}

static void make_ledger(void)
{
    test_exec(bus.conn, "CREATE TABLE ledger (command_id uuid PRIMARY KEY)");
}

static cb_outcome book_at_gate(cb_context *ctx, const cb_command *command, json_object **result)
{
    const char *values[] = { command->command_id.text };

    (void)result;
    gate_pass();
    cb_context_effect(ctx, "INSERT INTO ledger VALUES ($1)", 1, values);
    return CB_SUCCESS;
}

/* Section 8.3: a success without its effects would be worse than a timeout. */
Test(hostile, a_late_success_with_effects_never_goes_through_without_them)
{
    make_ledger();
    gate_close();
    cb_uuid id = test_send_one(bus.db, .max_attempts = 1, .timeout_seconds = 1);
    cb_worker *w = embed_start(HANDLERS({ "Test", book_at_gate }));
    await(gate_waiting() == 1);

    take_settle_away();
    await(embed_told("settle.refused") > 0);
    gate_open();
    await(gate_left() == 1);
    bring_settle_back();

    await(cb_worker_in_flight(w, NULL) == 0);
    expect_command("IN_TROUBLESHOOTING_QUEUE HANDLER_TIMEOUT", id, "status, error_code");
    expect_value(bus.conn, "0", "SELECT count(*) FROM ledger");
}

static atomic_bool was_lost, was_granted;

/* Looks at nothing but the answer to its wish for more time, once the lease is gone. */
static cb_outcome extend_for_ever(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)command, (void)result;
    gate_pass();
    while (!cb_context_lost(ctx))
        poll(NULL, 0, 5);
    atomic_store(&was_granted, cb_context_extend(ctx, 3600000));
    atomic_store(&was_lost, true);
    return CB_SUCCESS;
}

/* Section 8.2: who could extend without a lease would outlive the place that the fleet's limit
 * keeps for it. */
Test(hostile, no_time_is_granted_to_a_handler_whose_lease_is_gone)
{
    test_send_one(bus.db, .timeout_seconds = 4);
    embed_start(HANDLERS({ "Test", extend_for_ever }));
    await(gate_left() == 1);

    test_exec(bus.conn, "UPDATE commandbus.command_metadata SET lease_no = lease_no + 1");

    await(atomic_load(&was_lost));
    cr_expect(!atomic_load(&was_granted));
}

/* Section 8.2: a worker that was away for long comes back with a command that it has not begun. The
 * fleet's limit has given its place to others, though nobody has taken the command itself. */
Test(hostile, what_has_not_begun_when_its_place_is_over_does_not_begin)
{
    const int limit = 2;
    gate_close();
    cb_worker *w = embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.fleet_limit = &limit,
                               .domain.concurrent_messages = 1, .domain.prefetch = 1,
                               .domain.visibility_timeout_seconds = 1);
    test_send_one(bus.db, .timeout_seconds = 30);
    await(gate_waiting() == 1);
    cb_uuid next = test_send_one(bus.db, .timeout_seconds = 1);
    await(cb_worker_in_flight(w, NULL) == 2);

    PGconn *holder = test_pq_open(bus.conninfo);
    test_exec(holder, "BEGIN; SELECT FROM commandbus.command_metadata WHERE timeout_seconds = 1 "
                      "FOR UPDATE");
    await_value("t",
                "SELECT bool_and(held_until < now()) FROM commandbus.fleet_lease WHERE "
                "command_id = $1",
                next.text);
    test_exec(holder, "ROLLBACK");
    PQfinish(holder);
    await_value("t",
                "SELECT lease_until > now() FROM commandbus.command_metadata WHERE "
                "command_id = $1",
                next.text);
    gate_open();

    await_status("COMPLETED", next);
    expect_trail("SENT RECEIVED RELEASED RECEIVED COMPLETED", next);
}

/* Section 8.1: none loops, also when every command has a type of its own. */
Test(hostile, made_up_types_end_however_many_there_are)
{
    embed_start(HANDLERS({ "Test", wait_at_gate }), .worker.unknown_type_grace_seconds = 1);

    free(test_value(bus.conn,
                    "SELECT count(commandbus.send('fx', 'Made-up-' || n)) FROM "
                    "generate_series(1, 100) n",
                    NULL));

    await_value("100", "SELECT count(*) FROM commandbus.command_metadata WHERE error_code = "
                       "'HANDLER_NOT_FOUND'");
}

/* Weak points: a handler's success turned into a failure by the database. Somebody holds the
 * message. */
Test(hostile, a_success_with_effects_outlasts_a_lock_on_its_message)
{
    make_ledger();
    gate_close();
    cb_uuid id = test_send_one(bus.db, .domain = "fx");
    embed_start(HANDLERS({ "Test", book_at_gate }));
    await(gate_waiting() == 1);

    PGconn *holder = test_pq_open(bus.conninfo);
    test_exec(holder, "BEGIN; SELECT FROM pgmq.q_fx__commands FOR UPDATE");
    gate_open();
    double end = test_clock() + 8; /* when nobody tries any more */
    await(embed_told("database.again") >= 80 || test_clock() > end);
    test_exec(holder, "ROLLBACK");
    PQfinish(holder);

    await_status("COMPLETED", id);
    expect_command("1 1", id, "attempts, lease_no");
    expect_value(bus.conn, "1", "SELECT count(*) FROM ledger");
    cr_expect_eq(gate_entered(), 1);
}

/* Its command is locked nearly all the time while an effect waits for a lock of its own; its lease
 * must be renewed in the moments between. Four leases long. */
Test(hostile, a_success_whose_effects_wait_for_a_lock_keeps_its_lease)
{
    make_ledger();
    PGconn *holder = test_pq_open(bus.conninfo);
    test_exec(holder, "BEGIN; LOCK TABLE ledger IN EXCLUSIVE MODE");
    cb_uuid id = test_send_one(bus.db, .max_attempts = 1);
    embed_start(HANDLERS({ "Test", book_at_gate }), .domain.concurrent_messages = 1);
    await(embed_told("database.again") > 0);

    for (double end = test_clock() + 8; test_clock() < end; poll(NULL, 0, 20)) {
        OWNED(cb_claim) claim = test_claim(bus.db, "rival", 10, 1);
        cr_assert_eq(cb_claim_count(claim) + cb_claim_exhausted(claim), 0);
    }
    test_exec(holder, "COMMIT");
    PQfinish(holder);

    await_status("COMPLETED", id);
    expect_command("1 1", id, "attempts, lease_no");
}

/* A worker that vanished in the middle of its claim: asked, and never read the answer, which is
 * more than the network holds. Its transaction is open, and with it the lock of the limited
 * domain. */
static PGconn *claim_and_vanish(void)
{
    PGconn *vanished = test_pq_open(bus.conninfo);

    test_exec(bus.conn, "SELECT commandbus.set_fleet_limit('fx', 100)");
    test_exec(bus.conn, "SELECT commandbus.send('fx', 'Test', jsonb_build_object('filling', "
                        "repeat('x', 1000000))) FROM generate_series(1, 30)");
    cr_assert(PQsendQuery(vanished, "SELECT * FROM commandbus.receive('fx', 'vanished', 30, 1)"));
    cr_assert_eq(PQflush(vanished), 0);
    wait_until(bus.conn, "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = "
                         "'ClientWrite' AND datname = current_database()");
    return vanished;
}

/* Section 8.7: one silent worker never blocks the fleet. Here its machine is alive and does not
 * read, which Linux counts as silence just as well. */
Test(hostile, a_worker_that_vanishes_in_its_claim_does_not_keep_others_from_the_domain_for_long)
{
    PGconn *vanished = claim_and_vanish();

    embed_start(HANDLERS({ "Test", wait_at_gate }));
    await_value("30 1", "SELECT concat_ws(' ', count(*), max(lease_no)) FROM "
                        "commandbus.command_metadata WHERE status = 'COMPLETED'");
    PQfinish(vanished);
}

/* Section 8.7 */
Test(hostile, a_worker_that_vanishes_in_its_claim_does_not_keep_others_from_other_domains)
{
    const cb_handler handlers[] = { { "Test", wait_at_gate } };
    const cb_module *set = embed_set("other", handlers, 1);
    const cb_worker_domain_options other = { .domain = "risk", .sets = &set, .n_sets = 1 };
    PGconn *vanished = claim_and_vanish();

    embed_start(HANDLERS({ "Test", wait_at_gate }), .more = &other, .n_more = 1);
    for (int i = 0; i < 5; i++) {
        cb_uuid id = test_send_one(bus.db, .domain = "risk");
        await_status("COMPLETED", id);
    }
    PQfinish(vanished);
}

static void *free_it(void *worker)
{
    embed_free(worker);
    return NULL;
}

/* A program that ends waits for its handlers; what the last one came to must not be thrown away
 * then. */
Test(hostile, what_a_handler_came_to_while_the_worker_is_freed_is_settled)
{
    pthread_t freeing;
    gate_close();
    test_send(bus.db, 5, NULL);
    cb_worker *w = embed_start(HANDLERS({ "Test", wait_at_gate }));
    await(gate_waiting() == 5);
    cr_assert_eq(pthread_create(&freeing, NULL, free_it, w), 0);
    await(!cb_worker_is_running(w));

    gate_open();
    pthread_join(freeing, NULL);

    expect_value(bus.conn, "5",
                 "SELECT count(*) FROM commandbus.command_metadata WHERE status = 'COMPLETED'");
}

/* Nor may it be waited for when it cannot be written. */
Test(hostile, a_worker_can_be_freed_while_an_effect_waits_for_a_lock)
{
    make_ledger();
    PGconn *holder = test_pq_open(bus.conninfo);
    test_exec(holder, "BEGIN; LOCK TABLE ledger IN EXCLUSIVE MODE");
    test_send_one(bus.db, .domain = "fx");
    cb_worker *w = embed_start(HANDLERS({ "Test", book_at_gate }));
    await(embed_told("database.again") > 0);

    embed_free(w);

    PQfinish(holder);
    expect_value(bus.conn, "0", "SELECT count(*) FROM ledger");
}

static _Atomic(cb_worker *) stops;

static void stop_when_stuck(const cb_event *event, void *arg)
{
    (void)arg;
    if (strcmp(event->name, "handler.stuck") != 0)
        return;
    cb_worker_stop_now(atomic_load(&stops));
    atomic_store(&stops, NULL);
}

/* The event says that the instance must end, so who hears it stops the worker. */
Test(hostile, a_worker_can_be_stopped_by_whoever_hears_that_a_handler_is_stuck)
{
    gate_close();
    cb_worker *w =
        embed_worker(HANDLERS({ "Test", wait_at_gate }), .worker.kill_grace_seconds = 0.1,
                     .worker.on_event = stop_when_stuck);
    atomic_store(&stops, w);
    embed_started(w);

    test_send_one(bus.db, .timeout_seconds = 1);

    await(!atomic_load(&stops));
    cr_expect(!cb_worker_is_running(w));
}
