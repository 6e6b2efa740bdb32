/* Command types that no handler here has: perhaps a newer worker has one. */
#include "embed.h"

TestSuite(unknown_type, .init = embed_open, .fini = embed_close);

/* WRK.8 */
Test(unknown_type, is_released_uncharged_during_the_grace)
{
    cb_uuid id = test_send_one(bus.db, .command_type = "Brandnew", .max_attempts = 1,
                               .reply_to = "payments__replies");
    embed_start(HANDLERS({ "Test", succeed }));
    await(embed_told("command.released") == 1);

    expect_command("PENDING 0 1", id, "status, attempts, lease_no, error_code, lease_owner");
    expect_trail("SENT RECEIVED RELEASED", id);
    expect_messages("1 queued, 0 archived, 0 replied", id);
    expect_value(bus.conn, "t",
                 "SELECT vt > enqueued_at + interval '4 s' FROM pgmq.q_fx__commands");
}

/* DESIGN 4, version skew: a rollout in which old workers see new commands. */
Test(unknown_type, is_run_by_a_worker_that_knows_it)
{
    cb_uuid id = test_send_one(bus.db, .command_type = "Brandnew", .max_attempts = 1);
    cb_worker *old = embed_start(HANDLERS({ "Test", succeed }));
    await(embed_told("command.released") == 1);
    cr_assert(cb_worker_stop(old, 30));

    embed_start(HANDLERS({ "Test", succeed }, { "Brandnew", succeed }));
    test_exec(bus.conn, "UPDATE pgmq.q_fx__commands SET vt = statement_timestamp()");
    await_status("COMPLETED", id);

    expect_command("1 2", id, "attempts, lease_no");
}

/* WRK.8 */
Test(unknown_type, is_a_permanent_failure_after_the_grace)
{
    cb_uuid id = test_send_one(bus.db, .command_type = "Mistyped", .reply_to = "payments__replies");
    embed_start(HANDLERS({ "Test", succeed }), .worker.unknown_type_grace_seconds = 1);
    await_status("IN_TROUBLESHOOTING_QUEUE", id);

    expect_command("1 PERMANENT HANDLER_NOT_FOUND", id, "attempts, error_type, error_code");
    expect_command("t", id, "lease_no > 1");
    expect_reply("FAILED PERMANENT HANDLER_NOT_FOUND false", id,
                 "'outcome', 'error_type', 'error_code', 'final'");
    expect_value(bus.conn, "t",
                 "SELECT max(at) - min(at) >= interval '1 s' FROM commandbus.audit WHERE worker IS "
                 "NOT NULL");
}

/* The grace is the type's, so that a flood of mistyped commands ends. */
Test(unknown_type, has_one_grace_for_all_commands_of_the_type)
{
    cb_uuid first = test_send_one(bus.db, .command_type = "Mistyped");
    embed_start(HANDLERS({ "Test", succeed }), .worker.unknown_type_grace_seconds = 1);
    await_status("IN_TROUBLESHOOTING_QUEUE", first);

    cb_uuid second = test_send_one(bus.db, .command_type = "Mistyped");
    cb_uuid other = test_send_one(bus.db, .command_type = "Mistyped2");
    await_status("IN_TROUBLESHOOTING_QUEUE", second);

    expect_command("1 1", second, "attempts, lease_no");
    await_status("IN_TROUBLESHOOTING_QUEUE", other);
    expect_command("t", other, "lease_no > 1");
}

Test(unknown_type, does_not_hold_up_the_others)
{
    for (int i = 0; i < 40; i++)
        test_send_one(bus.db, .command_type = "Mistyped");
    embed_start(HANDLERS({ "Test", succeed }), .domain.concurrent_messages = 2);

    test_send(bus.db, 20, NULL);

    await_value("20",
                "SELECT count(*) FROM commandbus.command_metadata WHERE status = 'COMPLETED'");
}
