/* Sending one command: row, message, audit and wake-up, together or not at all. */
#include "expect.h"
#include "fixture.h"
#include "life.h"
#include "wait.h"

TestSuite(send, .init = bus_open, .fini = bus_close);

/* BUS.3 */
Test(send, writes_row_message_and_audit)
{
    cb_error e = { 0 };
    cb_uuid id, correlation = cb_uuid_new(), own = cb_uuid_new();
    const cb_send command = {
        .domain = "fx",
        .command_type = "BookFx",
        .data = "{\"amount\": \"10.00\"}",
        .command_id = own.text,
        .correlation_id = correlation.text,
        .reply_to = "payments__replies",
        .headers = "{\"trace\": \"abc\"}",
        .max_attempts = 7,
        .timeout_seconds = 11,
    };

    expect_ok(cb_send_command(bus.db, &command, &id, &e), e);

    cr_assert_str_eq(id.text, own.text);
    expect_value(bus.conn, "t",
                 "SELECT (domain, command_type, status, attempts, max_attempts, timeout_seconds, "
                 "lease_no, reply_to, data, headers, correlation_id) = ('fx', 'BookFx', 'PENDING', "
                 "0, 7, 11, 0, 'payments__replies', '{\"amount\": \"10.00\"}', "
                 "'{\"trace\": \"abc\"}', $2::uuid) AND batch_id IS NULL AND completed_at IS NULL "
                 "AND result IS NULL AND lease_owner IS NULL AND created_at = updated_at "
                 "FROM commandbus.command_metadata WHERE command_id = $1::uuid",
                 id.text, correlation.text);
    expect_value(
        bus.conn, "t",
        "SELECT q.msg_id = c.msg_id AND q.read_ct = 0 AND q.vt <= now() AND q.message = "
        "jsonb_build_object('domain', 'fx', 'command_type', 'BookFx', 'command_id', $1::text, "
        "'correlation_id', $2::text, 'data', c.data, 'reply_to', 'payments__replies') "
        "AND q.headers = c.headers FROM pgmq.q_fx__commands q, "
        "commandbus.command_metadata c",
        id.text, correlation.text);
    expect_value(bus.conn, "t",
                 "SELECT (count(*), min(event_type), min(domain), min(command_id::text)) "
                 "= (1, 'SENT', 'fx', $1) AND min(db_user) = session_user FROM commandbus.audit",
                 id.text);
}

/* BUS.3 */
Test(send, without_a_correlation_id_makes_one_that_row_and_message_share)
{
    cb_uuid first = life_send(""), second = life_send("");

    expect_number(bus.conn, 2,
                  "SELECT count(*) FROM commandbus.command_metadata c JOIN pgmq.q_fx__commands q "
                  "USING (msg_id) WHERE q.message ->> 'correlation_id' = c.correlation_id::text "
                  "AND c.command_id IN ($1::uuid, $2::uuid)",
                  first.text, second.text);
    expect_number(bus.conn, 2,
                  "SELECT count(DISTINCT correlation_id) FROM commandbus.command_metadata");
}

/* BUS.3 */
Test(send, makes_new_ids_when_none_are_given)
{
    cb_error e = { 0 };
    cb_uuid first, second;
    const cb_send command = { .domain = "fx", .command_type = "BookFx" };

    expect_ok(cb_send_command(bus.db, &command, &first, &e), e);
    expect_ok(cb_send_command(bus.db, &command, &second, &e), e);

    cr_assert_str_neq(first.text, second.text);
    expect_command("{}", first, "data");
    expect_command("{}", second, "data");
}

/* BUS.3, BUS.7 */
Test(send, by_sql_without_an_id_audits_the_id_it_made)
{
    cb_uuid id = life_send("");

    expect_trail("SENT", id);
}

/* BUS.3: the same id may be used in another domain */
Test(send, takes_an_id_once_a_domain)
{
    cb_error e = { 0 };
    cb_uuid id = cb_uuid_new();
    cb_send command = { .domain = "fx", .command_type = "BookFx", .command_id = id.text };
    expect_ok(cb_send_command(bus.db, &command, NULL, &e), e);

    command.domain = "risk";
    expect_ok(cb_send_command(bus.db, &command, NULL, &e), e);

    expect_number(bus.conn, 2, "SELECT count(*) FROM commandbus.command_metadata");
}

/* BUS.3 */
Test(send, inside_a_transaction_that_rolls_back_leaves_nothing)
{
    cb_error e = { 0 };
    cb_db *borrowed;
    char *before = bus_contents();
    expect_ok(cb_db_borrow(bus.conn, &borrowed, &e), e);

    test_exec(bus.conn, "BEGIN");
    expect_ok(
        cb_send_command(borrowed, &(cb_send){ .domain = "fx", .command_type = "BookFx" }, NULL, &e),
        e);
    test_exec(bus.conn, "SELECT commandbus.send('risk', 'BookRisk')");
    expect_number(bus.conn, 2, "SELECT count(*) FROM commandbus.command_metadata");
    test_exec(bus.conn, "ROLLBACK");

    cb_db_free(borrowed);
    expect_unchanged(before, bus_contents());
}

/* BUS.3 */
Test(send, becomes_visible_with_the_commit_of_the_caller_and_not_before)
{
    cb_error e = { 0 };
    test_exec(bus.conn, "CREATE TABLE payment (id integer)");

    expect_ok(cb_db_begin(bus.db, &e), e);
    expect_ok(
        cb_send_command(bus.db, &(cb_send){ .domain = "fx", .command_type = "BookFx" }, NULL, &e),
        e);
    expect_ok(cb_send_command(bus.db, &(cb_send){ .domain = "risk", .command_type = "BookRisk" },
                              NULL, &e),
              e);
    cr_assert_eq(life_receive(), 0, "received before the commit");
    expect_ok(cb_db_commit(bus.db, &e), e);

    cr_assert_eq(life_receive(), 1);
    expect_number(bus.conn, 1, "SELECT count(*) FROM commandbus.receive('risk', 'w', 10)");
}

/* BUS.3: a refusal spoils the caller's transaction, it does not end it half done */
Test(send, refused_inside_a_transaction_takes_the_rest_of_it_along)
{
    cb_error e = { 0 };
    char *before = bus_contents();

    expect_ok(cb_db_begin(bus.db, &e), e);
    expect_ok(
        cb_send_command(bus.db, &(cb_send){ .domain = "fx", .command_type = "BookFx" }, NULL, &e),
        e);
    expect_error(
        CB_UNKNOWN_DOMAIN,
        cb_send_command(bus.db, &(cb_send){ .domain = "fy", .command_type = "BookFx" }, NULL, &e),
        e);
    cr_assert_not(cb_db_commit(bus.db, &e));

    expect_unchanged(before, bus_contents());
}

/* BUS.3 */
Test(send, with_a_delay_is_invisible_until_it_is_due)
{
    cb_error e = { 0 };
    cb_uuid later, soon;
    const char *claim = "SELECT count(*) = 1 FROM commandbus.receive('fx', 'w', 10)";
    expect_ok(cb_send_command(
                  bus.db,
                  &(cb_send){ .domain = "fx", .command_type = "BookFx", .delay_seconds = 3600 },
                  &later, &e),
              e);
    expect_ok(cb_send_command(
                  bus.db,
                  &(cb_send){ .domain = "fx", .command_type = "BookFx", .delay_seconds = 0.25 },
                  &soon, &e),
              e);

    wait_until(bus.conn, claim);

    expect_value(bus.conn, "t",
                 "SELECT a.at >= c.created_at + interval '0.25 s' FROM commandbus.audit a "
                 "JOIN commandbus.command_metadata c USING (command_id) "
                 "WHERE a.event_type = 'RECEIVED' AND c.command_id = $1::uuid",
                 soon.text);
    expect_command("PENDING", later, "status");
    expect_value(bus.conn, "t",
                 "SELECT q.vt - c.created_at = interval '3600 s' FROM pgmq.q_fx__commands q "
                 "JOIN commandbus.command_metadata c USING (msg_id) WHERE c.command_id = $1::uuid",
                 later.text);
}

TestSuite(wake_up, .init = bus_open, .fini = bus_close);

static void announce_sleeper(double seconds)
{
    const char *const queues[] = { "fx__commands" };
    cb_error e = { 0 };

    expect_ok(cb_sleep_announce(bus.db, "sleepy", queues, 1, seconds, &e), e);
}

static PGconn *listen_to_fx(void)
{
    PGconn *listener = test_pq_open(bus.conninfo);

    test_exec(listener, "LISTEN commandbus_fx__commands; LISTEN marker");
    return listener;
}

/* Notifications arrive in the order of commits: what stands before the marker was sent before
 * it. */
static void expect_next_notify(PGconn *listener, const char *expected)
{
    test_exec(bus.conn, "NOTIFY marker");
    char *channel = wait_for_notify(listener);
    cr_assert_str_eq(channel, expected, "notified on %s", channel);
    free(channel);
}

/* BUS.3, DESIGN: wake-up */
Test(wake_up, reaches_a_worker_that_announced_its_sleep)
{
    PGconn *listener = listen_to_fx();
    announce_sleeper(60);

    life_send("");

    expect_next_notify(listener, "commandbus_fx__commands");
    PQfinish(listener);
}

static void expect_call(PGconn *listener, const char *expected)
{
    char *name = wait_for_call(listener);
    cr_expect_str_eq(name, expected);
    free(name);
}

Test(wake_up, calls_the_worker_that_announced_itself_last)
{
    PGconn *listener = listen_to_fx();
    const char *const queues[] = { "fx__commands" };
    cb_error e = { 0 };
    announce_sleeper(60);
    expect_ok(cb_sleep_announce(bus.db, "later", queues, 1, 61, &e), e);

    life_send("");
    expect_call(listener, "later");
    expect_ok(cb_sleep_pass_on(bus.db, "later", queues, 1, &e), e);
    expect_call(listener, "sleepy");
    expect_value(bus.conn, "sleepy", "SELECT string_agg(worker, ' ') FROM commandbus.sleeper");

    /* Nobody is left to pass it on to. */
    expect_ok(cb_sleep_pass_on(bus.db, "sleepy", queues, 1, &e), e);
    expect_next_notify(listener, "marker");
    PQfinish(listener);
}

/* section 8.7: a payload has 8000 bytes at most. */
Test(wake_up, by_a_name_that_is_too_long_spoils_no_send)
{
    announce_sleeper(60);
    test_exec(bus.conn,
              "SELECT commandbus.sleep_announce(repeat('x', 9000), '{fx__commands}', 61)");

    life_send("");
    test_exec(bus.conn, "SELECT commandbus.wake('fx__commands'),"
                        "commandbus.wake_for_capacity('fx', 1, 1)");
}

/* BUS.3 */
Test(wake_up, is_sent_by_send_many_too)
{
    PGconn *listener = listen_to_fx();
    cb_error e = { 0 };
    const cb_send commands[] = { { .domain = "fx", .command_type = "BookFx" },
                                 { .domain = "fx", .command_type = "BookFx" } };
    announce_sleeper(60);

    expect_ok(cb_send_many(bus.db, commands, 2, NULL, NULL, NULL, &e), e);

    expect_next_notify(listener, "commandbus_fx__commands");
    PQfinish(listener);
}

/* DESIGN: a NOTIFY in every commit would hold up the whole server */
Test(wake_up, is_not_sent_when_nobody_sleeps)
{
    PGconn *listener = listen_to_fx();

    life_send("");

    expect_next_notify(listener, "marker");
    PQfinish(listener);
}

Test(wake_up, is_not_sent_to_a_sleeper_whose_time_is_over_or_who_has_woken)
{
    PGconn *listener = listen_to_fx();
    cb_error e = { 0 };
    announce_sleeper(60);
    test_exec(bus.conn, "UPDATE commandbus.sleeper SET expires_at = now() - interval '1 s'");

    life_send("");
    expect_next_notify(listener, "marker");

    announce_sleeper(60);
    expect_ok(cb_sleep_end(bus.db, "sleepy", NULL, 0, &e), e);
    life_send("");
    expect_next_notify(listener, "marker");
    PQfinish(listener);
}

Test(wake_up, is_not_sent_for_what_is_not_due_or_rolled_back_or_for_another_domain)
{
    PGconn *listener = listen_to_fx();
    announce_sleeper(60);

    life_send("delay_seconds => 60");
    test_exec(bus.conn, "SELECT commandbus.send('risk', 'BookRisk')");
    test_exec(bus.conn, "BEGIN; SELECT commandbus.send('fx', 'BookFx'); ROLLBACK");

    expect_next_notify(listener, "marker");
    PQfinish(listener);
}
