/* Replies that were lost, as rows: found and put back beside those that are being delivered. */
#include "parallel.h"
#include "process_rows.h"

#include <stdio.h>

enum {
    PROCESSES = 200,
    HELPERS = 6 /* every other one delivers */
};

static void open_with_type(void)
{
    bus_open();
    test_exec(bus.conn, "SELECT commandbus.register_process_type('Test', 'payments', 1)");
}

TestSuite(process_replies, .init = open_with_type, .fini = bus_close);

#define waiting "status = 'WAITING_FOR_ASYNC', lease_owner = NULL, lease_until = NULL"

/* So many processes, each waiting for a command that has ended, with its reply in the queue. */
static void answer_all(int n)
{
    for (int i = 0; i < n; i++) {
        cb_uuid id = process_put(waiting);
        process_put_command(&id);
    }
    bus_hold_processes();
    test_exec(bus.conn, "WITH claimed AS MATERIALIZED (SELECT command_id, lease_no FROM "
                        "commandbus.receive('fx', 'w', 1000)) SELECT commandbus.settle('fx', 'w', "
                        "array_agg(command_id), array_agg(lease_no), array_agg('SUCCESS'::text)) "
                        "FROM claimed");
    bus_let_processes_go();
}

typedef struct {
    PGconn *conn[HELPERS];
    int failed[HELPERS];
} helpers;

static void deliver_or_restore(size_t i, void *arg)
{
    static const char *const statements[] = {
        "SELECT commandbus.deliver_replies('payments__replies', 'd', 3)",
        "SELECT commandbus.restore_replies(max_processes => 7)"
    };
    helpers *h = arg;

    for (int n = 0; n < 40; n++) {
        PGresult *result = PQexec(h->conn[i], statements[i % 2]);
        h->failed[i] += PQresultStatus(result) != PGRES_TUPLES_OK;
        PQclear(result);
    }
}

/* DESIGN 8.6: a reply that is on its way and one that is lost, looked at in the same moment. */
Test(process_replies, each_process_gets_one_however_many_deliver_and_restore)
{
    helpers h = { 0 };
    answer_all(PROCESSES);
    test_exec(bus.conn, "DELETE FROM pgmq.q_payments__replies WHERE msg_id % 2 = 0");
    for (int i = 0; i < HELPERS; i++)
        h.conn[i] = test_pq_open(bus.conninfo);

    parallel_run(HELPERS, deliver_or_restore, &h);

    for (int i = 0; i < HELPERS; i++) {
        cr_expect_eq(h.failed[i], 0, "%s", PQerrorMessage(h.conn[i]));
        PQfinish(h.conn[i]);
    }
    test_exec(bus.conn, "SELECT commandbus.deliver_replies('payments__replies', 'd', 1000);"
                        "SELECT commandbus.restore_replies()"); /* what everybody skipped */
    expect_value(
        bus.conn, "200 200 100",
        "SELECT concat_ws(' ', count(*), count(DISTINCT process_id), (SELECT count(*) FROM "
        "commandbus.process_event WHERE event = 'REPLY_RESTORED')) "
        "FROM commandbus.process_inbox WHERE seq = 1");
    expect_value(bus.conn, "0", "SELECT count(*) FROM commandbus.process_inbox WHERE seq > 1");
}

/* DESIGN 8.7: what somebody holds is left for the next look. */
Test(process_replies, of_a_process_or_command_that_is_locked_waits_for_the_next_look)
{
    static const char *const locks[] = {
        "SELECT FROM commandbus.process FOR UPDATE",
        "SELECT FROM commandbus.command_metadata FOR UPDATE",
    };
    answer_all(1);
    test_exec(bus.conn, "DELETE FROM pgmq.q_payments__replies");
    PGconn *other = test_pq_open(bus.conninfo);

    for (size_t i = 0; i < CB_COUNT(locks); i++) {
        test_exec(other, "BEGIN");
        test_exec(other, locks[i]);
        expect_value(bus.conn, "0", "SELECT count(*) FROM commandbus.restore_replies()");
        test_exec(other, "ROLLBACK");
    }
    expect_value(bus.conn, "1", "SELECT count(*) FROM commandbus.restore_replies()");
    PQfinish(other);
}

/* DESIGN 4: a run takes what has come when it settles; the process is looked at again after it. */
Test(process_replies, of_a_process_that_is_run_now_waits_for_the_next_look)
{
    answer_all(1);
    test_exec(bus.conn, "DELETE FROM pgmq.q_payments__replies;"
                        "UPDATE commandbus.process SET lease_owner = 'w', "
                        "lease_until = now() + interval '1 min'");

    expect_value(bus.conn, "0", "SELECT count(*) FROM commandbus.restore_replies()");
    test_exec(bus.conn, "UPDATE commandbus.process SET lease_until = now()");
    expect_value(bus.conn, "1", "SELECT count(*) FROM commandbus.restore_replies()");
}

/* DESIGN 8.8: a command that this process has not sent brings it nothing, whatever its id. */
Test(process_replies, are_made_only_of_commands_that_the_process_sent)
{
    answer_all(1);
    test_exec(bus.conn, "DELETE FROM pgmq.q_payments__replies;"
                        "UPDATE commandbus.command_metadata SET process_id = NULL");

    expect_value(bus.conn, "0", "SELECT count(*) FROM commandbus.restore_replies()");
}

/* One instance at a time looks, and the others need not. */
Test(process_replies, are_looked_for_once_in_an_interval_over_the_fleet)
{
    answer_all(1);
    test_exec(bus.conn, "DELETE FROM pgmq.q_payments__replies");

    expect_value(bus.conn, "1", "SELECT count(*) FROM commandbus.keep_replies(3600, 0)");
    test_exec(bus.conn, "DELETE FROM commandbus.process_inbox");
    expect_value(bus.conn, "0", "SELECT count(*) FROM commandbus.keep_replies(3600, 0)");
    test_exec(bus.conn, "UPDATE commandbus.chore SET next_at = now()");
    expect_value(bus.conn, "1", "SELECT count(*) FROM commandbus.keep_replies(3600, 0)");
}

/* A reply that is younger than the grace is not even looked for. */
Test(process_replies, are_not_lost_within_their_grace)
{
    answer_all(1);
    test_exec(bus.conn, "DELETE FROM pgmq.q_payments__replies");

    expect_value(bus.conn, "0",
                 "SELECT count(*) FROM commandbus.restore_replies(grace_seconds => 60)");
    test_exec(bus.conn, "UPDATE commandbus.process SET updated_at = now() - interval '61 s'");
    expect_value(bus.conn, "0",
                 "SELECT count(*) FROM commandbus.restore_replies(grace_seconds => 60)");
    test_exec(bus.conn, "UPDATE commandbus.command_metadata SET completed_at = completed_at - "
                        "interval '61 s'");
    expect_value(bus.conn, "1",
                 "SELECT count(*) FROM commandbus.restore_replies(grace_seconds => 60)");
}
