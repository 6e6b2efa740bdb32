/* Payloads that are small on the way in and huge on the way out, and arguments that no sane caller
 * brings: refused alone, never in the way of others. */
#include "claims.h"
#include "fixture.h"

#include <stdio.h>

TestSuite(hostile_payload, .init = bus_open, .fini = bus_close);

static char *repeated(const char *before, const char *part, size_t n, const char *after)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    fputs(before, out);
    for (size_t i = 0; i < n; i++)
        fputs(part, out);
    fputs(after, out);
    fclose(out);
    return text;
}

/* Two hundred bytes that the server writes as two megabytes. */
static char *exploding_numbers(void)
{
    return repeated("{\"a\":[", "1e131071,", 20, "1]}");
}

/* Half a megabyte in the table, three as text. */
static char *exploding_string(void)
{
    return repeated("{\"a\":\"", "\\u0001", 500000, "\"}");
}

static void expect_too_large(bool fine, const cb_error *e, const char *what)
{
    cr_expect_not(fine, "%s was taken", what);
    cr_expect_eq(e->code, CB_PAYLOAD_TOO_LARGE, "%s: %s %s", what, cb_code_name(e->code),
                 e->message);
}

/* By every way to send; then what was sent before is claimed, and nothing of it is in the queue. */
static void expect_never_sent(const char *data)
{
    cb_error e = { 0 };
    const cb_send commands[] = { { .domain = "fx", .command_type = "Test" },
                                 { .domain = "fx", .command_type = "Test", .data = data } };
    const cb_batch_options batch = { .domain = "fx" };
    test_send(bus.db, 3, NULL);

    expect_too_large(cb_send_command(bus.db, &commands[1], NULL, &e), &e, "send");
    expect_too_large(cb_send_many(bus.db, commands, 2, NULL, NULL, NULL, &e), &e, "send_many");
    expect_too_large(cb_batch_create(bus.db, &batch, commands, 2, NULL, &e), &e, "create_batch");

    OWNED(cb_claim) claim = test_claim(bus.db, "w", 100, 30);
    cr_expect_eq(cb_claim_count(claim), 3, "%zu were claimed", cb_claim_count(claim));
    expect_value(bus.conn, "3 3 0",
                 "SELECT concat_ws(' ', (SELECT count(*) FROM pgmq.q_fx__commands), "
                 "(SELECT count(*) FROM commandbus.command_metadata), "
                 "(SELECT count(*) FROM commandbus.batch))");
}

Test(hostile_payload, numbers_whose_text_explodes_are_never_sent) /* BUS.3 */
{
    char *data = exploding_numbers();

    cr_assert_lt(strlen(data), 1000);
    expect_never_sent(data);
    free(data);
}

Test(hostile_payload, a_string_that_is_longer_as_text_than_as_value_is_never_sent) /* BUS.3 */
{
    char *data = exploding_string();

    expect_never_sent(data);
    free(data);
}

Test(hostile_payload, a_result_whose_text_explodes_is_refused_alone) /* WRK.14 */
{
    enum {
        N = 8,
        CULPRIT = 5
    };
    cb_settlement items[N];
    cb_error e = { 0 };
    size_t refused = 0;
    char *result = exploding_numbers();
    test_send(bus.db, N, NULL);
    OWNED(cb_claim) claim = test_claim(bus.db, "w", N, 60);
    for (size_t i = 0; i < N; i++)
        items[i] = test_outcome(cb_claim_at(claim, i), CB_SUCCESS);
    items[CULPRIT].result = result;

    expect_too_large(cb_settle(bus.db, "w", items, N, &e), &e, "settle");
    cr_assert(cb_settle_each(bus.db, "w", items, N, &refused, &e), "%s", e.message);

    cr_expect_eq(refused, 1);
    for (size_t i = 0; i < N; i++)
        expect_verdict(CB_SETTLED, items[i].verdict);
    expect_value(bus.conn, "IN_TROUBLESHOOTING_QUEUE PERMANENT SETTLE_REFUSED",
                 "SELECT concat_ws(' ', status, error_type, error_code) "
                 "FROM commandbus.command_metadata WHERE command_id = $1",
                 items[CULPRIT].command_id.text);
    expect_value(bus.conn, "7 completed, 7 final",
                 "SELECT (SELECT count(*) FROM commandbus.command_metadata WHERE status = "
                 "'COMPLETED') || ' completed, ' || (SELECT count(*) FROM pgmq.q_payments__replies "
                 "WHERE message @> '{\"final\": true}') || ' final'");
    free(result);
}

Test(hostile_payload, an_operator_cannot_complete_with_a_result_whose_text_explodes) /* BUS.6 */
{
    cb_error e = { 0 };
    char *result = exploding_string();
    cb_uuid id = test_send_one(bus.db, .reply_to = "payments__replies");
    expect_verdict(CB_SETTLED, test_run_one(bus.db, "w", CB_PERMANENT));
    cb_tsq_action action = {
        .domain = "fx", .command_id = id.text, .operator_name = "ann", .result = result
    };

    expect_too_large(cb_tsq_complete(bus.db, &action, &e), &e, "tsq_complete");
    expect_trail("SENT RECEIVED MOVED_TO_TSQ", id);

    action.result = "{\"by\": \"hand\"}";
    cr_expect(cb_tsq_complete(bus.db, &action, &e), "%s", e.message);
    free(result);
}

/* The queue is not limited by payload_limit; what is not a field of the message must not get in. */
Test(hostile_payload, unknown_keys_of_send_many_do_not_reach_the_queue) /* BUS.4 */
{
    test_exec(bus.conn,
              "SELECT commandbus.send_many(jsonb_build_array(jsonb_build_object('domain', 'fx', "
              "'command_type', 'Test', 'command_id', '00000000-0000-4000-8000-000000000001', "
              "'correlation_id', '00000000-0000-4000-8000-000000000002', 'reply_to', NULL, "
              "'data', '{\"a\": 1}'::jsonb, 'more', repeat('x', 2000000))))");

    expect_value(bus.conn, "command_id command_type correlation_id data domain reply_to",
                 "SELECT string_agg(k, ' ' ORDER BY k) "
                 "FROM pgmq.q_fx__commands, jsonb_object_keys(message) k");
    expect_value(bus.conn, "{\"a\": 1}", "SELECT message -> 'data' FROM pgmq.q_fx__commands");
}

/* The ids that the calls below name: P is pending, R is running (lease 1, worker w), T in the
 * TSQ. */
#define P "00000000-0000-4000-8000-000000000001"
#define R "00000000-0000-4000-8000-000000000002"
#define T "00000000-0000-4000-8000-000000000003"

static const char *const odd_calls[] = {
    "SELECT commandbus.send(NULL, 'Test')",
    "SELECT commandbus.send('fx', NULL)",
    "SELECT commandbus.send('fx', 'Test', NULL)",
    "SELECT commandbus.send('fx', 'Test', 'null')",
    "SELECT commandbus.send('fx', 'Test', delay_seconds => 'NaN')",
    "SELECT commandbus.send('fx', 'Test', max_attempts => 2147483647)",
    "SELECT commandbus.send_many(NULL)",
    "SELECT commandbus.send_many('[{\"command_type\": \"Test\"}]')",
    "SELECT commandbus.create_batch(NULL, commands => '[{\"command_type\": \"Test\"}]')",
    "SELECT commandbus.create_batch('fx', commands => 'null')",
    "SELECT commandbus.register_domain(NULL)",
    "SELECT commandbus.receive(NULL, 'w', 1)",
    "SELECT commandbus.receive('fx', NULL, 1)",
    "SELECT commandbus.receive('fx', 'w', NULL)",
    "SELECT commandbus.receive('fx', 'w', 0)",
    "SELECT commandbus.receive('fx', 'w', -2147483648)",
    "SELECT commandbus.receive('fx', 'w', 1, NULL)",
    "SELECT commandbus.receive('fx', 'w', 1, 'NaN')",
    "SELECT commandbus.receive('fx', 'w', 1, 1e9)",
    "SELECT commandbus.receive('fx', 'w', 1, 30, NULL)",
    "SELECT commandbus.receive('fx', 'w', 1, 30, 3, NULL)",
    "SELECT commandbus.receive('fx', 'w', 1, 30, 3, 30, NULL)",
    "SELECT commandbus.settle(NULL, 'w', '{" R "}', '{1}', '{SUCCESS}')",
    "SELECT commandbus.settle('fx', 'w', NULL, NULL, NULL)",
    "SELECT commandbus.settle('fx', 'w', '{" R "}', NULL, '{SUCCESS}')",
    "SELECT commandbus.settle('fx', 'w', '{" R "}', '{1}', NULL)",
    "SELECT commandbus.settle('fx', 'w', '{" R "}', '{1}', '{NULL}')",
    "SELECT commandbus.settle('fx', 'w', '{" R "}', '{1,1}', '{SUCCESS}')",
    "SELECT commandbus.settle('fx', 'w', '{NULL}', '{NULL}', '{SUCCESS}')",
    "SELECT commandbus.settle('fx', 'w', '{" R ",NULL}', '{1,1}', '{SUCCESS,SUCCESS}')",
    "SELECT commandbus.settle('fx', 'w', '{" R "}', '{NULL}', '{SUCCESS}')",
    "SELECT commandbus.settle('fx', 'w', '{" R "}', '{1}', '{SUCCESS}', '{}')",
    "SELECT commandbus.settle('fx', 'w', '{" R "}', '{1}', '{SUCCESS}', '{1,2}')",
    "SELECT commandbus.settle('fx', 'w', '{" R
    "}', '{1}', '{TRANSIENT}', NULL, NULL, NULL, '{NaN}')",
    "SELECT commandbus.settle('fx', 'w', '{" R "}', '{1}', '{TRANSIENT}', NULL, NULL, NULL, "
    "'{infinity}')",
    "SELECT commandbus.extend('fx', 'w', '{" R "}', '{1}', NULL)",
    "SELECT commandbus.extend('fx', 'w', '{" R "}', '{1}', 'NaN')",
    "SELECT commandbus.extend('fx', 'w', '{" R "}', '{1}', 1e9)",
    "SELECT commandbus.extend('fx', 'w', '{" R "}', '{1,1}', 30)",
    "SELECT commandbus.extend('fx', 'w', '{" R "}', NULL, 30)",
    "SELECT commandbus.release_unknown('fx', 'w', NULL, NULL)",
    "SELECT commandbus.release_unknown('fx', 'w', '{" R "}', '{}')",
    "SELECT commandbus.release_unknown('fx', 'w', '{" R "}', '{NULL}')",
    "SELECT commandbus.restore_messages(NULL)",
    "SELECT commandbus.restore_messages('fx', -1)",
    "SELECT commandbus.close_batches(NULL, -1)",
    "SELECT commandbus.sleep_announce(NULL, '{fx__commands}', 1)",
    "SELECT commandbus.sleep_announce('w', '{fx__commands}', NULL)",
    "SELECT commandbus.sleep_announce('w', '{fx__commands}', 'NaN')",
    "SELECT commandbus.heartbeat(NULL)",
    "SELECT commandbus.tsq_retry('fx', '" T "', NULL)",
    "SELECT commandbus.tsq_cancel('fx', '" T "', 'ann', NULL)",
    "SELECT commandbus.tsq_complete(NULL, '" T "', 'ann')",
    "SELECT commandbus.purge('0 s', '0 s', '0 s', NULL)",
    "SELECT commandbus.purge('0 s', '0 s', '-1 s')",
};

Test(hostile_payload, odd_arguments_are_an_error) /* section 8.7 */
{
    test_send_one(bus.db, .command_id = T);
    expect_verdict(CB_SETTLED, test_run_one(bus.db, "w", CB_PERMANENT));
    test_send_one(bus.db, .command_id = R);
    cb_claim_free(test_claim(bus.db, "w", 1, 3600));
    test_send_one(bus.db, .command_id = P);

    for (size_t i = 0; i < sizeof odd_calls / sizeof *odd_calls; i++) {
        test_exec(bus.conn, "BEGIN");
        cr_expect_str_neq(test_sqlstate(bus.conn, odd_calls[i]), "00000", "%s", odd_calls[i]);
        test_exec(bus.conn, "ROLLBACK");
    }
}

Test(hostile_payload, as_many_as_there_can_be_is_a_quantity_like_any_other) /* section 8.7 */
{
    test_send(bus.db, 5, NULL);

    OWNED(cb_claim) claim = test_claim(bus.db, "w", 2147483647, 30);

    cr_expect_eq(cb_claim_count(claim), 5);
}

Test(hostile_payload, messages_due_since_minus_infinity_are_claimed_and_counted) /* section 8.7 */
{
    OWNED(cb_rows) queues = NULL;
    cb_error e = { 0 };
    test_send(bus.db, 2, NULL);
    test_exec(bus.conn,
              "UPDATE pgmq.q_fx__commands SET vt = '-infinity', enqueued_at = '-infinity'");

    cr_expect(cb_queue_list(bus.db, &queues, &e), "%s", e.message);
    OWNED(cb_claim) claim = test_claim(bus.db, "w", 10, 30);

    cr_assert_eq(cb_claim_count(claim), 2);
    cr_expect_eq(cb_claim_at(claim, 0)->waited_us, 0);
}
