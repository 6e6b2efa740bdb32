/* What every instance reports about the domains of the database, so that alerts fire when nobody
 * serves one. WRK.8 */
#include "embed.h"

#include "engine.h"

TestSuite(fleet_metrics, .init = embed_open, .fini = embed_close);

static cb_outcome give_up(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)command, (void)result;
    return cb_permanent(ctx, "NO_SUCH_ACCOUNT", "it is not there");
}

static cb_worker *figures_often(cb_worker *w)
{
    w->chore_seconds[CHORE_HEARTBEAT] = 0.1;
    w->chore_seconds[CHORE_FIGURES] = 0.1;
    w->chore_seconds[CHORE_FLEET] = 0.1;
    return w;
}

Test(fleet_metrics, a_domain_that_nobody_serves_is_reported_by_whoever_is_left)
{
    test_exec(bus.conn, "SELECT commandbus.register_domain('risk')");
    test_exec(bus.conn, "SELECT commandbus.send('risk', 'BookRisk', '{}')");
    test_exec(bus.conn, "UPDATE pgmq.q_risk__commands SET vt = vt - interval '2 h'");

    cb_worker *w = embed_started(figures_often(embed_worker(HANDLERS({ "Test", wait_at_gate }))));

    await(embed_shows(w, "commandbus_fleet_instances{domain=\"fx\"} 1\n"));
    await(embed_shows(w, "commandbus_fleet_instances{domain=\"risk\"} 0\n"));
    await(embed_shows(w, "commandbus_fleet_oldest_due_seconds{domain=\"risk\"} 72"));
    cr_expect(embed_shows(w, "commandbus_fleet_oldest_due_seconds{domain=\"fx\"} 0.000000\n"));
}

/* STP.16: when the instances that run processes are gone, the others still report them. */
Test(fleet_metrics, processes_that_nobody_runs_are_reported_by_whoever_is_left)
{
    test_exec(bus.conn, "SELECT commandbus.register_process_type('Report', 'fx', 1)");
    test_exec(bus.conn, "SELECT commandbus.start_process('Report', '{}')");
    test_exec(bus.conn, "UPDATE commandbus.process SET wake_at = wake_at - interval '2 h'");

    cb_worker *w = embed_started(figures_often(embed_worker(HANDLERS({ "Test", wait_at_gate }))));

    await(embed_shows(w, "commandbus_processes{process_type=\"Report\",status=\"PENDING\""));
    cr_expect(embed_shows(w, "commandbus_process_oldest_due_seconds{process_type=\"Report\""));
}

Test(fleet_metrics, an_instance_without_slots_or_heartbeat_serves_nobody)
{
    test_exec(bus.conn,
              "SELECT commandbus.heartbeat('idle', '{\"domains\": {\"fx\": {\"slots\": 0}}}')");
    test_exec(bus.conn,
              "SELECT commandbus.heartbeat('gone', '{\"domains\": {\"fx\": {\"slots\": 5}}}')");
    test_exec(bus.conn, "UPDATE commandbus.worker SET heartbeat_at = now() - interval '2 min' "
                        "WHERE worker = 'gone'");

    expect_value(bus.conn, "0", "SELECT instances FROM commandbus.domain_figures()");
}

Test(fleet_metrics, leases_are_shown_beside_their_limit)
{
    const int limit = 2;
    gate_close();
    test_send(bus.db, 5, NULL);

    cb_worker *w = embed_started(
        figures_often(embed_worker(HANDLERS({ "Test", wait_at_gate }),
                                   .domain.concurrent_messages = 4, .domain.fleet_limit = &limit)));

    await(embed_shows(w, "commandbus_fleet_limit{domain=\"fx\"} 2\n"));
    await(embed_shows(w, "commandbus_fleet_leases{domain=\"fx\"} 2\n"));
}

Test(fleet_metrics, commands_in_the_troubleshooting_queue_are_counted)
{
    cb_worker *w = embed_started(figures_often(embed_worker(HANDLERS({ "Test", give_up }))));
    await(embed_shows(w, "commandbus_tsq_commands{domain=\"fx\"} 0\n"));

    test_send(bus.db, 3, NULL);

    await(embed_shows(w, "commandbus_tsq_commands{domain=\"fx\"} 3\n"));
}
