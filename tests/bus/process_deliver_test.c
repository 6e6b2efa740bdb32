/* Replies on their way from a queue into the inboxes of processes. */
#include "expect.h"
#include "fixture.h"
#include "parallel.h"
#include "pay.h"
#include "statements.h"
#include "wait.h"

#include <stdio.h>

static cb_uuid process, command;

static void open_with_command(void)
{
    bus_open();
    pay_register(bus.db);
    process = pay_start(bus.db);
    pay_suspend(bus.conn, process, "WAITING_FOR_ASYNC");
    command = pay_command(bus.conn, process);
}

TestSuite(process_deliver, .init = open_with_command, .fini = bus_close);

#define expect_look(look, delivered_, late_, dead_)                  \
    do {                                                             \
        cb_process_look look_ = (look);                              \
        cr_assert_eq(look_.delivered, (delivered_), "delivered");    \
        cr_assert_eq(look_.late, (late_), "late");                   \
        cr_assert_eq(look_.dead_lettered, (dead_), "dead-lettered"); \
    } while (0)

/* How many replies are in the queue and in its archive. */
#define expect_replies(expected)                                                             \
    expect_value(bus.conn, expected,                                                         \
                 "SELECT (SELECT count(*) FROM pgmq.q_payments__replies) || ' queued, ' || " \
                 "(SELECT count(*) FROM pgmq.a_payments__replies) || ' archived'")

Test(process_deliver, puts_a_reply_into_the_inbox_and_wakes_the_process) /* RL.2, PM.3 */
{
    pay_reply(bus.conn, command, process, "SUCCESS");

    expect_look(pay_deliver(bus.db, 60), 1, 0, 0);

    expect_replies("0 queued, 0 archived");
    expect_value(bus.conn, "1 REPLY SUCCESS 1.5 true",
                 "SELECT concat_ws(' ', seq, kind, name, payload -> 'result' ->> 'rate', "
                 "payload ->> 'final', response_id) FROM commandbus.process_inbox "
                 "WHERE process_id = $1 AND payload ->> 'command_id' = $2",
                 process.text, command.text);
    expect_value(bus.conn, "WAITING_FOR_ASYNC 1 t",
                 "SELECT concat_ws(' ', status, inbox_seq, wake_at <= commandbus.now()) "
                 "FROM commandbus.process");
}

Test(process_deliver, wakes_a_live_process_in_any_status_unless_it_is_leased) /* DESIGN 4 */
{
    static const char *const statuses[] = { "PENDING",           "EXECUTING",
                                            "WAITING_FOR_REPLY", "WAITING_FOR_RETRY",
                                            "WAITING_FOR_TSQ",   "COMPENSATING" };

    test_exec(bus.conn, "UPDATE commandbus.clock SET moved_by = '-1 hour'");
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        pay_suspend(bus.conn, process, statuses[i]);
        pay_reply(bus.conn, command, process, "FAILED");
        expect_look(pay_deliver(bus.db, 60), 1, 0, 0);
        expect_value(bus.conn, "t",
                     "SELECT wake_at BETWEEN commandbus.now() - interval '10 s' AND "
                     "commandbus.now() FROM commandbus.process");
    }

    cb_process_claim_free(pay_claim(bus.db, "w", 1, 30));
    pay_reply(bus.conn, command, process, "FAILED");
    expect_look(pay_deliver(bus.db, 60), 1, 0, 0);
    expect_value(bus.conn, "7 t",
                 "SELECT inbox_seq || ' ' || (wake_at > commandbus.now())::text::char "
                 "FROM commandbus.process");
}

Test(process_deliver,
     numbers_replies_in_the_order_of_their_messages_after_what_is_there) /* STP.11 */
{
    cb_uuid other = pay_start(bus.db), others_command = pay_command(bus.conn, other);
    cb_error e = { 0 };

    expect_ok(cb_process_respond(bus.db, process.text, "L1", NULL, NULL, NULL, &e), e);
    pay_reply(bus.conn, command, process, "FAILED");
    pay_reply(bus.conn, others_command, other, "CANCELED");
    pay_reply(bus.conn, command, process, "SUCCESS");
    expect_look(pay_deliver(bus.db, 60), 3, 0, 0);

    expect_value(bus.conn, "1:L1 2:FAILED 3:SUCCESS",
                 "SELECT string_agg(seq || ':' || name, ' ' ORDER BY seq) "
                 "FROM commandbus.process_inbox WHERE process_id = $1",
                 process.text);
    expect_value(bus.conn, "1:CANCELED",
                 "SELECT string_agg(seq || ':' || name, ' ' ORDER BY seq) "
                 "FROM commandbus.process_inbox WHERE process_id = $1",
                 other.text);
    expect_value(bus.conn, "3 1",
                 "SELECT string_agg(inbox_seq::text, ' ' ORDER BY process_id) "
                 "FROM commandbus.process");
}

Test(process_deliver,
     archives_what_is_not_a_reply_and_delivers_the_rest) /* PM.5, DESIGN 8.5, 8.7 */
{
    static const char *const poison[] = {
        "'[]'",
        "'null'",
        "NULL",
        "'{}'",
        "'{\"batch_id\": \"x\", \"status\": \"COMPLETED\"}'",
        "'{\"command_id\": \"x\", \"correlation_id\": \"y\", \"outcome\": \"SUCCESS\"}'",
        "jsonb_build_object('command_id', gen_random_uuid(), 'correlation_id', "
        "gen_random_uuid(), 'outcome', 'success')",
        "jsonb_build_object('command_id', gen_random_uuid(), 'correlation_id', "
        "jsonb_build_array(gen_random_uuid()), 'outcome', 'SUCCESS')",
    };
    enum {
        POISON = sizeof poison / sizeof *poison
    };
    char sql[300];

    for (int i = 0; i < POISON; i++) {
        snprintf(sql, sizeof sql,
                 "INSERT INTO pgmq.q_payments__replies (vt, message) SELECT now(), %s", poison[i]);
        test_exec(bus.conn, sql);
    }
    pay_reply(bus.conn, command, process, "SUCCESS");
    expect_look(pay_deliver(bus.db, 60), 1, 0, POISON);

    expect_replies("0 queued, 8 archived");
    expect_value(bus.conn, "8 payments payments__replies the message is not a reply",
                 "SELECT concat_ws(' ', count(*), min(domain), min(details ->> 'queue'), "
                 "min(details ->> 'reason')) FROM commandbus.audit "
                 "WHERE event_type = 'REPLY_DEAD_LETTERED' AND command_id IS NULL");
}

/* PM.5: what one reads as a UUID and another does not would be delivered and found by nobody. */
Test(process_deliver, archives_a_reply_whose_ids_are_written_otherwise)
{
    test_exec(bus.conn,
              "SELECT pgmq.send('payments__replies', jsonb_build_object('command_id', "
              "regexp_replace(replace(command_id::text, '-', ''), '^(.{4})(.{4})(.{4})(.{4})', "
              "'\\1-\\2-\\3-\\4-'), 'correlation_id', correlation_id, 'outcome', 'SUCCESS')) "
              "FROM commandbus.command_metadata");

    expect_look(pay_deliver(bus.db, 60), 0, 0, 1);

    expect_replies("0 queued, 1 archived");
}

Test(process_deliver, keeps_a_reply_that_nobody_waits_for_until_its_grace_is_over) /* PM.5 */
{
    cb_uuid stranger = cb_uuid_new();

    pay_reply(bus.conn, command, stranger, "SUCCESS"); /* no such process */
    pay_reply(bus.conn, stranger, process, "SUCCESS"); /* no such command */
    expect_look(pay_deliver(bus.db, 60), 0, 0, 0);
    expect_replies("2 queued, 0 archived");
    expect_number(bus.conn, 2,
                  "SELECT count(*) FROM pgmq.q_payments__replies WHERE vt > enqueued_at "
                  "AND vt - last_read_at = interval '1 s' AND read_ct = 1");
    expect_look(pay_deliver(bus.db, 60), 0, 0, 0);
    expect_number(bus.conn, 2, "SELECT sum(read_ct) FROM pgmq.q_payments__replies");

    test_exec(bus.conn, "UPDATE pgmq.q_payments__replies "
                        "SET vt = now(), enqueued_at = now() - interval '61 s'");
    expect_look(pay_deliver(bus.db, 60), 0, 0, 2);
    expect_replies("0 queued, 2 archived");
    expect_value(
        bus.conn, "the process has no such command; there is no such process",
        "SELECT string_agg(details ->> 'reason', '; ' ORDER BY details ->> 'reason') "
        "FROM commandbus.audit WHERE event_type = 'REPLY_DEAD_LETTERED' "
        "AND domain = 'payments' AND worker = 'deliverer' AND command_id IN ($1::uuid, $2::uuid)",
        command.text, stranger.text);
    expect_number(bus.conn, 0, "SELECT count(*) FROM commandbus.process_inbox");
}

/* DESIGN 8.7: whatever somebody wrote into the row of a message that is put back. */
Test(process_deliver, keeps_a_reply_with_any_values_until_its_grace_is_over)
{
    static const char *const values[] = { "read_ct = 2147483647", "read_ct = -2147483648",
                                          "vt = '-infinity'", "last_read_at = 'infinity'" };

    for (size_t i = 0; i < CB_COUNT(values); i++) {
        cb_uuid stranger = cb_uuid_new();
        char sql[200];
        pay_reply(bus.conn, stranger, process, "SUCCESS");
        snprintf(sql, sizeof sql, "UPDATE pgmq.q_payments__replies SET %s", values[i]);
        test_exec(bus.conn, sql);
        pay_reply(bus.conn, command, process, "SUCCESS");

        expect_look(pay_deliver(bus.db, 60), 1, 0, 0);

        expect_replies("1 queued, 0 archived");
        test_exec(bus.conn, "DELETE FROM pgmq.q_payments__replies");
    }
}

Test(process_deliver, brings_an_early_reply_when_its_process_has_come) /* PM.5 */
{
    cb_uuid later = cb_uuid_new(), its_command = pay_command(bus.conn, later);

    pay_reply(bus.conn, its_command, later, "SUCCESS");
    expect_look(pay_deliver(bus.db, 60), 0, 0, 0);
    pay_start_with(bus.db, .process_id = later.text);
    wait_until(bus.conn, "SELECT clock_timestamp() >= vt FROM pgmq.q_payments__replies");

    expect_look(pay_deliver(bus.db, 60), 1, 0, 0);
}

Test(process_deliver, never_loops_over_a_message_from_no_time) /* DESIGN 8.5 */
{
    pay_reply(bus.conn, command, cb_uuid_new(), "SUCCESS");
    test_exec(bus.conn, "UPDATE pgmq.q_payments__replies SET enqueued_at = 'infinity'");

    expect_look(pay_deliver(bus.db, 60), 0, 0, 1);
}

Test(process_deliver, records_what_comes_after_the_end_as_late) /* DESIGN 4, 8.6 */
{
    static const char *const ends[] = { "COMPLETED", "CANCELED", "COMPENSATED", "FAILED" };

    for (int i = 0; i < 4; i++) {
        pay_suspend(bus.conn, process, ends[i]);
        pay_reply(bus.conn, command, process, "SUCCESS");
        expect_look(pay_deliver(bus.db, 60), 0, 1, 0);
    }

    expect_replies("0 queued, 4 archived");
    expect_value(bus.conn, "4 SUCCESS true deliverer",
                 "SELECT concat_ws(' ', count(*), min(details ->> 'outcome'), "
                 "min(details ->> 'final'), min(worker)) FROM commandbus.process_event "
                 "WHERE event = 'LATE_REPLY' AND process_id = $1 AND details ->> 'command_id' = $2",
                 process.text, command.text);
    expect_value(bus.conn, "0",
                 "SELECT inbox_seq || coalesce(wake_at::text, '') FROM commandbus.process");
}

Test(process_deliver, leaves_the_reply_of_a_locked_process_and_waits_for_nobody) /* DESIGN 2, 8.7 */
{
    cb_uuid other = pay_start(bus.db), others_command = pay_command(bus.conn, other);
    PGconn *holder = test_pq_open(bus.conninfo);
    char sql[200];

    pay_reply(bus.conn, command, process, "SUCCESS");
    pay_reply(bus.conn, others_command, other, "SUCCESS");
    snprintf(sql, sizeof sql,
             "BEGIN; SELECT FROM commandbus.process WHERE process_id = '%s' FOR UPDATE",
             process.text);
    test_exec(holder, sql);
    test_exec(bus.db->conn, "SET lock_timeout = '500ms'");

    cb_process_look look = pay_deliver(bus.db, 60);
    expect_look(look, 1, 0, 0);
    cr_expect_leq(look.next_seconds, 0.01);
    expect_value(
        bus.conn, "t",
        "SELECT vt <= now() AND message ->> 'command_id' = $1 FROM pgmq.q_payments__replies",
        command.text);
    test_exec(holder, "COMMIT");
    expect_look(pay_deliver(bus.db, 60), 1, 0, 0);
    expect_replies("0 queued, 0 archived");
    PQfinish(holder);
}

Test(process_deliver, takes_no_more_than_it_is_asked_for_and_says_that_there_is_more) /* DESIGN 2 */
{
    test_exec(bus.conn, "SELECT pgmq.send('payments__replies', '{}') FROM generate_series(1, 150)");

    cb_process_look look = pay_deliver(bus.db, 60);
    expect_look(look, 0, 0, 100);
    cr_expect(look.more_replies);
    look = pay_deliver(bus.db, 60);
    expect_look(look, 0, 0, 50);
    cr_expect_not(look.more_replies);
}

static void deliver_some(size_t i, void *arg)
{
    static const char *const queues[] = { "payments__replies" };
    cb_process_claim_options options = { .worker = i % 2 ? "odd" : "even",
                                         .reply_queues = queues,
                                         .n_reply_queues = 1,
                                         .most_replies = 7 };
    cb_process_claim *claim = NULL;
    cb_process_look look;
    cb_error e = { 0 };
    cb_db *db = NULL;

    if (!cb_db_open(bus.conninfo, &db, &e))
        return;
    for (int round = 0; round < 60; round++) {
        if (!cb_process_claim_due(db, &options, 0, &claim, &look, &e))
            break;
        cb_process_claim_free(claim);
        ((int64_t *)arg)[i] += look.delivered;
    }
    cb_db_free(db);
}

Test(process_deliver, by_several_at_once_brings_each_reply_once_and_leaves_no_gap) /* DESIGN 8.6 */
{
    int64_t delivered[3] = { 0 };

    for (int i = 0; i < 200; i++)
        pay_reply(bus.conn, command, process, "SUCCESS");
    parallel_run(3, deliver_some, delivered);
    while (pay_deliver(bus.db, 60).delivered > 0)
        continue;

    expect_value(bus.conn, "200 1 200 200",
                 "SELECT concat_ws(' ', count(*), min(seq), max(seq), "
                 "(SELECT inbox_seq FROM commandbus.process)) FROM commandbus.process_inbox");
    expect_replies("0 queued, 0 archived");
}

Test(process_deliver, notifies_sleepers_of_what_it_woke) /* DESIGN 2 wake-up */
{
    test_exec(bus.conn, "LISTEN commandbus_payments__processes;"
                        "SELECT commandbus.sleep_announce('z', '{payments__processes}', 60)");
    pay_reply(bus.conn, command, process, "SUCCESS");

    expect_look(pay_deliver(bus.db, 60), 1, 0, 0);
    char *called = wait_for_call(bus.conn);
    cr_expect_str_eq(called, "z");
    free(called);
}

Test(process_deliver, from_a_queue_that_was_dropped_does_not_stop_the_claim) /* DESIGN 8.7 */
{
    static const char *const queues[] = { "payments__replies" };
    cb_process_kind kind = { .process_type = "Pay", .domain = "payments", .version = 1 };
    cb_process_claim_options options = {
        .worker = "w", .kinds = &kind, .n_kinds = 1, .reply_queues = queues, .n_reply_queues = 1
    };
    OWNED(cb_process_claim) claim = NULL;
    cb_error e = { 0 };

    pay_start(bus.db);
    test_exec(bus.conn, "SELECT pgmq.drop_queue('payments__replies')");
    expect_ok(cb_process_claim_due(bus.db, &options, 5, &claim, NULL, &e), e);
    cr_expect_eq(cb_process_claim_count(claim), 1);
}

Test(process_deliver,
     and_claim_are_one_transaction) /* DESIGN 2: what a look brings is claimed at once */
{
    static const char *const queues[] = { "payments__replies" };
    cb_process_kind kind = { .process_type = "Pay", .domain = "payments", .version = 1 };
    cb_process_claim_options options = {
        .worker = "w", .kinds = &kind, .n_kinds = 1, .reply_queues = queues, .n_reply_queues = 1
    };
    OWNED(cb_process_claim) claim = NULL;
    cb_process_look look;
    cb_error e = { 0 };

    pay_reply(bus.conn, command, process, "SUCCESS");
    expect_ok(cb_process_claim_due(bus.db, &options, 5, &claim, &look, &e), e);

    cr_assert_eq(cb_process_claim_count(claim), 1);
    cr_expect_str_eq(cb_process_claim_at(claim, 0)->status, "WAITING_FOR_ASYNC");
    cr_expect(strstr(cb_process_claim_at(claim, 0)->inbox, "\"REPLY\",\"SUCCESS\",null,{") != NULL);
    cr_expect(look.next_seconds > 0 && look.next_seconds <= 30, "%f", look.next_seconds);
}

/* The configuration has changed while a command was out: its reply comes to the queue of then. */
Test(process_deliver, from_the_queue_that_the_type_had_before) /* DESIGN 8.4 */
{
    test_exec(bus.conn, "SELECT commandbus.register_process_type(process_type, domain, version, "
                        "execution_model::text, 'other_replies') FROM commandbus.process_type");
    pay_reply(bus.conn, command, process, "SUCCESS");

    expect_look(pay_deliver(bus.db, 60), 1, 0, 0);

    expect_value(bus.conn, "other_replies {payments__replies}",
                 "SELECT concat_ws(' ', reply_queue, former_queues) FROM commandbus.process_type");
}

Test(process_deliver, refuses_what_is_not_a_reply_queue) /* CONTRACT refusals */
{
    expect_sqlstate(bus.conn, "CB010", "SELECT commandbus.deliver_replies('fx__commands', 'w')");
    expect_sqlstate(bus.conn, "CB010", "SELECT commandbus.deliver_replies(NULL, 'w')");
    expect_sqlstate(bus.conn, "CB011", "SELECT commandbus.deliver_replies('fx__replies', '')");
    expect_sqlstate(bus.conn, "CB011", "SELECT commandbus.deliver_replies('fx__replies', 'w', 0)");
    test_exec(bus.conn, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    expect_sqlstate(bus.conn, "CB007", "SELECT commandbus.deliver_replies('fx__replies', 'w')");
    test_exec(bus.conn, "ROLLBACK");
}
