/* What a worker says of itself to the fleet. */
#include "embed.h"

#include <unistd.h>

#include "engine.h"

TestSuite(heartbeat, .init = embed_open, .fini = embed_close);

#define says(path) "SELECT details #>> '{" path "}' FROM commandbus.worker"

static cb_worker *beat_often(cb_worker *w)
{
    w->chore_seconds[CHORE_HEARTBEAT] = 0.1;
    return w;
}

/* WRK.2 and what `commandbus fleet` shows */
Test(heartbeat, says_who_where_and_how_much)
{
    const int limit = 30;
    char pid[16], host[256] = "";
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    gethostname(host, sizeof host - 1);
    const cb_worker_domain_options more[] = { { .domain = "risk" } };

    cb_worker *w = embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.concurrent_messages = 7,
                               .domain.prefetch = 2, .domain.fleet_limit = &limit,
                               .domain.visibility_timeout_seconds = 2.5, .worker.name = "till-4",
                               .worker.profile = "ratelimited-worker", .more = more, .n_more = 1);

    expect_value(bus.conn, cb_worker_id(w), "SELECT worker FROM commandbus.worker");
    expect_value(bus.conn, "till-4", says("name"));
    expect_value(bus.conn, host, says("host"));
    expect_value(bus.conn, pid, says("pid"));
    expect_value(bus.conn, "ratelimited-worker", says("profile"));
    expect_value(bus.conn, cb_version_string(), says("version"));
    expect_value(bus.conn, "7", says("domains,fx,slots"));
    expect_value(bus.conn, "2", says("domains,fx,prefetch"));
    expect_value(bus.conn, "30", says("domains,fx,fleet_limit"));
    expect_value(bus.conn, "2.5", says("domains,fx,visibility_timeout"));
    expect_value(bus.conn, "5", says("domains,risk,slots"));
    expect_value(bus.conn, "", says("domains,risk,fleet_limit"));
    await_value("running", says("state"));
}

Test(heartbeat, follows_the_work)
{
    gate_close();
    test_send(bus.db, 4, NULL);
    embed_started(beat_often(embed_worker(HANDLERS({ "Test", wait_at_gate }),
                                          .domain.concurrent_messages = 2, .domain.prefetch = 1)));

    await_value("3", says("domains,fx,in_flight"));
    await_value("2", says("domains,fx,running"));
    gate_open();

    await_value("0", says("domains,fx,in_flight"));
    await_value("4", says("domains,fx,settled"));
    char *first = test_value(bus.conn, "SELECT heartbeat_at FROM commandbus.worker", NULL);
    await_value("t", "SELECT heartbeat_at > $1::timestamptz FROM commandbus.worker", first);
    free(first);
}

Test(heartbeat, says_that_it_drains_and_goes_with_a_clean_stop)
{
    gate_close();
    test_send_one(bus.db, .timeout_seconds = 60);
    cb_worker *w = embed_started(beat_often(embed_worker(HANDLERS({ "Test", wait_at_gate }))));
    await(gate_waiting() == 1);

    cr_expect(!cb_worker_stop(w, 0));
    await_value("draining", says("state"));
    gate_open();
    cr_expect(cb_worker_stop(w, patience_seconds));

    expect_value(bus.conn, "0", "SELECT count(*) FROM commandbus.worker");
}
