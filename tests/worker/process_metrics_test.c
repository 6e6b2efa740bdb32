/* What a worker reports about the processes that it runs. STP.16 */
#include "embed.h"

#include <stdio.h>

#include "engine.h"
#include "trip.h"

TestSuite(process_metrics, .init = embed_open, .fini = embed_close);

static cb_outcome refuse(cb_context *ctx, void *state)
{
    (void)state;
    return cb_permanent(ctx, "NO_FUEL", "the tank is empty");
}

static cb_flow drive_at_signal(cb_process *p, void *state)
{
    trip *t = state;

    CB_DO(cb_step(p, "plan", trip_step, .local = true));
    CB_DO(cb_wait(p, "signal", trip_may_go, .timeout_ms = 60000));
    CB_DO(cb_step(p, "drive", t->steps > 1 ? trip_step : refuse, .max_attempts = 1));
    return CB_DONE;
}
TRIP_TYPE(Drive, drive_at_signal, .version = 3);

static cb_worker *every_chore_often(cb_worker *w)
{
    for (size_t i = 0; i < CHORES; i++)
        w->chore_seconds[i] = 0.1;
    return w;
}

#define of_type "{domain=\"fx\",process_type=\"Drive\""

Test(process_metrics, count_runs_steps_replays_and_what_is_parked_by_code)
{
    cb_worker *w = embed_started(every_chore_often(embed_worker(PROCESSES(&Drive))));
    cb_uuid id = trip_start("Drive");
    await_process("WAITING_FOR_ASYNC", id);
    await(embed_shows(w, "commandbus_processes{process_type=\"Drive\",status=\"WAITING_FOR_ASYNC\","
                         "error_code=\"\"} 1\n"));

    test_exec(bus.conn, "SELECT commandbus.respond(process_id, 'go') FROM commandbus.process");
    await_process("WAITING_FOR_TSQ", id);

    await(cb_worker_in_flight(w, NULL) == 0);
    cr_expect(embed_shows(w, "commandbus_process_runs_total" of_type
                             ",status=\"WAITING_FOR_ASYNC\"} 1\n"));
    cr_expect(
        embed_shows(w, "commandbus_process_runs_total" of_type ",status=\"WAITING_FOR_TSQ\"} 1\n"));
    cr_expect(embed_shows(w, "commandbus_process_run_duration_seconds_count" of_type "} 2\n"));
    cr_expect(embed_shows(w, "commandbus_processes_claimed_total{domain=\"fx\"} 2\n"));
    cr_expect(embed_shows(w, "commandbus_process_steps_total{domain=\"fx\"} 2\n"));
    cr_expect(embed_shows(w, "commandbus_process_checkpoints_total{domain=\"fx\"} 1\n"));
    cr_expect(embed_shows(w, "commandbus_process_settles_total{domain=\"fx\"} 2\n"));
    cr_expect(embed_shows(w, "commandbus_process_timer_lag_seconds_count{domain=\"fx\"} 2\n"));
    await(embed_shows(w, "status=\"WAITING_FOR_TSQ\",error_code=\"PERMANENT_FAILURE\"} 1\n"));
}

Test(process_metrics, tell_how_long_a_process_has_been_due)
{
    cb_worker *w = embed_start(PROCESSES(&Drive));
    cb_error e = { 0 };
    await_process("WAITING_FOR_ASYNC", trip_start("Drive"));
    cr_assert(cb_worker_stop(w, 30)); /* now nobody runs it */
    test_exec(bus.conn, "UPDATE commandbus.process SET wake_at = now() - interval '2 h'");

    cr_assert(process_figures_take(w, bus.db, &e), "%s", e.message);

    cr_expect(embed_shows(w, "commandbus_process_oldest_due_seconds{process_type=\"Drive\","
                             "status=\"WAITING_FOR_ASYNC\",error_code=\"\"} 72"));
}

/* S4: processes that wait, by what for, and since when */
Test(process_metrics, count_processes_by_what_they_wait_for_and_show_the_oldest)
{
    cb_worker *w = embed_start(PROCESSES(&Drive));
    cb_uuid first = trip_start("Drive"), second = trip_start("Drive");
    cb_error e = { 0 };
    await_process("WAITING_FOR_ASYNC", first);
    await_process("WAITING_FOR_ASYNC", second);
    cr_assert(cb_worker_stop(w, 30));
    test_exec(bus.conn, "UPDATE commandbus.process SET updated_at = updated_at - interval '2 h' "
                        "WHERE process_id = (SELECT min(process_id::text)::uuid FROM "
                        "commandbus.process)");

    cr_assert(process_figures_take(w, bus.db, &e), "%s", e.message);

    cr_expect(embed_shows(w, "commandbus_processes_by_wait{process_type=\"Drive\","
                             "status=\"WAITING_FOR_ASYNC\",wait=\"signal\"} 2\n"));
    cr_expect(embed_shows(w, "commandbus_process_oldest_seconds{process_type=\"Drive\","
                             "status=\"WAITING_FOR_ASYNC\",wait=\"signal\"} 72"));
    cr_expect(!embed_shows(w, "commandbus_process_oldest_reply_wait_seconds{"),
              "it is not a reply");
}

Test(process_metrics, tell_how_long_a_wait_took) /* S4 */
{
    cb_worker *w = embed_start(PROCESSES(&Drive));
    cb_uuid id = trip_start("Drive");
    await_process("WAITING_FOR_ASYNC", id);
    cr_expect(!embed_shows(w, "commandbus_process_wait_duration_seconds_count"), "it is not over");

    test_exec(bus.conn, "SELECT commandbus.respond(process_id, 'go') FROM commandbus.process");

    await(embed_shows(w, "commandbus_process_wait_duration_seconds_count" of_type
                         ",name=\"signal\"} 1\n"));
    cr_expect(!embed_shows(w, "commandbus_process_command_duration_seconds_count"));
}

/* ---- a command step ---- */

static cb_flow ask_execute(cb_process *p, void *state)
{
    (void)state;
    CB_DO(cb_command_step(p, "book", NULL, NULL, .domain = "risk", .command_type = "Book"));
    return CB_DONE;
}
TRIP_TYPE(Ask, ask_execute, .version = 1);

/* S4: WAITING_FOR_ASYNC is also the status of a process that waits for a reply */
Test(process_metrics, tell_how_long_a_command_step_has_waited_and_how_long_it_took)
{
    test_exec(bus.conn, "SELECT commandbus.register_domain('risk')");
    cb_worker *w = embed_started(every_chore_often(embed_worker(PROCESSES(&Ask))));
    cb_uuid id = trip_start("Ask");
    await_process("WAITING_FOR_ASYNC", id);

    test_exec(bus.conn, "UPDATE commandbus.process SET updated_at = updated_at - interval '2 h'");
    await(embed_shows(w, "commandbus_process_oldest_reply_wait_seconds{process_type=\"Ask\","
                         "status=\"WAITING_FOR_ASYNC\",error_code=\"\"} 72"));
    cr_expect(!embed_shows(w, "commandbus_process_command_duration_seconds_count"),
              "it is not over");

    test_exec(bus.conn,
              "UPDATE commandbus.process_history SET at = at - interval '2 h';"
              "SELECT (commandbus.settle('risk', 'me', array_agg(command_id), array_agg(lease_no), "
              "ARRAY['SUCCESS'])).verdicts FROM commandbus.receive('risk', 'me', 1)");
    await_process("COMPLETED", id);
    cr_expect(embed_shows(w, "commandbus_process_command_duration_seconds_count{domain=\"fx\","
                             "process_type=\"Ask\",name=\"book\"} 1\n"));
    cr_expect(embed_shows(w, "commandbus_process_command_duration_seconds_sum{domain=\"fx\","
                             "process_type=\"Ask\",name=\"book\"} 72"));
    cr_expect(!embed_shows(w, "commandbus_process_wait_duration_seconds_count"));
}

Test(process_metrics, the_heartbeat_says_which_processes_it_runs)
{
    embed_start(PROCESSES(&Drive), .domain.concurrent_messages = 4,
                .domain.concurrent_processes = 9);

    expect_value(bus.conn, "9 [\"Drive\"] {\"Drive\": 3}",
                 "SELECT concat_ws(' ', details #> '{domains,fx,process_slots}', details #> "
                 "'{domains,fx,process_types}', details -> 'processes') FROM commandbus.worker");
}

/* BUS.10 */
Test(process_metrics, retention_removes_processes_that_have_ended)
{
    cb_worker *w = embed_started(
        every_chore_often(embed_worker(PROCESSES(&Drive), .worker.keep_processes = "30 days")));
    cb_uuid old = trip_start("Drive"), live = trip_start("Drive");
    await_process("WAITING_FOR_ASYNC", old);
    await_process("WAITING_FOR_ASYNC", live);
    await(cb_worker_in_flight(w, NULL) == 0);

    char sql[300];
    snprintf(
        sql, sizeof sql,
        "UPDATE commandbus.process SET status = 'COMPLETED', wake_at = NULL, created_at = now() "
        "- interval '40 days', completed_at = now() - interval '40 days' WHERE process_id = "
        "'%s'",
        old.text);
    test_exec(bus.conn, sql);

    await_value(live.text, "SELECT string_agg(process_id::text, ' ') FROM commandbus.process");
}

/* ---- a manager that waits for a reply ---- */

static int ask_first(const void *state)
{
    (void)state;
    return 1;
}

static int ask_next(int step, const void *state)
{
    (void)step;
    (void)state;
    return CB_STEP_NONE;
}

Test(process_metrics, tell_how_long_a_manager_has_waited_for_a_reply) /* PM.6 */
{
    static const cb_manager_step steps[] = { { 0 }, { "ask", .command_type = "Ask" } };
    static const cb_process_manager manager = {
        .first_step = ask_first, .next_step = ask_next, .steps = steps, .n_steps = 2
    };
    static const cb_process_type asking = {
        .name = "Asking", .domain = "fx", .state = &trip_fields, .manager = &manager
    };
    cb_worker *w = embed_started(every_chore_often(embed_worker(PROCESSES(&asking))));
    cb_uuid id = trip_start("Asking");
    await_process("WAITING_FOR_REPLY", id);

    test_exec(bus.conn, "UPDATE commandbus.process SET updated_at = updated_at - interval '2 h'");
    await(embed_shows(w,
                      "commandbus_processes{process_type=\"Asking\",status=\"WAITING_FOR_REPLY\","
                      "error_code=\"\"} 1\n"));
    await(embed_shows(w, "commandbus_process_oldest_reply_wait_seconds{process_type=\"Asking\","
                         "status=\"WAITING_FOR_REPLY\",error_code=\"\"} 72"));
}
