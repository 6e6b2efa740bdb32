/* Messages that no command stands behind, in the middle of good ones. */
#include "embed.h"

TestSuite(poison, .init = embed_open, .fini = embed_close);

#define good     "SELECT count(*) FROM commandbus.command_metadata WHERE status = 'COMPLETED'"
#define archived "SELECT count(*) FROM commandbus.audit WHERE event_type = 'POISON_ARCHIVED'"

/* Whether the metrics say so. */
static bool metrics_say(cb_worker *w, const char *line)
{
    char *text = NULL;
    cb_error e = { 0 };

    cr_assert(cb_worker_metrics(w, &text, &e), "%s", e.message);
    bool said = strstr(text, line);
    free(text);
    return said;
}

/* WRK.9 */
Test(poison, of_every_kind_is_archived_audited_and_counted_and_the_others_of_its_claim_are_run)
{
    cb_uuid before[5], after[5];
    test_send(bus.db, CB_COUNT(before), before);
    test_exec(
        bus.conn,
        "SELECT pgmq.send('fx__commands', m::jsonb) FROM unnest(ARRAY['[]', '17', '\"text\"', "
        "'null', '{}', '{\"command_id\":\"x\"}', '{\"command_type\":\"Test\",\"data\":{}}', "
        "'{\"domain\":\"fx\",\"command_type\":\"Test\",\"data\":{},"
        "\"command_id\":\"00000000-0000-4000-8000-000000000000\","
        "\"correlation_id\":\"00000000-0000-4000-8000-000000000000\"}']) m");
    /* A copy of a message whose command is there: it must not be run twice. */
    test_exec(bus.conn, "SELECT pgmq.send('fx__commands', message) FROM pgmq.q_fx__commands "
                        "ORDER BY msg_id LIMIT 1");
    test_send(bus.db, CB_COUNT(after), after);

    cb_worker *w =
        embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.concurrent_messages = 40);
    await_value("10", good);
    await_value("9", archived);

    cr_expect_eq(gate_entered(), 10);
    expect_value(bus.conn, "0", "SELECT count(*) FROM pgmq.q_fx__commands");
    expect_value(bus.conn, "9", "SELECT count(*) FROM pgmq.a_fx__commands");
    expect_value(bus.conn, "10", "SELECT count(*) FROM pgmq.q_payments__replies");
    await(embed_told("message.poisoned") > 0);
    cr_expect(metrics_say(w, "commandbus_poison_archived_total{domain=\"fx\"} 9"));
}

/* WRK.9: a finished command whose message somebody put back. */
Test(poison, that_names_a_finished_command_does_not_run_it_again)
{
    cb_uuid id = test_send_one(bus.db, .reply_to = "payments__replies");
    embed_start(HANDLERS({ "Test", wait_at_gate }));
    await_status("COMPLETED", id);

    test_exec(bus.conn,
              "INSERT INTO pgmq.q_fx__commands (msg_id, vt, message) OVERRIDING SYSTEM VALUE "
              "SELECT msg_id, now(), jsonb_build_object('command_id', command_id) "
              "FROM commandbus.command_metadata");
    await_value("1", archived);

    expect_trail("SENT RECEIVED COMPLETED POISON_ARCHIVED", id);
    expect_messages("0 queued, 1 archived, 1 replied", id);
    cr_expect_eq(gate_entered(), 1);
}

/* 8.7: nothing but poison for several claims in a row. */
Test(poison, in_masses_does_not_keep_the_good_ones_waiting)
{
    test_exec(bus.conn, "SELECT pgmq.send_batch('fx__commands', array_agg('[]'::jsonb)) "
                        "FROM generate_series(1, 300)");
    test_send(bus.db, 10, NULL);

    embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.concurrent_messages = 4);

    await_value("10", good);
    await_value("300", archived);
}
