/* Effects: what a handler has written together with its success, or not at all. */
#include "embed.h"
#include "engine.h"

TestSuite(effects, .init = embed_open, .fini = embed_close);

static void make_noted_ledger(void)
{
    test_exec(bus.conn, "CREATE TABLE ledger (command_id uuid PRIMARY KEY, note text NOT NULL "
                        "CHECK (note <> 'forbidden'))");
}

static bool enter(cb_context *ctx, const char *id, const char *note)
{
    const char *values[] = { id, note };

    return cb_context_effect(ctx, "INSERT INTO ledger VALUES ($1, $2)", 2, values);
}

static cb_outcome book_entry(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)result;
    return enter(ctx, command->command_id.text, "booked") ? CB_SUCCESS : CB_PERMANENT;
}

static cb_outcome book_entry_at_gate(cb_context *ctx, const cb_command *command,
                                     json_object **result)
{
    cb_outcome came_to = book_entry(ctx, command, result);

    gate_pass();
    return came_to;
}

static cb_outcome book_forbidden(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)result;
    enter(ctx, command->command_id.text, "booked");
    enter(ctx, "00000000-0000-4000-8000-000000000001", "forbidden");
    return CB_SUCCESS;
}

static cb_outcome book_and_fail(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)result;
    enter(ctx, command->command_id.text, "booked");
    return cb_business_rule(ctx, "DECLINED", "after all");
}

static cb_outcome book_nowhere(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)command, (void)result;
    cb_context_effect(ctx, "INSERT INTO nowhere VALUES (1)", 0, NULL);
    return CB_SUCCESS;
}

#define booked "SELECT count(*) FROM ledger"

/* WRK.14 */
Test(effects, of_every_success_are_there_exactly_once)
{
    make_noted_ledger();
    test_send(bus.db, 100, NULL);
    embed_start(HANDLERS({ "Test", book_entry }), .domain.concurrent_messages = 20);

    await_value("100",
                "SELECT count(*) FROM commandbus.command_metadata WHERE status = 'COMPLETED'");

    expect_value(bus.conn, "100",
                 "SELECT count(*) FROM ledger JOIN commandbus.command_metadata USING (command_id)");
    expect_value(bus.conn, "100", "SELECT count(*) FROM pgmq.q_payments__replies");
}

/* Refused at the very end, by a constraint that is checked at COMMIT: the success goes with
 * them. */
Test(effects, and_the_success_are_one_transaction)
{
    make_noted_ledger();
    test_exec(bus.conn,
              "CREATE TABLE account (note text PRIMARY KEY); ALTER TABLE ledger ADD FOREIGN "
              "KEY (note) REFERENCES account DEFERRABLE INITIALLY DEFERRED");
    cb_uuid id = test_send_one(bus.db, .reply_to = "payments__replies");
    embed_start(HANDLERS({ "Test", book_entry }));

    await_status("IN_TROUBLESHOOTING_QUEUE", id);

    expect_command("1 EFFECT_FAILED", id, "attempts, error_code");
    expect_value(bus.conn, "0", booked);
    expect_trail("SENT RECEIVED MOVED_TO_TSQ", id);
    expect_messages("0 queued, 1 archived, 1 replied", id);
}

/* CONTRACT: EFFECT_FAILED is permanent, and nothing of the effects stays. */
Test(effects, that_the_database_does_not_take_fail_the_command_and_leave_nothing)
{
    make_noted_ledger();
    cb_uuid forbidden =
        test_send_one(bus.db, .command_type = "Forbidden", .reply_to = "payments__replies");
    cb_uuid nowhere = test_send_one(bus.db, .command_type = "Nowhere");
    cb_uuid fine = test_send_one(bus.db, .domain = "fx");
    embed_start(HANDLERS({ "Test", book_entry }, { "Forbidden", book_forbidden },
                         { "Nowhere", book_nowhere }));

    await_status("IN_TROUBLESHOOTING_QUEUE", forbidden);
    await_status("IN_TROUBLESHOOTING_QUEUE", nowhere);
    await_status("COMPLETED", fine);

    expect_command("1 PERMANENT EFFECT_FAILED", forbidden, "attempts, error_type, error_code");
    expect_command("1 PERMANENT EFFECT_FAILED", nowhere, "attempts, error_type, error_code");
    expect_reply("FAILED EFFECT_FAILED false", forbidden, "'outcome', 'error_code', 'final'");
    expect_value(bus.conn, "1", booked);
}

Test(effects, of_a_run_that_did_not_succeed_are_dropped)
{
    make_noted_ledger();
    cb_uuid id = test_send_one(bus.db, .domain = "fx");
    embed_start(HANDLERS({ "Test", book_and_fail }));

    await_status("FAILED", id);

    expect_value(bus.conn, "0", booked);
}

/* Section 8.3 */
Test(effects, of_a_run_that_lost_its_lease_are_never_written)
{
    make_noted_ledger();
    gate_close();
    cb_uuid id = test_send_one(bus.db, .domain = "fx");
    cb_worker *w = embed_start(HANDLERS({ "Test", book_entry_at_gate }));
    await(gate_waiting() == 1);

    test_exec(bus.conn, "UPDATE commandbus.command_metadata SET lease_no = 2, lease_owner = "
                        "'thief', lease_until = now() + interval '1 hour'");
    gate_open();
    await(cb_worker_in_flight(w, NULL) == 0);

    expect_value(bus.conn, "0", booked);
    expect_trail("SENT RECEIVED STALE_OUTCOME", id);
    expect_command("IN_PROGRESS thief", id, "status, lease_owner");
}

/* WRK.8: the timeout was settled; what comes later has no effect. */
Test(effects, of_a_run_that_timed_out_are_never_written)
{
    make_noted_ledger();
    gate_close();
    cb_uuid id = test_send_one(bus.db, .timeout_seconds = 1, .max_attempts = 1);
    embed_start(HANDLERS({ "Test", book_entry_at_gate }));
    await_status("IN_TROUBLESHOOTING_QUEUE", id);

    gate_open();
    await(embed_told("command.late") == 1);

    expect_value(bus.conn, "0", booked);
    expect_command("IN_TROUBLESHOOTING_QUEUE HANDLER_TIMEOUT", id, "status, error_code");
}

/* DESIGN 2: a connection of its own, so that plain outcomes never wait behind a lock. */
Test(effects, that_wait_for_a_lock_delay_nobody_else_and_are_written_when_it_is_free)
{
    make_noted_ledger();
    PGconn *holder = test_pq_open(bus.conninfo);
    test_exec(holder, "BEGIN; LOCK TABLE ledger IN EXCLUSIVE MODE");
    cb_uuid id = test_send_one(bus.db, .command_type = "Book");
    cb_worker *w = embed_start(HANDLERS({ "Book", book_entry }, { "Test", succeed }),
                               .domain.concurrent_messages = 2);
    await(embed_told("database.again") > 0);

    test_send(bus.db, 50, NULL);
    await_value("50",
                "SELECT count(*) FROM commandbus.command_metadata WHERE status = 'COMPLETED'");
    expect_command("IN_PROGRESS 1", id, "status, lease_no");
    cr_expect_eq(cb_worker_in_flight(w, NULL), 1);
    test_exec(holder, "COMMIT");
    PQfinish(holder);

    await_status("COMPLETED", id);
    expect_value(bus.conn, "1", booked);
    expect_command("1", id, "lease_no");
}

/* DESIGN 8.1: none loops. The handler is not run again: that is the operator's to decide. */
Test(effects, that_never_get_their_lock_end_with_the_operator)
{
    make_noted_ledger();
    PGconn *holder = test_pq_open(bus.conninfo);
    test_exec(holder, "BEGIN; LOCK TABLE ledger IN EXCLUSIVE MODE");
    cb_uuid id = test_send_one(bus.db, .command_type = "Book", .reply_to = "fx__replies");
    cb_worker *w = embed_worker(HANDLERS({ "Book", book_entry }));
    w->effect_patience_seconds = 0.5;
    embed_started(w);

    await_status("IN_TROUBLESHOOTING_QUEUE", id);
    PQfinish(holder);

    expect_command("EFFECT_FAILED PERMANENT 1", id, "error_code, error_type, attempts");
    expect_value(bus.conn, "0", booked);
}

/* WRK.11: a stop waits for them too. */
Test(effects, are_settled_before_a_stop_returns)
{
    make_noted_ledger();
    gate_close();
    test_send(bus.db, 5, NULL);
    cb_worker *w = embed_start(HANDLERS({ "Test", book_entry_at_gate }));
    await(gate_waiting() == 5);

    gate_open();
    cr_expect(cb_worker_stop(w, patience_seconds));

    expect_value(bus.conn, "5", booked);
    expect_value(bus.conn, "5",
                 "SELECT count(*) FROM commandbus.command_metadata WHERE status = 'COMPLETED'");
}
