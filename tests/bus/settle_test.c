/* What each outcome writes: row, message, audit and reply, together. */
#include "claims.h"

TestSuite(settle, .init = bus_open, .fini = bus_close);

static const char correlation[] = "11111111-2222-4333-8444-555555555555";

/* A command that is claimed for the first time, with a reply queue and two attempts. */
static cb_settlement claimed(cb_outcome outcome, cb_uuid *id)
{
    *id = test_send_one(bus.db, .reply_to = "payments__replies", .max_attempts = 2,
                        .correlation_id = correlation);
    OWNED(cb_claim) claim = test_claim(bus.db, "w", 1, 30);

    cr_assert_eq(cb_claim_count(claim), 1);
    return test_outcome(cb_claim_at(claim, 0), outcome);
}

/* Status, attempts, fence, and what must be gone or there after a transition. */
#define expect_settled_as(expected, id)                                                    \
    expect_value(                                                                          \
        bus.conn, expected,                                                                \
        "SELECT concat_ws(' ', status, attempts, lease_no, "                               \
        "CASE WHEN lease_owner IS NOT NULL OR lease_until IS NOT NULL THEN 'leased' END, " \
        "CASE WHEN completed_at IS NOT NULL THEN 'done' END, "                             \
        "CASE WHEN tsq_at IS NOT NULL THEN 'parked' END, "                                 \
        "error_type, error_code, error_message, result) "                                  \
        "FROM commandbus.command_metadata WHERE command_id = $1",                          \
        (id).text)

/* The one reply, its ids replaced by words. */
#define expect_whole_reply(expected, id)                                                          \
    expect_value(bus.conn, expected,                                                              \
                 "SELECT string_agg(replace(replace(message::text, $1, 'ID'), $2, 'CORR'), ' ') " \
                 "FROM pgmq.q_payments__replies",                                                 \
                 (id).text, correlation)

#define expect_details(expected, id, event)                                                \
    expect_value(                                                                          \
        bus.conn, expected,                                                                \
        "SELECT concat_ws(' ', worker, attempt, lease_no, details) FROM commandbus.audit " \
        "WHERE command_id = $1 AND event_type = $2",                                       \
        (id).text, event)

Test(settle, success_completes_deletes_the_message_and_replies) /* WRK.4 */
{
    cb_uuid id;
    cb_settlement item = claimed(CB_SUCCESS, &id);

    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "w", item));

    expect_settled_as("COMPLETED 1 1 done {\"ok\": true}", id);
    expect_messages("0 queued, 0 archived, 1 replied", id);
    expect_trail("SENT RECEIVED COMPLETED", id);
    expect_details("w 1 1 {\"ok\": true}", id, "COMPLETED");
    expect_whole_reply("{\"final\": true, \"result\": {\"ok\": true}, \"outcome\": \"SUCCESS\", "
                       "\"command_id\": \"ID\", \"correlation_id\": \"CORR\"}",
                       id);
}

Test(settle, success_without_a_result_replies_null_and_without_reply_to_nothing) /* WRK.4 */
{
    cb_uuid with, without;
    cb_settlement item = claimed(CB_SUCCESS, &with);
    item.result = NULL;

    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "w", item));
    without = test_send_one(bus.db, .data = "{}");
    expect_verdict(CB_SETTLED, test_run_one(bus.db, "w", CB_SUCCESS));

    expect_whole_reply("{\"final\": true, \"result\": null, \"outcome\": \"SUCCESS\", "
                       "\"command_id\": \"ID\", \"correlation_id\": \"CORR\"}",
                       with);
    expect_messages("0 queued, 0 archived, 0 replied", without);
}

Test(settle, transient_with_attempts_left_puts_the_message_off_and_says_nothing) /* WRK.5 */
{
    cb_uuid id;
    cb_settlement item = claimed(CB_TRANSIENT, &id);
    item.retry_seconds = 60;

    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "w", item));

    expect_settled_as("PENDING 1 1 TRANSIENT E it broke", id);
    expect_messages("1 queued, 0 archived, 0 replied", id);
    expect_trail("SENT RECEIVED FAILED RETRY_SCHEDULED", id);
    expect_details("w 1 1 {\"error_code\": \"E\", \"error_type\": \"TRANSIENT\", "
                   "\"error_message\": \"it broke\"}",
                   id, "FAILED");
    expect_value(bus.conn, "true true",
                 "SELECT (q.vt = c.updated_at + interval '60 seconds') || ' ' || "
                 "((a.details ->> 'visible_at')::timestamptz = q.vt) "
                 "FROM pgmq.q_fx__commands q, commandbus.command_metadata c, commandbus.audit a "
                 "WHERE a.event_type = 'RETRY_SCHEDULED'");
    OWNED(cb_claim) claim = test_claim(bus.db, "w", 1, 30);
    cr_expect_eq(cb_claim_count(claim), 0, "claimed before its time");
}

Test(settle, the_next_attempt_counts_on_and_success_wipes_the_error) /* WRK.5 */
{
    cb_uuid id;
    cb_settlement item = claimed(CB_TRANSIENT, &id);

    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "w", item));
    expect_verdict(CB_SETTLED, test_run_one(bus.db, "w", CB_SUCCESS));

    expect_settled_as("COMPLETED 2 2 done {\"ok\": true}", id);
    expect_messages("0 queued, 0 archived, 1 replied", id);
    expect_trail("SENT RECEIVED FAILED RETRY_SCHEDULED RECEIVED COMPLETED", id);
}

Test(settle,
     transient_with_attempts_used_up_goes_to_the_tsq_with_a_reply_that_is_not_final) /* WRK.6 */
{
    cb_uuid id;
    cb_settlement item = claimed(CB_TRANSIENT, &id);

    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "w", item));
    expect_verdict(CB_SETTLED, test_run_one(bus.db, "w", CB_TRANSIENT));

    expect_settled_as("IN_TROUBLESHOOTING_QUEUE 2 2 parked TRANSIENT E it broke", id);
    expect_messages("0 queued, 1 archived, 1 replied", id);
    expect_trail("SENT RECEIVED FAILED RETRY_SCHEDULED RECEIVED MOVED_TO_TSQ", id);
    expect_whole_reply("{\"final\": false, \"outcome\": \"FAILED\", \"command_id\": \"ID\", "
                       "\"error_code\": \"E\", \"error_type\": \"TRANSIENT\", "
                       "\"error_message\": \"it broke\", \"correlation_id\": \"CORR\"}",
                       id);
}

Test(settle, permanent_goes_to_the_tsq_at_once_whatever_attempts_are_left) /* WRK.6 */
{
    cb_uuid id;
    cb_settlement item = claimed(CB_PERMANENT, &id);

    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "w", item));

    expect_settled_as("IN_TROUBLESHOOTING_QUEUE 1 1 parked PERMANENT E it broke", id);
    expect_messages("0 queued, 1 archived, 1 replied", id);
    expect_trail("SENT RECEIVED MOVED_TO_TSQ", id);
    expect_whole_reply("{\"final\": false, \"outcome\": \"FAILED\", \"command_id\": \"ID\", "
                       "\"error_code\": \"E\", \"error_type\": \"PERMANENT\", "
                       "\"error_message\": \"it broke\", \"correlation_id\": \"CORR\"}",
                       id);
}

Test(settle, a_business_rule_fails_the_command_for_good_without_the_tsq) /* WRK.7 */
{
    cb_uuid id;
    cb_settlement item = claimed(CB_BUSINESS_RULE, &id);
    item.error_message = NULL;

    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "w", item));

    expect_settled_as("FAILED 1 1 done BUSINESS_RULE E", id);
    expect_messages("0 queued, 1 archived, 1 replied", id);
    expect_trail("SENT RECEIVED BUSINESS_RULE_FAILED", id);
    expect_whole_reply("{\"final\": true, \"outcome\": \"FAILED\", \"command_id\": \"ID\", "
                       "\"error_code\": \"E\", \"error_type\": \"BUSINESS_RULE\", "
                       "\"correlation_id\": \"CORR\"}",
                       id);
}

Test(settle, interrupted_refunds_the_attempt_but_not_the_fence) /* WRK.11 */
{
    cb_uuid id;
    cb_settlement item = claimed(CB_INTERRUPTED, &id);

    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "w", item));

    expect_settled_as("PENDING 0 1", id);
    expect_messages("1 queued, 0 archived, 0 replied", id);
    expect_trail("SENT RECEIVED RELEASED", id);
    OWNED(cb_claim) again = test_claim(bus.db, "other", 1, 30);
    cr_assert_eq(cb_claim_count(again), 1, "it is not visible at once");
    cr_expect_eq(cb_claim_at(again, 0)->attempt, 1);
    cr_expect_eq(cb_claim_at(again, 0)->lease_no, 2);
}

Test(settle, an_interruption_after_ninety_nine_others_has_cost_no_attempt) /* WRK.11 */
{
    cb_uuid id = test_send_one(bus.db, .max_attempts = 1);

    for (int i = 0; i < 100; i++)
        expect_verdict(CB_SETTLED, test_run_one(bus.db, "w", CB_INTERRUPTED));

    expect_settled_as("PENDING 0 100", id);
    expect_verdict(CB_SETTLED, test_run_one(bus.db, "w", CB_SUCCESS));
}

Test(settle,
     a_reply_to_a_queue_that_is_gone_is_recorded_and_spoils_nothing) /* BUS.7, section 8.7 */
{
    cb_error e = { 0 };
    cb_settlement items[2];
    cr_assert(cb_domain_register(bus.db, "fx", "doomed_replies", &e), "%s", e.message);
    cb_uuid lost = test_send_one(bus.db, .reply_to = "doomed_replies");
    cb_uuid fine = test_send_one(bus.db, .reply_to = "payments__replies");
    OWNED(cb_claim) claim = test_claim(bus.db, "w", 2, 30);
    cr_assert_eq(cb_claim_count(claim), 2);
    for (size_t i = 0; i < 2; i++)
        items[i] = test_outcome(cb_claim_at(claim, i), CB_SUCCESS);
    test_exec(bus.conn, "SELECT pgmq.drop_queue('doomed_replies')");

    cr_assert(cb_settle(bus.db, "w", items, 2, &e), "%s", e.message);

    expect_verdict(CB_SETTLED, items[0].verdict);
    expect_verdict(CB_SETTLED, items[1].verdict);
    expect_trail("SENT RECEIVED COMPLETED REPLY_UNDELIVERABLE", lost);
    expect_trail("SENT RECEIVED COMPLETED", fine);
    expect_messages("0 queued, 0 archived, 1 replied", fine);
    expect_value(bus.conn, "doomed_replies SUCCESS",
                 "SELECT (details ->> 'reply_to') || ' ' || (details ->> 'outcome') "
                 "FROM commandbus.audit WHERE event_type = 'REPLY_UNDELIVERABLE'");
}
