/* Leases of processes: kept while a step runs, lost, and what happens at the end. */
#include "embed.h"

#include <stdio.h>

#include "trip.h"

TestSuite(process_lease, .init = embed_open, .fini = embed_close);

static cb_flow drive_at_gate(cb_process *p, void *state)
{
    (void)state;
    CB_DO(cb_step(p, "fuel", trip_step_at_gate, .timeout_ms = 60000));
    CB_DO(cb_step(p, "drive", trip_step_at_gate, .timeout_ms = 60000));
    return CB_DONE;
}
TRIP_TYPE(Drive, drive_at_gate, .version = 1);

/* One that overruns at once. */
static cb_flow late_execute(cb_process *p, void *state)
{
    (void)state;
    CB_DO(cb_step(p, "fuel", trip_step_at_gate, .timeout_ms = 1));
    return CB_DONE;
}
TRIP_TYPE(Late, late_execute, .version = 1);

#define holder "SELECT coalesce(lease_owner, 'nobody') FROM commandbus.process"

/* DESIGN 2, leases: a step may take longer than one. */
Test(process_lease, is_renewed_while_a_step_runs)
{
    gate_close();
    embed_start(PROCESSES(&Drive), .domain.visibility_timeout_seconds = 1.5);
    cb_worker *other = embed_start(PROCESSES(&Drive), .domain.visibility_timeout_seconds = 1.5);
    cb_uuid id = trip_start("Drive");
    await(gate_waiting() == 1);
    char *until =
        test_value(bus.conn, "SELECT lease_until + interval '1 s' FROM commandbus.process", NULL);

    await_value("t", "SELECT lease_until > $1::timestamptz FROM commandbus.process", until);

    expect_process("1", id, "lease_no");
    free(until);
    gate_open();
    await_process("COMPLETED", id);
    (void)other;
}

/* DESIGN 8.3: who lost the fence changes nothing. */
Test(process_lease, lost_is_what_a_run_came_to_afterwards)
{
    gate_close();
    cb_worker *w = embed_start(PROCESSES(&Drive));
    cb_uuid id = trip_start("Drive");
    await(gate_waiting() == 1);

    test_exec(bus.conn, "UPDATE commandbus.process SET lease_no = lease_no + 1, lease_owner = "
                        "'somebody', lease_until = now() + interval '1 hour', wake_at = now() + "
                        "interval '1 hour'");
    gate_open();

    await(embed_told("process.stale") + embed_told("lease.lost") > 0);
    await(cb_worker_in_flight(w, NULL) == 0);
    expect_process("EXECUTING somebody", id, "status, lease_owner");
    cr_expect_eq(gate_entered(), 1, "the second step must not begin");
}

/* DESIGN 2: BUSY comes with the next flush. */
Test(process_lease, a_locked_row_is_settled_when_it_is_free)
{
    gate_close();
    embed_start(PROCESSES(&Drive));
    cb_uuid id = trip_start("Drive");
    await(gate_waiting() == 1);
    PGconn *locker = test_pq_open(bus.conninfo);
    test_exec(locker, "BEGIN; SELECT FROM commandbus.process FOR UPDATE");
    gate_open();
    await(gate_left() == 1);

    expect_process("EXECUTING 1", id, "status, settle_no");
    test_exec(locker, "COMMIT");

    await_process("COMPLETED", id);
    PQfinish(locker);
}

/* WRK.11: a run stops at its next step and is given back. */
Test(process_lease, draining_ends_at_the_next_step_and_frees_the_process)
{
    gate_close();
    cb_worker *w = embed_start(PROCESSES(&Drive), .domain.visibility_timeout_seconds = 30);
    cb_uuid id = trip_start("Drive");
    await(gate_waiting() == 1);

    cr_expect_not(cb_worker_stop(w, 0.05));
    gate_let(1);
    cr_expect(cb_worker_stop(w, 30));

    expect_value(bus.conn, "nobody", holder);
    expect_process("t 1", id, "wake_at <= commandbus.now(), state ->> 'steps'");
    gate_open();
    embed_start(PROCESSES(&Drive));
    await_process("COMPLETED", id);
    expect_process("2", id, "state ->> 'steps'");
}

/* Nobody but the test gets into the database, and those who are in are thrown out. */
static void set_away(PGconn *admin, bool away)
{
    char *name = test_value(bus.conn, "SELECT current_database()", NULL), sql[200];

    snprintf(sql, sizeof sql, "ALTER DATABASE %s ALLOW_CONNECTIONS %s", name, away ? "off" : "on");
    test_exec(admin, sql);
    free(name);
    if (away)
        test_exec(bus.conn,
                  "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "
                  "current_database() AND pid <> pg_backend_pid()");
}

/* WRK.10: the slot waits for the database. */
Test(process_lease, what_a_run_came_to_is_settled_when_the_database_is_back)
{
    gate_close();
    PGconn *admin = test_pq_open(getenv("COMMANDBUS_TEST_URL"));
    cb_worker *w = embed_start(PROCESSES(&Drive), .domain.visibility_timeout_seconds = 30);
    cb_uuid id = trip_start("Drive");
    await(gate_waiting() == 1);
    set_away(admin, true);
    gate_open();
    await(embed_told("connection.failed") > 0);
    cr_expect_eq(cb_worker_in_flight(w, NULL), 1);

    set_away(admin, false);

    await_process("COMPLETED", id);
    expect_process("2 1", id, "state ->> 'steps', lease_no");
    PQfinish(admin);
}

/* WRK.11: and a worker that ends waits for none. */
Test(process_lease, a_worker_can_end_while_its_database_is_away)
{
    gate_close();
    PGconn *admin = test_pq_open(getenv("COMMANDBUS_TEST_URL"));
    cb_worker *w = embed_start(PROCESSES(&Drive));
    cb_uuid id = trip_start("Drive");
    await(gate_waiting() == 1);
    set_away(admin, true);
    gate_open();

    cb_worker_stop_now(w);
    embed_free(w);

    set_away(admin, false);
    expect_process("EXECUTING", id, "status");
    PQfinish(admin);
}

/* STP.4 */
Test(process_lease, a_step_past_its_timeout_is_reported_and_past_its_grace_breaks_the_worker)
{
    gate_close();
    cb_worker *w = embed_start(PROCESSES(&Late), .worker.kill_grace_seconds = 0.2);
    trip_start("Late");

    await(embed_told("process.step_overdue") == 1);
    await(embed_told("step.stuck") == 1);

    cr_expect(cb_worker_is_broken(w));
    cr_expect_not(cb_worker_stop(w, 30), "it is not waited for");
    gate_open();
}
