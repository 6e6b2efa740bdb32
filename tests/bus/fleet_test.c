/* Heartbeats, what the fleet offers and what waits for it, and keeping house. */
#include <commandbus/fleet.h>
#include <stdio.h>

#include "expect.h"
#include "fixture.h"
#include "life.h"
#include "wait.h"

TestSuite(fleet, .init = bus_open, .fini = bus_close);

static const char details[] =
    "{\"name\": \"w-1\", \"host\": \"node-7\", \"pid\": 42, \"version\": \"1.0.0\", "
    "\"profile\": \"ratelimited-worker\", \"state\": \"draining\", \"uptime_seconds\": 3600, "
    "\"domains\": {\"fx\": {\"slots\": 2, \"in_flight\": 1, \"running\": 1, \"prefetch\": 0, "
    "\"fleet_limit\": 6, \"visibility_timeout\": 30, \"settled\": 123}}}";

static void beat(const char *worker, const char *says)
{
    cb_error e = { 0 };

    expect_ok(cb_heartbeat(bus.db, worker, says, &e), e);
}

static void fall_silent(const char *worker)
{
    free(test_value(bus.conn,
                    "UPDATE commandbus.worker SET heartbeat_at = now() - interval '61 seconds' "
                    "WHERE worker = $1 RETURNING 1",
                    worker, NULL));
}

static void expect_cell(const cb_rows *rows, size_t row, const char *column, const char *expected)
{
    const char *found = cb_rows_get(rows, row, column);

    cr_expect_str_eq(found ? found : "NULL", expected, "%s is %s, not %s", column,
                     found ? found : "NULL", expected);
}

/* The row of fleet_domains for fx. */
static void expect_fx(const char *column, const char *expected)
{
    OWNED(cb_rows) rows = NULL;
    cb_error e = { 0 };

    expect_ok(cb_fleet_domains(bus.db, &rows, &e), e);
    cr_assert_eq(cb_rows_count(rows), 3);
    expect_cell(rows, 0, "domain", "fx");
    expect_cell(rows, 0, column, expected);
}

Test(fleet, shows_an_instance_as_its_heartbeat_has_it) /* BUS.20 */
{
    OWNED(cb_rows) rows = NULL;
    cb_error e = { 0 };
    beat("w-1", "{}");

    beat("w-1", details);

    expect_ok(cb_fleet_workers(bus.db, &rows, &e), e);
    cr_assert_eq(cb_rows_count(rows), 1);
    expect_cell(rows, 0, "worker", "w-1");
    expect_cell(rows, 0, "host", "node-7");
    expect_cell(rows, 0, "pid", "42");
    expect_cell(rows, 0, "profile", "ratelimited-worker");
    expect_cell(rows, 0, "state", "draining");
    cr_expect(strstr(cb_rows_get(rows, 0, "domains"), "\"fx\": {"));
    cr_expect_lt(atof(cb_rows_get(rows, 0, "heartbeat_age_seconds")), patience_seconds);
    /* One that was started again under its old name is as old as it says. */
    expect_value(bus.conn, "t", "SELECT now() - $1::timestamptz BETWEEN '1 hour' AND '61 min'",
                 cb_rows_get(rows, 0, "started_at"));
}

Test(fleet, names_an_instance_silent_for_a_minute_and_does_not_count_it)
{
    OWNED(cb_rows) rows = NULL;
    cb_error e = { 0 };
    beat("w-1", details);
    beat("w-2", details);
    expect_fx("slots", "4");

    fall_silent("w-2");

    expect_ok(cb_fleet_workers(bus.db, &rows, &e), e);
    cr_assert_eq(cb_rows_count(rows), 2);
    expect_value(bus.conn, "w-1 t, w-2 f",
                 "SELECT string_agg(worker || ' ' || live, ', ' ORDER BY worker) "
                 "FROM (SELECT worker, left(live::text, 1) live FROM commandbus.fleet) f");
    expect_fx("instances", "1");
    expect_fx("slots", "2");
    expect_fx("in_flight", "1");
}

Test(fleet, survives_whatever_an_instance_says_of_itself)
{
    static const char *const odd[] = {
        "{}",
        "[]",
        "null",
        "{\"domains\": 3, \"pid\": \"x\", \"uptime_seconds\": 1e300}",
        "{\"domains\": {\"fx\": null, \"nowhere\": {\"slots\": 1}}}",
        "{\"domains\": {\"fx\": {\"slots\": 1e300, \"in_flight\": \"many\"}}}",
    };
    cb_error e = { 0 };

    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        OWNED(cb_rows) workers = NULL;
        OWNED(cb_rows) domains = NULL;
        beat("odd", odd[i]);
        expect_ok(cb_fleet_workers(bus.db, &workers, &e), e);
        cr_expect_eq(cb_rows_count(workers), 1);
        expect_ok(cb_fleet_domains(bus.db, &domains, &e), e);
        cr_expect_eq(cb_rows_count(domains), 3);
    }
    expect_error(CB_DATA, cb_heartbeat(bus.db, "odd", "no JSON", &e), e);
    expect_error(CB_MISUSE, cb_heartbeat(bus.db, "", "{}", &e), e);
    expect_error(CB_MISUSE, cb_retire(bus.db, NULL, &e), e);
}

Test(fleet, forgets_an_instance_that_retires) /* WRK.11 */
{
    static const char *const queues[] = { "fx__commands" };
    cb_error e = { 0 };
    beat("w-1", details);
    beat("w-2", details);
    expect_ok(cb_sleep_announce(bus.db, "w-1", queues, 1, 60, &e), e);
    expect_ok(cb_sleep_announce(bus.db, "w-2", queues, 1, 60, &e), e);

    expect_ok(cb_retire(bus.db, "w-1", &e), e);

    expect_value(bus.conn, "w-2 w-2",
                 "SELECT concat_ws(' ', (SELECT string_agg(worker, ' ') FROM commandbus.worker), "
                 "(SELECT string_agg(worker, ' ') FROM commandbus.sleeper))");
}

Test(fleet, shows_what_waits_and_what_is_leased_in_a_domain)
{
    life_send("");
    life_send("delay_seconds => 60");
    test_exec(bus.conn, "UPDATE pgmq.q_fx__commands SET vt = now() - interval '1 hour', "
                        "enqueued_at = now() - interval '2 hours' WHERE vt <= now()");
    expect_fx("depth", "2");
    expect_fx("visible", "1");
    expect_fx("total_sent", "2");
    expect_fx("live_leases", "0");
    expect_fx("fleet_limit", "0");
    OWNED(cb_rows) rows = NULL;
    cb_error e = { 0 };
    expect_ok(cb_fleet_domains(bus.db, &rows, &e), e);
    cr_expect_float_eq(atof(cb_rows_get(rows, 0, "waiting_seconds")), 3600, 30);
    cr_expect_float_eq(atof(cb_rows_get(rows, 0, "oldest_age_seconds")), 7200, 30);

    cr_assert_eq(life_receive(), 1);

    expect_fx("live_leases", "1");
    expect_fx("visible", "0");
    expect_fx("waiting_seconds", "NULL");
    test_exec(bus.conn,
              "UPDATE commandbus.command_metadata SET lease_until = now() - interval '1 s' "
              "WHERE status = 'IN_PROGRESS'");
    expect_fx("live_leases", "0");
}

static cb_queue_sample sample_of(const char *domain)
{
    cb_queue_sample samples[] = { { .domain = "risk" }, { .domain = domain } };
    cb_error e = { 0 };

    expect_ok(cb_queue_sample_many(bus.db, samples, 2, &e), e);
    cr_expect_eq(samples[0].depth, 0);
    return samples[1];
}

/* Messages that nobody will read, due for an hour. */
static void fill_queue(int n)
{
    char sql[160];

    snprintf(sql, sizeof sql,
             "INSERT INTO pgmq.q_fx__commands (vt, message) "
             "SELECT now() - interval '1 hour', '{}' FROM generate_series(1, %d)",
             n);
    test_exec(bus.conn, sql);
    /* Counted now, and not on top of what somebody counts meanwhile. */
    test_exec(bus.conn, "SELECT pg_stat_force_next_flush()");
}

Test(fleet, samples_are_exact_up_to_ten_thousand_messages) /* BUS.20 */
{
    cr_expect_eq(sample_of("fx").depth, 0);
    cr_expect_eq(sample_of("fx").oldest_due_seconds, 0);
    fill_queue(10000);

    cr_expect_eq(sample_of("fx").depth, 10000);
    cr_expect_float_eq(sample_of("fx").oldest_due_seconds, 3600, patience_seconds);
}

Test(fleet, samples_of_deeper_queues_are_the_servers_estimate_and_never_below)
{
    fill_queue(10001);
    test_exec(bus.conn,
              "SELECT pg_stat_reset_single_table_counters('pgmq.q_fx__commands'::regclass)");
    cr_expect_geq(sample_of("fx").depth, 10000);
    fill_queue(20000);
    test_exec(bus.conn, "ANALYZE pgmq.q_fx__commands; SELECT pg_stat_clear_snapshot()");

    cr_expect_float_eq((double)sample_of("fx").depth, 30001, 100);
}

Test(fleet, samples_say_which_queue_is_gone)
{
    test_exec(bus.conn, "SELECT pgmq.drop_queue('fx__commands')");

    cr_expect_eq(sample_of("fx").depth, -1);
    cr_expect_eq(sample_of("nobody_registered_this").depth, -1);
    expect_fx("depth", "NULL");
    expect_fx("live_leases", "0");
}

Test(fleet, is_tidied_of_what_is_over_and_of_nothing_else) /* BUS.20 */
{
    size_t removed = 0;
    cb_error e = { 0 };
    beat("alive", details);
    beat("silent", details);
    beat("dead", details);
    test_exec(bus.conn, "UPDATE commandbus.worker SET heartbeat_at = now() - interval '23 hours' "
                        "WHERE worker = 'silent'");
    test_exec(bus.conn, "UPDATE commandbus.worker SET heartbeat_at = now() - interval '25 hours' "
                        "WHERE worker = 'dead'");
    test_exec(bus.conn, "SELECT commandbus.sleep_announce('awake', '{fx__commands}', -1), "
                        "commandbus.sleep_announce('asleep', '{fx__commands}', 60)");
    test_exec(bus.conn,
              "INSERT INTO commandbus.fleet_place (place, command_id, lease_no, held_until, "
              "timeout_seconds, domain, worker) SELECT 0, gen_random_uuid(), 1, "
              "now() + make_interval(secs => s), 1, 'fx', 'w' FROM unnest('{-1,60}'::int[]) s");

    expect_ok(cb_fleet_tidy(bus.db, &removed, &e), e);

    cr_expect_eq(removed, 3, "%zu", removed);
    expect_value(bus.conn, "alive silent asleep 1",
                 "SELECT concat_ws(' ', (SELECT string_agg(worker, ' ' ORDER BY worker) FROM "
                 "commandbus.worker), (SELECT string_agg(worker, ' ') FROM commandbus.sleeper), "
                 "(SELECT count(*) FROM commandbus.fleet_lease))");
}

Test(fleet, restores_the_messages_that_somebody_deleted) /* section 8.1 */
{
    size_t restored = 0;
    cb_error e = { 0 };
    life_send("");
    life_send("");
    test_exec(bus.conn, "DELETE FROM pgmq.q_fx__commands");

    expect_ok(cb_messages_restore(bus.db, "fx", &restored, &e), e);

    cr_expect_eq(restored, 2);
    cr_expect_eq(life_receive(), 2);
    expect_error(CB_UNKNOWN_DOMAIN, cb_messages_restore(bus.db, "nobody", &restored, &e), e);
}

Test(fleet, wakes_up_on_the_queues_it_names_or_on_all) /* DESIGN: wake-up */
{
    static const char *const queues[] = { "fx__commands", "fx__replies", "risk__commands" };
    static const char sleeping[] =
        "SELECT string_agg(queue_name, ' ' ORDER BY queue_name) FROM commandbus.sleeper";
    cb_error e = { 0 };
    expect_ok(cb_sleep_announce(bus.db, "w", queues, 3, 60, &e), e);

    expect_ok(cb_sleep_end(bus.db, "other", NULL, 0, &e), e);
    expect_ok(cb_sleep_end(bus.db, "w", queues, 2, &e), e);
    expect_value(bus.conn, "risk__commands", sleeping);

    expect_ok(cb_sleep_end(bus.db, "w", NULL, 0, &e), e);
    expect_value(bus.conn, "", sleeping);
}
