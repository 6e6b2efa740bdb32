/* After a reconnect: what the database says an instance holds, and it does not. */
#include "claims.h"

Test(release, frees_uncharged_what_is_not_named_and_leaves_what_is) /* DESIGN 2 */
{
    rig r = rig_open();
    cb_error e = { 0 };
    size_t released = 0;
    test_send(r.db, 3, NULL);
    OWNED(cb_claim) claim = test_claim(r.db, "w", 3, 60);
    const cb_command *kept = cb_claim_at(claim, 0), *freed = cb_claim_at(claim, 1);
    cb_lease held = test_lease(kept);

    cr_assert(cb_lease_release_unknown(r.db, "fx", "w", &held, 1, &released, &e), "%s", e.message);

    cr_expect_eq(released, 2);
    expect_value(r.sql, "IN_PROGRESS 1 1 w",
                 "SELECT concat_ws(' ', status, attempts, lease_no, lease_owner) "
                 "FROM commandbus.command_metadata WHERE command_id = $1",
                 kept->command_id.text);
    expect_value(
        r.sql, "PENDING 0 2 visible",
        "SELECT concat_ws(' ', c.status, c.attempts, c.lease_no, c.lease_owner, c.lease_until, "
        "CASE WHEN q.vt <= now() THEN 'visible' END) "
        "FROM commandbus.command_metadata c JOIN pgmq.q_fx__commands q USING (msg_id) "
        "WHERE command_id = $1",
        freed->command_id.text);
    expect_trail(r.sql, "SENT RECEIVED", kept->command_id);
    expect_trail(r.sql, "SENT RECEIVED RELEASED", freed->command_id);
    expect_verdict(CB_SETTLED, test_settle_one(r.db, "w", test_outcome(kept, CB_SUCCESS)));
    rig_close(&r);
}

Test(release,
     an_outcome_under_a_released_fence_is_stale_also_after_the_next_claim) /* section 8.3 */
{
    rig r = rig_open();
    cb_error e = { 0 };
    cb_uuid id;
    test_send(r.db, 1, &id);
    OWNED(cb_claim) claim = test_claim(r.db, "w", 1, 60);
    cb_settlement late = test_outcome(cb_claim_at(claim, 0), CB_SUCCESS);

    cr_assert(cb_lease_release_unknown(r.db, "fx", "w", NULL, 0, NULL, &e), "%s", e.message);

    expect_verdict(CB_STALE, test_settle_one(r.db, "w", late));
    cr_expect_eq(test_extend_one(r.db, "w", test_lease(cb_claim_at(claim, 0)), 60), CB_LEASE_GONE);
    OWNED(cb_claim) again = test_claim(r.db, "w", 1, 60);
    cr_assert_eq(cb_claim_count(again), 1);
    cr_expect_eq(cb_claim_at(again, 0)->attempt, 1);
    expect_verdict(CB_STALE, test_settle_one(r.db, "w", late));
    expect_verdict(CB_SETTLED,
                   test_settle_one(r.db, "w", test_outcome(cb_claim_at(again, 0), CB_SUCCESS)));
    expect_messages(r.sql, "0 queued, 0 archived, 1 replied", id);
    rig_close(&r);
}

Test(release, a_lease_named_under_an_old_fence_is_not_held) /* DESIGN 2 */
{
    rig r = rig_open();
    cb_error e = { 0 };
    size_t released = 0;
    test_send(r.db, 1, NULL);
    OWNED(cb_claim) first = test_claim(r.db, "w", 1, 0.05);
    OWNED(cb_claim) second = test_claim_awaited(r.db, "w", 1, 60);
    cb_lease old = test_lease(cb_claim_at(first, 0));

    cr_assert(cb_lease_release_unknown(r.db, "fx", "w", &old, 1, &released, &e), "%s", e.message);

    cr_expect_eq(released, 1);
    rig_close(&r);
}

Test(release, leaves_other_workers_other_domains_and_what_is_finished_alone) /* section 8.7 */
{
    rig r = rig_open();
    cb_error e = { 0 };
    size_t released = 9;
    OWNED(cb_receiver) risk = NULL;
    OWNED(cb_claim) elsewhere = NULL;
    test_send(r.db, 3, NULL);
    expect_verdict(CB_SETTLED, test_run_one(r.db, "w", CB_SUCCESS));
    expect_verdict(CB_SETTLED, test_run_one(r.db, "w", CB_TRANSIENT));
    cb_claim_free(test_claim(r.db, "other", 10, 60));
    test_send_one(r.db, .domain = "risk");
    cr_assert(cb_receiver_open("risk", &(cb_receive_options){ .worker = "w" }, &risk, &e));
    cr_assert(cb_receive(r.db, risk, 1, &elsewhere, &e), "%s", e.message);
    char *before = test_value(r.sql,
                              "SELECT string_agg(c::text, ';' ORDER BY c::text) "
                              "FROM commandbus.command_metadata c",
                              NULL);

    cr_assert(cb_lease_release_unknown(r.db, "fx", "w", NULL, 0, &released, &e), "%s", e.message);

    cr_expect_eq(released, 0);
    expect_value(r.sql, before,
                 "SELECT string_agg(c::text, ';' ORDER BY c::text) "
                 "FROM commandbus.command_metadata c");
    free(before);
    rig_close(&r);
}

Test(release, skips_what_is_being_settled_at_that_moment) /* DESIGN 2 */
{
    rig r = rig_open();
    OWNED(cb_db) impatient = test_bus_open_impatient(r.conninfo);
    cb_error e = { 0 };
    size_t released = 9;
    cb_uuid id;
    test_send(r.db, 1, &id);
    OWNED(cb_claim) claim = test_claim(r.db, "w", 1, 60);
    cr_assert(cb_db_begin(r.db, &e), "%s", e.message);
    test_settle_one(r.db, "w", test_outcome(cb_claim_at(claim, 0), CB_SUCCESS));

    cr_assert(cb_lease_release_unknown(impatient, "fx", "w", NULL, 0, &released, &e), "%s",
              e.message);

    cr_expect_eq(released, 0);
    cr_assert(cb_db_commit(r.db, &e), "%s", e.message);
    expect_trail(r.sql, "SENT RECEIVED COMPLETED", id);
    rig_close(&r);
}
