/* Items of the C library: settled as the same in JSON is, counted, and refused when they do not fit
 * what is there. */
#include "item_rows.h"
#include "process_rows.h"

TestSuite(process_item, .init = bus_open, .fini = bus_close);

#define COMMAND_1 "11111111-2222-8333-8444-555555555551"
#define COMMAND_2 "11111111-2222-8333-8444-555555555552"

/* All that a record and the row may hold; `settle_no` 1 writes over what 0 has opened. */
static const char *const in_json[] = {
    "\"checkpoint\":true,\"vt_seconds\":600,\"version\":3,\"status\":\"EXECUTING\","
    "\"phase\":\"FORWARD\",\"step\":\"bookFx\",\"wait\":\"bookFx\",\"awaits_reply\":true,"
    "\"state\":{\"n\":1},\"deadline_spent\":true,\"seen\":2,\"wake\":\"TIMERS\",\"retry_ms\":5000,"
    "\"timeout_at_ms\":4102444800123,\"leaving\":{\"to\":\"END\"},"
    "\"events\":[{\"event\":\"WAIT_TIMEOUT\",\"name\":\"w\"}],"
    "\"records\":[{\"ordinal\":1,\"kind\":\"STEP\",\"status\":\"COMPLETED\",\"name\":\"validate\","
    "\"attempts\":1,\"max_attempts\":3,\"took_ms\":1.5,\"opening\":{\"o\":1},\"patch\":{\"p\":2},"
    "\"owes\":{\"inline\":true},\"finished\":true},"
    "{\"ordinal\":2,\"kind\":\"COMMAND\",\"status\":\"WAITING\",\"name\":\"bookFx\",\"attempts\":1,"
    "\"send_no\":1,\"during\":1,\"command_id\":\"" COMMAND_1 "\",\"domain\":\"fx\","
    "\"command_type\":\"BookFx\",\"timeout_ms\":4000},"
    "{\"ordinal\":3,\"kind\":\"STEP\",\"status\":\"RETRY\",\"name\":\"pay\",\"attempts\":1,"
    "\"error_code\":\"E\",\"error_message\":\"m\",\"in_doubt\":true}],"
    "\"commands\":[{\"domain\":\"fx\",\"command_type\":\"BookFx\",\"command_id\":\"" COMMAND_1
    "\",\"data\":{\"a\":1},\"max_attempts\":2,\"timeout_seconds\":20},{\"domain\":\"risk\","
    "\"command_type\":\"BookRisk\",\"command_id\":\"" COMMAND_2 "\",\"reply_to\":\"\"}]",
    "\"version\":3,\"status\":\"COMPLETED\",\"wake\":\"NEVER\",\"seen\":2,\"consumed\":[1],"
    "\"error_code\":\"C\",\"error_message\":\"why\",\"records\":[{\"ordinal\":2,"
    "\"kind\":\"COMMAND\",\"status\":\"COMPLETED\",\"name\":\"bookFx\",\"attempts\":1,"
    "\"timeout_ms\":0,\"result\":[1],\"finished\":true},{\"ordinal\":3,\"kind\":\"STEP\","
    "\"status\":\"STARTED\",\"name\":\"pay\",\"attempts\":2}]",
};

#define RECORD(...) (&(cb_process_record){ __VA_ARGS__ })

static cb_process_item *first_item(const cb_uuid *id)
{
    cb_process_item *item = cb_process_item_new(&(cb_process_outcome){
        .process_id = *id,
        .lease_no = 1,
        .checkpoint = true,
        .vt_seconds = 600,
        .version = 3,
        .status = "EXECUTING",
        .phase = "FORWARD",
        .step = "bookFx",
        .wait = "bookFx",
        .awaits_reply = true,
        .state = "{\"n\":1}",
        .deadline_spent = true,
        .seen = 2,
        .wake = "TIMERS",
        .retry_ms = 5000,
        .timeout_at_ms = 4102444800123,
        .leaving = "{\"to\":\"END\"}",
        .events = "[{\"event\":\"WAIT_TIMEOUT\",\"name\":\"w\"}]",
    });

    cb_process_item_open(item, RECORD(.attempts = 1, .timeout_ms = -1, .ordinal = 1, .kind = "STEP",
                                      .status = "COMPLETED", .name = "validate", .max_attempts = 3,
                                      .took_ms = 1.5, .opening = "{\"o\":1}", .patch = "{\"p\":2}",
                                      .owes = "{\"inline\":true}", .finished = true));
    cb_process_item_open(item, RECORD(.attempts = 1, .took_ms = -1, .ordinal = 2, .kind = "COMMAND",
                                      .status = "WAITING", .name = "bookFx", .send_no = 1,
                                      .during = 1, .command_id = COMMAND_1, .domain = "fx",
                                      .command_type = "BookFx", .timeout_ms = 4000));
    cb_process_item_open(item, RECORD(.attempts = 1, .timeout_ms = -1, .took_ms = -1, .ordinal = 3,
                                      .kind = "STEP", .status = "RETRY", .name = "pay",
                                      .error_code = "E", .error_message = "m", .in_doubt = true));
    cb_process_item_send(item, &(cb_process_command){ .domain = "fx",
                                                      .command_type = "BookFx",
                                                      .command_id = COMMAND_1,
                                                      .data = "{\"a\":1}",
                                                      .max_attempts = 2,
                                                      .timeout_seconds = 20 });
    cb_process_item_send(item, &(cb_process_command){ .domain = "risk",
                                                      .command_type = "BookRisk",
                                                      .command_id = COMMAND_2,
                                                      .without_reply = true });
    return item;
}

static cb_process_item *second_item(const cb_uuid *id)
{
    cb_process_item *item = cb_process_item_new(&(cb_process_outcome){ .process_id = *id,
                                                                       .lease_no = 1,
                                                                       .settle_no = 1,
                                                                       .version = 3,
                                                                       .status = "COMPLETED",
                                                                       .wake = "NEVER",
                                                                       .seen = 2,
                                                                       .error_code = "C",
                                                                       .error_message = "why" });

    cb_process_item_rewrite(item,
                            RECORD(.attempts = 1, .took_ms = -1, .ordinal = 2, .kind = "COMMAND",
                                   .status = "COMPLETED", .name = "bookFx", .timeout_ms = 0,
                                   .result = "[1]", .finished = true),
                            false);
    cb_process_item_rewrite(item,
                            RECORD(.timeout_ms = -1, .took_ms = -1, .ordinal = 3, .kind = "STEP",
                                   .status = "STARTED", .name = "pay", .attempts = 2),
                            true);
    cb_process_item_consume(item, 1);
    return item;
}

static void settle_item(cb_process_item *item_adopted)
{
    cb_process_settlement one = { .item = item_adopted };
    cb_error e = { 0 };

    cr_assert(cb_process_item_is_whole(item_adopted));
    cr_assert_gt(cb_process_item_bytes(item_adopted), 0);
    expect_ok(cb_process_settle(bus.db, "w", &one, 1, &e), e);
    expect_verdict(CB_SETTLED, one.verdict);
    settlements_free(&one, 1);
}

/* What there is of the one process, without moments but for their order. */
static char *all_of_it(void)
{
    return test_value(
        bus.conn,
        "SELECT concat_ws('; ', "
        "(SELECT to_jsonb(p) - '{process_id,lease_until,wake_at,next_retry_at,created_at,"
        "updated_at,completed_at,content_bytes}'::text[] || jsonb_build_object('lease', "
        "p.lease_until > now() + interval '9 min', 'retry', p.next_retry_at - p.updated_at, "
        "'done', p.completed_at = p.updated_at) FROM commandbus.process p), "
        "(SELECT jsonb_agg(to_jsonb(h) - '{process_id,at,begun_at,finished_at,timeout_at}'::text[] "
        "|| jsonb_build_object('begun', h.begun_at > h.at, 'finished', h.finished_at >= h.at, "
        "'timeout', h.timeout_at - h.at) ORDER BY ordinal) FROM commandbus.process_history h), "
        "(SELECT jsonb_agg(to_jsonb(a) - '{id,process_id,at,ended_at}'::text[]) "
        "FROM commandbus.process_attempt a), "
        "(SELECT string_agg(name, ' ') FROM commandbus.process_inbox), "
        "(SELECT string_agg(event || step_name, ' ') FROM commandbus.process_event), "
        "(SELECT jsonb_agg(to_jsonb(c) - '{correlation_id,process_id,msg_id,created_at,updated_at}'"
        "::text[] ORDER BY command_id) FROM commandbus.command_metadata c))",
        NULL);
}

static cb_uuid fresh_process(void)
{
    test_exec(bus.conn, "TRUNCATE commandbus.process, commandbus.process_history, "
                        "commandbus.process_attempt, commandbus.process_inbox, "
                        "commandbus.process_event, commandbus.command_metadata");
    cb_uuid id = process_put("inbox_seq = 2");
    test_exec(bus.conn, "INSERT INTO commandbus.process_inbox (process_id, seq, kind, name, "
                        "payload) SELECT process_id, s, 'RESPONSE', 'r' || s, '{}' "
                        "FROM commandbus.process, generate_series(1, 2) s");
    return id;
}

Test(process_item, is_settled_as_the_same_in_json_is) /* DESIGN 4 */
{
    cb_uuid id = fresh_process();
    char *expected[2];
    for (int i = 0; i < 2; i++) {
        expect_verdict(CB_SETTLED, process_settle(&id, i, in_json[i]));
        expected[i] = all_of_it();
    }

    id = fresh_process();
    settle_item(first_item(&id));
    char *first = all_of_it();
    settle_item(second_item(&id));
    char *second = all_of_it();

    cr_expect_str_eq(first, expected[0]);
    cr_expect_str_eq(second, expected[1]);
    expect_number(bus.conn, 1, "SELECT count(*) FROM commandbus.process_attempt");
    expect_value(bus.conn, "r2", "SELECT string_agg(name, ' ') FROM commandbus.process_inbox");
    for (int i = 0; i < 2; i++)
        free(expected[i]);
    free(first);
    free(second);
}

Test(process_item, says_at_most_how_much_a_claim_reads_of_it) /* DESIGN 8.10 */
{
    static const char *const values[] = {
        "{}",
        "null",
        "\"a,b:c\\\"d\\\\\"",
        "[1,2,3,{\"a\":[{},[]],\"b\":{\"c\":1.50}}]",
        "{\"a\":1e300,\"b\":-1.25E-300,\"c\":1E5,\"d\":0.1e+07}",
        "[\"1e300\",\"\\n\\u0001\\/\xc3\xa9\"]",
        "{\"long key, with: marks\":\"12e9999999\"}",
    };

    for (size_t i = 0; i < CB_COUNT(values); i++) {
        char *printed =
            test_value(bus.conn, "SELECT octet_length($1::jsonb::text)", values[i], NULL);
        cr_expect_geq(json_bytes_printed(values[i]), strtoul(printed, NULL, 10), "%s", values[i]);
        cr_expect_leq(json_bytes_printed(values[i]), strtoul(printed, NULL, 10) + 30, "%s",
                      values[i]);
        free(printed);
    }
    cr_expect_eq(json_bytes_printed(NULL), 0);

    cb_uuid id = fresh_process();
    test_exec(bus.conn, "UPDATE commandbus.process SET content_bytes = "
                        "commandbus.measured_content(process_id)");
    settle_item(first_item(&id));
    expect_value(bus.conn, "t",
                 "SELECT content_bytes >= commandbus.measured_content(process_id) "
                 "FROM commandbus.process");
}

/* What would be lost without a word otherwise. */
Test(process_item, that_rewrites_a_record_which_is_not_there_is_refused) /* DESIGN 8.4 */
{
    cb_uuid id = process_put("");
    cb_process_settlement one = { .item = second_item(&id) };
    cb_error e = { 0 };
    test_exec(bus.conn, "UPDATE commandbus.process SET settle_no = 1");

    expect_error(CB_INVALID_DATA, cb_process_settle(bus.db, "w", &one, 1, &e), e);

    expect_process("EXECUTING 1", id, "status, settle_no");
    settlements_free(&one, 1);
}

Test(process_item, arrays_that_do_not_belong_together_are_refused) /* CONTRACT */
{
    static const char *const calls[] = {
        "'', '{}', '{}'",
        "'w', '{}', '{1}'",
        "'w', NULL, NULL",
        "'w', '{}', '{}', opened_of => '{1}'",
        "'w', '{}', '{}', rewritten_of => '{1}'",
        "'w', '{}', '{}', commands_of => '{1}'",
        "'w', '{}', '{}', consumed => '{1}', consumed_of => '{1,1}'",
        /* of an item that is not in the call */
        "'w', '{}', '{}', consumed => '{1}', consumed_of => '{1}'",
        "'w', '{}', '{}', consumed => '{1}', consumed_of => '{NULL}'",
        "'w', '{}', '{}', commands => ARRAY[NULL]::commandbus.new_command[], commands_of => '{0}'",
    };
    char sql[300];

    for (size_t i = 0; i < CB_COUNT(calls); i++) {
        snprintf(sql, sizeof sql, "SELECT commandbus.settle_process_arrays(%s)", calls[i]);
        PGresult *result = PQexec(bus.conn, sql);
        cr_expect_str_eq(PQresultErrorField(result, PG_DIAG_SQLSTATE), "CB011", "%s", calls[i]);
        PQclear(result);
    }
    expect_value(bus.conn, "{}",
                 "SELECT verdicts FROM commandbus.settle_process_arrays('w', '{}', '{}')");
}
