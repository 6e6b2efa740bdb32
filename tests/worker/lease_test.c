/* Leases: kept while somebody works under them, and what happens when one is taken away. */
#include "embed.h"

#include <pthread.h>
#include <stdatomic.h>

TestSuite(lease, .init = embed_open, .fini = embed_close);

static atomic_bool let_go, saw_loss;

/* Works on until it is let go or loses its lease, asking for more time all along. */
static cb_outcome work_on(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)command, (void)result;
    gate_pass();
    while (!atomic_load(&let_go) && !cb_context_lost(ctx)) {
        (void)cb_context_extend(ctx, 1000000);
        poll(NULL, 0, 10);
    }
    if (cb_context_lost(ctx))
        atomic_store(&saw_loss, true);
    return CB_SUCCESS;
}

/* Another worker with free slots, which would take whatever is not kept, for so many seconds. */
static void rival_finds_nothing_for(double seconds)
{
    for (double end = test_clock() + seconds; test_clock() < end; poll(NULL, 0, 20)) {
        OWNED(cb_claim) claim = test_claim(bus.db, "rival", 10, 1);
        cr_assert_eq(cb_claim_count(claim), 0);
        cr_assert_eq(cb_claim_exhausted(claim), 0);
    }
}

/* DESIGN 2, Leases: four visibility timeouts long. The command's own timeout makes its lease a
 * little longer than one, so that a machine which stalls for a second does not fail the test. */
Test(lease, is_renewed_as_long_as_the_handler_runs)
{
    cb_uuid id = test_send_one(bus.db, .max_attempts = 1, .timeout_seconds = 2);
    embed_start(HANDLERS({ "Test", work_on }), .domain.visibility_timeout_seconds = 1);
    await(gate_left() == 1);

    rival_finds_nothing_for(4.1);
    expect_command("IN_PROGRESS 1", id, "status, lease_no");
    atomic_store(&let_go, true);

    await_status("COMPLETED", id);
    expect_command("1 1", id, "attempts, lease_no");
    cr_expect(!atomic_load(&saw_loss));
}

/* WRK.3: prefetched commands wait for a slot longer than their lease. */
Test(lease, is_renewed_while_a_command_waits_for_its_slot)
{
    gate_close();
    test_send(bus.db, 4, NULL);
    cb_worker *w = embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.concurrent_messages = 1,
                               .domain.prefetch = 3, .domain.visibility_timeout_seconds = 2,
                               .domain.handler_timeout_seconds = 1);
    await(gate_waiting() == 1 && cb_worker_in_flight(w, NULL) == 4);
    await(embed_told("command.timeout") == 1);

    test_exec(bus.conn, "UPDATE pgmq.q_fx__commands q SET vt = now() + interval '1 hour' FROM "
                        "commandbus.command_metadata c WHERE c.msg_id = q.msg_id AND status = "
                        "'PENDING'");
    rival_finds_nothing_for(2.8);
    gate_open();

    await_value("3 1 1", "SELECT concat_ws(' ', count(*), min(lease_no), max(attempts)) FROM "
                         "commandbus.command_metadata WHERE status = 'COMPLETED'");
}

static void *stop_for_long(void *worker)
{
    return cb_worker_stop(worker, patience_seconds) ? worker : NULL;
}

/* WRK.11 */
Test(lease, is_renewed_while_the_worker_drains)
{
    pthread_t stopping;
    void *stopped = NULL;
    cb_uuid id = test_send_one(bus.db, .max_attempts = 1, .timeout_seconds = 2);
    cb_worker *w =
        embed_start(HANDLERS({ "Test", work_on }), .domain.visibility_timeout_seconds = 1);
    await(gate_left() == 1);

    cr_assert_eq(pthread_create(&stopping, NULL, stop_for_long, w), 0);
    await(!cb_worker_is_running(w));
    rival_finds_nothing_for(3.2);
    atomic_store(&let_go, true);
    pthread_join(stopping, &stopped);

    cr_expect(stopped);
    expect_command("COMPLETED 1 1", id, "status, attempts, lease_no");
}

static void steal_lease(cb_uuid id)
{
    char *done = test_value(bus.conn,
                            "UPDATE commandbus.command_metadata SET lease_no = lease_no + 1, "
                            "lease_owner = 'thief', lease_until = now() + interval '1 hour' "
                            "WHERE command_id = $1 RETURNING 'done'",
                            id.text, NULL);

    cr_assert_str_eq(done, "done");
    free(done);
}

/* Section 8.3: who lost the fence changes nothing. */
Test(lease, that_is_taken_away_is_reported_to_the_handler_and_its_outcome_is_stale)
{
    cb_uuid id = test_send_one(bus.db, .reply_to = "payments__replies");
    cb_worker *w =
        embed_start(HANDLERS({ "Test", work_on }), .domain.visibility_timeout_seconds = 1);
    await(gate_left() == 1);

    steal_lease(id);
    await(atomic_load(&saw_loss));
    await(cb_worker_in_flight(w, NULL) == 0);

    expect_command("IN_PROGRESS thief 2", id, "status, lease_owner, lease_no");
    expect_trail("SENT RECEIVED STALE_OUTCOME", id);
    expect_messages("1 queued, 0 archived, 0 replied", id);
    expect_value(bus.conn, cb_worker_id(w),
                 "SELECT worker FROM commandbus.audit WHERE event_type = 'STALE_OUTCOME'");
    cr_expect_eq(embed_told("lease.lost"), 1);
    cr_expect_eq(embed_told("command.late"), 1);
}

/* Not entered: whoever has it now may be running it. */
Test(lease, that_is_lost_before_the_handler_began_keeps_it_from_beginning)
{
    gate_close();
    test_send_one(bus.db, .domain = "fx");
    cb_worker *w = embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.concurrent_messages = 1,
                               .domain.prefetch = 1, .domain.visibility_timeout_seconds = 2);
    await(gate_waiting() == 1);
    cb_uuid next = test_send_one(bus.db, .timeout_seconds = 2);
    await(cb_worker_in_flight(w, NULL) == 2);

    steal_lease(next);
    await(embed_told("lease.lost") == 1);
    gate_open();
    await(cb_worker_in_flight(w, NULL) == 0);

    cr_expect_eq(gate_entered(), 1);
    expect_command("IN_PROGRESS thief 2", next, "status, lease_owner, lease_no");
}

/* DESIGN 2, Leases: a worker that died is replaced after one lease. */
Test(lease, of_a_worker_that_died_ends_and_another_one_goes_on)
{
    test_send(bus.db, 5, NULL);
    cb_claim_free(test_claim(bus.db, "dead", 5, 1));

    embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.visibility_timeout_seconds = 1);

    await_value("5 2 2", "SELECT concat_ws(' ', count(*), min(lease_no), max(attempts)) FROM "
                         "commandbus.command_metadata WHERE status = 'COMPLETED'");
}

/* WRK.6: a command that has killed its workers max_attempts times. */
Test(lease, that_ended_without_an_outcome_max_attempts_times_is_exhausted)
{
    cb_uuid id = test_send_one(bus.db, .max_attempts = 2, .reply_to = "payments__replies");
    for (int i = 0; i < 2; i++)
        cb_claim_free(test_claim_awaited(bus.db, "dies", 1, 0.05));

    embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.visibility_timeout_seconds = 1);
    await_status("IN_TROUBLESHOOTING_QUEUE", id);

    expect_command("2 LEASE_EXHAUSTED", id, "attempts, error_code");
    expect_reply("FAILED LEASE_EXHAUSTED false", id, "'outcome', 'error_code', 'final'");
    await(embed_told("lease.exhausted") == 1);
    cr_expect_eq(gate_entered(), 0);
}

/* A lost claim answer looks like this: the database says that we hold it, and we do not. */
Test(lease, that_the_worker_does_not_know_of_is_given_back_after_a_reconnect)
{
    cb_uuid id = test_send_one(bus.db, .delay_seconds = 3600);
    cb_worker *w =
        embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.visibility_timeout_seconds = 600,
                    .domain.handler_timeout_seconds = 60);
    char *done = test_value(bus.conn,
                            "UPDATE commandbus.command_metadata SET status = 'IN_PROGRESS', "
                            "attempts = 1, lease_no = 1, lease_owner = $1, max_attempts = 1, "
                            "timeout_seconds = 60, lease_until = now() + interval '1 hour' "
                            "RETURNING 'done'",
                            cb_worker_id(w), NULL);
    free(done);
    test_exec(bus.conn, "UPDATE pgmq.q_fx__commands SET read_ct = 1");

    test_exec(bus.conn, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                        "WHERE datname = current_database() AND pid <> pg_backend_pid()");
    await_value("COMPLETED", "SELECT status FROM commandbus.command_metadata");

    expect_command("1 3", id, "attempts, lease_no");
    expect_trail("SENT RELEASED RECEIVED COMPLETED", id);
    await(embed_told("lease.released") > 0);
}
