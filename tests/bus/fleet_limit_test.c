/* domain.fleet_limit: leases over the whole fleet never exceed it, whoever claims. RL.7. */
#include "claims.h"

TestSuite(fleet_limit, .init = bus_open, .fini = bus_close);

Test(fleet_limit, bounds_claims_over_all_workers) /* section 8.2 */
{
    test_fleet_limit(3, 10);

    cr_expect_eq(test_claim_count(bus.db, "a", 2, 60), 2);
    cr_expect_eq(test_claim_count(bus.db, "b", 10, 60), 1);
    cr_expect_eq(test_claim_count(bus.db, "c", 10, 60), 0);

    expect_value(
        bus.conn, "3 of a b",
        "SELECT count(*) || ' of ' || string_agg(DISTINCT worker, ' ') FROM commandbus.fleet_lease");
}

Test(fleet_limit, capacity_returns_with_every_kind_of_outcome) /* section 8.2 */
{
    test_fleet_limit(1, 10);
    cb_claim *held = test_claim(bus.db, "w", 10, 60);

    for (int outcome = CB_SUCCESS; outcome <= CB_INTERRUPTED; outcome++) {
        cr_assert_eq(cb_claim_count(held), 1);
        test_settle_one(bus.db, "w", test_outcome(cb_claim_at(held, 0), (cb_outcome)outcome));
        cb_claim_free(held);
        held = test_claim(bus.db, "w", 10, 60);
        cr_expect_eq(cb_claim_count(held), 1, "after %s", cb_outcome_name((cb_outcome)outcome));
    }
    cb_claim_free(held);
}

Test(fleet_limit, capacity_returns_with_a_release) /* section 8.2 */
{
    test_fleet_limit(2, 4);
    cb_error e = { 0 };
    cr_assert_eq(test_claim_count(bus.db, "w", 10, 60), 2);

    cr_assert(cb_lease_release_unknown(bus.db, "fx", "w", NULL, 0, NULL, &e), "%s", e.message);

    cr_expect_eq(test_claim_count(bus.db, "w", 10, 60), 2);
}

/* A holder that fell silent may still be calling: its place is free after lease + handler
 * timeout. */
Test(fleet_limit, a_silent_holder_counts_until_its_lease_and_its_timeout_are_over) /* DESIGN 2 */
{
    test_fleet_limit(1, 0);
    test_send_one(bus.db, .timeout_seconds = 1);
    cr_assert_eq(test_claim_count(bus.db, "silent", 1, 0.2), 1);
    char *held_until = test_value(bus.conn, "SELECT held_until FROM commandbus.fleet_lease", NULL);
    expect_value(bus.conn, "00:00:01",
                 "SELECT held_until - lease_until FROM commandbus.fleet_lease "
                 "JOIN commandbus.command_metadata USING (command_id)");
    wait_until(bus.conn, "SELECT clock_timestamp() > lease_until FROM commandbus.command_metadata");
    cr_expect_eq(test_claim_count(bus.db, "w", 1, 1), 0, "the lease alone has freed the place");

    OWNED(cb_claim) claim = test_claim_awaited(bus.db, "w", 1, 30);

    cr_assert_eq(cb_claim_count(claim), 1);
    expect_value(bus.conn, "t",
                 "SELECT updated_at >= $1::timestamptz FROM commandbus.command_metadata",
                 held_until);
    free(held_until);
}

Test(fleet_limit, an_extended_holder_keeps_its_place) /* DESIGN 2 */
{
    test_fleet_limit(1, 0);
    test_send_one(bus.db, .timeout_seconds = 1);
    OWNED(cb_claim) claim = test_claim(bus.db, "w", 1, 0.1);
    cr_assert_eq(cb_claim_count(claim), 1);

    cr_expect_eq(test_extend_one(bus.db, "w", test_lease(cb_claim_at(claim, 0)), 60),
                 CB_LEASE_EXTENDED);

    expect_value(
        bus.conn, "t",
        "SELECT f.held_until = c.lease_until + interval '1 second' "
        "FROM commandbus.fleet_lease f JOIN commandbus.command_metadata c USING (command_id)");
}

Test(fleet_limit, a_late_holders_outcome_frees_its_own_place_not_its_heirs) /* section 8.2, 8.3 */
{
    test_fleet_limit(2, 3);
    OWNED(cb_claim) late = test_claim(bus.db, "late", 1, 0.05);
    cr_assert_eq(cb_claim_count(late), 1);
    wait_until(bus.conn,
               "SELECT clock_timestamp() > max(lease_until) FROM commandbus.command_metadata");
    /* The one whose lease expired is the last to be visible: claim all that the limit lets
     * through. */
    test_exec(bus.conn,
              "UPDATE pgmq.q_fx__commands SET vt = vt - interval '1 hour' WHERE read_ct > 0");
    OWNED(cb_claim) heir = test_claim(bus.db, "heir", 10, 1);
    cr_assert_eq(cb_claim_count(heir), 1, "two places, one of them the silent holder's");

    expect_verdict(CB_STALE,
                   test_settle_one(bus.db, "late", test_outcome(cb_claim_at(late, 0), CB_SUCCESS)));

    expect_value(bus.conn, "heir", "SELECT string_agg(worker, ' ') FROM commandbus.fleet_lease");
    cr_expect_eq(test_claim_count(bus.db, "w", 10, 60), 1);
}

Test(fleet_limit, a_handler_past_its_timeout_keeps_its_place_until_it_returns) /* section 8.2 */
{
    test_fleet_limit(1, 2);
    OWNED(cb_claim) claim = test_claim(bus.db, "w", 1, 60);
    cb_settlement item = test_outcome(cb_claim_at(claim, 0), CB_TRANSIENT);
    item.error_code = "HANDLER_TIMEOUT";
    item.still_running = true;
    item.retry_seconds = 60;

    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "w", item));
    cr_expect_eq(test_claim_count(bus.db, "w", 1, 60), 0, "it still calls, and another calls too");
    expect_verdict(CB_ALREADY,
                   test_settle_one(bus.db, "w", test_outcome(cb_claim_at(claim, 0), CB_SUCCESS)));

    cr_expect_eq(test_claim_count(bus.db, "w", 1, 60), 1);
}

Test(fleet_limit, of_one_domain_does_not_bound_another) /* section 8.2 */
{
    test_fleet_limit(1, 2);
    OWNED(cb_receiver) risk = NULL;
    OWNED(cb_claim) claim = NULL;
    cb_error e = { 0 };
    cr_assert_eq(test_claim_count(bus.db, "w", 10, 60), 1);
    for (int i = 0; i < 3; i++)
        test_send_one(bus.db, .domain = "risk");
    cr_assert(cb_receiver_open("risk", &(cb_receive_options){ .worker = "w" }, &risk, &e));

    cr_assert(cb_receive(bus.db, risk, 10, &claim, &e), "%s", e.message);

    cr_expect_eq(cb_claim_count(claim), 3);
}

/* Limited or not: an older snapshot does not know a limit that was set since. */
Test(fleet_limit, is_claimed_in_read_committed_only) /* DESIGN 2: counts in a new statement */
{
    for (int limit = 0; limit < 2; limit++) {
        bus_close();
        bus_open();
        test_fleet_limit(limit, 1);
        cr_expect_str_eq(test_sqlstate(bus.conn, "BEGIN ISOLATION LEVEL REPEATABLE READ; "
                                                 "SELECT commandbus.receive('fx', 'w', 1)"),
                         "CB007");
    }
}
