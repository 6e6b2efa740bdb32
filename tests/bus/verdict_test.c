/* What settle answers about an outcome that is late, repeated, or locked by somebody. */
#include "claims.h"

TestSuite(verdict, .init = bus_open, .fini = bus_close);

/* Everything that settling could have changed, except the audit, as one text. */
static char *state_of(void)
{
    return test_value(
        bus.conn,
        "SELECT coalesce((SELECT string_agg(c::text, ';' ORDER BY msg_id) "
        "  FROM commandbus.command_metadata c), '') || "
        "coalesce((SELECT string_agg(q::text, ';' ORDER BY msg_id) FROM pgmq.q_fx__commands q), '') || "
        "coalesce((SELECT string_agg(a::text, ';' ORDER BY msg_id) FROM pgmq.a_fx__commands a), '') || "
        "coalesce((SELECT string_agg(p::text, ';' ORDER BY msg_id) FROM pgmq.q_payments__replies p), '')",
        NULL);
}

/* A late outcome of any kind: STALE, one audit row that tells the story, nothing else changed. */
static void expect_stale(cb_settlement item, const char *now)
{
    for (int outcome = CB_SUCCESS; outcome <= CB_INTERRUPTED; outcome++) {
        char *before = state_of();
        item.outcome = (cb_outcome)outcome;
        test_exec(bus.conn, "DELETE FROM commandbus.audit WHERE event_type = 'STALE_OUTCOME'");

        expect_verdict(CB_STALE, test_settle_one(bus.db, "late", item));

        char *after = state_of();
        cr_expect_str_eq(before, after, "a stale %s changed something",
                         cb_outcome_name(item.outcome));
        expect_value(
            bus.conn, now,
            "SELECT string_agg(concat_ws(' ', worker, lease_no, details ->> 'current_lease_no', "
            "details ->> 'current_status'), ';') FROM commandbus.audit "
            "WHERE event_type = 'STALE_OUTCOME' AND command_id = $1 AND details ->> 'outcome' = $2",
            item.command_id.text, cb_outcome_name(item.outcome));
        free(before);
        free(after);
    }
}

Test(verdict, an_outcome_is_stale_once_another_worker_holds_the_command) /* WRK.14, section 8.3 */
{
    test_send(bus.db, 1, NULL);
    OWNED(cb_claim) first = test_claim(bus.db, "late", 1, 0.05);
    OWNED(cb_claim) second = test_claim_awaited(bus.db, "heir", 1, 30);

    expect_stale(test_outcome(cb_claim_at(first, 0), CB_SUCCESS), "late 1 2 IN_PROGRESS");

    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "heir",
                                               test_outcome(cb_claim_at(second, 0), CB_SUCCESS)));
}

Test(verdict,
     an_outcome_is_stale_after_another_worker_finished_the_command) /* WRK.14, section 8.6 */
{
    cb_uuid id;
    test_send(bus.db, 1, &id);
    OWNED(cb_claim) first = test_claim(bus.db, "late", 1, 0.05);
    OWNED(cb_claim) second = test_claim_awaited(bus.db, "heir", 1, 30);
    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "heir",
                                               test_outcome(cb_claim_at(second, 0), CB_SUCCESS)));

    expect_stale(test_outcome(cb_claim_at(first, 0), CB_SUCCESS), "late 1 2 COMPLETED");

    expect_messages("0 queued, 0 archived, 1 replied", id);
}

Test(verdict, an_outcome_is_stale_after_the_command_was_given_up_as_exhausted) /* WRK.6, WRK.14 */
{
    cb_uuid id = test_send_one(bus.db, .max_attempts = 1, .reply_to = "payments__replies");
    OWNED(cb_claim) first = test_claim(bus.db, "late", 1, 0.05);
    OWNED(cb_claim) given_up = test_claim_awaited(bus.db, "heir", 1, 30);
    cr_assert_eq(cb_claim_exhausted(given_up), 1);

    expect_verdict(
        CB_STALE, test_settle_one(bus.db, "late", test_outcome(cb_claim_at(first, 0), CB_SUCCESS)));

    expect_trail("SENT RECEIVED MOVED_TO_TSQ STALE_OUTCOME", id);
    expect_messages("0 queued, 1 archived, 1 replied", id);
}

Test(verdict, an_outcome_of_an_unknown_command_is_stale) /* WRK.14 */
{
    cb_command unknown = { .command_id = cb_uuid_new(), .lease_no = 1 };

    expect_stale(test_outcome(&unknown, CB_SUCCESS), "late 1");
}

Test(verdict, a_fence_that_was_never_given_out_is_stale) /* WRK.14 */
{
    test_send(bus.db, 1, NULL);
    OWNED(cb_claim) claim = test_claim(bus.db, "w", 1, 30);
    cb_settlement item = test_outcome(cb_claim_at(claim, 0), CB_SUCCESS);
    item.lease_no = 7;

    expect_stale(item, "late 7 1 IN_PROGRESS");
}

Test(verdict, the_same_outcome_again_is_already_there_and_changes_nothing) /* WRK.14 */
{
    for (int outcome = CB_SUCCESS; outcome <= CB_INTERRUPTED; outcome++) {
        test_send(bus.db, 1, NULL);
        OWNED(cb_claim) claim = test_claim(bus.db, "w", 1, 30);
        cb_settlement item = test_outcome(cb_claim_at(claim, 0), (cb_outcome)outcome);
        expect_verdict(CB_SETTLED, test_settle_one(bus.db, "w", item));
        char *before = state_of();
        long audited = test_number(bus.conn, "SELECT count(*) FROM commandbus.audit", NULL);

        expect_verdict(CB_ALREADY, test_settle_one(bus.db, "w", item));

        char *after = state_of();
        cr_expect_str_eq(before, after, "%s again", cb_outcome_name(item.outcome));
        cr_expect_eq(test_number(bus.conn, "SELECT count(*) FROM commandbus.audit", NULL), audited);
        free(before);
        free(after);
    }
}

Test(verdict, an_old_transient_outcome_is_stale_once_its_retry_runs) /* WRK.14 */
{
    test_send(bus.db, 1, NULL);
    OWNED(cb_claim) claim = test_claim(bus.db, "w", 1, 30);
    cb_settlement item = test_outcome(cb_claim_at(claim, 0), CB_TRANSIENT);
    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "w", item));
    OWNED(cb_claim) retry = test_claim(bus.db, "w", 1, 30);
    cr_assert_eq(cb_claim_count(retry), 1);

    expect_stale(item, "late 1 2 IN_PROGRESS");
}

Test(verdict, the_same_item_twice_in_one_call_settles_once) /* WRK.14 */
{
    cb_error e = { 0 };
    cb_uuid ids[2];
    cb_settlement items[5];
    test_send(bus.db, 2, ids);
    OWNED(cb_claim) claim = test_claim(bus.db, "w", 2, 30);
    for (size_t i = 0; i < 5; i++)
        items[i] = test_outcome(cb_claim_at(claim, i % 2), CB_SUCCESS);

    cr_assert(cb_settle(bus.db, "w", items, 5, &e), "%s", e.message);

    int settled[2] = { 0 };
    for (size_t i = 0; i < 5; i++) {
        cr_expect(items[i].verdict == CB_SETTLED || items[i].verdict == CB_ALREADY);
        settled[i % 2] += items[i].verdict == CB_SETTLED;
    }
    for (size_t i = 0; i < 2; i++) {
        cr_expect_eq(settled[i], 1);
        expect_trail("SENT RECEIVED COMPLETED", ids[i]);
        expect_messages("0 queued, 0 archived, 1 replied", ids[i]);
    }
}
