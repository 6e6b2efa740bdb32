/* Commands that a process sends and takes back when it is settled, and items that the database does
 * not take. */
#include "process_rows.h"

#include <stdio.h>

#include "life.h"

TestSuite(process_commands, .init = bus_open, .fini = bus_close);

#define WAITS     "\"status\":\"WAITING_FOR_ASYNC\",\"wake\":\"NEVER\",\"seen\":0"
#define COMMAND_1 "11111111-2222-8333-8444-555555555551"
#define COMMAND_2 "11111111-2222-8333-8444-555555555552"
#define BOOK_FX(id, data)                                                       \
    "{\"domain\":\"fx\",\"command_type\":\"BookFx\",\"command_id\":\"" id "\"," \
    "\"data\":" data ",\"max_attempts\":2,\"timeout_seconds\":20}"

/* RL.2: one transaction */
Test(process_commands, are_sent_with_the_settle)
{
    cb_uuid id = process_put("reply_queue = 'risk__replies'");

    expect_verdict(
        CB_SETTLED,
        process_settle(
            &id, 0,
            WAITS ",\"commands\":[" BOOK_FX(
                COMMAND_1,
                "{\"a\":1}") ",{\"domain\":"
                             "\"risk\",\"command_type\":\"BookRisk\",\"command_id\":\"" COMMAND_2
                             "\"}]"));

    expect_value(
        bus.conn,
        "fx BookFx " COMMAND_1 " PENDING 2 20 {\"a\": 1} risk__replies t; "
        "risk BookRisk " COMMAND_2 " PENDING {} risk__replies t",
        "SELECT string_agg(concat_ws(' ', domain, command_type, command_id, status, "
        "max_attempts, timeout_seconds, data, reply_to, correlation_id = $1::uuid AND process_id = $1::uuid), '; ' "
        "ORDER BY domain) FROM commandbus.command_metadata",
        id.text);
    expect_value(bus.conn, "t",
                 "SELECT message = jsonb_build_object('domain', 'fx', 'command_type', 'BookFx', "
                 "'command_id', '" COMMAND_1 "', 'correlation_id', $1::text, 'data', "
                 "'{\"a\": 1}'::jsonb, 'reply_to', 'risk__replies') FROM pgmq.q_fx__commands",
                 id.text);
    expect_number(bus.conn, 1, "SELECT count(*) FROM pgmq.q_risk__commands");
}

/* Sends a batch of four whose third is `members`, by cb_process_settle_each. */
static cb_uuid settle_four(const char *members, cb_verdict expected, size_t *refused)
{
    cb_uuid ids[4];
    cb_process_settlement items[4];
    cb_error e = { 0 };

    for (int i = 0; i < 4; i++) {
        ids[i] = process_put("");
        items[i] = (cb_process_settlement){
            .process_id = ids[i],
            .item = process_item_new(&ids[i], 0, i == 2 ? members : WAITS),
        };
    }
    cr_assert_not(cb_process_settle(bus.db, "w", items, 4, &e));
    expect_process("EXECUTING", ids[0], "status");

    expect_ok(cb_process_settle_each(bus.db, "w", items, 4, refused, &e), e);

    for (int i = 0; i < 4; i++) {
        if (i == 2)
            continue;
        expect_verdict(CB_SETTLED, items[i].verdict);
        expect_process("WAITING_FOR_ASYNC 1", ids[i], "status, settle_no");
    }
    expect_verdict(expected, items[2].verdict);
    settlements_free(items, 4);
    return ids[2];
}

static void expect_settle_refused(const cb_uuid *id)
{
    expect_process("WAITING_FOR_TSQ 1 PERMANENT_FAILURE t {\"n\": 0}", *id,
                   "status, settle_no, error_code, lease_owner, wake_at, "
                   "tsq_at IS NOT NULL, state");
    expect_process("t", *id, "error_message LIKE 'the database refused what the run came to: %'");
    expect_records("", *id, "name");
}

/* DESIGN 2, 8.7: one bad process never blocks the others */
Test(process_commands, that_are_refused_park_their_process_alone)
{
    static const char *const culprits[] = {
        "\"commands\":[{\"domain\":\"nowhere\",\"command_type\":\"X\",\"command_id\":\"" COMMAND_2
        "\"}]",
        "\"commands\":[" BOOK_FX(COMMAND_2, "[]") "]",
        "\"commands\":[" BOOK_FX(COMMAND_2, "{}") "," BOOK_FX(COMMAND_2, "{}") "]",
        "\"commands\":[{\"domain\":\"fx\",\"command_type\":\"BookFx\"}]",
        /* DESIGN 8.8: an id that a sender could have taken */
        "\"commands\":[" BOOK_FX("11111111-2222-4333-8444-555555555552", "{}") "]",
        "\"state\":{\"text\":\"a\\u0000b\"}",
        "\"status\":\"NO_STATUS\"",
        "\"error_message\":\"caf\xe9\"",
        "\"timeout_ms\":1e300",
        "\"records\":[{\"ordinal\":1,\"kind\":\"STEP\",\"status\":\"STARTED\"}]",
    };

    for (size_t i = 0; i < sizeof culprits / sizeof *culprits; i++) {
        char members[1024];
        size_t refused = 0;
        snprintf(members, sizeof members,
                 "\"records\":[{\"ordinal\":1,\"kind\":\"STEP\",\"status\":\"COMPLETED\","
                 "\"name\":\"a\"}],%s",
                 culprits[i]);

        cb_uuid id = settle_four(members, CB_SETTLED, &refused);

        cr_assert_eq(refused, 1);
        expect_settle_refused(&id);
    }
    expect_number(bus.conn, 0, "SELECT count(*) FROM commandbus.command_metadata");
    expect_number(bus.conn, 0, "SELECT count(*) FROM pgmq.q_fx__commands");
}

/* DESIGN 4: a step with an outside effect runs only after its record is known durable */
Test(process_commands, of_a_refused_checkpoint_stop_the_run)
{
    size_t refused = 0;

    cb_uuid id = settle_four("\"checkpoint\":true,\"state\":\"\\u0000\"", CB_STALE, &refused);

    cr_assert_eq(refused, 1);
    expect_settle_refused(&id);
}

/* DESIGN 2: class 57 and the like concern no item */
Test(process_commands, wait_when_the_server_is_in_trouble)
{
    cb_uuid id = process_put("");
    cb_process_settlement item = { .process_id = id, .item = process_item_new(&id, 0, WAITS) };
    cb_error e = { 0 };
    size_t refused = 7;
    test_exec(bus.conn, "CREATE FUNCTION cancelled() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                        "RAISE SQLSTATE '57014'; END $$");
    test_exec(bus.conn, "CREATE TRIGGER cancelled BEFORE UPDATE ON commandbus.process "
                        "FOR EACH STATEMENT EXECUTE FUNCTION cancelled()");

    expect_error(CB_AGAIN, cb_process_settle_each(bus.db, "w", &item, 1, &refused, &e), e);

    cr_assert_eq(refused, 0);
    test_exec(bus.conn, "DROP TRIGGER cancelled ON commandbus.process");
    expect_ok(cb_process_settle_each(bus.db, "w", &item, 1, &refused, &e), e);
    expect_verdict(CB_SETTLED, item.verdict);
    settlements_free(&item, 1);
}

/* An item that is nothing at all cannot be parked: that is said, and the rest is settled. */
Test(process_commands, settle_around_an_item_that_cannot_even_be_parked)
{
    cb_uuid good = process_put(""), bad = process_put("");
    cb_process_settlement items[] = {
        { .process_id = bad },
        { .process_id = good, .item = process_item_new(&good, 0, WAITS) },
    };
    cb_error e = { 0 };

    expect_error(CB_MISUSE, cb_process_settle_each(bus.db, "w", items, 2, NULL, &e), e);

    expect_verdict(CB_SETTLED, items[1].verdict);
    expect_process("EXECUTING", bad, "status");
    settlements_free(items, 2);
}

/* An item that takes `command` back. */
static cb_verdict take_back(const cb_uuid *process_id, const cb_uuid *command)
{
    char members[512];

    snprintf(members, sizeof members,
             WAITS
             ",\"cancels\":[{\"domain\":\"fx\",\"command_id\":\"%s\",\"reason\":\"deadline\"}]",
             command->text);
    return process_settle(process_id, 0, members);
}

/* DESIGN 4: never received → CANCELED in the same transaction, with its one final reply */
Test(process_commands, that_nobody_received_are_taken_back)
{
    cb_uuid id = process_put("");
    cb_uuid command = process_put_command(&id), other = life_send("");

    expect_verdict(CB_SETTLED, take_back(&id, &command));

    expect_command("CANCELED t", command, "status, completed_at IS NOT NULL");
    expect_command("PENDING", other, "status");
    expect_value(bus.conn, "1 queued, 1 archived",
                 "SELECT (SELECT count(*) FROM pgmq.q_fx__commands) || ' queued, ' || "
                 "(SELECT count(*) FROM pgmq.a_fx__commands) || ' archived'");
    expect_value(bus.conn, "OPERATOR_CANCEL w {\"reason\": \"deadline\"}",
                 "SELECT concat_ws(' ', event_type, worker, operator, details) FROM "
                 "commandbus.audit WHERE command_id = $1::uuid AND event_type <> 'SENT'",
                 command.text);
    expect_value(
        bus.conn, "t",
        "SELECT message = jsonb_build_object('command_id', $1::text, 'correlation_id', $2::text, "
        "'outcome', 'CANCELED', 'reason', 'deadline', 'final', true) "
        "FROM pgmq.q_payments__replies",
        command.text, id.text);
}

static void expect_left_alone(const cb_uuid *command, const char *status)
{
    expect_command(status, *command, "status");
    expect_number(bus.conn, 0, "SELECT count(*) FROM pgmq.a_fx__commands");
    expect_number(bus.conn, 0,
                  "SELECT count(*) FROM pgmq.q_payments__replies WHERE message ->> 'outcome' = "
                  "'CANCELED'");
}

/* DESIGN 4: what was received has its own outcome, also when it came back to the queue since */
Test(process_commands, that_were_received_are_left_alone)
{
    cb_uuid running = process_put(""), retried = process_put(""), ended = process_put("");
    cb_uuid command = process_put_command(&retried);
    cr_assert_eq(life_receive(), 1);
    life_settle(&command, "TRANSIENT");

    expect_verdict(CB_SETTLED, take_back(&retried, &command));
    expect_left_alone(&command, "PENDING");

    cr_assert_eq(life_receive(), 1);
    life_settle(&command, "SUCCESS");
    expect_verdict(CB_SETTLED, take_back(&ended, &command));
    expect_left_alone(&command, "COMPLETED");

    command = process_put_command(&running);
    cr_assert_eq(life_receive(), 1);
    expect_verdict(CB_SETTLED, take_back(&running, &command));
    expect_left_alone(&command, "IN_PROGRESS");
}

/* DESIGN 2: never waits */
Test(process_commands, whose_row_or_message_is_locked_are_left_alone)
{
    static const char *const locks[] = {
        "SELECT count(*) FROM (SELECT FROM commandbus.command_metadata FOR UPDATE) x",
        "SELECT count(*) FROM (SELECT FROM pgmq.q_fx__commands FOR UPDATE) x",
    };
    PGconn *holder = test_pq_open(bus.conninfo);

    for (size_t i = 0; i < 2; i++) {
        cb_uuid id = process_put("");
        cb_uuid command = process_put_command(&id);
        test_exec(holder, "BEGIN");
        test_exec(holder, locks[i]);

        expect_verdict(CB_SETTLED, take_back(&id, &command));

        expect_left_alone(&command, "PENDING");
        test_exec(holder, "ROLLBACK");
    }
    PQfinish(holder);
}

/* One locked message does not keep the others from being taken back. */
Test(process_commands, beside_a_locked_one_are_taken_back)
{
    cb_uuid id = process_put(""), first = process_put_command(&id), second = life_send("");
    char members[512];
    PGconn *holder = test_pq_open(bus.conninfo);
    test_exec(holder,
              "BEGIN; SELECT msg_id FROM pgmq.q_fx__commands ORDER BY 1 LIMIT 1 FOR UPDATE");
    snprintf(members, sizeof members,
             "\"cancels\":[{\"domain\":\"fx\",\"command_id\":\"%s\"},{\"domain\":\"fx\","
             "\"command_id\":\"%s\"},{\"domain\":\"nowhere\",\"command_id\":\"%s\"}]",
             first.text, second.text, second.text);

    expect_verdict(CB_SETTLED, process_settle(&id, 0, members));

    expect_command("PENDING", first, "status");
    expect_command("CANCELED", second, "status");
    expect_number(bus.conn, 1, "SELECT count(*) FROM pgmq.a_fx__commands");
    PQfinish(holder);
}
