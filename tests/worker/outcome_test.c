/* What becomes of a command by what its handler returned: message, row, audit, reply, batch. */
#include "embed.h"

#include <json-c/json.h>
#include <math.h>

TestSuite(outcome, .init = embed_open, .fini = embed_close);

static cb_outcome book_rate(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)ctx, (void)command;
    *result = json_object_new_object();
    json_object_object_add(*result, "rate", json_object_new_string("1.1"));
    return CB_SUCCESS;
}

static cb_outcome no_result(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)ctx, (void)command, (void)result;
    return CB_SUCCESS;
}

static cb_outcome fail_for_good(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)command;
    *result = json_object_new_string("dropped");
    return cb_permanent(ctx, "NO_SUCH_PAIR", "no rate for %s", "EUR/XXX");
}

static cb_outcome decline_limit(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)command, (void)result;
    return cb_business_rule(ctx, "LIMIT_REACHED", "%d is over the limit", 100);
}

static cb_outcome fail_with_attempt(cb_context *ctx, const cb_command *command,
                                    json_object **result)
{
    (void)command, (void)result;
    return cb_transient(ctx, "TRY_LATER", "attempt %d", cb_context_attempt(ctx));
}

/* WRK.4, WK-4, WK-8 */
Test(outcome, success_deletes_the_message_and_replies_with_the_result)
{
    cb_uuid id = test_send_one(bus.db, .reply_to = "payments__replies");
    embed_start(HANDLERS({ "Test", book_rate }));
    await_status("COMPLETED", id);

    expect_command("COMPLETED 1 {\"rate\": \"1.1\"} done", id,
                   "status, attempts, result, error_code, lease_owner, "
                   "CASE WHEN completed_at IS NOT NULL THEN 'done' END");
    expect_messages("0 queued, 0 archived, 1 replied", id);
    expect_trail("SENT RECEIVED COMPLETED", id);
    expect_value(bus.conn, "1.1",
                 "SELECT details ->> 'rate' FROM commandbus.audit WHERE event_type = 'COMPLETED'");
    expect_reply("SUCCESS {\"rate\": \"1.1\"} true", id, "'outcome', 'result', 'final'");
    expect_value(bus.conn, "t",
                 "SELECT (message ->> 'correlation_id')::uuid = correlation_id FROM "
                 "pgmq.q_payments__replies, commandbus.command_metadata");
}

/* WK-8 */
Test(outcome, without_reply_to_nobody_is_answered)
{
    cb_uuid id = test_send_one(bus.db, .domain = "fx");
    embed_start(HANDLERS({ "Test", no_result }));
    await_status("COMPLETED", id);

    expect_messages("0 queued, 0 archived, 0 replied", id);
    expect_command("null", id, "coalesce(result::text, 'null')");
}

/* WRK.4, BUS.5 */
Test(outcome, the_last_outcome_of_a_batch_closes_it)
{
    cb_send members[5] = { 0 };
    cb_batch_options options = { .domain = "fx", .reply_to = "payments__replies" };
    cb_error e = { 0 };
    for (size_t i = 0; i < CB_COUNT(members); i++)
        members[i] = (cb_send){ .domain = "fx", .command_type = i < 3 ? "Test" : "Decline" };
    cb_uuid id;
    cr_assert(cb_batch_create(bus.db, &options, members, CB_COUNT(members), &id, &e), "%s",
              e.message);

    embed_start(HANDLERS({ "Test", book_rate }, { "Decline", decline_limit }));

    await_value("COMPLETED_WITH_FAILURES 5 3 2",
                "SELECT concat_ws(' ', status, total, completed, failed) FROM "
                "commandbus.batch_status WHERE batch_id = $1",
                id.text);
    expect_value(bus.conn, "5 3 2 0",
                 "SELECT concat_ws(' ', message ->> 'total', message ->> 'completed', "
                 "message ->> 'failed', message ->> 'canceled') FROM pgmq.q_payments__replies");
    expect_value(bus.conn, "1",
                 "SELECT count(*) FROM commandbus.audit WHERE event_type = 'BATCH_COMPLETED'");
}

/* WRK.6, WK-6 */
Test(outcome, permanent_goes_to_the_tsq_at_once)
{
    cb_uuid id = test_send_one(bus.db, .reply_to = "payments__replies", .max_attempts = 5);
    embed_start(HANDLERS({ "Test", fail_for_good }));
    await_status("IN_TROUBLESHOOTING_QUEUE", id);

    expect_command("1 PERMANENT NO_SUCH_PAIR no rate for EUR/XXX parked", id,
                   "attempts, error_type, error_code, error_message, result, "
                   "CASE WHEN tsq_at IS NOT NULL THEN 'parked' END");
    expect_messages("0 queued, 1 archived, 1 replied", id);
    expect_trail("SENT RECEIVED MOVED_TO_TSQ", id);
    expect_reply("FAILED PERMANENT NO_SUCH_PAIR no rate for EUR/XXX false", id,
                 "'outcome', 'error_type', 'error_code', 'error_message', 'final'");
}

/* WRK.6, WK-7 */
Test(outcome, transient_with_no_attempt_left_goes_to_the_tsq)
{
    cb_uuid id = test_send_one(bus.db, .reply_to = "payments__replies", .max_attempts = 2);
    embed_start(HANDLERS({ "Test", fail_with_attempt }));
    await_status("IN_TROUBLESHOOTING_QUEUE", id);

    expect_command("2 2 TRANSIENT TRY_LATER attempt 2", id,
                   "attempts, lease_no, error_type, error_code, error_message");
    expect_messages("0 queued, 1 archived, 1 replied", id);
    expect_trail("SENT RECEIVED FAILED RETRY_SCHEDULED RECEIVED MOVED_TO_TSQ", id);
    expect_reply("FAILED TRANSIENT TRY_LATER attempt 2 false", id,
                 "'outcome', 'error_type', 'error_code', 'error_message', 'final'");
}

/* WRK.7 */
Test(outcome, business_rule_fails_finally_without_the_tsq)
{
    cb_uuid id = test_send_one(bus.db, .reply_to = "payments__replies");
    embed_start(HANDLERS({ "Test", decline_limit }));
    await_status("FAILED", id);

    expect_command("1 BUSINESS_RULE LIMIT_REACHED 100 is over the limit done", id,
                   "attempts, error_type, error_code, error_message, tsq_at, "
                   "CASE WHEN completed_at IS NOT NULL THEN 'done' END");
    expect_messages("0 queued, 1 archived, 1 replied", id);
    expect_trail("SENT RECEIVED BUSINESS_RULE_FAILED", id);
    expect_reply("FAILED BUSINESS_RULE LIMIT_REACHED 100 is over the limit true", id,
                 "'outcome', 'error_type', 'error_code', 'error_message', 'final'");
}

static cb_outcome interrupt_once(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)command, (void)result;
    gate_pass();
    return gate_left() == 1 ? cb_interrupted(ctx) : CB_SUCCESS;
}

/* WRK.11: given back by the handler itself, and the attempt with it. */
Test(outcome, interrupted_is_run_again_and_its_attempt_refunded)
{
    cb_uuid id = test_send_one(bus.db, .max_attempts = 1);
    embed_start(HANDLERS({ "Test", interrupt_once }));
    await_status("COMPLETED", id);

    expect_command("1 2", id, "attempts, lease_no");
    expect_trail("SENT RECEIVED RELEASED RECEIVED COMPLETED", id);
}

/* ---- values that are not outcomes ---- */

static cb_outcome nonsense(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)ctx, (void)command, (void)result;
    return (cb_outcome)77;
}

static cb_outcome not_finite(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)ctx, (void)command;
    *result = json_object_new_double(NAN);
    return CB_SUCCESS;
}

static cb_outcome too_large(cb_context *ctx, const cb_command *command, json_object **result)
{
    static char text[20001];

    (void)ctx, (void)command;
    memset(text, 'x', sizeof text - 1);
    *result = json_object_new_string(text);
    return CB_SUCCESS;
}

static cb_outcome strange_words(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)command, (void)result;
    return cb_permanent(ctx, "BAD\xff", "bytes that are no text: \xc3\x28");
}

/* CONTRACT: INTERNAL_ERROR is transient. */
Test(outcome, a_value_outside_the_enum_is_a_transient_internal_error)
{
    cb_uuid id = test_send_one(bus.db, .max_attempts = 2);
    embed_start(HANDLERS({ "Test", nonsense }));
    await_status("IN_TROUBLESHOOTING_QUEUE", id);

    expect_command("2 TRANSIENT INTERNAL_ERROR", id, "attempts, error_type, error_code");
}

/* DESIGN 2: results are checked when the handler returns. */
Test(outcome, a_result_that_cannot_be_carried_is_a_permanent_result_invalid)
{
    cb_uuid nan = test_send_one(bus.db, .command_type = "NotFinite");
    cb_uuid large = test_send_one(bus.db, .command_type = "TooLarge");
    cb_uuid fine = test_send_one(bus.db, .command_type = "Fine");
    embed_start(
        HANDLERS({ "NotFinite", not_finite }, { "TooLarge", too_large }, { "Fine", book_rate }),
        .worker.result_limit = 20000);
    await_status("IN_TROUBLESHOOTING_QUEUE", nan);
    await_status("IN_TROUBLESHOOTING_QUEUE", large);
    await_status("COMPLETED", fine);

    expect_command("1 PERMANENT RESULT_INVALID", nan, "attempts, error_type, error_code");
    expect_command("1 PERMANENT RESULT_INVALID", large, "attempts, error_type, error_code");
}

/* WRK.14: halved until the culprit is alone; the others of its flush are as if it had not been. */
Test(outcome, one_that_the_database_does_not_take_is_settle_refused_and_alone)
{
    cb_uuid others[20];
    test_send(bus.db, CB_COUNT(others), others);
    cb_uuid id = test_send_one(bus.db, .command_type = "TooLarge", .reply_to = "payments__replies");
    test_exec(bus.conn, "UPDATE commandbus.domain SET payload_limit = 100 WHERE domain = 'fx'");
    embed_start(HANDLERS({ "Test", book_rate }, { "TooLarge", too_large }),
                .domain.concurrent_messages = 30);

    await_status("IN_TROUBLESHOOTING_QUEUE", id);
    await_value("20",
                "SELECT count(*) FROM commandbus.command_metadata WHERE status = 'COMPLETED'");

    expect_command("1 PERMANENT SETTLE_REFUSED", id, "attempts, error_type, error_code");
    expect_reply("FAILED SETTLE_REFUSED false", id, "'outcome', 'error_code', 'final'");
    expect_value(bus.conn, "21", "SELECT count(*) FROM pgmq.q_payments__replies");
}

Test(outcome, words_that_are_not_valid_utf8_are_repaired_and_not_refused)
{
    cb_uuid id = test_send_one(bus.db, .domain = "fx");
    embed_start(HANDLERS({ "Test", strange_words }));
    await_status("IN_TROUBLESHOOTING_QUEUE", id);

    expect_command("PERMANENT t", id, "error_type, error_code LIKE 'BAD%'");
}
