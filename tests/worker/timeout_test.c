/* Handlers that take too long: settled at once, while the slot stays taken until they return. */
#include "embed.h"

#include <stdatomic.h>

TestSuite(timeout, .init = embed_open, .fini = embed_close);

static atomic_bool lost_at_end;
static atomic_long left_at_start, left_at_end;

static cb_outcome measure_at_gate(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)command, (void)result;
    atomic_store(&left_at_start, (long)cb_context_remaining_ms(ctx));
    gate_pass();
    atomic_store(&left_at_end, (long)cb_context_remaining_ms(ctx));
    atomic_store(&lost_at_end, cb_context_lost(ctx));
    return CB_SUCCESS;
}

/* Only the first run waits. */
static cb_outcome wait_once(cb_context *ctx, const cb_command *command, json_object **result)
{
    return command->lease_no == 1 ? measure_at_gate(ctx, command, result) : CB_SUCCESS;
}

/* WRK.8, WRK.3 */
Test(timeout, is_settled_at_once_and_the_slot_is_kept_until_the_handler_returns)
{
    gate_close();
    cb_uuid id = test_send_one(bus.db, .timeout_seconds = 1, .reply_to = "payments__replies");
    cb_worker *w = embed_start(HANDLERS({ "Test", measure_at_gate }, { "Quick", succeed }),
                               BACKOFF(1000), .domain.concurrent_messages = 1);
    await(gate_waiting() == 1);
    cb_uuid next = test_send_one(bus.db, .command_type = "Quick");

    await_status("PENDING", id);
    expect_command("1 TRANSIENT HANDLER_TIMEOUT the handler did not return within 1 s", id,
                   "attempts, error_type, error_code, error_message, lease_owner");
    expect_value(bus.conn, "t",
                 "SELECT vt > statement_timestamp() + interval '900 s' FROM pgmq.q_fx__commands "
                 "WHERE message ->> 'command_id' = $1",
                 id.text);
    await(embed_told("command.timeout") == 1);
    poll(NULL, 0, 300); /* three poll intervals in which the next one must not start */
    cr_expect_eq(gate_waiting(), 1);
    cr_expect_eq(cb_worker_in_flight(w, NULL), 1);
    expect_command("PENDING 0", next, "status, lease_no");

    gate_open();
    await_status("COMPLETED", next);
    await(embed_told("command.late") == 1);
    expect_command("PENDING 1 HANDLER_TIMEOUT", id, "status, lease_no, error_code");
    expect_trail("SENT RECEIVED FAILED RETRY_SCHEDULED STALE_OUTCOME", id);
    expect_messages("1 queued, 0 archived, 0 replied", id);
    cr_expect(atomic_load(&lost_at_end));
    cr_expect_eq(atomic_load(&left_at_end), 0);
}

/* WRK.8: exactly one answer, that of the run which holds the fence. */
Test(timeout, a_result_that_comes_after_the_next_run_is_refused)
{
    gate_close();
    cb_uuid id = test_send_one(bus.db, .timeout_seconds = 1, .reply_to = "payments__replies");
    embed_start(HANDLERS({ "Test", wait_once }), .domain.concurrent_messages = 2);

    await_status("COMPLETED", id);
    cr_expect_eq(gate_waiting(), 1);
    gate_open();
    await(embed_told("command.late") == 1);

    expect_command("COMPLETED 2 2", id, "status, attempts, lease_no");
    expect_trail("SENT RECEIVED FAILED RETRY_SCHEDULED RECEIVED COMPLETED STALE_OUTCOME", id);
    expect_messages("0 queued, 0 archived, 1 replied", id);
}

Test(timeout, of_the_last_attempt_goes_to_the_tsq)
{
    gate_close();
    cb_uuid id = test_send_one(bus.db, .timeout_seconds = 1, .max_attempts = 1,
                               .reply_to = "payments__replies");
    embed_start(HANDLERS({ "Test", measure_at_gate }));

    await_status("IN_TROUBLESHOOTING_QUEUE", id);
    expect_reply("FAILED TRANSIENT HANDLER_TIMEOUT false", id,
                 "'outcome', 'error_type', 'error_code', 'final'");
    gate_open();
    await(embed_told("command.late") == 1);

    expect_command("IN_TROUBLESHOOTING_QUEUE HANDLER_TIMEOUT", id, "status, error_code");
    expect_messages("0 queued, 1 archived, 1 replied", id);
}

/* WRK.1 */
Test(timeout, the_commands_own_decides_and_else_the_domains)
{
    gate_close();
    cb_uuid own = test_send_one(bus.db, .timeout_seconds = 1);
    cb_uuid long_one = test_send_one(bus.db, .timeout_seconds = 50);
    cb_uuid none = test_send_one(bus.db, .domain = "fx");
    embed_start(HANDLERS({ "Test", measure_at_gate }), BACKOFF(1000),
                .domain.handler_timeout_seconds = 2);

    await_value("2", "SELECT count(*) FROM commandbus.command_metadata WHERE error_code = "
                     "'HANDLER_TIMEOUT'");

    expect_command("1 the handler did not return within 1 s", own,
                   "timeout_seconds, error_message");
    expect_command("2 the handler did not return within 2 s", none,
                   "timeout_seconds, error_message");
    expect_command("IN_PROGRESS 50", long_one, "status, timeout_seconds");
    gate_open();
    await_status("COMPLETED", long_one);
    expect_command("1", long_one, "lease_no");
}

/* DESIGN 2, Leases: a handler starts only with lease left for all of its timeout. */
Test(timeout, that_is_longer_than_the_visibility_timeout_gets_a_lease_that_covers_it)
{
    gate_close();
    cb_uuid id = test_send_one(bus.db, .timeout_seconds = 50);
    embed_start(HANDLERS({ "Test", measure_at_gate }), .domain.visibility_timeout_seconds = 1);

    await(gate_waiting() == 1);

    expect_command("IN_PROGRESS 1 t", id,
                   "status, lease_no, lease_until > statement_timestamp() + interval '40 s'");
    expect_value(bus.conn, "t",
                 "SELECT vt > statement_timestamp() + interval '40 s' FROM pgmq.q_fx__commands");
    cr_expect_geq(atomic_load(&left_at_start), 40000);
    gate_open();
    await_status("COMPLETED", id);
}

static atomic_int refused, granted;
static atomic_long most_left;

/* Runs for several timeouts, asking for another one again and again. */
static cb_outcome take_long(cb_context *ctx, const cb_command *command, json_object **result)
{
    double end = test_clock() + 6;

    (void)command, (void)result;
    atomic_fetch_add(&refused, !cb_context_extend(ctx, 0));
    atomic_fetch_add(&refused, !cb_context_extend(ctx, -5));
    while (test_clock() < end) {
        atomic_fetch_add(&granted, cb_context_extend(ctx, 3600000));
        long left = (long)cb_context_remaining_ms(ctx);
        if (left > atomic_load(&most_left))
            atomic_store(&most_left, left);
        poll(NULL, 0, 20);
    }
    return cb_context_lost(ctx) ? cb_permanent(ctx, "LOST", "lost") : CB_SUCCESS;
}

Test(timeout, can_be_put_off_by_a_handler_that_goes_on_but_never_by_more_than_itself)
{
    cb_uuid id = test_send_one(bus.db, .timeout_seconds = 2);
    embed_start(HANDLERS({ "Test", take_long }));

    await_status("COMPLETED", id);

    expect_command("1 1", id, "attempts, lease_no");
    cr_expect_eq(atomic_load(&refused), 2);
    cr_expect_gt(atomic_load(&granted), 3);
    cr_expect(atomic_load(&most_left) > 0 && atomic_load(&most_left) <= 2000, "%ld",
              atomic_load(&most_left));
}

/* DESIGN 2, Slots: a thread cannot be killed, so the program has to end. */
Test(timeout, overrun_by_more_than_kill_grace_breaks_the_worker)
{
    char reason[64];
    gate_close();
    test_send_one(bus.db, .timeout_seconds = 1);
    cb_worker *w =
        embed_start(HANDLERS({ "Test", measure_at_gate }), .worker.kill_grace_seconds = 1);

    await(embed_told("command.timeout") == 1);
    cr_expect(!cb_worker_is_broken(w));
    await(cb_worker_is_broken(w));

    cr_expect(!cb_worker_is_ready(w, reason, sizeof reason));
    cr_expect_str_eq(reason, "a handler does not return");
    cr_expect_eq(embed_told("handler.stuck"), 1);
    cr_expect(!cb_worker_stop(w, 0.1));
}

/* One silent handler never blocks the fleet: the others go on beside those that hang. */
Test(timeout, of_some_leaves_the_other_slots_at_work)
{
    gate_close();
    for (int i = 0; i < 3; i++)
        test_send_one(bus.db, .timeout_seconds = 1);
    cb_worker *w = embed_start(HANDLERS({ "Test", measure_at_gate }, { "Quick", succeed }),
                               BACKOFF(1000), .domain.concurrent_messages = 4);
    await(embed_told("command.timeout") == 3);

    for (int i = 0; i < 20; i++) {
        cb_uuid id = test_send_one(bus.db, .command_type = "Quick");
        await_status("COMPLETED", id);
    }

    cr_expect_eq(cb_worker_in_flight(w, NULL), 3);
    cr_expect_eq(gate_waiting(), 3);
}
