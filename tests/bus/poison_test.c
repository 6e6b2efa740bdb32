/* Messages without a command: archived, recorded, counted, and never in the way of others. */
#include "claims.h"

TestSuite(poison, .init = bus_open, .fini = bus_close);

/* Puts a message into the queue of fx as any client of PGMQ could. */
static void put(const char *json)
{
    free(test_value(bus.conn, "SELECT pgmq.send('fx__commands', $1::jsonb)", json, NULL));
}

/* Claims everything: the poison goes to the archive with an audit row each, a second claim finds
 * nothing left of it, and one command sent before and one sent after it are claimed as ever. */
static void expect_archived(size_t expected)
{
    test_send(bus.db, 1, NULL);

    OWNED(cb_claim) claim = test_claim(bus.db, "w", 100, 30);
    OWNED(cb_claim) again = test_claim(bus.db, "w", 100, 30);

    cr_expect_eq(cb_claim_poisoned(claim), expected, "%zu poisoned, expected %zu",
                 cb_claim_poisoned(claim), expected);
    cr_expect_eq(cb_claim_count(claim), 2, "%zu commands claimed", cb_claim_count(claim));
    cr_expect_eq(cb_claim_exhausted(claim), 0);
    cr_expect_eq(cb_claim_poisoned(again) + cb_claim_count(again), 0, "it came again");
    cr_expect_eq(test_number(bus.conn, "SELECT count(*) FROM pgmq.q_fx__commands", NULL), 2);
    cr_expect_eq((size_t)test_number(bus.conn, "SELECT count(*) FROM pgmq.a_fx__commands", NULL),
                 expected);
    cr_expect_eq((size_t)test_number(bus.conn,
                                     "SELECT count(*) FROM commandbus.audit a "
                                     "JOIN pgmq.a_fx__commands m "
                                     "ON m.msg_id = (a.details ->> 'msg_id')::bigint "
                                     "WHERE a.event_type = 'POISON_ARCHIVED' AND a.domain = 'fx' "
                                     "AND a.worker = 'w' AND a.details ->> 'reason' <> ''",
                                     NULL),
                 expected);
    for (size_t i = 0; i < cb_claim_count(claim); i++)
        expect_verdict(
            CB_SETTLED,
            test_settle_one(bus.db, "w", test_outcome(cb_claim_at(claim, i), CB_SUCCESS)));
}

Test(poison, messages_that_are_not_json_objects_are_archived) /* WRK.9 */
{
    const char *const messages[] = { "null", "42", "\"text\"", "true", "[]", "[{}]" };
    size_t n = sizeof messages / sizeof *messages;
    test_send(bus.db, 1, NULL);
    for (size_t i = 0; i < n; i++)
        put(messages[i]);
    test_exec(bus.conn, "INSERT INTO pgmq.q_fx__commands (vt, message) VALUES (now(), NULL)");

    expect_archived(n + 1);
}

Test(poison, messages_that_lack_fields_or_have_strange_ones_are_archived) /* WRK.9 */
{
    const char *const messages[] = {
        "{}",
        "{\"command_id\": null}",
        "{\"command_id\": \"not a uuid\", \"domain\": \"fx\", \"command_type\": \"Test\"}",
        "{\"command_id\": {\"a\": [1]}, \"domain\": 7}",
        "{\"domain\": \"fx\", \"command_type\": \"Test\", \"data\": {}}",
        "{\"command_id\": \"00000000-0000-4000-8000-000000000001\"}",
    };
    size_t n = sizeof messages / sizeof *messages;
    test_send(bus.db, 1, NULL);
    for (size_t i = 0; i < n; i++)
        put(messages[i]);

    expect_archived(n);
}

Test(poison, a_message_nested_a_thousand_deep_is_archived) /* WRK.9 */
{
    test_send(bus.db, 1, NULL);
    test_exec(bus.conn, "SELECT pgmq.send('fx__commands', (repeat('{\"a\":', 1000) || '1' || "
                        "repeat('}', 1000))::jsonb)");

    expect_archived(1);
}

Test(poison, a_message_that_names_an_unknown_command_is_archived) /* WRK.9 */
{
    test_send(bus.db, 1, NULL);
    put("{\"domain\": \"fx\", \"command_type\": \"Test\", \"data\": {}, \"reply_to\": null, "
        "\"command_id\": \"00000000-0000-4000-8000-000000000001\", "
        "\"correlation_id\": \"00000000-0000-4000-8000-000000000002\"}");

    expect_archived(1);
}

Test(poison, a_second_message_of_a_live_command_is_archived_and_the_first_one_counts) /* WRK.9 */
{
    cb_uuid id;
    test_send(bus.db, 1, &id);
    test_exec(bus.conn, "INSERT INTO pgmq.q_fx__commands (vt, message) "
                        "SELECT now(), message FROM pgmq.q_fx__commands");

    expect_archived(1);

    expect_value(bus.conn, "COMPLETED 1",
                 "SELECT concat_ws(' ', status, lease_no) FROM commandbus.command_metadata "
                 "WHERE command_id = $1",
                 id.text);
}

/* Brings a command to its end and its message back into the queue, under the number it had. */
static cb_uuid finish_but_keep_message(cb_outcome outcome)
{
    cb_uuid id;

    test_send(bus.db, 1, &id);
    test_exec(bus.conn, "CREATE TEMP TABLE kept AS SELECT * FROM pgmq.q_fx__commands");
    expect_verdict(CB_SETTLED, test_run_one(bus.db, "w", outcome));
    test_exec(bus.conn, "DELETE FROM pgmq.a_fx__commands");
    test_exec(bus.conn,
              "INSERT INTO pgmq.q_fx__commands OVERRIDING SYSTEM VALUE SELECT * FROM kept");
    test_exec(bus.conn, "DROP TABLE kept");
    return id;
}

static void expect_leftover_archived(cb_outcome outcome, const char *status)
{
    cb_uuid id = finish_but_keep_message(outcome);
    test_send(bus.db, 1, NULL);

    expect_archived(1);

    expect_value(
        bus.conn, status,
        "SELECT status || ' ' || lease_no FROM commandbus.command_metadata WHERE command_id = $1",
        id.text);
    expect_value(bus.conn, "1",
                 "SELECT count(*) FROM commandbus.audit WHERE event_type = 'POISON_ARCHIVED' "
                 "AND command_id = $1",
                 id.text);
    expect_value(
        bus.conn, "1",
        "SELECT count(*) FROM pgmq.q_payments__replies WHERE message ->> 'command_id' = $1",
        id.text);
}

Test(poison, a_message_left_over_from_a_completed_command_is_archived_not_run) /* WRK.9 */
{
    expect_leftover_archived(CB_SUCCESS, "COMPLETED 1");
}

Test(poison, a_message_left_over_from_a_failed_command_is_archived_not_run) /* WRK.9 */
{
    expect_leftover_archived(CB_BUSINESS_RULE, "FAILED 1");
}

Test(poison, a_message_left_over_from_a_command_in_the_tsq_is_archived_not_run) /* WRK.9 */
{
    expect_leftover_archived(CB_PERMANENT, "IN_TROUBLESHOOTING_QUEUE 1");
}

Test(poison, a_message_from_before_an_operators_retry_is_archived_and_the_new_one_runs) /* WRK.9 */
{
    cb_uuid id = finish_but_keep_message(CB_PERMANENT);
    free(test_value(bus.conn, "SELECT commandbus.tsq_retry('fx', $1::uuid, 'op')", id.text, NULL));

    OWNED(cb_claim) claim = test_claim(bus.db, "w", 100, 30);

    cr_expect_eq(cb_claim_poisoned(claim), 1);
    cr_assert_eq(cb_claim_count(claim), 1);
    cr_expect_str_eq(cb_claim_at(claim, 0)->command_id.text, id.text);
    cr_expect_eq(cb_claim_at(claim, 0)->attempt, 1);
    cr_expect_eq(cb_claim_at(claim, 0)->lease_no, 2);
}

Test(poison, a_claim_full_of_poison_does_not_hide_what_lies_behind_it) /* WRK.9, section 8.5 */
{
    test_exec(bus.conn,
              "SELECT pgmq.send_batch('fx__commands', array_fill('{}'::jsonb, ARRAY[50]))");
    cb_uuid id;
    test_send(bus.db, 1, &id);
    size_t poisoned = 0, claimed = 0;

    for (int i = 0; i < 6; i++) {
        OWNED(cb_claim) claim = test_claim(bus.db, "w", 10, 30);
        poisoned += cb_claim_poisoned(claim);
        claimed += cb_claim_count(claim);
    }

    cr_expect_eq(poisoned, 50);
    cr_expect_eq(claimed, 1);
}
