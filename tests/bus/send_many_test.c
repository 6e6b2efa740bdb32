/* Many commands in one call: all or nothing, and in order. */
#include "expect.h"
#include "fixture.h"
#include "life.h"

#include <stdio.h>

enum {
    MANY = 25
};

static cb_uuid ids[MANY];
static cb_send commands[MANY];

/* 25 commands to fx with ids of the sender's choice, the data of the i-th being {"i": i}. */
static void open_with_many(void)
{
    static char data[MANY][32];

    bus_open();
    for (int i = 0; i < MANY; i++) {
        ids[i] = cb_uuid_new();
        snprintf(data[i], sizeof data[i], "{\"i\": %d}", i);
        commands[i] = (cb_send){
            .domain = "fx", .command_type = "BookFx", .command_id = ids[i].text, .data = data[i]
        };
    }
}

TestSuite(send_many, .init = open_with_many, .fini = bus_close);

/* BUS.4 */
Test(send_many, writes_row_message_and_audit_of_each)
{
    cb_error e = { 0 };
    cb_uuid answered[MANY];
    size_t sent;

    expect_ok(cb_send_many(bus.db, commands, MANY, NULL, answered, &sent, &e), e);

    cr_assert_eq(sent, MANY);
    for (int i = 0; i < MANY; i++)
        cr_assert_str_eq(answered[i].text, ids[i].text);
    expect_number(bus.conn, MANY,
                  "SELECT count(*) FROM commandbus.command_metadata c JOIN pgmq.q_fx__commands q "
                  "USING (msg_id) WHERE c.status = 'PENDING' AND q.message = "
                  "jsonb_build_object('domain', 'fx', 'command_type', 'BookFx', 'command_id', "
                  "c.command_id, 'correlation_id', c.correlation_id, 'data', c.data, 'reply_to', "
                  "c.reply_to)");
    expect_number(bus.conn, MANY,
                  "SELECT count(DISTINCT correlation_id) FROM "
                  "commandbus.command_metadata");
    expect_number(bus.conn, MANY,
                  "SELECT count(*) FROM commandbus.audit a JOIN commandbus.command_metadata c "
                  "USING (command_id, domain) WHERE a.event_type = 'SENT' "
                  "AND a.db_user = session_user");
    expect_number(bus.conn, MANY, "SELECT count(*) FROM commandbus.audit");
}

/* BUS.4: the messages stand in the queue in the order of the call */
Test(send_many, keeps_the_order_of_the_call)
{
    cb_error e = { 0 };

    expect_ok(cb_send_many(bus.db, commands, MANY, &(cb_send_many_options){ .chunk = 10 }, NULL,
                           NULL, &e),
              e);

    expect_value(bus.conn, "t",
                 "SELECT array_agg((message -> 'data' ->> 'i')::integer ORDER BY msg_id) = "
                 "ARRAY(SELECT generate_series(0, 24)) FROM pgmq.q_fx__commands");
}

/* BUS.4 */
Test(send_many, to_mixed_domains_answers_the_ids_in_the_order_of_the_call)
{
    static const char *const domains[] = { "risk", "fx", "payments" };
    cb_error e = { 0 };
    cb_uuid answered[MANY];
    for (int i = 0; i < MANY; i++) {
        commands[i].domain = domains[i % 3];
        if (i % 2)
            commands[i].command_id = NULL;
    }

    expect_ok(cb_send_many(bus.db, commands, MANY, NULL, answered, NULL, &e), e);

    for (int i = 0; i < MANY; i++)
        expect_value(bus.conn, commands[i].data,
                     "SELECT data FROM commandbus.command_metadata WHERE command_id = $1::uuid "
                     "AND domain = $2",
                     answered[i].text, domains[i % 3]);
    expect_number(bus.conn, 9, "SELECT count(*) FROM pgmq.q_risk__commands");
    expect_number(bus.conn, 8, "SELECT count(*) FROM pgmq.q_fx__commands");
}

/* BUS.3, BUS.4: a field that only some commands have stays with those */
Test(send_many, keeps_every_field_with_its_command)
{
    cb_error e = { 0 };
    commands[3].max_attempts = 7;
    commands[5].timeout_seconds = 9;
    commands[7].headers = "{\"trace\": \"t\"}";
    commands[9].reply_to = "fx__replies";
    commands[11].correlation_id = "0190C2A0-0000-7000-8000-00000000ABCD";
    commands[13].delay_seconds = 60;
    commands[15].data = NULL;

    expect_ok(cb_send_many(bus.db, commands, MANY, NULL, NULL, NULL, &e), e);

    expect_value(bus.conn, "3 7 5 9 7 9 11 13 15",
                 "WITH c AS (SELECT c.*, q.vt, q.headers AS q_headers, q.message, row_number() "
                 "OVER (ORDER BY msg_id) - 1 AS i FROM commandbus.command_metadata c "
                 "JOIN pgmq.q_fx__commands q USING (msg_id)) "
                 "SELECT concat_ws(' ', string_agg(i || ' ' || max_attempts, ','), "
                 "string_agg(i || ' ' || timeout_seconds, ','), "
                 "string_agg(i::text, ',') FILTER (WHERE headers = '{\"trace\": \"t\"}' "
                 "AND q_headers = headers), "
                 "string_agg(i::text, ',') FILTER (WHERE reply_to = 'fx__replies' "
                 "AND message ->> 'reply_to' = reply_to), "
                 "string_agg(i::text, ',') FILTER (WHERE correlation_id = "
                 "'0190c2a0-0000-7000-8000-00000000abcd'), "
                 "string_agg(i::text, ',') FILTER (WHERE vt > now() + interval '30 s'), "
                 "string_agg(i::text, ',') FILTER (WHERE data = '{}' AND message -> 'data' = "
                 "data)) FROM c");
}

/* BUS.4 */
Test(send_many, of_ten_thousand_in_one_statement_keeps_the_order)
{
    enum {
        N = 10000
    };
    static cb_send many[N];
    static cb_uuid answered[N];
    const char *first = answered[0].text, *last = answered[N - 1].text;
    cb_error e = { 0 };
    size_t sent;
    for (int i = 0; i < N; i++)
        many[i] = (cb_send){ .domain = i % 2 ? "fx" : "risk", .command_type = "Book" };

    expect_ok(
        cb_send_many(bus.db, many, N, &(cb_send_many_options){ .chunk = N }, answered, &sent, &e),
        e);

    cr_assert_eq(sent, N);
    expect_number(bus.conn, N / 2, "SELECT count(*) FROM pgmq.q_fx__commands");
    expect_value(bus.conn, first,
                 "SELECT message ->> 'command_id' FROM pgmq.q_risk__commands ORDER BY msg_id "
                 "LIMIT 1");
    expect_value(bus.conn, last,
                 "SELECT message ->> 'command_id' FROM pgmq.q_fx__commands ORDER BY msg_id DESC "
                 "LIMIT 1");
    expect_number(bus.conn, 1,
                  "SELECT count(DISTINCT created_at) FROM commandbus.command_metadata");
}

/* BUS.4: the same for callers of the SQL functions */
Test(send_many, by_sql_arrays_answers_the_ids_in_the_order_of_the_call)
{
    expect_value(bus.conn, "t",
                 "WITH call AS (SELECT array_agg((ARRAY['risk', 'fx'])[1 + i % 2]) AS domains, "
                 "array_agg('Book'::text) AS types, array_agg(gen_random_uuid()) AS ids "
                 "FROM generate_series(1, 20) i) "
                 "SELECT commandbus.send_arrays(domains, types, command_ids => ids) = ids "
                 "FROM call");
}

/* BUS.4: the same for callers of the SQL function */
Test(send_many, by_sql_answers_the_ids_in_the_order_of_the_call)
{
    expect_number(bus.conn, 20,
                  "WITH call AS (SELECT jsonb_agg(jsonb_build_object('domain', "
                  "(ARRAY['risk', 'fx'])[1 + i % 2], 'command_type', 'Book', 'command_id', "
                  "('00000000-0000-4000-8000-' || lpad((97 * i % 1000)::text, 12, '0')), 'data', "
                  "jsonb_build_object('i', i)) ORDER BY i) AS commands "
                  "FROM generate_series(1, 20) i) "
                  "SELECT count(*) FROM call, ROWS FROM (commandbus.send_many(commands)) "
                  "WITH ORDINALITY s(id, ord) "
                  "WHERE s.id::text = commands -> (ord - 1)::integer ->> 'command_id'");
}

/* BUS.3: whatever a call leaves out or writes in its own way, row and message say the same */
Test(send_many, by_sql_puts_the_same_into_row_and_message)
{
    test_exec(bus.conn,
              "SELECT commandbus.send_many('["
              "{\"domain\": \"fx\", \"command_type\": \"B\", \"data\": null, \"reply_to\": null, "
              " \"command_id\": \"0190C2A0-0000-7000-8000-00000000ABCD\", "
              " \"correlation_id\": \"{0190C2A0-0000-7000-8000-00000000ABCE}\"}, "
              "{\"domain\": \"fx\", \"command_type\": \"B\", \"data\": {\"a\": 1}, \"reply_to\": "
              "null, \"command_id\": \"0190c2a0-0000-7000-8000-00000000abcf\", "
              " \"correlation_id\": \"0190c2a0-0000-7000-8000-00000000abce\"}, "
              "{\"domain\": \"fx\", \"command_type\": \"B\"}]')");

    expect_number(bus.conn, 3,
                  "SELECT count(*) FROM commandbus.command_metadata c JOIN pgmq.q_fx__commands q "
                  "USING (msg_id) WHERE q.message = jsonb_build_object('domain', c.domain, "
                  "'command_type', c.command_type, 'command_id', c.command_id, 'correlation_id', "
                  "c.correlation_id, 'data', c.data, 'reply_to', c.reply_to)");
}

/* BUS.4 */
Test(send_many, with_an_id_twice_in_the_call_sends_nothing)
{
    cb_error e = { 0 };
    size_t sent = 99;
    char *before = bus_contents();
    commands[MANY - 1].command_id = ids[3].text;

    expect_error(CB_DUPLICATE_COMMAND, cb_send_many(bus.db, commands, MANY, NULL, NULL, &sent, &e),
                 e);

    cr_assert_eq(sent, 0);
    cr_assert(strstr(e.message, ids[3].text), "%s", e.message);
    cr_assert(*e.hint);
    expect_unchanged(before, bus_contents());
}

/* BUS.4: the SQL function itself, where a client has not looked first */
Test(send_many, by_sql_with_an_id_twice_names_it_and_sends_nothing)
{
    char *before = bus_contents();

    expect_sqlstate(bus.conn, "CB001",
                    "SELECT commandbus.send_many('["
                    "{\"domain\": \"fx\", \"command_type\": \"B\"}, "
                    "{\"domain\": \"fx\", \"command_type\": \"B\", \"command_id\": "
                    "\"00000000-0000-4000-8000-000000000001\"}, "
                    "{\"domain\": \"fx\", \"command_type\": \"B\", \"command_id\": "
                    "\"00000000-0000-4000-8000-000000000001\"}]')");

    cr_assert(strstr(PQerrorMessage(bus.conn), "00000000-0000-4000-8000-000000000001"), "%s",
              PQerrorMessage(bus.conn));
    expect_unchanged(before, bus_contents());
}

/* BUS.4: an id written in capitals is the same id */
Test(send_many, knows_an_id_again_however_it_is_written)
{
    cb_error e = { 0 };
    char *before = bus_contents();
    commands[0].command_id = "0190c2a0-0000-7000-8000-00000000abcd";
    commands[MANY - 1].command_id = "0190C2A0-0000-7000-8000-00000000ABCD";

    expect_error(CB_DUPLICATE_COMMAND, cb_send_many(bus.db, commands, MANY, NULL, NULL, NULL, &e),
                 e);

    expect_unchanged(before, bus_contents());
}

/* BUS.4 */
Test(send_many, finds_duplicates_over_the_whole_request_before_the_first_chunk_is_sent)
{
    cb_error e = { 0 };
    size_t sent = 99;
    char *before = bus_contents();
    commands[MANY - 1].command_id = ids[0].text;

    expect_error(CB_DUPLICATE_COMMAND,
                 cb_send_many(bus.db, commands, MANY, &(cb_send_many_options){ .chunk = 5 }, NULL,
                              &sent, &e),
                 e);

    cr_assert_eq(sent, 0);
    expect_unchanged(before, bus_contents());
}

/* BUS.4: so do all other mistakes that need no database */
Test(send_many, checks_all_commands_before_the_first_chunk_is_sent)
{
    cb_error e = { 0 };
    char *before = bus_contents();
    commands[MANY - 1].data = "[]";

    expect_error(
        CB_INVALID_DATA,
        cb_send_many(bus.db, commands, MANY, &(cb_send_many_options){ .chunk = 5 }, NULL, NULL, &e),
        e);

    expect_unchanged(before, bus_contents());
}

/* BUS.4 */
Test(send_many, with_an_id_that_was_sent_before_sends_nothing_of_the_call)
{
    cb_error e = { 0 };
    expect_ok(cb_send_command(bus.db, &commands[7], NULL, &e), e);
    char *before = bus_contents();

    expect_error(CB_DUPLICATE_COMMAND, cb_send_many(bus.db, commands, MANY, NULL, NULL, NULL, &e),
                 e);

    cr_assert(strstr(e.message, ids[7].text), "%s", e.message);
    expect_unchanged(before, bus_contents());
}

/* BUS.4 */
Test(send_many, again_with_the_same_ids_is_refused_and_nothing_is_doubled)
{
    cb_error e = { 0 };
    expect_ok(cb_send_many(bus.db, commands, MANY, NULL, NULL, NULL, &e), e);
    char *before = bus_contents();

    expect_error(CB_DUPLICATE_COMMAND, cb_send_many(bus.db, commands, MANY, NULL, NULL, NULL, &e),
                 e);

    expect_unchanged(before, bus_contents());
}

static bool stop_after_two(size_t sent, size_t total, void *arg)
{
    int *calls = arg;

    return total == MANY && sent == (size_t)++ * calls * 5 && *calls < 2;
}

/* BUS.4 */
Test(send_many, in_chunks_says_how_many_are_durable_when_one_is_refused)
{
    cb_error e = { 0 };
    size_t sent;
    expect_ok(cb_send_command(bus.db, &commands[12], NULL, &e), e);

    expect_error(CB_DUPLICATE_COMMAND,
                 cb_send_many(bus.db, commands, MANY, &(cb_send_many_options){ .chunk = 5 }, NULL,
                              &sent, &e),
                 e);

    cr_assert_eq(sent, 10);
    expect_number(bus.conn, 11, "SELECT count(*) FROM commandbus.command_metadata");
    expect_number(bus.conn, 11, "SELECT count(*) FROM pgmq.q_fx__commands");
}

/* BUS.4 */
Test(send_many, can_be_stopped_between_two_chunks)
{
    cb_error e = { 0 };
    size_t sent;
    int calls = 0;
    const cb_send_many_options options = { .chunk = 5, .progress = stop_after_two, .arg = &calls };

    expect_ok(cb_send_many(bus.db, commands, MANY, &options, NULL, &sent, &e), e);

    cr_assert_eq(calls, 2);
    cr_assert_eq(sent, 10);
    expect_number(bus.conn, 10, "SELECT count(*) FROM pgmq.q_fx__commands");
}

/* BUS.3, BUS.4 */
Test(send_many, in_chunks_inside_a_transaction_that_rolls_back_leaves_nothing)
{
    cb_error e = { 0 };
    char *before = bus_contents();

    expect_ok(cb_db_begin(bus.db, &e), e);
    expect_ok(
        cb_send_many(bus.db, commands, MANY, &(cb_send_many_options){ .chunk = 5 }, NULL, NULL, &e),
        e);
    expect_ok(cb_db_rollback(bus.db, &e), e);

    expect_unchanged(before, bus_contents());
}

/* BUS.4 */
Test(send_many, of_nothing_sends_nothing)
{
    cb_error e = { 0 };
    size_t sent = 99;
    char *before = bus_contents();

    expect_ok(cb_send_many(bus.db, commands, 0, NULL, NULL, &sent, &e), e);
    expect_sqlstate(bus.conn, "00000", "SELECT commandbus.send_many('[]')");

    cr_assert_eq(sent, 0);
    expect_unchanged(before, bus_contents());
}
