/* Keeping the leases of processes, and giving back those that nobody knows about. */
#include "claims.h"
#include "pay.h"
#include "wait.h"

static const cb_process_kind pay = { "Pay", "payments", 1, false, NULL, NULL, NULL };

static rig open_rig(void)
{
    rig r = rig_open();

    pay_register(r.db);
    return r;
}

static cb_process_lease lease_of(const cb_process_claim *claim, size_t i)
{
    const cb_process_row *row = cb_process_claim_at(claim, i);

    return (cb_process_lease){ .process_id = row->process_id, .lease_no = row->lease_no };
}

static bool extend(cb_db *db, const char *worker, cb_process_lease lease, double vt_seconds)
{
    cb_error e = { 0 };

    cr_assert(cb_process_extend(db, worker, &lease, 1, vt_seconds, &e), "%s", e.message);
    return lease.held;
}

Test(process_lease, extend_moves_the_end_and_the_timer) /* DESIGN 2 leases */
{
    rig r = open_rig();
    pay_start(r.db);
    OWNED(cb_process_claim) claim = pay_claim(r.db, "w", 1, 0.3);

    cr_expect(extend(r.db, "w", lease_of(claim, 0), 3600));

    expect_value(r.sql, "t t 1 EXECUTING",
                 "SELECT concat_ws(' ', lease_until > now() + interval '59 minutes', "
                 "wake_at > commandbus.now() + interval '59 minutes', lease_no, status) "
                 "FROM commandbus.process");
    test_await(r.sql, "SELECT clock_timestamp() > updated_at + interval '0.3 s' "
                      "FROM commandbus.process");
    OWNED(cb_process_claim) other = pay_claim(r.db, "other", 1, 0.5);
    cr_expect_eq(cb_process_claim_count(other), 0);
    rig_close(&r);
}

Test(process_lease, that_is_gone_is_reported_per_item) /* DESIGN 2 fence */
{
    rig r = open_rig();
    cb_uuid ids[3];
    cb_process_lease leases[5];
    cb_error e = { 0 };
    for (int i = 0; i < 3; i++)
        ids[i] = pay_start(r.db);
    OWNED(cb_process_claim) claim = pay_claim(r.db, "w", 3, 30);
    cr_assert_eq(cb_process_claim_count(claim), 3);
    for (size_t i = 0; i < 3; i++)
        leases[i] = (cb_process_lease){ .process_id = ids[i], .lease_no = 1 };
    leases[3] = (cb_process_lease){ .process_id = cb_uuid_new(), .lease_no = 1 };
    leases[4] = (cb_process_lease){ .process_id = ids[0], .lease_no = 2 };
    pay_suspend(r.sql, ids[1], "COMPLETED"); /* settled */

    cr_assert(cb_process_extend(r.db, "w", leases, 5, 60, &e), "%s", e.message);

    cr_expect(leases[0].held);
    cr_expect_not(leases[1].held);
    cr_expect(leases[2].held);
    cr_expect_not(leases[3].held);
    cr_expect_not(leases[4].held);
    cr_expect_not(extend(r.db, "thief", leases[0], 60));
    expect_value(r.sql, "t", "SELECT wake_at IS NULL FROM commandbus.process WHERE process_id = $1",
                 ids[1].text);
    rig_close(&r);
}

Test(process_lease, of_a_locked_row_counts_as_held_and_nobody_waits) /* DESIGN 2 */
{
    rig r = open_rig();
    cb_uuid id = pay_start(r.db);
    OWNED(cb_process_claim) claim = pay_claim(r.db, "w", 1, 30);
    cb_db *impatient = test_bus_open_impatient(r.conninfo);

    test_exec(r.sql, "BEGIN");
    pay_set(r.sql, id, "inbox_seq = 0");
    cr_expect(extend(impatient, "w", lease_of(claim, 0), 3600));
    test_exec(r.sql, "ROLLBACK");
    expect_value(r.sql, "t",
                 "SELECT lease_until < now() + interval '31 s' FROM commandbus.process");
    cb_db_free(impatient);
    rig_close(&r);
}

Test(process_lease, can_be_extended_after_its_end_as_long_as_nobody_took_it) /* DESIGN 2 */
{
    rig r = open_rig();
    pay_start(r.db);
    OWNED(cb_process_claim) claim = pay_claim(r.db, "slow", 1, 0.05);
    test_await(r.sql, "SELECT clock_timestamp() > lease_until FROM commandbus.process");

    cr_expect(extend(r.db, "slow", lease_of(claim, 0), 0.05));
    OWNED(cb_process_claim) heir = pay_claim_awaited(r.db, "heir", 1, 0.5);
    cr_expect_not(extend(r.db, "slow", lease_of(claim, 0), 60));
    cr_expect(extend(r.db, "heir", lease_of(heir, 0), 60));
    rig_close(&r);
}

Test(process_lease,
     that_its_worker_does_not_know_is_released_under_a_new_fence) /* DESIGN 2 connections */
{
    rig r = open_rig();
    size_t released = 0;
    cb_error e = { 0 };
    cb_uuid known = pay_start(r.db);
    OWNED(cb_process_claim) claim = pay_claim(r.db, "w", 1, 30);
    cb_process_lease held = lease_of(claim, 0);
    cb_uuid lost = pay_start(r.db);
    cb_process_claim_free(pay_claim(r.db, "w", 1, 30)); /* its answer never came */
    pay_start(r.db);
    cb_process_claim_free(pay_claim(r.db, "other", 1, 30));
    test_exec(r.sql, "LISTEN commandbus_payments__processes;"
                     "SELECT commandbus.sleep_announce('x', '{payments__processes}', 60)");

    cr_assert(cb_process_release_unknown(r.db, "w", &pay, 1, &held, 1, &released, &e), "%s",
              e.message);

    cr_expect_eq(released, 1);
    free(wait_for_notify(r.sql));
    expect_value(r.sql, "2 t t",
                 "SELECT concat_ws(' ', lease_no, lease_owner IS NULL AND lease_until IS NULL, "
                 "wake_at <= commandbus.now()) FROM commandbus.process WHERE process_id = $1",
                 lost.text);
    expect_value(r.sql, "1 w",
                 "SELECT concat_ws(' ', lease_no, lease_owner) FROM commandbus.process "
                 "WHERE process_id = $1",
                 known.text);
    expect_value(
        r.sql, "RELEASED",
        "SELECT event FROM commandbus.process_event WHERE process_id = $1 AND worker = 'w'",
        lost.text);
    OWNED(cb_process_claim) again = pay_claim(r.db, "x", 5, 30);
    cr_assert_eq(cb_process_claim_count(again), 1);
    cr_expect_eq(cb_process_claim_at(again, 0)->lease_no, 3);
    rig_close(&r);
}

Test(process_lease, of_other_types_is_not_released) /* DESIGN 2 connections */
{
    static const cb_process_kind other = { "Other", "payments", 1, false, NULL, NULL, NULL };
    rig r = open_rig();
    size_t released = 1;
    cb_error e = { 0 };

    pay_start(r.db);
    cb_process_claim_free(pay_claim(r.db, "w", 1, 30));
    cr_assert(cb_process_release_unknown(r.db, "w", &other, 1, NULL, 0, &released, &e), "%s",
              e.message);
    cr_expect_eq(released, 0);
    cr_expect_str_eq(
        test_sqlstate(r.sql,
                      "SELECT commandbus.release_unknown_processes('w', '{Pay}', NULL, NULL)"),
        "CB011");
    cr_expect_str_eq(
        test_sqlstate(r.sql, "SELECT commandbus.extend_processes('w', '{}', '{1}', 30)"), "CB011");
    rig_close(&r);
}
