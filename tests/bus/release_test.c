/* After a reconnect: what the database says an instance holds, and it does not. */
#include "claims.h"

TestSuite(release, .init = bus_open, .fini = bus_close);

Test(release, frees_uncharged_what_is_not_named_and_leaves_what_is) /* DESIGN 2 */
{
    cb_error e = { 0 };
    size_t released = 0;
    test_send(bus.db, 3, NULL);
    OWNED(cb_claim) claim = test_claim(bus.db, "w", 3, 60);
    const cb_command *kept = cb_claim_at(claim, 0), *freed = cb_claim_at(claim, 1);
    cb_lease held = test_lease(kept);

    cr_assert(cb_lease_release_unknown(bus.db, "fx", "w", &held, 1, &released, &e), "%s",
              e.message);

    cr_expect_eq(released, 2);
    expect_value(bus.conn, "IN_PROGRESS 1 1 w",
                 "SELECT concat_ws(' ', status, attempts, lease_no, lease_owner) "
                 "FROM commandbus.command_metadata WHERE command_id = $1",
                 kept->command_id.text);
    expect_value(
        bus.conn, "PENDING 0 2 visible",
        "SELECT concat_ws(' ', c.status, c.attempts, c.lease_no, c.lease_owner, c.lease_until, "
        "CASE WHEN q.vt <= now() THEN 'visible' END) "
        "FROM commandbus.command_metadata c JOIN pgmq.q_fx__commands q USING (msg_id) "
        "WHERE command_id = $1",
        freed->command_id.text);
    expect_trail("SENT RECEIVED", kept->command_id);
    expect_trail("SENT RECEIVED RELEASED", freed->command_id);
    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "w", test_outcome(kept, CB_SUCCESS)));
}

Test(release,
     an_outcome_under_a_released_fence_is_stale_also_after_the_next_claim) /* section 8.3 */
{
    cb_error e = { 0 };
    cb_uuid id;
    test_send(bus.db, 1, &id);
    OWNED(cb_claim) claim = test_claim(bus.db, "w", 1, 60);
    cb_settlement late = test_outcome(cb_claim_at(claim, 0), CB_SUCCESS);

    cr_assert(cb_lease_release_unknown(bus.db, "fx", "w", NULL, 0, NULL, &e), "%s", e.message);

    expect_verdict(CB_STALE, test_settle_one(bus.db, "w", late));
    cr_expect_eq(test_extend_one(bus.db, "w", test_lease(cb_claim_at(claim, 0)), 60),
                 CB_LEASE_GONE);
    OWNED(cb_claim) again = test_claim(bus.db, "w", 1, 60);
    cr_assert_eq(cb_claim_count(again), 1);
    cr_expect_eq(cb_claim_at(again, 0)->attempt, 1);
    expect_verdict(CB_STALE, test_settle_one(bus.db, "w", late));
    expect_verdict(CB_SETTLED,
                   test_settle_one(bus.db, "w", test_outcome(cb_claim_at(again, 0), CB_SUCCESS)));
    expect_messages("0 queued, 0 archived, 1 replied", id);
}

Test(release, a_lease_named_under_an_old_fence_is_not_held) /* DESIGN 2 */
{
    cb_error e = { 0 };
    size_t released = 0;
    test_send(bus.db, 1, NULL);
    OWNED(cb_claim) first = test_claim(bus.db, "w", 1, 0.05);
    OWNED(cb_claim) second = test_claim_awaited(bus.db, "w", 1, 60);
    cb_lease old = test_lease(cb_claim_at(first, 0));

    cr_assert(cb_lease_release_unknown(bus.db, "fx", "w", &old, 1, &released, &e), "%s", e.message);

    cr_expect_eq(released, 1);
}

Test(release, leaves_other_workers_other_domains_and_what_is_finished_alone) /* section 8.7 */
{
    cb_error e = { 0 };
    size_t released = 9;
    OWNED(cb_receiver) risk = NULL;
    OWNED(cb_claim) elsewhere = NULL;
    test_send(bus.db, 3, NULL);
    expect_verdict(CB_SETTLED, test_run_one(bus.db, "w", CB_SUCCESS));
    expect_verdict(CB_SETTLED, test_run_one(bus.db, "w", CB_TRANSIENT));
    cb_claim_free(test_claim(bus.db, "other", 10, 60));
    test_send_one(bus.db, .domain = "risk");
    cr_assert(cb_receiver_open("risk", &(cb_receive_options){ .worker = "w" }, &risk, &e));
    cr_assert(cb_receive(bus.db, risk, 1, &elsewhere, &e), "%s", e.message);
    char *before = test_value(bus.conn,
                              "SELECT string_agg(c::text, ';' ORDER BY c::text) "
                              "FROM commandbus.command_metadata c",
                              NULL);

    cr_assert(cb_lease_release_unknown(bus.db, "fx", "w", NULL, 0, &released, &e), "%s", e.message);

    cr_expect_eq(released, 0);
    expect_value(bus.conn, before,
                 "SELECT string_agg(c::text, ';' ORDER BY c::text) "
                 "FROM commandbus.command_metadata c");
    free(before);
}

Test(release, skips_what_is_being_settled_at_that_moment) /* DESIGN 2 */
{
    OWNED(cb_db) impatient = test_bus_open_impatient(bus.conninfo);
    cb_error e = { 0 };
    size_t released = 9;
    cb_uuid id;
    test_send(bus.db, 1, &id);
    OWNED(cb_claim) claim = test_claim(bus.db, "w", 1, 60);
    cr_assert(cb_db_begin(bus.db, &e), "%s", e.message);
    test_settle_one(bus.db, "w", test_outcome(cb_claim_at(claim, 0), CB_SUCCESS));

    cr_assert(cb_lease_release_unknown(impatient, "fx", "w", NULL, 0, &released, &e), "%s",
              e.message);

    cr_expect_eq(released, 0);
    cr_assert(cb_db_commit(bus.db, &e), "%s", e.message);
    expect_trail("SENT RECEIVED COMPLETED", id);
}
