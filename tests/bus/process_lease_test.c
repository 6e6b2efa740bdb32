/* Keeping the leases of processes, and giving back those that nobody knows about. */
#include "claims.h"
#include "pay.h"
#include "wait.h"

TestSuite(process_lease, .init = pay_open, .fini = bus_close);

static const cb_process_kind pay = { "Pay", "payments", 1, false, NULL, NULL, NULL };

static cb_process_lease lease_of(const cb_process_claim *claim, size_t i)
{
    const cb_process_row *row = cb_process_claim_at(claim, i);

    return (cb_process_lease){ .process_id = row->process_id, .lease_no = row->lease_no };
}

static bool extend_lease(cb_db *db, const char *worker, cb_process_lease lease, double vt_seconds)
{
    cb_error e = { 0 };

    cr_assert(cb_process_extend(db, worker, &lease, 1, vt_seconds, &e), "%s", e.message);
    return lease.held;
}

Test(process_lease, extend_moves_the_end_and_the_timer) /* DESIGN 2 leases */
{
    pay_start(bus.db);
    OWNED(cb_process_claim) claim = pay_claim(bus.db, "w", 1, 0.3);

    cr_expect(extend_lease(bus.db, "w", lease_of(claim, 0), 3600));

    expect_value(bus.conn, "t t 1 EXECUTING",
                 "SELECT concat_ws(' ', lease_until > now() + interval '59 minutes', "
                 "wake_at > commandbus.now() + interval '59 minutes', lease_no, status) "
                 "FROM commandbus.process");
    wait_until(bus.conn, "SELECT clock_timestamp() > updated_at + interval '0.3 s' "
                         "FROM commandbus.process");
    OWNED(cb_process_claim) other = pay_claim(bus.db, "other", 1, 0.5);
    cr_expect_eq(cb_process_claim_count(other), 0);
}

Test(process_lease, that_is_gone_is_reported_per_item) /* DESIGN 2 fence */
{
    cb_uuid ids[3];
    cb_process_lease leases[5];
    cb_error e = { 0 };
    for (int i = 0; i < 3; i++)
        ids[i] = pay_start(bus.db);
    OWNED(cb_process_claim) claim = pay_claim(bus.db, "w", 3, 30);
    cr_assert_eq(cb_process_claim_count(claim), 3);
    for (size_t i = 0; i < 3; i++)
        leases[i] = (cb_process_lease){ .process_id = ids[i], .lease_no = 1 };
    leases[3] = (cb_process_lease){ .process_id = cb_uuid_new(), .lease_no = 1 };
    leases[4] = (cb_process_lease){ .process_id = ids[0], .lease_no = 2 };
    pay_suspend(bus.conn, ids[1], "COMPLETED"); /* settled */

    cr_assert(cb_process_extend(bus.db, "w", leases, 5, 60, &e), "%s", e.message);

    cr_expect(leases[0].held);
    cr_expect_not(leases[1].held);
    cr_expect(leases[2].held);
    cr_expect_not(leases[3].held);
    cr_expect_not(leases[4].held);
    cr_expect_not(extend_lease(bus.db, "thief", leases[0], 60));
    expect_value(bus.conn, "t",
                 "SELECT wake_at IS NULL FROM commandbus.process WHERE process_id = $1",
                 ids[1].text);
}

Test(process_lease, of_a_locked_row_counts_as_held_and_nobody_waits) /* DESIGN 2 */
{
    cb_uuid id = pay_start(bus.db);
    OWNED(cb_process_claim) claim = pay_claim(bus.db, "w", 1, 30);
    cb_db *impatient = test_bus_open_impatient(bus.conninfo);

    test_exec(bus.conn, "BEGIN");
    pay_set(bus.conn, id, "inbox_seq = 0");
    cr_expect(extend_lease(impatient, "w", lease_of(claim, 0), 3600));
    test_exec(bus.conn, "ROLLBACK");
    expect_value(bus.conn, "t",
                 "SELECT lease_until < now() + interval '31 s' FROM commandbus.process");
    cb_db_free(impatient);
}

Test(process_lease, can_be_extended_after_its_end_as_long_as_nobody_took_it) /* DESIGN 2 */
{
    pay_start(bus.db);
    OWNED(cb_process_claim) claim = pay_claim(bus.db, "slow", 1, 0.05);
    wait_until(bus.conn, "SELECT clock_timestamp() > lease_until FROM commandbus.process");

    cr_expect(extend_lease(bus.db, "slow", lease_of(claim, 0), 0.05));
    OWNED(cb_process_claim) heir = pay_claim_awaited(bus.db, "heir", 1, 0.5);
    cr_expect_not(extend_lease(bus.db, "slow", lease_of(claim, 0), 60));
    cr_expect(extend_lease(bus.db, "heir", lease_of(heir, 0), 60));
}

Test(process_lease,
     that_its_worker_does_not_know_is_released_under_a_new_fence) /* DESIGN 2 connections */
{
    size_t released = 0;
    cb_error e = { 0 };
    cb_uuid known = pay_start(bus.db);
    OWNED(cb_process_claim) claim = pay_claim(bus.db, "w", 1, 30);
    cb_process_lease held = lease_of(claim, 0);
    cb_uuid lost = pay_start(bus.db);
    cb_process_claim_free(pay_claim(bus.db, "w", 1, 30)); /* its answer never came */
    pay_start(bus.db);
    cb_process_claim_free(pay_claim(bus.db, "other", 1, 30));
    test_exec(bus.conn, "LISTEN commandbus_payments__processes;"
                        "SELECT commandbus.sleep_announce('x', '{payments__processes}', 60)");

    cr_assert(cb_process_release_unknown(bus.db, "w", &pay, 1, &held, 1, &released, &e), "%s",
              e.message);

    cr_expect_eq(released, 1);
    free(wait_for_notify(bus.conn));
    expect_value(bus.conn, "2 t t",
                 "SELECT concat_ws(' ', lease_no, lease_owner IS NULL AND lease_until IS NULL, "
                 "wake_at <= commandbus.now()) FROM commandbus.process WHERE process_id = $1",
                 lost.text);
    expect_value(bus.conn, "1 w",
                 "SELECT concat_ws(' ', lease_no, lease_owner) FROM commandbus.process "
                 "WHERE process_id = $1",
                 known.text);
    expect_value(
        bus.conn, "RELEASED",
        "SELECT event FROM commandbus.process_event WHERE process_id = $1 AND worker = 'w'",
        lost.text);
    OWNED(cb_process_claim) again = pay_claim(bus.db, "x", 5, 30);
    cr_assert_eq(cb_process_claim_count(again), 1);
    cr_expect_eq(cb_process_claim_at(again, 0)->lease_no, 3);
}

Test(process_lease, of_other_types_is_not_released) /* DESIGN 2 connections */
{
    static const cb_process_kind other = { "Other", "payments", 1, false, NULL, NULL, NULL };
    size_t released = 1;
    cb_error e = { 0 };

    pay_start(bus.db);
    cb_process_claim_free(pay_claim(bus.db, "w", 1, 30));
    cr_assert(cb_process_release_unknown(bus.db, "w", &other, 1, NULL, 0, &released, &e), "%s",
              e.message);
    cr_expect_eq(released, 0);
    cr_expect_str_eq(
        test_sqlstate(bus.conn,
                      "SELECT commandbus.release_unknown_processes('w', '{Pay}', NULL, NULL)"),
        "CB011");
    cr_expect_str_eq(
        test_sqlstate(bus.conn, "SELECT commandbus.extend_processes('w', '{}', '{1}', 30)"),
        "CB011");
}
