/* Retention of processes: those that have ended, with all that is known of them. */
#include "process_rows.h"

#include <stdio.h>

#include "life.h"

TestSuite(process_purge, .init = bus_open, .fini = bus_close);

#define OLD_END      "status = 'COMPLETED', wake_at = NULL, created_at = now() - interval '20 d'"
#define FREE         ", lease_owner = NULL, lease_until = NULL"
#define TEN_DAYS_AGO ", completed_at = now() - interval '10 d'"
#define ENDED        OLD_END FREE TEN_DAYS_AGO

static bool process_exists(const cb_uuid *id)
{
    return test_number(bus.conn,
                       "SELECT count(*) FROM commandbus.process WHERE process_id = $1::uuid",
                       id->text, NULL) == 1;
}

/* A record, an item in the inbox, an event and an earlier attempt for each process. */
static void fill_tables(void)
{
    test_exec(
        bus.conn,
        "INSERT INTO commandbus.process_history (process_id, at, ordinal, kind, status, name) "
        "SELECT process_id, now(), 1, 'STEP', 'COMPLETED', 's' FROM commandbus.process;"
        "INSERT INTO commandbus.process_inbox (process_id, seq, kind, name, payload) "
        "SELECT process_id, 1, 'RESPONSE', 'r', '{}' FROM commandbus.process;"
        "INSERT INTO commandbus.process_event (process_id, event) "
        "SELECT process_id, 'LATE_REPLY' FROM commandbus.process;"
        "INSERT INTO commandbus.process_attempt (process_id, at, ordinal, attempts, kind, status, "
        "name) SELECT process_id, now(), 1, 1, 'STEP', 'RETRY', 's' FROM commandbus.process");
}

/* DESIGN 4: history is never erased while the process is there */
Test(process_purge, takes_ended_processes_with_everything_and_no_others)
{
    cb_uuid ended = process_put(ENDED), young = process_put(OLD_END FREE ", completed_at = now()"),
            running = process_put("created_at = now() - interval '20 d'"),
            parked = process_park("E"), held = process_put(OLD_END TEN_DAYS_AGO);
    fill_tables();

    cb_purge_counts counts = life_purge((cb_purge_options){ .processes = "9 days" });

    cr_assert_eq(counts.processes, 1);
    cr_assert_eq(counts.commands + counts.batches + counts.audit + counts.archives, 0);
    cr_assert(!process_exists(&ended));
    cr_assert(process_exists(&young) && process_exists(&running) && process_exists(&parked) &&
              process_exists(&held));
    expect_value(bus.conn, "4 4 4 4",
                 "SELECT concat_ws(' ', (SELECT count(*) FROM commandbus.process_history), "
                 "(SELECT count(*) FROM commandbus.process_inbox), "
                 "(SELECT count(*) FROM commandbus.process_event), "
                 "(SELECT count(*) FROM commandbus.process_attempt))");
}

/* NULL keeps that kind forever */
Test(process_purge, takes_none_unless_an_age_is_given)
{
    cb_uuid id = process_put(ENDED);

    cb_purge_counts counts =
        life_purge((cb_purge_options){ .commands = "0 s", .audit = "0 s", .archives = "0 s" });

    cr_assert_eq(counts.processes, 0);
    cr_assert(process_exists(&id));
    expect_sqlstate(bus.conn, "CB011", "SELECT commandbus.purge(processes_older_than => '-1 s')");
}

/* DESIGN 2: never waits, leaves what is locked for the next round */
Test(process_purge, goes_in_small_batches_and_skips_what_is_locked)
{
    cb_uuid locked = process_put(ENDED);
    for (int i = 0; i < 5; i++)
        process_put(ENDED);
    fill_tables();
    PGconn *holder = test_pq_open(bus.conninfo);
    test_exec(holder, "BEGIN");
    expect_value(holder, locked.text,
                 "SELECT process_id FROM commandbus.process WHERE process_id = $1 FOR UPDATE",
                 locked.text);

    static const int rounds[] = { 2, 2, 1, 0 };
    for (size_t i = 0; i < 4; i++)
        cr_assert_eq(
            life_purge((cb_purge_options){ .processes = "9 days", .batch_size = 2 }).processes,
            rounds[i]);

    PQfinish(holder);
    cr_assert(process_exists(&locked));
    expect_number(bus.conn, 1, "SELECT count(*) FROM commandbus.process_history");
}

static void age_commands(void)
{
    test_exec(bus.conn,
              "UPDATE commandbus.command_metadata SET created_at = created_at - interval '20 d', "
              "completed_at = completed_at - interval '20 d'");
}

/* STP.5: what a process that goes on may still ask about stays */
Test(process_purge, keeps_commands_of_a_process_that_has_not_ended)
{
    cb_uuid live = process_put(""), ended = process_put(ENDED);
    char arguments[128];
    snprintf(arguments, sizeof arguments, "correlation_id => '%s'", live.text);
    life_run(arguments, "SUCCESS");
    snprintf(arguments, sizeof arguments, "correlation_id => '%s'", ended.text);
    life_run(arguments, "SUCCESS");
    test_exec(bus.conn, "UPDATE commandbus.command_metadata SET process_id = correlation_id");
    snprintf(arguments, sizeof arguments, "correlation_id => '%s'", live.text);
    life_run(arguments, "SUCCESS"); /* a sender's: it says so, but no process asks about it */
    age_commands();

    cr_assert_eq(life_purge((cb_purge_options){ .commands = "9 days" }).commands, 2);
    expect_value(bus.conn, live.text, "SELECT process_id FROM commandbus.command_metadata");

    test_exec(bus.conn, "UPDATE commandbus.process SET status = 'COMPLETED', completed_at = now()");
    cr_assert_eq(life_purge((cb_purge_options){ .commands = "9 days" }).commands, 1);
}

/* Members go after their batch has closed, the batch after its members. */
Test(process_purge, keeps_processes_of_an_open_batch_and_batches_with_processes)
{
    test_exec(bus.conn,
              "INSERT INTO commandbus.batch (batch_id, domain, batch_type, status, created_at) "
              "VALUES ('11111111-2222-4333-8444-555555555551', 'payments', 'PROCESS', "
              "'IN_PROGRESS', now() - interval '20 d')");
    cb_uuid id = process_put(ENDED ", batch_id = '11111111-2222-4333-8444-555555555551'");

    cr_assert_eq(life_purge((cb_purge_options){ .processes = "9 days" }).processes, 0);
    test_exec(bus.conn, "UPDATE commandbus.batch SET status = 'COMPLETED', "
                        "completed_at = now() - interval '10 d'");
    cr_assert_eq(life_purge((cb_purge_options){ .commands = "9 days" }).batches, 0);
    cb_purge_counts counts =
        life_purge((cb_purge_options){ .commands = "9 days", .processes = "9 days" });

    cr_assert_eq(counts.processes, 1);
    cr_assert_eq(counts.batches, 1);
    cr_assert(!process_exists(&id));
}

/* Counts are asked for as long as their members would be. */
Test(process_purge, keeps_a_closed_batch_as_long_as_its_kind_is_kept)
{
    test_exec(bus.conn,
              "INSERT INTO commandbus.batch (batch_id, domain, batch_type, status, completed_at) "
              "SELECT gen_random_uuid(), 'payments', t, 'COMPLETED', now() - interval '10 d' "
              "FROM unnest('{COMMAND,PROCESS}'::text[]) t");

    cr_assert_eq(
        life_purge((cb_purge_options){ .commands = "20 days", .processes = "9 days" }).batches, 1);
    expect_value(bus.conn, "COMMAND", "SELECT batch_type FROM commandbus.batch");
    cr_assert_eq(life_purge((cb_purge_options){ .processes = "9 days" }).batches, 0);
    cr_assert_eq(life_purge((cb_purge_options){ .commands = "9 days" }).batches, 1);
}
