/* Replies to processes: in the inbox when the command's end commits, or in the queue when that
 * cannot be done without waiting. */
#include "expect.h"
#include "fixture.h"
#include "life.h"
#include "parallel.h"
#include "pay.h"
#include "statements.h"
#include "wait.h"

#include <stdio.h>

/* DESIGN 2: whoever waits for a lock here fails. */
static void open_impatient(void)
{
    pay_open();
    test_exec(bus.conn, "SET lock_timeout = '500ms'");
}

TestSuite(reply, .init = open_impatient, .fini = bus_close);

static cb_uuid waiting_process(void)
{
    cb_uuid id = pay_start(bus.db);

    pay_suspend(bus.conn, id, "WAITING_FOR_ASYNC");
    return id;
}

/* A process that waits for a command which is in progress. */
static cb_uuid process_with_command(cb_uuid *command)
{
    cb_uuid id = waiting_process();

    *command = pay_command(bus.conn, id);
    cr_assert_eq(life_receive(), 1);
    return id;
}

/* How many replies are in the queue, and what the inbox has, in its order. */
#define expect_where(expected, id)                                                          \
    expect_value(bus.conn, expected,                                                        \
                 "SELECT concat_ws(' ', (SELECT count(*) FROM pgmq.q_payments__replies), "  \
                 "'queued', (SELECT string_agg(seq || ':' || name, ' ' ORDER BY seq) FROM " \
                 "commandbus.process_inbox WHERE process_id = $1))",                        \
                 (id).text)

Test(reply, is_in_the_inbox_when_the_outcome_is_committed) /* DESIGN 2, 4; RL.2, PM.3 */
{
    cb_uuid command, id = process_with_command(&command);

    life_settle(&command, "SUCCESS");

    expect_where("0 queued 1:SUCCESS", id);
    expect_process("WAITING_FOR_ASYNC 1 t", id, "status, inbox_seq, wake_at <= commandbus.now()");
    expect_process("t", id, "content_bytes >= commandbus.measured_content(process_id) - 100");
    cr_assert_eq(pay_deliver(bus.db, 60).delivered, 0);
    OWNED(cb_process_claim) claim = pay_claim(bus.db, "w", 1, 30);
    cr_assert_eq(cb_process_claim_count(claim), 1);
}

Test(reply, says_the_same_by_either_way) /* CONTRACT: replies */
{
    cb_uuid direct, queued;
    process_with_command(&direct);
    life_settle(&direct, "BUSINESS_RULE");
    process_with_command(&queued);
    BUS_UNHEARD(life_settle(&queued, "BUSINESS_RULE"));
    cr_assert_eq(pay_deliver(bus.db, 60).delivered, 1);

    expect_value(bus.conn, "2 1 FAILED fx E_TEST true",
                 "SELECT concat_ws(' ', count(*), count(DISTINCT (name, payload - 'command_id' - "
                 "'correlation_id')), min(payload ->> 'outcome'), min(payload ->> 'domain'), "
                 "min(payload ->> 'error_code'), min(payload ->> 'final')) "
                 "FROM commandbus.process_inbox WHERE seq = 1");
    expect_value(bus.conn, "1", "SELECT count(DISTINCT content_bytes) FROM commandbus.process");
}

Test(reply, belongs_to_the_transaction_of_the_outcome) /* DESIGN 8.3 */
{
    cb_uuid command, id = process_with_command(&command);
    char *before = bus_contents();

    test_exec(bus.conn, "BEGIN");
    life_settle(&command, "SUCCESS");
    expect_where("0 queued 1:SUCCESS", id);
    test_exec(bus.conn, "ROLLBACK");

    char *after = bus_contents();
    expect_unchanged(before, after);
}

/* DESIGN 2, 8.7: whoever has it, nobody waits. */
Test(reply, goes_to_the_queue_while_somebody_has_the_process_locked)
{
    cb_uuid command, id = process_with_command(&command);

    BUS_UNHEARD(life_settle(&command, "SUCCESS"));

    expect_where("1 queued", id);
    expect_process("0", id, "inbox_seq");
    cr_assert_eq(pay_deliver(bus.db, 60).delivered, 1);
    expect_where("0 queued 1:SUCCESS", id);
}

Test(reply, goes_to_the_queue_when_the_process_has_ended) /* DESIGN 4: late */
{
    cb_uuid command, id = process_with_command(&command);
    pay_suspend(bus.conn, id, "CANCELED");

    life_settle(&command, "SUCCESS");

    expect_where("1 queued", id);
    cr_assert_eq(pay_deliver(bus.db, 60).late, 1);
    expect_told("1", id, "LATE_REPLY");
    expect_process("0", id, "inbox_seq");
}

Test(reply, goes_to_the_queue_when_there_is_no_such_process) /* PM.5 */
{
    cb_uuid nobody = cb_uuid_new(), command = pay_command(bus.conn, nobody);
    cr_assert_eq(life_receive(), 1);

    life_settle(&command, "SUCCESS");

    expect_where("1 queued", nobody);
}

/* An older snapshot cannot pass over what has moved since: it would be an error. */
Test(reply, goes_to_the_queue_in_an_older_snapshot)
{
    cb_uuid command, id = process_with_command(&command);
    life_settle(&command, "PERMANENT");
    test_exec(bus.conn, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT");
    free(test_value(bus.conn, "SELECT count(*) FROM commandbus.process", NULL));
    test_exec(bus.db->conn, "UPDATE commandbus.process SET updated_at = now()");

    test_exec(bus.conn, "SELECT commandbus.tsq_cancel('fx', command_id, 'ann', 'no') "
                        "FROM commandbus.command_metadata; COMMIT");

    expect_where("1 queued 1:FAILED", id);
}

/* DESIGN 4: a run that did not see it leaves the process due. */
Test(reply, that_comes_while_the_process_runs_is_found_when_the_run_settles)
{
    cb_uuid command, id = process_with_command(&command);
    pay_set(bus.conn, id, "wake_at = commandbus.now()");
    OWNED(cb_process_claim) claim = pay_claim(bus.db, "w", 1, 30);
    const cb_process_row *row = cb_process_claim_at(claim, 0);
    char item[300];
    snprintf(item, sizeof item,
             "SELECT verdicts[1] FROM commandbus.settle_processes('w', '[{\"process_id\":\"%s\","
             "\"lease_no\":%ld,\"settle_no\":%ld,\"status\":\"WAITING_FOR_ASYNC\",\"seen\":%ld,"
             "\"wake\":\"TIMERS\"}]')",
             id.text, (long)row->lease_no, (long)row->settle_no, (long)row->inbox_seq);

    life_settle(&command, "SUCCESS");

    expect_where("0 queued 1:SUCCESS", id);
    expect_process("w 1 t", id, "lease_owner, inbox_seq, wake_at > commandbus.now()");
    expect_value(bus.conn, "SETTLED", item);
    expect_process("WAITING_FOR_ASYNC t", id, "status, wake_at <= commandbus.now()");
}

Test(reply, wakes_a_process_whose_worker_has_died) /* DESIGN 8.1 */
{
    cb_uuid command, id = process_with_command(&command);
    pay_set(bus.conn, id,
            "lease_owner = 'dead', lease_until = now() - interval '1 s', wake_at = NULL");

    life_settle(&command, "SUCCESS");

    expect_process("dead t", id, "lease_owner, wake_at <= commandbus.now()");
}

/* One call of settle for everything that is in progress, in the order in which it was sent. */
static void settle_all(const char *outcome)
{
    expect_value(bus.conn, "t",
                 "SELECT 'SETTLED' = ALL (s.verdicts) FROM (SELECT array_agg(command_id ORDER BY "
                 "msg_id) AS ids, array_agg(lease_no) AS fences, array_agg($1::text) AS outcomes "
                 "FROM commandbus.command_metadata WHERE status = 'IN_PROGRESS') c, "
                 "commandbus.settle('fx', 'test', c.ids, c.fences, c.outcomes) s",
                 outcome);
}

/* Several of one process, others', and such that no process sent: each where it belongs. */
Test(reply, of_many_commands_in_one_call_goes_where_each_belongs)
{
    cb_uuid first = waiting_process(), second = waiting_process(), ended = waiting_process();
    for (int i = 0; i < 3; i++) {
        pay_command(bus.conn, first);
        life_send("reply_to => 'fx__replies'");
        life_send(""); /* asks for none */
    }
    pay_command(bus.conn, second);
    pay_command(bus.conn, ended);
    pay_suspend(bus.conn, ended, "COMPLETED");
    cr_assert_eq(life_receive(), 11);

    settle_all("SUCCESS");

    expect_where("1 queued 1:SUCCESS 2:SUCCESS 3:SUCCESS", first);
    expect_where("1 queued 1:SUCCESS", second);
    expect_where("1 queued", ended);
    expect_process("3", first, "inbox_seq");
    expect_number(bus.conn, 3, "SELECT count(DISTINCT message) FROM pgmq.q_fx__replies");
    expect_number(bus.conn, 4,
                  "SELECT count(DISTINCT payload ->> 'command_id') FROM commandbus.process_inbox i "
                  "JOIN commandbus.command_metadata c ON c.process_id = i.process_id "
                  "AND c.command_id::text = i.payload ->> 'command_id'");
}

/* DESIGN 8.6: the queue and the inbox never have the same reply. */
Test(reply, of_two_commands_by_both_ways_arrives_once_each)
{
    cb_uuid first, id = process_with_command(&first);
    cb_uuid second = pay_command(bus.conn, id);
    cr_assert_eq(life_receive(), 1);

    BUS_UNHEARD(life_settle(&first, "BUSINESS_RULE"));
    life_settle(&second, "SUCCESS");
    expect_where("1 queued 1:SUCCESS", id);
    cr_assert_eq(pay_deliver(bus.db, 60).delivered, 1);

    expect_where("0 queued 1:SUCCESS 2:FAILED", id);
    expect_process("2", id, "inbox_seq");
    cr_assert_eq(pay_deliver(bus.db, 60).delivered, 0);
}

Test(reply, that_is_not_final_is_told_as_an_event) /* RL.3 */
{
    cb_uuid command, id = process_with_command(&command);

    life_settle(&command, "PERMANENT");

    expect_where("0 queued 1:FAILED", id);
    expect_value(bus.conn, "REPLY_NOT_FINAL test false E_TEST",
                 "SELECT concat_ws(' ', event, worker, details ->> 'final', "
                 "details ->> 'error_code') FROM commandbus.process_event "
                 "WHERE process_id = $1 AND command_id = $2 AND NOT details ? 'correlation_id'",
                 id.text, command.text);
}

Test(reply, by_an_operator_or_by_a_lease_that_ran_out_comes_the_same_way) /* BUS.6, DESIGN 2 */
{
    static const char *const decisions[] = {
        "SELECT commandbus.tsq_cancel('fx', $1::uuid, 'ann', 'no')",
        "SELECT commandbus.tsq_complete('fx', $1::uuid, 'ann')",
    };
    cb_uuid command;

    for (size_t i = 0; i < CB_COUNT(decisions); i++) {
        cb_uuid id = process_with_command(&command);
        life_settle(&command, "PERMANENT");
        free(test_value(bus.conn, decisions[i], command.text, NULL));
        expect_where(i == 0 ? "0 queued 1:FAILED 2:CANCELED" : "0 queued 1:FAILED 2:SUCCESS", id);
    }
    cb_uuid id = process_with_command(&command);
    test_exec(bus.conn, "UPDATE commandbus.command_metadata SET attempts = max_attempts, "
                        "lease_until = now() - interval '1 s' WHERE status = 'IN_PROGRESS';"
                        "UPDATE pgmq.q_fx__commands SET vt = now() - interval '1 s'");
    wait_until(bus.conn, "SELECT count(*) = 1 FROM commandbus.receive('fx', 'finder', 10, 1) "
                         "WHERE event = 'LEASE_EXHAUSTED'");
    expect_where("0 queued 1:FAILED", id);
    expect_told("1", id, "REPLY_NOT_FINAL");
}

Test(reply, wakes_who_sleeps_on_processes) /* DESIGN 2 wake-up */
{
    cb_uuid command;
    process_with_command(&command);
    test_exec(bus.conn, "LISTEN commandbus_payments__processes;"
                        "SELECT commandbus.sleep_announce('w', '{payments__processes}', 60)");

    life_settle(&command, "SUCCESS");

    free(wait_for_notify(bus.conn));
}

/* DESIGN 8.8: only the row says whose a command is, and only settle_processes writes that. */
Test(reply, of_a_command_that_names_a_process_is_none_to_it)
{
    cb_uuid id = waiting_process();
    char arguments[200];
    snprintf(arguments, sizeof arguments, "correlation_id => '%s', reply_to => 'fx__replies'",
             id.text);

    life_run(arguments, "SUCCESS");

    expect_where("0 queued", id);
    expect_process("0 ", id, "inbox_seq, coalesce(wake_at::text, '')");
    expect_number(bus.conn, 1, "SELECT count(*) FROM pgmq.q_fx__replies");
}

Test(reply, is_not_sent_for_a_command_that_asked_for_none) /* cb_hook_send */
{
    cb_uuid command, id = process_with_command(&command);
    test_exec(bus.conn, "UPDATE commandbus.command_metadata SET reply_to = NULL");

    life_settle(&command, "SUCCESS");

    expect_where("0 queued", id);
}

enum {
    PROCESSES = 60,
    HELPERS = 4
};

typedef struct {
    PGconn *conn[HELPERS];
    int failed[HELPERS];
} helpers;

/* One settles, one responds, one delivers, one claims and lets go. */
static void move_processes(size_t i, void *arg)
{
    static const char *const statements[HELPERS] = {
        "WITH taken AS MATERIALIZED (SELECT command_id, lease_no FROM commandbus.command_metadata "
        "WHERE status = 'IN_PROGRESS' ORDER BY random() LIMIT 3) SELECT commandbus.settle('fx', "
        "'test', array_agg(command_id), array_agg(lease_no), array_agg('SUCCESS'::text)) FROM taken "
        "HAVING count(*) > 0",
        ("SELECT commandbus.respond(process_id, 'L1') FROM (SELECT process_id FROM "
         "commandbus.process ORDER BY random() LIMIT 1) p"),
        "SELECT commandbus.deliver_replies('payments__replies', 'd', 5)",
        "SELECT commandbus.claim_processes('w', '{Pay}', '{1}', 5, 0.001)",
    };
    helpers *h = arg;

    for (int n = 0; n < 120; n++) {
        PGresult *result = PQexec(h->conn[i], statements[i]);
        h->failed[i] += PQresultStatus(result) != PGRES_TUPLES_OK;
        PQclear(result);
    }
}

/* DESIGN 8.6, 2: whatever moves the rows meanwhile, by whichever way, and nobody waits in a
 * circle. */
Test(reply, of_each_command_arrives_once_however_many_move_the_processes)
{
    helpers h = { 0 };
    for (int i = 0; i < PROCESSES; i++)
        pay_command(bus.conn, waiting_process());
    cr_assert_eq(life_receive(), PROCESSES);
    for (int i = 0; i < HELPERS; i++)
        h.conn[i] = test_pq_open(bus.conninfo);

    parallel_run(HELPERS, move_processes, &h);

    for (int i = 0; i < HELPERS; i++) {
        cr_expect_eq(h.failed[i], 0, "%d: %s", i, PQerrorMessage(h.conn[i]));
        PQfinish(h.conn[i]);
    }
    while (pay_deliver(bus.db, 60).delivered > 0)
        continue;
    expect_value(bus.conn, "60 60 0",
                 "SELECT concat_ws(' ', count(*), count(DISTINCT process_id), (SELECT count(*) "
                 "FROM pgmq.q_payments__replies)) FROM commandbus.process_inbox "
                 "WHERE kind = 'REPLY'");
    expect_number(bus.conn, 0,
                  "SELECT count(*) FROM commandbus.process p WHERE inbox_seq <> (SELECT count(*) "
                  "FROM commandbus.process_inbox i WHERE i.process_id = p.process_id)");
}
