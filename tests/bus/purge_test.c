/* Retention: what is finished, old enough, and nobody waits for. */
#include "expect.h"
#include "fixture.h"
#include "life.h"

#include <stdio.h>

TestSuite(purge, .init = bus_open, .fini = bus_close);

/* Makes everything that is there ten days older. */
static void age_everything(void)
{
    test_exec(bus.conn,
              "UPDATE commandbus.command_metadata SET created_at = created_at - interval '10 d', "
              "updated_at = updated_at - interval '10 d', completed_at = completed_at - interval "
              "'10 d', tsq_at = tsq_at - interval '10 d';"
              "UPDATE commandbus.audit SET at = at - interval '10 d';"
              "UPDATE commandbus.batch SET created_at = created_at - interval '10 d', completed_at "
              "= completed_at - interval '10 d';"
              "UPDATE pgmq.q_payments__replies SET enqueued_at = enqueued_at - interval '10 d';"
              "UPDATE pgmq.a_fx__commands SET archived_at = archived_at - interval '10 d';"
              "UPDATE pgmq.a_payments__replies SET archived_at = archived_at - interval '10 d'");
}

static bool command_exists(const cb_uuid *id)
{
    return test_number(bus.conn,
                       "SELECT count(*) FROM commandbus.command_metadata "
                       "WHERE command_id = $1::uuid",
                       id->text, NULL) == 1;
}

/* BUS.10 */
Test(purge, takes_finished_commands_that_are_old_enough_and_no_others)
{
    cb_error e = { 0 };
    cb_uuid done = life_run("", "SUCCESS"), failed = life_run("", "BUSINESS_RULE"),
            canceled = life_into_tsq(""), stuck = life_into_tsq(""), running = life_send("");
    expect_ok(cb_tsq_cancel(bus.db,
                            &(cb_tsq_action){ .domain = "fx",
                                              .command_id = canceled.text,
                                              .operator_name = "ann",
                                              .reason = "old" },
                            &e),
              e);
    cr_assert_eq(life_receive(), 1);
    cb_uuid waiting = life_send("delay_seconds => 3600");
    age_everything();
    cb_uuid young = life_run("", "SUCCESS");

    cb_purge_counts counts = life_purge((cb_purge_options){ .commands = "9 days" });

    cr_assert_eq(counts.commands, 3);
    cr_assert_eq(counts.batches + counts.audit + counts.archives, 0);
    cr_assert(!command_exists(&done) && !command_exists(&failed) && !command_exists(&canceled));
    cr_assert(command_exists(&stuck) && command_exists(&running) && command_exists(&waiting) &&
              command_exists(&young));
}

/* BUS.10: it is the end that counts, not the beginning */
Test(purge, keeps_an_old_command_that_ended_lately)
{
    cb_uuid id = life_send("");
    cr_assert_eq(life_receive(), 1);
    age_everything();
    life_settle(&id, "SUCCESS");

    cb_purge_counts counts = life_purge((cb_purge_options){ .commands = "9 days" });

    cr_assert_eq(counts.commands, 0);
    cr_assert(command_exists(&id));
}

/* BUS.10 */
Test(purge, keeps_a_command_whose_reply_is_unread)
{
    cb_uuid unread = life_run("reply_to => 'payments__replies'", "SUCCESS");
    cb_uuid read = life_run("reply_to => 'payments__replies'", "SUCCESS");
    age_everything();
    test_exec(bus.conn, "SELECT pgmq.archive('payments__replies', max(msg_id)) "
                        "FROM pgmq.q_payments__replies");

    cb_purge_counts counts = life_purge((cb_purge_options){ .commands = "9 days" });
    cr_assert_eq(counts.commands, 1);
    cr_assert(command_exists(&unread) && !command_exists(&read));

    test_exec(bus.conn, "SELECT pgmq.archive('payments__replies', msg_id) "
                        "FROM pgmq.q_payments__replies");
    counts = life_purge((cb_purge_options){ .commands = "9 days" });
    cr_assert_eq(counts.commands, 1);
    cr_assert_not(command_exists(&unread));
}

/* BUS.10 */
Test(purge, takes_members_only_with_their_closed_batch_whose_counts_stay_until_then)
{
    cb_error e = { 0 };
    cb_uuid batch;
    const cb_send book[] = { { .command_type = "BookFx" }, { .command_type = "BookFx" } };
    expect_ok(cb_batch_create(bus.db, &(cb_batch_options){ .domain = "fx" }, book, 2, &batch, &e),
              e);
    cr_assert_eq(life_receive(), 2);
    char *first = test_value(bus.conn,
                             "SELECT min(command_id::text) FROM "
                             "commandbus.command_metadata",
                             NULL);
    char *second = test_value(bus.conn,
                              "SELECT max(command_id::text) FROM "
                              "commandbus.command_metadata",
                              NULL);
    cb_uuid ids[2];
    cr_assert(cb_uuid_parse(first, &ids[0]) && cb_uuid_parse(second, &ids[1]));
    life_settle(&ids[0], "SUCCESS");
    age_everything();

    cb_purge_counts counts = life_purge((cb_purge_options){ .commands = "9 days" });
    cr_assert_eq(counts.commands, 0, "a member went before its batch had closed");

    life_settle(&ids[1], "SUCCESS");
    expect_ok(cb_batch_close(bus.db, NULL, 0, NULL, &e), e);
    counts = life_purge((cb_purge_options){ .commands = "9 days" });
    cr_assert_eq(counts.commands, 1);
    cr_assert_eq(counts.batches, 0);
    expect_value(bus.conn, "2 2",
                 "SELECT concat_ws(' ', total, completed) FROM commandbus.batch_status");

    age_everything();
    counts = life_purge((cb_purge_options){ .commands = "9 days" });
    cr_assert_eq(counts.commands, 1);
    cr_assert_eq(counts.batches, 1);
    expect_number(bus.conn, 0, "SELECT count(*) FROM commandbus.batch");
    free(first);
    free(second);
}

/* BUS.10 */
Test(purge, keeps_the_audit_of_live_commands)
{
    cb_uuid done = life_run("", "SUCCESS"), stuck = life_into_tsq("");
    age_everything();
    cb_uuid young = life_run("", "SUCCESS");

    cb_purge_counts counts = life_purge((cb_purge_options){ .audit = "9 days" });

    cr_assert_eq(counts.audit, 3);
    cr_assert_eq(counts.commands, 0);
    expect_trail("", done);
    expect_trail("SENT RECEIVED MOVED_TO_TSQ", stuck);
    expect_trail("SENT RECEIVED COMPLETED", young);
}

/* BUS.10 */
Test(purge, takes_old_archives_of_every_queue)
{
    life_into_tsq("reply_to => 'payments__replies'");
    test_exec(bus.conn, "SELECT pgmq.archive('payments__replies', msg_id) "
                        "FROM pgmq.q_payments__replies");
    age_everything();
    life_into_tsq("");

    cb_purge_counts counts = life_purge((cb_purge_options){ .archives = "9 days" });

    cr_assert_eq(counts.archives, 2);
    expect_number(bus.conn, 1, "SELECT count(*) FROM pgmq.a_fx__commands");
    expect_number(bus.conn, 0, "SELECT count(*) FROM pgmq.a_payments__replies");
}

/* BUS.10 */
Test(purge, goes_in_small_batches_and_says_how_many_went)
{
    for (int i = 0; i < 5; i++)
        life_run("", "BUSINESS_RULE");
    age_everything();
    const cb_purge_options two = {
        .commands = "9 days", .audit = "9 days", .archives = "9 days", .batch_size = 2
    };
    static const int expected[][3] = { { 2, 2, 2 }, { 2, 2, 2 }, { 1, 2, 1 }, { 0, 2, 0 } };

    for (size_t i = 0; i < 4; i++) {
        cb_purge_counts counts = life_purge(two);
        cr_assert_eq(counts.commands, expected[i][0], "round %zu", i);
        cr_assert_eq(counts.audit, expected[i][1], "round %zu", i);
        cr_assert_eq(counts.archives, expected[i][2], "round %zu", i);
    }
}

/* cb_purge's promise: at most batch_size rows of each kind */
Test(purge, takes_no_more_archives_in_a_round_than_asked_however_many_queues_there_are)
{
    for (int i = 0; i < 3; i++)
        life_into_tsq("reply_to => 'payments__replies'");
    test_exec(bus.conn, "SELECT pgmq.archive('payments__replies', msg_id) "
                        "FROM pgmq.q_payments__replies");
    age_everything();

    cb_purge_counts counts =
        life_purge((cb_purge_options){ .archives = "9 days", .batch_size = 2 });

    cr_assert_eq(counts.archives, 2, "%ld archived messages went", (long)counts.archives);
}

/* BUS.10 */
Test(purge, without_ages_keeps_everything)
{
    life_run("", "SUCCESS");
    life_into_tsq("");
    age_everything();
    char *before = bus_contents();

    cb_purge_counts counts = life_purge((cb_purge_options){ 0 });

    cr_assert_eq(counts.commands + counts.batches + counts.audit + counts.archives, 0);
    expect_unchanged(before, bus_contents());
}

/* BUS.10 */
Test(purge, is_how_far_the_duplicate_check_reaches_back)
{
    cb_error e = { 0 };
    cb_uuid id = life_run("", "SUCCESS");
    const cb_send again = { .domain = "fx", .command_type = "BookFx", .command_id = id.text };
    age_everything();
    expect_error(CB_DUPLICATE_COMMAND, cb_send_command(bus.db, &again, NULL, &e), e);

    cr_assert_eq(life_purge((cb_purge_options){ .commands = "9 days" }).commands, 1);

    expect_ok(cb_send_command(bus.db, &again, NULL, &e), e);
}

/* BUS.10: bad input */
Test(purge, with_negative_ages_or_no_batch_size_is_refused)
{
    static const cb_purge_options bad[] = {
        { .commands = "-1 days" },
        { .audit = "-1 s" },
        { .archives = "-1 month" },
        { .commands = "1 day", .batch_size = -1 },
    };
    cb_purge_counts counts;
    cb_error e = { 0 };
    life_run("", "SUCCESS");
    age_everything();
    char *before = bus_contents();

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_error(CB_INVALID_DATA, cb_purge(bus.db, &bad[i], &counts, &e), e);
    cr_assert_not(cb_purge(bus.db, &(cb_purge_options){ .commands = "soon" }, &counts, &e));

    expect_unchanged(before, bus_contents());
}
