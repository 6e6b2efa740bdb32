/* The end of leases, keeping them, and giving back those that nobody knows about. */
#include "claims.h"

TestSuite(lease, .init = bus_open, .fini = bus_close);

Test(lease, a_command_whose_lease_expired_is_claimed_again_under_a_new_fence) /* DESIGN 2 */
{
    cb_uuid id;
    char *lease_end = strdup("-infinity");
    test_send(bus.db, 1, &id);

    for (int attempt = 1; attempt <= 3; attempt++) {
        OWNED(cb_claim) claim = test_claim_awaited(bus.db, attempt % 2 ? "odd" : "even", 1, 0.2);
        cr_assert_eq(cb_claim_count(claim), 1);
        cr_expect_eq(cb_claim_at(claim, 0)->attempt, attempt);
        cr_expect_eq(cb_claim_at(claim, 0)->lease_no, attempt);
        expect_value(bus.conn, "t",
                     "SELECT updated_at >= $1::timestamptz FROM commandbus.command_metadata",
                     lease_end);
        free(lease_end);
        lease_end =
            test_value(bus.conn, "SELECT lease_until FROM commandbus.command_metadata", NULL);
    }

    free(lease_end);
    expect_trail("SENT RECEIVED RECEIVED RECEIVED", id);
    expect_value(bus.conn, "IN_PROGRESS odd",
                 "SELECT status || ' ' || lease_owner FROM commandbus.command_metadata");
}

Test(lease, a_command_that_outlived_max_attempts_workers_goes_to_the_tsq) /* WRK.6 */
{
    cb_uuid id = test_send_one(bus.db, .max_attempts = 2, .reply_to = "payments__replies");
    for (int i = 0; i < 2; i++)
        cb_claim_free(test_claim_awaited(bus.db, "dies", 1, 0.05));

    OWNED(cb_claim) claim = test_claim_awaited(bus.db, "finds", 1, 0.05);

    cr_expect_eq(cb_claim_exhausted(claim), 1);
    cr_expect_eq(cb_claim_count(claim), 0);
    expect_value(
        bus.conn, "IN_TROUBLESHOOTING_QUEUE 2 TRANSIENT LEASE_EXHAUSTED parked",
        "SELECT concat_ws(' ', status, attempts, error_type, error_code, lease_owner, lease_until, "
        "CASE WHEN tsq_at IS NOT NULL THEN 'parked' END) FROM commandbus.command_metadata");
    expect_trail("SENT RECEIVED RECEIVED MOVED_TO_TSQ", id);
    expect_value(bus.conn, "dies finds", /* who ran it, and who found that it does not end */
                 "SELECT worker || ' ' || (details ->> 'found_by') FROM commandbus.audit "
                 "WHERE event_type = 'MOVED_TO_TSQ'");
    expect_messages("0 queued, 1 archived, 1 replied", id);
    expect_value(
        bus.conn, "FAILED LEASE_EXHAUSTED false",
        "SELECT concat_ws(' ', message ->> 'outcome', message ->> 'error_code', message ->> 'final') "
        "FROM pgmq.q_payments__replies");
    /* Of the runs before it nothing is said: they may have failed in order. */
    expect_value(bus.conn,
                 "its last run ended without an outcome: the worker died or lost its lease",
                 "SELECT DISTINCT unnest(ARRAY[c.error_message, q.message ->> 'error_message']) "
                 "FROM commandbus.command_metadata c, pgmq.q_payments__replies q");
    OWNED(cb_claim) again = test_claim(bus.db, "finds", 1, 30);
    cr_expect_eq(cb_claim_count(again) + cb_claim_exhausted(again) + cb_claim_poisoned(again), 0);
}

Test(lease, an_exhausted_command_does_not_hold_up_the_others_of_its_claim) /* section 8.7 */
{
    test_send_one(bus.db, .max_attempts = 1);
    cb_claim_free(test_claim(bus.db, "dies", 1, 0.05));
    wait_until(bus.conn, "SELECT clock_timestamp() > lease_until FROM commandbus.command_metadata");
    test_send(bus.db, 5, NULL);

    OWNED(cb_claim) claim = test_claim(bus.db, "w", 10, 1);

    cr_expect_eq(cb_claim_exhausted(claim), 1);
    cr_expect_eq(cb_claim_count(claim), 5);
}

Test(lease, an_outcome_after_the_lease_but_before_anybody_else_still_counts) /* DESIGN 2 */
{
    test_send(bus.db, 1, NULL);
    OWNED(cb_claim) claim = test_claim(bus.db, "slow", 1, 0.05);
    wait_until(bus.conn, "SELECT clock_timestamp() > lease_until FROM commandbus.command_metadata");

    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "slow",
                                               test_outcome(cb_claim_at(claim, 0), CB_SUCCESS)));
}

Test(lease, extend_moves_the_end_on_the_row_and_the_message) /* DESIGN 2 */
{
    test_send(bus.db, 1, NULL);
    OWNED(cb_claim) claim = test_claim(bus.db, "w", 1, 0.3);

    cr_expect_eq(test_extend_one(bus.db, "w", test_lease(cb_claim_at(claim, 0)), 3600),
                 CB_LEASE_EXTENDED);

    expect_value(
        bus.conn, "t t 1 1",
        "SELECT concat_ws(' ', c.lease_until = q.vt, c.lease_until > now() + interval '59 minutes', "
        "c.lease_no, c.attempts) FROM commandbus.command_metadata c, pgmq.q_fx__commands q");
    wait_until(bus.conn,
               "SELECT clock_timestamp() > at + interval '0.3 seconds' FROM commandbus.audit "
               "WHERE event_type = 'RECEIVED'");
    OWNED(cb_claim) other = test_claim(bus.db, "other", 1, 1);
    cr_expect_eq(cb_claim_count(other), 0, "claimed although the lease was extended");
}

Test(lease, extend_keeps_a_command_alive_over_many_short_leases) /* DESIGN 2 */
{
    test_send(bus.db, 1, NULL);
    OWNED(cb_claim) claim = test_claim(bus.db, "w", 1, 0.4);
    size_t stolen = 0;

    for (double end = test_clock() + 1.5; test_clock() < end;) {
        cr_assert_eq(test_extend_one(bus.db, "w", test_lease(cb_claim_at(claim, 0)), 0.4),
                     CB_LEASE_EXTENDED);
        OWNED(cb_claim) other = test_claim(bus.db, "other", 1, 1);
        stolen += cb_claim_count(other);
    }

    cr_expect_eq(stolen, 0);
    expect_verdict(CB_SETTLED,
                   test_settle_one(bus.db, "w", test_outcome(cb_claim_at(claim, 0), CB_SUCCESS)));
}

Test(lease, extend_finds_gone_what_is_settled_taken_over_or_unknown) /* DESIGN 2 */
{
    cb_uuid unknown = cb_uuid_new();
    cb_lease leases[4];
    cb_error e = { 0 };
    test_send(bus.db, 1, NULL);
    OWNED(cb_claim) settled = test_claim(bus.db, "w", 1, 30);
    test_settle_one(bus.db, "w", test_outcome(cb_claim_at(settled, 0), CB_SUCCESS));
    test_send(bus.db, 1, NULL);
    OWNED(cb_claim) lost = test_claim(bus.db, "w", 1, 0.05);
    OWNED(cb_claim) heir = test_claim_awaited(bus.db, "heir", 1, 30);
    leases[0] = test_lease(cb_claim_at(settled, 0));
    leases[1] = test_lease(cb_claim_at(lost, 0));
    leases[2] = test_lease(cb_claim_at(heir, 0));
    leases[3] = (cb_lease){ .domain = "fx", .command_id = unknown, .lease_no = 1 };
    char *before = test_value(
        bus.conn, "SELECT lease_until FROM commandbus.command_metadata WHERE lease_no = 2", NULL);

    cr_assert(cb_lease_extend(bus.db, "w", leases, 2, 3600, &e), "%s", e.message);
    expect_value(bus.conn, before,
                 "SELECT lease_until FROM commandbus.command_metadata WHERE lease_no = 2");
    cr_assert(cb_lease_extend(bus.db, "w", leases + 2, 2, 3600, &e), "%s", e.message);

    cr_expect_eq(leases[0].state, CB_LEASE_GONE);
    cr_expect_eq(leases[1].state, CB_LEASE_GONE);
    cr_expect_eq(leases[2].state, CB_LEASE_EXTENDED);
    cr_expect_eq(leases[3].state, CB_LEASE_GONE);
    free(before);
}

Test(lease,
     a_claim_that_races_an_extend_leaves_the_command_to_its_holder) /* DESIGN 2, section 8.4 */
{
    for (int max_attempts = 1; max_attempts <= 2; max_attempts++) {
        bus_close();
        bus_open();
        test_send_one(bus.db, .max_attempts = max_attempts);
        OWNED(cb_claim) claim = test_claim(bus.db, "w", 1, 0.05);
        wait_until(bus.conn,
                   "SELECT clock_timestamp() > lease_until FROM commandbus.command_metadata");

        /* What extend does to the row, before its commit and without having got the message. */
        test_exec(
            bus.conn,
            "BEGIN; UPDATE commandbus.command_metadata SET lease_until = now() + interval '1 hour'");
        OWNED(cb_claim) during = test_claim(bus.db, "other", 1, 1);
        test_exec(bus.conn, "COMMIT");
        size_t got = cb_claim_count(during) + cb_claim_exhausted(during);
        wait_until(bus.conn, "SELECT clock_timestamp() > vt FROM pgmq.q_fx__commands");
        OWNED(cb_claim) after = test_claim(bus.db, "other", 1, 1);
        got += cb_claim_count(after) + cb_claim_exhausted(after);

        cr_expect_eq(got, 0);
        expect_value(
            bus.conn, "IN_PROGRESS w 1 t",
            "SELECT concat_ws(' ', c.status, c.lease_owner, c.lease_no, q.vt = c.lease_until) "
            "FROM commandbus.command_metadata c, pgmq.q_fx__commands q");
    }
}

Test(lease, a_message_due_before_its_renewed_lease_is_put_off_not_run) /* DESIGN 2 */
{
    test_send_one(bus.db, .max_attempts = 1);
    OWNED(cb_claim) claim = test_claim(bus.db, "w", 1, 60);
    /* What remains when an extend found the message locked by a claim. */
    test_exec(bus.conn, "UPDATE pgmq.q_fx__commands SET vt = now() - interval '1 second'");

    OWNED(cb_claim) other = test_claim(bus.db, "other", 1, 1);

    cr_expect_eq(cb_claim_count(other) + cb_claim_exhausted(other) + cb_claim_poisoned(other), 0);
    expect_value(bus.conn, "t 1",
                 "SELECT concat_ws(' ', q.vt = c.lease_until, q.read_ct) "
                 "FROM commandbus.command_metadata c, pgmq.q_fx__commands q");
    expect_verdict(CB_SETTLED,
                   test_settle_one(bus.db, "w", test_outcome(cb_claim_at(claim, 0), CB_SUCCESS)));
}
