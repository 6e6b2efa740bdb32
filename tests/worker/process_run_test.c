/* Processes in the slots of a worker. */
#include "embed.h"

#include "trip.h"

TestSuite(process_run, .init = embed_open, .fini = embed_close);

static cb_flow walk_execute(cb_process *p, void *state)
{
    (void)state;
    CB_DO(cb_step(p, "plan", trip_step, .local = true));
    CB_DO(cb_step(p, "leave", trip_step, .local = true));
    return CB_DONE;
}
TRIP_TYPE(Walk, walk_execute, .version = 2);

static cb_flow drive_execute(cb_process *p, void *state)
{
    (void)state;
    CB_DO(cb_step(p, "fuel", trip_step_at_gate, .max_attempts = 1));
    CB_DO(cb_step(p, "drive", trip_step, .max_attempts = 1));
    return CB_DONE;
}
TRIP_TYPE(Drive, drive_execute, .version = 1);

/* STP.3: deferred, a worker that has the type runs it. */
Test(process_run, a_process_of_local_steps_completes_in_one_run)
{
    cb_worker *w = embed_start(PROCESSES(&Walk));

    cb_uuid id = trip_start("Walk");

    await_process("COMPLETED", id);
    expect_process("2 2 1", id, "state ->> 'steps', version, settle_no");
    await(cb_worker_in_flight(w, NULL) == 0);
    cr_expect_eq(embed_told("process.completed"), 1);
}

/* DESIGN 4: a step with an outside effect runs only after its STARTED record is durable. */
Test(process_run, a_step_with_an_effect_begins_after_its_checkpoint)
{
    gate_close();
    cb_worker *w = embed_start(PROCESSES(&Drive));
    cb_uuid id = trip_start("Drive");
    await(gate_waiting() == 1);

    expect_value(bus.conn, "STARTED 1",
                 "SELECT concat_ws(' ', status, attempts) FROM commandbus.process_history WHERE "
                 "process_id = $1 AND name = 'fuel'",
                 id.text);
    expect_process("EXECUTING t", id, "status, lease_owner IS NOT NULL");
    cr_expect_eq(cb_worker_in_flight(w, "fx"), 1);

    gate_open();
    await_process("COMPLETED", id);
}

/* WRK.3 for processes. */
Test(process_run, no_more_run_at_once_than_there_are_slots)
{
    gate_close();
    cb_worker *w = embed_start(PROCESSES(&Drive), .domain.concurrent_messages = 7,
                               .domain.concurrent_processes = 2);
    for (int i = 0; i < 6; i++)
        trip_start("Drive");

    await(gate_waiting() == 2);
    cr_expect_eq(cb_worker_in_flight(w, NULL), 2);
    gate_open();
    await_value("6", "SELECT count(*) FROM commandbus.process WHERE status = 'COMPLETED'");

    cr_expect_eq(gate_most(), 2);
}

/* STP.13: it waits for a worker that has it, and stops nobody. */
Test(process_run, a_type_that_the_worker_does_not_have_is_left_alone)
{
    embed_free(embed_start(PROCESSES(&Drive)));
    embed_start(PROCESSES(&Walk));
    cb_uuid other = trip_start("Drive"), own = trip_start("Walk");

    await_process("COMPLETED", own);
    expect_process("PENDING 0", other, "status, lease_no");

    embed_start(PROCESSES(&Drive));
    await_process("COMPLETED", other);
}

/* DESIGN 4, version skew. */
Test(process_run, what_a_newer_version_wrote_is_left_to_newer_workers)
{
    static const cb_process_type old = {
        .name = "Walk", .domain = "fx", .state = &trip_fields, .execute = walk_execute
    };
    embed_free(embed_start(PROCESSES(&Walk)));
    cb_uuid newer = trip_start("Walk"), fresh = trip_start("Walk");
    test_exec(bus.conn, "UPDATE commandbus.process SET version = 2");
    test_exec(bus.conn, "UPDATE commandbus.process SET version = 0 WHERE process_id = (SELECT "
                        "max(process_id::text)::uuid FROM commandbus.process)");

    embed_start(PROCESSES(&old));

    await_value("1", "SELECT count(*) FROM commandbus.process WHERE status = 'COMPLETED'");
    expect_value(
        bus.conn, "1",
        "SELECT count(*) FROM commandbus.process WHERE status = 'PENDING' AND version = 2");
    (void)newer, (void)fresh;
}

/* STP.11, STP.15: a response wakes it, and so does the clock. */
static cb_flow wait_and_leave(cb_process *p, int64_t timeout_ms)
{
    CB_DO(cb_wait(p, "signal", trip_may_go, .timeout_ms = timeout_ms));
    CB_DO(cb_step(p, "leave", trip_step, .local = true));
    return CB_DONE;
}

static cb_flow wait_execute(cb_process *p, void *state)
{
    (void)state;
    return wait_and_leave(p, 600);
}
TRIP_TYPE(Wait, wait_execute, .version = 1);

static cb_flow patient_execute(cb_process *p, void *state)
{
    (void)state;
    return wait_and_leave(p, CB_MINUTES(60));
}
TRIP_TYPE(Patient, patient_execute, .version = 1);

Test(process_run, a_response_goes_on_with_a_process_that_waits)
{
    embed_start(PROCESSES(&Patient), .domain.poll_interval_seconds = 3600);
    cb_uuid id = trip_start("Patient");
    await_process("WAITING_FOR_ASYNC", id);

    test_exec(bus.conn, "SELECT commandbus.respond(process_id, 'go') FROM commandbus.process");

    await_process("COMPLETED", id);
}

Test(process_run, a_timer_fires_within_a_second_though_nobody_polls)
{
    embed_start(PROCESSES(&Wait), .domain.poll_interval_seconds = 3600);
    cb_uuid id = trip_start("Wait");

    await_process("WAITING_FOR_TSQ", id);

    expect_process("WAIT_TIMEOUT", id, "error_code");
    char *late = test_value(bus.conn,
                            "SELECT extract(epoch FROM p.updated_at - h.timeout_at) FROM "
                            "commandbus.process p JOIN commandbus.process_history h USING "
                            "(process_id) WHERE process_id = $1",
                            id.text, NULL);
    cr_expect(atof(late) >= 0 && atof(late) <= test_slowness(), "%s s late", late);
    free(late);
    await(embed_told("process.parked") == 1); /* told once it is durable */
    cr_expect_str_eq(embed_told_code("process.parked"), "WAIT_TIMEOUT");
}

/* STP.7 */
static cb_outcome fail_twice(cb_context *ctx, void *state)
{
    if (cb_context_attempt(ctx) < 3)
        return cb_transient(ctx, "BUSY", "not now");
    return trip_step(ctx, state);
}

static cb_flow stubborn_execute(cb_process *p, void *state)
{
    (void)state;
    CB_DO(cb_step(p, "knock", fail_twice, .max_attempts = 3, .retry_delay_ms = 10));
    return CB_DONE;
}
TRIP_TYPE(Stubborn, stubborn_execute, .version = 1);

Test(process_run, a_step_that_fails_comes_again_by_its_timer)
{
    embed_start(PROCESSES(&Stubborn));

    cb_uuid id = trip_start("Stubborn");

    await_process("COMPLETED", id);
    await(embed_told("process.retries") == 2);
}
