/* Batches: created whole, counted by their rows, closed once. */
#include "expect.h"
#include "fixture.h"
#include "life.h"

#include <stdio.h>

TestSuite(batch, .init = bus_open, .fini = bus_close);

/* A batch of n commands whose completion message goes to payments__replies. */
static cb_uuid create_batch_of(size_t n)
{
    static const cb_send book = { .command_type = "BookFx", .max_attempts = 1 };
    cb_send commands[16];
    cb_uuid id;
    cb_error e = { 0 };

    for (size_t i = 0; i < n; i++)
        commands[i] = book;
    expect_ok(cb_batch_create(bus.db,
                              &(cb_batch_options){ .domain = "fx",
                                                   .name = "month end",
                                                   .custom_data = "{\"run\": 7}",
                                                   .reply_to = "payments__replies" },
                              commands, n, &id, &e),
              e);
    return id;
}

static cb_uuid member_of(const cb_uuid *batch, int i)
{
    cb_uuid id;
    char number[16];

    snprintf(number, sizeof number, "%d", i);
    char *text = test_value(bus.conn,
                            "SELECT command_id FROM commandbus.command_metadata WHERE batch_id = "
                            "$1::uuid ORDER BY msg_id OFFSET $2::integer LIMIT 1",
                            batch->text, number, NULL);
    cr_assert(cb_uuid_parse(text, &id));
    free(text);
    return id;
}

/* Through the library, which closes the batch when this was the last. */
static void settle_member(const cb_uuid *id, cb_outcome outcome)
{
    char *lease = life_column(id, "lease_no");
    cb_settlement item = { .domain = "fx",
                           .command_id = *id,
                           .lease_no = strtol(lease, NULL, 10),
                           .outcome = outcome,
                           .error_code = outcome == CB_SUCCESS ? NULL : "E_TEST" };
    cb_error e = { 0 };

    expect_ok(cb_settle(bus.db, "test", &item, 1, &e), e);
    cr_assert_eq(item.verdict, CB_SETTLED);
    free(lease);
}

/* status total/completed/failed/canceled, tsq/in progress/pending */
/* BUS.5 */
Test(batch, is_created_with_its_commands_in_one_transaction)
{
    cb_uuid id = create_batch_of(3);

    expect_batch("PENDING 3/0/0/0, 0/0/3", id);
    expect_value(bus.conn, "t",
                 "SELECT (domain, name, batch_type, custom_data, reply_to) = ('fx', 'month end', "
                 "'COMMAND', '{\"run\": 7}', 'payments__replies') AND started_at IS NULL AND "
                 "completed_at IS NULL FROM commandbus.batch WHERE batch_id = $1::uuid",
                 id.text);
    expect_number(bus.conn, 3, "SELECT count(*) FROM pgmq.q_fx__commands");
    expect_number(bus.conn, 3, "SELECT count(*) FROM commandbus.audit WHERE event_type = 'SENT'");
}

/* BUS.5 */
Test(batch, lives_from_pending_to_completed_with_one_message_at_the_end)
{
    cb_uuid id = create_batch_of(2);
    cb_uuid first = member_of(&id, 0), second = member_of(&id, 1);

    cr_assert_eq(life_receive(), 2);
    expect_batch("IN_PROGRESS 2/0/0/0, 0/2/0", id);
    settle_member(&first, CB_SUCCESS);
    expect_batch("IN_PROGRESS 2/1/0/0, 0/1/0", id);
    expect_batch_told(0, id, "payments__replies");
    settle_member(&second, CB_SUCCESS);

    expect_batch("COMPLETED 2/2/0/0, 0/0/0", id);
    expect_batch_told(1, id, "payments__replies");
    expect_value(bus.conn, "t",
                 "SELECT message = jsonb_build_object('batch_id', $1::text, 'domain', 'fx', "
                 "'status', 'COMPLETED', 'total', 2, 'completed', 2, 'failed', 0, 'canceled', 0) "
                 "FROM pgmq.q_payments__replies",
                 id.text);
    expect_value(bus.conn, "BATCH_STARTED BATCH_COMPLETED",
                 "SELECT string_agg(event_type, ' ' ORDER BY at) FROM commandbus.audit "
                 "WHERE details ->> 'batch_id' = $1",
                 id.text);
    expect_value(bus.conn, "t",
                 "SELECT created_at <= started_at AND started_at <= completed_at "
                 "FROM commandbus.batch");
}

/* BUS.5 */
Test(batch, with_failures_says_so)
{
    cb_uuid id = create_batch_of(3);
    cb_uuid members[] = { member_of(&id, 0), member_of(&id, 1), member_of(&id, 2) };
    cb_error e = { 0 };
    life_receive();
    settle_member(&members[0], CB_SUCCESS);
    settle_member(&members[1], CB_BUSINESS_RULE);
    settle_member(&members[2], CB_PERMANENT);

    expect_ok(cb_tsq_cancel(bus.db,
                            &(cb_tsq_action){ .domain = "fx",
                                              .command_id = members[2].text,
                                              .operator_name = "ann",
                                              .reason = "no longer wanted" },
                            &e),
              e);

    expect_batch("COMPLETED_WITH_FAILURES 3/1/1/1, 0/0/0", id);
    expect_batch_told(1, id, "payments__replies");
}

/* BUS.5: a command in the TSQ is not done */
Test(batch, stays_open_while_a_member_is_in_the_troubleshooting_queue)
{
    cb_uuid id = create_batch_of(2);
    cb_uuid done = member_of(&id, 0), stuck = member_of(&id, 1);
    cb_error e = { 0 };
    size_t closed = 99;
    life_receive();
    settle_member(&stuck, CB_PERMANENT);
    settle_member(&done, CB_SUCCESS);

    expect_ok(cb_batch_close(bus.db, NULL, 0, &closed, &e), e);
    cr_assert_eq(closed, 0);
    expect_batch("IN_PROGRESS 2/1/0/0, 1/0/0", id);
    expect_batch_told(0, id, "payments__replies");

    expect_ok(cb_tsq_retry(bus.db,
                           &(cb_tsq_action){
                               .domain = "fx", .command_id = stuck.text, .operator_name = "ann" },
                           &e),
              e);
    expect_batch("IN_PROGRESS 2/1/0/0, 0/0/1", id);
    cr_assert_eq(life_receive(), 1);
    settle_member(&stuck, CB_SUCCESS);
    expect_batch("COMPLETED 2/2/0/0, 0/0/0", id);
    expect_batch_told(1, id, "payments__replies");
}

/* BUS.5 */
Test(batch, can_be_added_to_while_it_is_open)
{
    cb_uuid id = create_batch_of(1);
    cb_error e = { 0 };
    const cb_send more[] = {
        { .domain = "fx", .command_type = "BookFx", .batch_id = id.text },
        { .domain = "fx", .command_type = "ReleaseFx", .batch_id = id.text },
    };
    const cb_send stranger = { .domain = "risk", .command_type = "BookRisk", .batch_id = id.text };

    expect_ok(cb_send_command(bus.db, &more[0], NULL, &e), e);
    expect_ok(cb_send_many(bus.db, more, 2, NULL, NULL, NULL, &e), e);

    expect_batch("PENDING 4/0/0/0, 0/0/4", id);
    cr_assert_not(cb_send_command(bus.db, &stranger, NULL, &e));
    cr_assert_eq(e.code, CB_INVALID_OPERATION, "%s", e.message);
}

/* BUS.5 */
Test(batch, that_is_closed_or_unknown_takes_no_more)
{
    cb_uuid id = create_batch_of(1), unknown = cb_uuid_new();
    cb_uuid only = member_of(&id, 0);
    cb_error e = { 0 };
    cb_send command = { .domain = "fx", .command_type = "BookFx", .batch_id = id.text };
    life_receive();
    settle_member(&only, CB_SUCCESS);
    char *before = bus_contents();

    expect_error(CB_BATCH_CLOSED, cb_send_command(bus.db, &command, NULL, &e), e);
    cr_assert(*e.hint);
    expect_error(CB_BATCH_CLOSED, cb_send_many(bus.db, &command, 1, NULL, NULL, NULL, &e), e);
    command.batch_id = unknown.text;
    expect_error(CB_BATCH_NOT_FOUND, cb_send_command(bus.db, &command, NULL, &e), e);
    expect_error(CB_BATCH_NOT_FOUND, cb_send_many(bus.db, &command, 1, NULL, NULL, NULL, &e), e);

    expect_unchanged(before, bus_contents());
}

/* BUS.5 */
Test(batch, that_could_not_work_is_refused_and_nothing_is_created)
{
    cb_error e = { 0 };
    cb_uuid taken = create_batch_of(1);
    const cb_send good = { .command_type = "BookFx" };
    const cb_send elsewhere = { .command_type = "BookRisk", .domain = "risk" };
    const cb_send twice[] = {
        { .command_type = "BookFx", .command_id = "0190c2a0-0000-7000-8000-000000000001" },
        { .command_type = "BookFx", .command_id = "0190c2a0-0000-7000-8000-000000000001" },
    };
    const cb_batch_options fx = { .domain = "fx" };
    char *before = bus_contents();

    expect_error(CB_BATCH_EMPTY, cb_batch_create(bus.db, &fx, NULL, 0, NULL, &e), e);
    expect_error(CB_INVALID_DATA, cb_batch_create(bus.db, &fx, &elsewhere, 1, NULL, &e), e);
    expect_error(CB_DUPLICATE_COMMAND, cb_batch_create(bus.db, &fx, twice, 2, NULL, &e), e);
    expect_error(CB_INVALID_OPERATION,
                 cb_batch_create(bus.db,
                                 &(cb_batch_options){ .domain = "fx", .batch_id = taken.text },
                                 &good, 1, NULL, &e),
                 e);
    expect_error(CB_INVALID_DATA,
                 cb_batch_create(bus.db, &(cb_batch_options){ .domain = "fx", .batch_id = "x" },
                                 &good, 1, NULL, &e),
                 e);
    expect_error(CB_INVALID_DATA,
                 cb_batch_create(bus.db, &(cb_batch_options){ .domain = "fx", .custom_data = "{" },
                                 &good, 1, NULL, &e),
                 e);
    expect_sqlstate(bus.conn, "CB006", "SELECT commandbus.create_batch('fx')");
    expect_sqlstate(bus.conn, "CB006", "SELECT commandbus.create_batch('fx', commands => '[]')");
    expect_sqlstate(bus.conn, "CB011", "SELECT commandbus.create_batch('fx', commands => '{}')");

    expect_unchanged(before, bus_contents());
}

/* BUS.5: more members than one statement takes are still one transaction */
Test(batch, of_thousands_is_created_whole_or_not_at_all)
{
    enum {
        MANY = 2500
    };
    cb_send *commands = calloc(MANY, sizeof *commands);
    cb_error e = { 0 };
    cb_uuid sent_before = life_send("delay_seconds => 60");
    for (int i = 0; i < MANY; i++)
        commands[i].command_type = "BookFx";
    commands[MANY - 1].command_id = sent_before.text;
    char *before = bus_contents();

    expect_error(
        CB_DUPLICATE_COMMAND,
        cb_batch_create(bus.db, &(cb_batch_options){ .domain = "fx" }, commands, MANY, NULL, &e),
        e);
    expect_unchanged(before, bus_contents());

    commands[MANY - 1].command_id = NULL;
    expect_ok(
        cb_batch_create(bus.db, &(cb_batch_options){ .domain = "fx" }, commands, MANY, NULL, &e),
        e);
    expect_number(bus.conn, MANY, "SELECT total FROM commandbus.batch_status");
    free(commands);
}

/* BUS.5: a worker died between its settle and the close */
Test(batch, that_nobody_closed_is_closed_by_housekeeping_once)
{
    cb_uuid id = create_batch_of(1);
    cb_uuid only = member_of(&id, 0);
    cb_error e = { 0 };
    size_t closed = 0;
    life_receive();
    life_settle(&only, "SUCCESS"); /* by SQL: nobody closes */
    expect_batch("IN_PROGRESS 1/1/0/0, 0/0/0", id);

    expect_ok(cb_batch_close(bus.db, NULL, 0, &closed, &e), e);
    cr_assert_eq(closed, 1);
    expect_ok(cb_batch_close(bus.db, NULL, 0, &closed, &e), e);
    cr_assert_eq(closed, 0);
    expect_ok(cb_batch_close(bus.db, &id, 1, &closed, &e), e);
    cr_assert_eq(closed, 0);

    expect_batch("COMPLETED 1/1/0/0, 0/0/0", id);
    expect_batch_told(1, id, "payments__replies");
}
