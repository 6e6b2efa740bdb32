/* Attempts: how many there are, who decides, and how long lies between them. */
#include "embed.h"

TestSuite(retry, .init = embed_open, .fini = embed_close);

static cb_outcome fail_at_gate(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)command, (void)result;
    gate_pass();
    return cb_transient(ctx, "TRY_LATER", "attempt %d of %d%s", cb_context_attempt(ctx),
                        cb_context_max_attempts(ctx),
                        cb_context_is_last_attempt(ctx) ? ", the last" : "");
}

static cb_outcome fail_for_long(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)command, (void)result;
    return cb_transient_after(ctx, 500, "BUSY", "Retry-After: 500");
}

static cb_outcome fail_shortly(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)command, (void)result;
    return cb_transient_after(ctx, 1, "BUSY", "Retry-After: 1");
}

/* Seconds between the n-th failure and the next run, to ten seconds, as audited; and that the
 * message is invisible until then. */
static void expect_delay(cb_uuid id, const char *attempt, const char *seconds)
{
    await_value("t",
                "SELECT status = 'PENDING' AND attempts = $2::int FROM commandbus.command_metadata "
                "WHERE command_id = $1",
                id.text, attempt);
    expect_value(
        bus.conn, seconds,
        "SELECT (round(extract(epoch FROM (details ->> 'visible_at')::timestamptz - at) / 10) "
        "* 10)::int FROM commandbus.audit WHERE command_id = $1 AND attempt = $2::int AND "
        "event_type = 'RETRY_SCHEDULED'",
        id.text, attempt);
    expect_value(bus.conn, "t",
                 "SELECT q.vt = (details ->> 'visible_at')::timestamptz FROM pgmq.q_fx__commands q "
                 "JOIN commandbus.command_metadata c USING (msg_id) JOIN commandbus.audit a USING "
                 "(command_id) WHERE command_id = $1 AND attempt = $2::int AND event_type = "
                 "'RETRY_SCHEDULED'",
                 id.text, attempt);
}

static void make_due(void)
{
    test_exec(bus.conn, "UPDATE pgmq.q_fx__commands SET vt = statement_timestamp()");
}

/* WRK.1, WRK.5, WK-5 */
Test(retry, attempt_n_waits_for_entry_n_and_the_last_entry_repeats)
{
    static const char *const attempts[] = { "1", "2", "3", "4" };
    static const char *const seconds[] = { "100", "200", "300", "300" };
    cb_uuid id = test_send_one(bus.db, .max_attempts = 5);
    embed_start(HANDLERS({ "Test", fail_at_gate }), BACKOFF(100, 200, 300));

    for (size_t i = 0; i < CB_COUNT(seconds); i++) {
        expect_delay(id, attempts[i], seconds[i]);
        make_due();
    }
    await_status("IN_TROUBLESHOOTING_QUEUE", id);

    expect_command("5 attempt 5 of 5, the last", id, "attempts, error_message");
    expect_trail("SENT RECEIVED FAILED RETRY_SCHEDULED RECEIVED FAILED RETRY_SCHEDULED RECEIVED "
                 "FAILED RETRY_SCHEDULED RECEIVED FAILED RETRY_SCHEDULED RECEIVED MOVED_TO_TSQ",
                 id);
}

/* WRK.1: the defaults of an embedded worker. */
Test(retry, it_waits_10_60_and_300_seconds_when_nobody_says_otherwise)
{
    static const char *const attempts[] = { "1", "2", "3", "4" };
    static const char *const seconds[] = { "10", "60", "300", "300" };
    const cb_handler fails[] = { { "Test", fail_at_gate } };
    const cb_module *set = embed_set("test", fails, 1);
    cb_worker_domain_options domain = {
        .domain = "fx", .sets = &set, .n_sets = 1, .poll_interval_seconds = 0.1
    };
    cb_uuid id = test_send_one(bus.db, .max_attempts = 9);
    embed_start(.worker.domains = &domain, .worker.n_domains = 1);

    for (size_t i = 0; i < CB_COUNT(seconds); i++) {
        expect_delay(id, attempts[i], seconds[i]);
        make_due();
    }
}

/* WRK.1 */
Test(retry, by_an_empty_schedule_it_waits_30_seconds_each_time)
{
    const double none[] = { 0 };
    cb_uuid id = test_send_one(bus.db, .max_attempts = 3);
    embed_start(HANDLERS({ "Test", fail_at_gate }), .domain.retry_backoff = none,
                .domain.n_retry_backoff = 0);

    expect_delay(id, "1", "30");
    make_due();
    expect_delay(id, "2", "30");
}

/* WRK.5: nobody sees it before it is due. */
Test(retry, runs_again_by_itself_when_the_backoff_is_over)
{
    cb_uuid id = test_send_one(bus.db, .max_attempts = 2);
    embed_start(HANDLERS({ "Test", fail_at_gate }), BACKOFF(1));

    await_status("IN_TROUBLESHOOTING_QUEUE", id);

    expect_value(bus.conn, "t",
                 "SELECT max(at) - min(at) >= interval '1 second' FROM commandbus.audit "
                 "WHERE event_type = 'RECEIVED'");
}

/* WRK.1 */
Test(retry, the_commands_own_max_attempts_decides_and_else_the_domains)
{
    cb_uuid own = test_send_one(bus.db, .max_attempts = 1);
    cb_uuid more = test_send_one(bus.db, .max_attempts = 6);
    cb_uuid none = test_send_one(bus.db, .domain = "fx");
    embed_start(HANDLERS({ "Test", fail_at_gate }), .domain.max_attempts = 4);

    await_status("IN_TROUBLESHOOTING_QUEUE", own);
    await_status("IN_TROUBLESHOOTING_QUEUE", more);
    await_status("IN_TROUBLESHOOTING_QUEUE", none);

    expect_command("1 1", own, "attempts, max_attempts");
    expect_command("6 6", more, "attempts, max_attempts");
    expect_command("4 4", none, "attempts, max_attempts");
    cr_expect_eq(gate_entered(), 11);
}

Test(retry, there_are_three_attempts_when_nobody_says_otherwise)
{
    cb_uuid id = test_send_one(bus.db, .domain = "fx");
    embed_start(HANDLERS({ "Test", fail_at_gate }));

    await_status("IN_TROUBLESHOOTING_QUEUE", id);

    expect_command("3 attempt 3 of 3, the last", id, "attempts, error_message");
}

/* A Retry-After counts when it is longer than the schedule. */
Test(retry, a_handler_may_ask_for_a_longer_wait_but_not_for_a_shorter_one)
{
    cb_uuid longer = test_send_one(bus.db, .command_type = "Long");
    cb_uuid shorter = test_send_one(bus.db, .command_type = "Short");
    embed_start(HANDLERS({ "Long", fail_for_long }, { "Short", fail_shortly }), BACKOFF(100));

    expect_delay(longer, "1", "500");
    expect_delay(shorter, "1", "100");
}

/* BUS.6: attempts are counted from one again, the fence is not. */
Test(retry, an_operators_retry_begins_with_attempt_one_again)
{
    cb_uuid id = test_send_one(bus.db, .max_attempts = 1);
    embed_start(HANDLERS({ "Test", fail_at_gate }));
    await_status("IN_TROUBLESHOOTING_QUEUE", id);

    test_exec(bus.conn, "SELECT commandbus.tsq_retry('fx', command_id, 'mona', 'again') "
                        "FROM commandbus.command_metadata");
    await_value("2", "SELECT count(*) FROM commandbus.audit WHERE event_type = 'MOVED_TO_TSQ'");

    expect_command("1 2 attempt 1 of 1, the last", id, "attempts, lease_no, error_message");
    expect_trail("SENT RECEIVED MOVED_TO_TSQ OPERATOR_RETRY RECEIVED MOVED_TO_TSQ", id);
}
