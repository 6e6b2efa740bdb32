/* One call with many outcomes: of every kind, of several domains, in the caller's transaction. */
#include "claims.h"

TestSuite(settle_many, .init = bus_open, .fini = bus_close);

enum {
    PER_KIND = 20,
    KINDS = 5
};

Test(settle_many, outcomes_of_every_kind_in_one_call_each_get_their_own) /* WRK.14 */
{
    cb_settlement items[PER_KIND * KINDS];
    cb_error e = { 0 };
    test_send(bus.db, PER_KIND * KINDS, NULL);
    OWNED(cb_claim) claim = test_claim(bus.db, "w", PER_KIND * KINDS, 30);
    cr_assert_eq(cb_claim_count(claim), PER_KIND * KINDS);
    for (size_t i = 0; i < PER_KIND * KINDS; i++)
        items[i] = test_outcome(cb_claim_at(claim, i), (cb_outcome)(i % KINDS));

    cr_assert(cb_settle(bus.db, "w", items, PER_KIND * KINDS, &e), "%s", e.message);

    for (size_t i = 0; i < PER_KIND * KINDS; i++)
        expect_verdict(CB_SETTLED, items[i].verdict);
    expect_value(
        bus.conn, "COMPLETED 20, FAILED 20, IN_TROUBLESHOOTING_QUEUE 20, PENDING 40",
        "SELECT string_agg(s || ' ' || n, ', ' ORDER BY s) FROM (SELECT status::text s, count(*) n "
        "FROM commandbus.command_metadata GROUP BY 1) x");
    expect_value(bus.conn, "40 queued 40 archived",
                 "SELECT (SELECT count(*) FROM pgmq.q_fx__commands) || ' queued ' || "
                 "(SELECT count(*) FROM pgmq.a_fx__commands) || ' archived'");
    expect_value(
        bus.conn, "60 replies to 60, 40 final",
        "SELECT count(*) || ' replies to ' || count(DISTINCT message ->> 'command_id') || ', ' || "
        "count(*) FILTER (WHERE message @> '{\"final\": true}') || ' final' "
        "FROM pgmq.q_payments__replies");
}

/* Successes of a call are settled together, but for those for which that is not so. */
static void expect_settled_around(cb_settlement *items, size_t n, size_t odd, cb_verdict verdict)
{
    cb_error e = { 0 };

    cr_assert(cb_settle(bus.db, "w", items, n, &e), "%s", e.message);

    for (size_t i = 0; i < n; i++)
        expect_verdict(i == odd ? verdict : CB_SETTLED, items[i].verdict);
}

static void claim_three(cb_settlement items[3])
{
    test_send(bus.db, 3, NULL);
    OWNED(cb_claim) claim = test_claim(bus.db, "w", 3, 30);
    cr_assert_eq(cb_claim_count(claim), 3);
    for (size_t i = 0; i < 3; i++)
        items[i] = test_outcome(cb_claim_at(claim, i), CB_SUCCESS);
}

Test(settle_many, a_success_that_stands_twice_in_a_call_counts_once) /* WRK.14, section 8.6 */
{
    cb_settlement items[4];
    claim_three(items);
    items[3] = items[0];

    expect_settled_around(items, 4, 3, CB_ALREADY);

    expect_value(bus.conn, "3 completed, 3 replies, 0 messages",
                 "SELECT (SELECT count(*) FROM commandbus.audit WHERE event_type = 'COMPLETED') || "
                 "' completed, ' || (SELECT count(*) FROM pgmq.q_payments__replies) || "
                 "' replies, ' || (SELECT count(*) FROM pgmq.q_fx__commands) || ' messages'");
}

Test(settle_many, a_stale_success_among_others_is_stale_alone) /* WRK.14, section 8.3 */
{
    cb_settlement items[3];
    claim_three(items);
    items[1].lease_no--;

    expect_settled_around(items, 3, 1, CB_STALE);

    expect_value(bus.conn, "2 COMPLETED, 1 IN_PROGRESS",
                 "SELECT string_agg(n || ' ' || s, ', ' ORDER BY s) FROM (SELECT status::text s, "
                 "count(*) n FROM commandbus.command_metadata GROUP BY 1) x");
    expect_number(bus.conn, 1, "SELECT count(*) FROM pgmq.q_fx__commands");
    expect_trail("SENT RECEIVED STALE_OUTCOME", items[1].command_id);
}

/* Section 8.1: the row is the truth */
Test(settle_many, a_success_whose_message_was_taken_out_by_hand_is_settled_with_the_others)
{
    cb_settlement items[3];
    claim_three(items);
    test_exec(bus.conn, "DELETE FROM pgmq.q_fx__commands "
                        "WHERE msg_id = (SELECT min(msg_id) FROM pgmq.q_fx__commands)");

    expect_settled_around(items, 3, 3, CB_SETTLED);

    expect_number(bus.conn, 3, "SELECT count(*) FROM pgmq.q_payments__replies");
    expect_number(bus.conn, 0, "SELECT count(*) FROM pgmq.q_fx__commands");
}

Test(settle_many, outcomes_of_several_domains_in_one_call_get_their_own_answers) /* DESIGN 2 */
{
    const char *const domains[] = { "risk", "fx", "payments" };
    cb_settlement items[9];
    cb_error e = { 0 };
    for (size_t d = 0; d < 3; d++) {
        OWNED(cb_receiver) receiver = NULL;
        OWNED(cb_claim) claim = NULL;
        for (int i = 0; i < 3; i++)
            test_send_one(bus.db, .domain = domains[d]);
        cr_assert(
            cb_receiver_open(domains[d], &(cb_receive_options){ .worker = "w" }, &receiver, &e));
        cr_assert(cb_receive(bus.db, receiver, 3, &claim, &e), "%s", e.message);
        cr_assert_eq(cb_claim_count(claim), 3);
        for (size_t i = 0; i < 3; i++) {
            items[i * 3 + d] = test_outcome(cb_claim_at(claim, i), CB_SUCCESS);
            items[i * 3 + d].domain = domains[d];
        }
    }
    items[4].lease_no += 1; /* and one that is stale, to see that the answers find their items */

    cr_assert(cb_settle(bus.db, "w", items, 9, &e), "%s", e.message);

    for (size_t i = 0; i < 9; i++)
        expect_verdict(i == 4 ? CB_STALE : CB_SETTLED, items[i].verdict);
    expect_value(bus.conn, "8",
                 "SELECT count(*) FROM commandbus.command_metadata "
                 "WHERE status = 'COMPLETED'");
}

Test(settle_many, a_rollback_of_the_callers_transaction_takes_everything_back) /* section 8.3 */
{
    cb_error e = { 0 };
    cb_uuid id;
    test_send(bus.db, 1, &id);
    OWNED(cb_claim) claim = test_claim(bus.db, "w", 1, 30);
    cb_settlement item = test_outcome(cb_claim_at(claim, 0), CB_SUCCESS);

    cr_assert(cb_db_begin(bus.db, &e), "%s", e.message);
    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "w", item));
    cr_assert(cb_db_rollback(bus.db, &e), "%s", e.message);

    expect_messages("1 queued, 0 archived, 0 replied", id);
    expect_trail("SENT RECEIVED", id);
    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "w", item));
    expect_messages("0 queued, 0 archived, 1 replied", id);
}

Test(settle_many, a_call_that_makes_no_sense_is_refused_and_settles_nothing) /* WRK.14 */
{
    cb_error e = { 0 };
    cb_uuid ids[2];
    cb_settlement items[2];
    test_send(bus.db, 2, ids);
    OWNED(cb_claim) claim = test_claim(bus.db, "w", 2, 30);
    for (size_t i = 0; i < 2; i++)
        items[i] = test_outcome(cb_claim_at(claim, i), CB_SUCCESS);

    items[1].outcome = (cb_outcome)99;
    cr_expect_not(cb_settle(bus.db, "w", items, 2, &e));
    cr_expect_eq(e.code, CB_MISUSE, "%s", e.message);
    items[1].outcome = CB_SUCCESS;
    items[1].domain = "fxx"; /* after fx in the call: what fx did is undone */
    cr_expect_not(cb_settle(bus.db, "w", items, 2, &e));
    cr_expect_eq(e.code, CB_UNKNOWN_DOMAIN, "%s", e.message);
    cr_expect_str_eq(test_sqlstate(bus.conn, "SELECT commandbus.settle('fx', 'w', "
                                             "ARRAY[gen_random_uuid()], '{1,2}', '{SUCCESS}')"),
                     "CB011");
    cr_expect_str_eq(test_sqlstate(bus.conn, "SELECT commandbus.settle('fx', 'w', "
                                             "ARRAY[gen_random_uuid()], '{1}', '{GREAT}')"),
                     "CB011");
    cr_expect(cb_settle(bus.db, "w", items, 0, &e), "nothing to settle is not an error");

    for (size_t i = 0; i < 2; i++)
        expect_trail("SENT RECEIVED", ids[i]);
}
