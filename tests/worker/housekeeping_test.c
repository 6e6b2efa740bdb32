/* Keeping house: every worker does, none leads. The intervals are made short here; a worker of this
 * process is opened, so that its chores can be told before it starts. */
#include "embed.h"

#include "engine.h"
#include "trip.h"

TestSuite(housekeeping, .init = embed_open, .fini = embed_close);

/* Starts a worker that keeps house several times a second. */
#define keeper(...) embed_started(soon(embed_worker(HANDLERS({ "Test", succeed }), __VA_ARGS__)))

static cb_worker *soon(cb_worker *w)
{
    for (size_t i = 0; i < CHORES; i++)
        w->chore_seconds[i] = 0.2;
    return w;
}

/* BUS.5: the settle committed and then its worker died, before it closed the batch. */
Test(housekeeping, closes_batches_that_a_crash_left_open)
{
    cb_send members[3] = { { .domain = "fx", .command_type = "Test" },
                           { .domain = "fx", .command_type = "Test" },
                           { .domain = "fx", .command_type = "Test" } };
    cb_batch_options options = { .domain = "fx", .reply_to = "payments__replies" };
    cb_error e = { 0 };
    cb_uuid id;
    cr_assert(cb_batch_create(bus.db, &options, members, 3, &id, &e), "%s", e.message);
    test_exec(bus.conn,
              "WITH claimed AS MATERIALIZED (SELECT command_id, lease_no FROM "
              "commandbus.receive('fx', 'dies', 9)) SELECT commandbus.settle('fx', 'dies', "
              "array_agg(command_id), array_agg(lease_no), array_agg('SUCCESS'::text)) FROM "
              "claimed");
    expect_value(bus.conn, "IN_PROGRESS", "SELECT status FROM commandbus.batch");

    keeper(.domain.no_notify = true);

    await_value("COMPLETED 3",
                "SELECT concat_ws(' ', status, completed) FROM commandbus.batch_status");
    await_value("1", "SELECT count(*) FROM pgmq.q_payments__replies");
    await(embed_told("maintenance.done") > 0);
    expect_value(bus.conn, "1",
                 "SELECT count(*) FROM commandbus.audit WHERE event_type = 'BATCH_COMPLETED'");
}

static cb_uuid finished_long_ago(void)
{
    cb_uuid id = test_send_one(bus.db, .domain = "fx");

    expect_verdict(CB_SETTLED, test_run_one(bus.db, "early", CB_PERMANENT));
    test_exec(bus.conn, "SELECT commandbus.tsq_cancel('fx', command_id, 'mona', 'withdrawn') FROM "
                        "commandbus.command_metadata WHERE status = 'IN_TROUBLESHOOTING_QUEUE'");
    test_exec(bus.conn,
              "UPDATE commandbus.command_metadata SET created_at = now() - interval '40 days', "
              "completed_at = now() - interval '40 days' WHERE completed_at IS NOT NULL;"
              "UPDATE commandbus.audit SET at = now() - interval '40 days';"
              "UPDATE pgmq.a_fx__commands SET archived_at = now() - interval '40 days'");
    return id;
}

#define counts                                                                                \
    "SELECT (SELECT count(*) FROM commandbus.command_metadata) || ' commands, ' || "          \
    "(SELECT count(*) FROM commandbus.audit WHERE at < now() - interval '30 days') || ' old " \
    "records, ' || (SELECT count(*) FROM pgmq.a_fx__commands) || ' archived'"

/* BUS.10 */
Test(housekeeping, removes_what_is_past_its_retention)
{
    finished_long_ago();
    cb_uuid young = test_send_one(bus.db, .delay_seconds = 3600);
    expect_value(bus.conn, "2 commands, 4 old records, 1 archived", counts);

    keeper(.worker.keep_commands = "30 days", .worker.keep_audit = "30 days",
           .worker.keep_archives = "30 days");

    await_value("1 commands, 0 old records, 0 archived", counts);
    expect_command("PENDING", young, "status");
}

Test(housekeeping, keeps_for_ever_what_has_no_retention)
{
    finished_long_ago();

    keeper(.worker.keep_audit = "30 days");
    await_value("1 commands, 0 old records, 1 archived", counts);
    await(embed_told("maintenance.done") > 0);

    expect_value(bus.conn, "1 commands, 0 old records, 1 archived", counts);
}

/* A worker that died takes nothing of the fleet with it. */
Test(housekeeping, forgets_sleepers_heartbeats_and_places_of_the_dead)
{
    test_exec(
        bus.conn,
        "INSERT INTO commandbus.sleeper VALUES ('risk__commands', 'dead', now() - interval '1 s'), "
        "('risk__commands', 'live', now() + interval '1 hour');"
        "INSERT INTO commandbus.worker (worker, heartbeat_at) VALUES ('dead', now() - interval '2 "
        "days'), ('silent', now() - interval '1 hour');"
        "INSERT INTO commandbus.fleet_place (place, command_id, lease_no, held_until, "
        "timeout_seconds, domain, worker) VALUES (0, gen_random_uuid(), 1, "
        "now() - interval '1 s', 30, 'risk', 'dead')");

    keeper(.domain.no_notify = true);

    await_value("live", "SELECT string_agg(worker, ' ') FROM commandbus.sleeper");
    await_value("0", "SELECT count(*) FROM commandbus.worker WHERE worker = 'dead'");
    await_value("0", "SELECT count(*) FROM commandbus.fleet_lease");
    expect_value(bus.conn, "1", "SELECT count(*) FROM commandbus.worker WHERE worker = 'silent'");
}

/* Somebody purged the queue by hand. */
Test(housekeeping, gives_commands_whose_message_vanished_a_new_one)
{
    cb_uuid id = test_send_one(bus.db, .domain = "fx");
    test_exec(bus.conn, "SELECT pgmq.purge_queue('fx__commands')");

    keeper(.domain.concurrent_messages = 1);

    await_status("COMPLETED", id);
    await(embed_told("messages.restored") == 1);
}

/* Nobody leads: three of them at the same time do everything once. */
Test(housekeeping, of_several_workers_at_once_does_everything_once)
{
    for (int i = 0; i < 5; i++) {
        cb_send member = { .domain = "fx", .command_type = "Test" };
        cb_batch_options options = { .domain = "fx", .reply_to = "payments__replies" };
        cb_error e = { 0 };
        cr_assert(cb_batch_create(bus.db, &options, &member, 1, NULL, &e), "%s", e.message);
    }
    test_exec(bus.conn,
              "WITH claimed AS MATERIALIZED (SELECT command_id, lease_no FROM "
              "commandbus.receive('fx', 'dies', 9)) SELECT commandbus.settle('fx', 'dies', "
              "array_agg(command_id), array_agg(lease_no), array_agg('SUCCESS'::text)) FROM "
              "claimed");

    for (int i = 0; i < 3; i++)
        keeper(.domain.no_notify = true);

    await_value("5", "SELECT count(*) FROM commandbus.batch WHERE status = 'COMPLETED'");
    expect_value(bus.conn, "5", "SELECT count(*) FROM pgmq.q_payments__replies");
    expect_value(bus.conn, "5",
                 "SELECT count(*) FROM commandbus.audit WHERE event_type = 'BATCH_COMPLETED'");
}

/* ---- what is lost on its way ---- */

/* DESIGN 8.1: what somebody deletes is back within a minute, and a lost reply too. */
Test(housekeeping, looks_for_what_was_lost_every_twenty_seconds)
{
    cb_worker *w = embed_worker(HANDLERS({ "Test", succeed }));

    cr_expect_leq(w->chore_seconds[CHORE_MESSAGES], 20);
    cr_expect_leq(w->chore_seconds[CHORE_REPLIES], 20);
    embed_free(w);
}

/* DESIGN 8.1: with the look of the hour behind it. */
Test(housekeeping, puts_back_at_once_what_was_deleted_by_hand)
{
    keeper(.domain.concurrent_messages = 1);
    await_value("t", "SELECT count(*) = 1 FROM commandbus.chore WHERE chore LIKE 'messages%'");
    cb_uuid id = test_send_one(bus.db, .domain = "fx", .delay_seconds = 3600);

    test_exec(bus.conn, "DELETE FROM pgmq.q_fx__commands");

    await_status("COMPLETED", id);
}

/* DESIGN 8.1: hidden for ever, and no other sign of it. */
Test(housekeeping, reveals_a_message_that_somebody_hid)
{
    cb_uuid id = test_send_one(bus.db, .domain = "fx");
    test_exec(bus.conn, "UPDATE pgmq.q_fx__commands SET vt = 'infinity'");

    keeper(.domain.concurrent_messages = 1);

    await_status("COMPLETED", id);
}

static cb_flow stay_execute(cb_process *p, void *state)
{
    (void)state;
    CB_DO(cb_command_step(p, "bookHotel", NULL, NULL, .domain = "risk", .command_type = "Book"));
    return CB_DONE;
}
TRIP_TYPE(Stay, stay_execute, .version = 1);

/* DESIGN 8.1, 8.6: the reply never reached its inbox; nobody does anything about it by hand. */
Test(housekeeping, gives_a_process_the_reply_that_was_lost)
{
    cb_worker *w = soon(embed_worker(PROCESSES(&Stay)));
    embed_started(w);
    cb_uuid id = trip_start("Stay");
    await_process("WAITING_FOR_ASYNC", id);

    test_exec(bus.conn,
              "BEGIN; WITH claimed AS MATERIALIZED (SELECT command_id, lease_no FROM "
              "commandbus.receive('risk', 'handlers', 9)) SELECT commandbus.settle('risk', "
              "'handlers', array_agg(command_id), array_agg(lease_no), "
              "array_agg('SUCCESS'::text)) FROM claimed; "
              "DELETE FROM commandbus.process_inbox; COMMIT");

    await_process("COMPLETED", id);
    await(embed_told("replies.restored") == 1);
}
