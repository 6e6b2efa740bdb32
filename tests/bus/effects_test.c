/* Effects: what a handler wants done in the database happens exactly once with its success, or not
 * at all. */
#include "booking.h"
#include "parallel.h"

#include <stdio.h>
#include <unistd.h>

/* ---- both, exactly once ---- */

Test(effects, happen_with_the_success) /* WRK.4, WRK.14 */
{
    booking b;
    booking_open(&b);
    booking_run(&b, booking_handler);

    expect_settled(&b, CB_SETTLED);

    expect_ledger("1 entries, 10 balance");
    expect_command("COMPLETED", b.item.command_id, "status, error_code");
    expect_trail("SENT RECEIVED COMPLETED", b.item.command_id);
    expect_messages("0 queued, 0 archived, 1 replied", b.item.command_id);
    expect_value(bus.conn, "booked", "SELECT message ->> 'result' FROM pgmq.q_payments__replies");
    booking_close(&b);
}

Test(effects, brought_twice_happen_once) /* WRK.14 */
{
    booking b;
    booking_open(&b);
    booking_run(&b, booking_handler);

    expect_settled(&b, CB_SETTLED);
    expect_settled(&b, CB_ALREADY);

    expect_ledger("1 entries, 10 balance");
    expect_trail("SENT RECEIVED COMPLETED", b.item.command_id);
    booking_close(&b);
}

static void settle_through_a_cut(proxy_moment moment, cb_verdict expected)
{
    booking b;
    booking_open(&b);
    booking_run(&b, booking_handler);

    test_proxy_cut(b.proxy, moment);
    cr_expect_not(booking_settle(&b, 0));
    cr_expect_eq(b.e.code, CB_LOST, "%s", b.e.message);
    cr_assert_eq(test_proxy_cuts(b.proxy), 1);
    cr_assert(cb_db_reconnect(b.db, &b.e), "%s", b.e.message);
    expect_settled(&b, expected);

    expect_ledger("1 entries, 10 balance");
    expect_command("COMPLETED", b.item.command_id, "status, error_code");
    expect_messages("0 queued, 0 archived, 1 replied", b.item.command_id);
    booking_close(&b);
}

Test(effects, whose_commit_was_not_answered_happen_once_when_brought_again) /* WRK.14 */
{
    settle_through_a_cut(PROXY_CUT_ANSWER, CB_ALREADY);
}

Test(effects, that_never_arrived_happen_once_when_brought_again) /* WRK.14 */
{
    settle_through_a_cut(PROXY_CUT_REQUEST, CB_SETTLED);
}

typedef struct {
    booking *of;
    cb_db *db[4];
    cb_settlement items[4];
    bool fine[4];
    cb_error e[4];
} race;

static void settle_at_once(size_t i, void *arg)
{
    race *all = arg;

    all->fine[i] =
        cb_settle_with_effects(all->db[i], "w", &all->items[i], all->of->ctx, 10, &all->e[i]);
}

Test(effects, brought_by_several_at_once_happen_once) /* WRK.14 */
{
    booking b;
    race all = { .of = &b };
    int settled = 0;
    booking_open(&b);
    booking_run(&b, booking_handler);
    for (size_t i = 0; i < 4; i++) {
        all.db[i] = test_bus_open(bus.conninfo);
        all.items[i] = b.item;
    }

    parallel_run(4, settle_at_once, &all);

    for (size_t i = 0; i < 4; i++) {
        cr_assert(all.fine[i], "%s", all.e[i].message);
        settled += all.items[i].verdict == CB_SETTLED;
        cr_expect(all.items[i].verdict == CB_SETTLED || all.items[i].verdict == CB_ALREADY);
        cb_db_free(all.db[i]);
    }
    cr_expect_eq(settled, 1);
    expect_ledger("1 entries, 10 balance");
    booking_close(&b);
}

/* ---- or neither ---- */

Test(effects, of_a_worker_that_lost_the_fence_do_not_happen) /* WRK.14 */
{
    booking b;
    booking_open(&b);
    booking_run(&b, booking_handler);
    test_exec(bus.conn, "UPDATE commandbus.command_metadata SET lease_no = lease_no + 1");

    expect_settled(&b, CB_STALE);

    expect_ledger("0 entries, 0 balance");
    expect_command("IN_PROGRESS", b.item.command_id, "status, error_code");
    expect_trail("SENT RECEIVED STALE_OUTCOME", b.item.command_id);
    cr_expect_eq(b.item.outcome, CB_SUCCESS);
    booking_close(&b);
}

Test(effects, of_a_command_that_timed_out_meanwhile_do_not_happen) /* WRK.8 */
{
    booking b;
    booking_open(&b);
    booking_run(&b, booking_handler);
    cb_settlement timeout = b.item;
    timeout.outcome = CB_TRANSIENT;
    timeout.error_code = "HANDLER_TIMEOUT";
    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "w", timeout));

    expect_settled(&b, CB_ALREADY);

    expect_ledger("0 entries, 0 balance");
    expect_command("PENDING HANDLER_TIMEOUT", b.item.command_id, "status, error_code");
    expect_trail("SENT RECEIVED FAILED RETRY_SCHEDULED STALE_OUTCOME", b.item.command_id);
    booking_close(&b);
}

Test(effects, whose_result_is_refused_do_not_happen) /* WRK.14 */
{
    booking b;
    booking_open(&b);
    booking_run(&b, booking_handler);
    b.item.result = "{\"open\": ";

    expect_settled(&b, CB_SETTLED);

    expect_ledger("0 entries, 0 balance");
    expect_command("IN_TROUBLESHOOTING_QUEUE SETTLE_REFUSED", b.item.command_id,
                   "status, error_code");
    booking_close(&b);
}

/* ---- locks ---- */

/* `lock` is held by somebody while the outcome is brought, which must change nothing. */
static void expect_again(const char *lock)
{
    booking b;
    booking_open(&b);
    booking_run(&b, booking_handler);
    PGconn *other = test_pq_open(bus.conninfo);
    test_exec(other, "BEGIN");
    PQclear(PQexec(other, lock));
    double before = test_clock();

    cr_expect_not(booking_settle(&b, 0.05));

    cr_expect_eq(b.e.code, CB_AGAIN, "%s %s", b.e.sqlstate, b.e.message);
    cr_expect_str_eq(b.e.sqlstate, "55P03");
    cr_expect_lt(test_clock() - before, patience_seconds, "waited for who never lets go");
    cr_expect_eq(b.item.outcome, CB_SUCCESS);
    expect_ledger("0 entries, 0 balance");
    expect_command("IN_PROGRESS", b.item.command_id, "status, error_code");
    expect_trail("SENT RECEIVED", b.item.command_id);
    test_exec(other, "ROLLBACK");
    expect_settled(&b, CB_SETTLED);
    expect_ledger("1 entries, 10 balance");
    PQfinish(other);
    booking_close(&b);
}

Test(effects, that_wait_for_a_lock_are_given_up_in_time) /* WRK.14 */
{
    expect_again("SELECT FROM public.account FOR UPDATE");
}

Test(effects, of_a_command_that_somebody_holds_are_given_up_in_time) /* WRK.14 */
{
    expect_again("SELECT FROM commandbus.command_metadata FOR UPDATE");
}

Test(effects, of_a_command_whose_message_somebody_holds_do_not_happen_yet) /* WRK.14 */
{
    expect_again("SELECT FROM pgmq.q_fx__commands FOR UPDATE");
}

Test(effects, leave_the_lock_timeout_of_the_session_alone)
{
    booking b;
    booking_open(&b);
    PGconn *conn = test_pq_open(bus.conninfo);
    OWNED(cb_db) db = NULL;
    test_exec(conn, "SET lock_timeout = '77s'");
    cr_assert(cb_db_borrow(conn, &db, &b.e));
    booking_run(&b, booking_handler);

    cr_assert(cb_settle_with_effects(db, "w", &b.item, b.ctx, 1, &b.e), "%s", b.e.message);

    expect_value(conn, "77s", "SHOW lock_timeout");
    cb_db_free(cb_db_take(&db));
    PQfinish(conn);
    booking_close(&b);
}

/* ---- and the rest ---- */

Test(effects, of_a_batchs_last_member_close_it) /* WRK.4 */
{
    booking b;
    booking_open(&b);
    booking_run(&b, booking_handler);
    expect_settled(&b, CB_SETTLED);
    test_exec(bus.conn,
              "SELECT commandbus.create_batch('fx', 'b', '[{\"command_type\": \"Test\"}]')");
    booking_claim(&b);
    booking_run(&b, booking_handler);

    expect_settled(&b, CB_SETTLED);

    expect_value(bus.conn, "COMPLETED", "SELECT status FROM commandbus.batch");
    booking_close(&b);
}

/* As superuser, with %1$s for the name of a role. */
static void with_role(const char *format, const char *role)
{
    char *sql = test_value(bus.conn, "SELECT format($1, $2::text)", format, role, NULL);

    test_exec(bus.conn, sql);
    free(sql);
}

Test(effects, run_as_the_role_of_the_session) /* DESIGN 2: as worker role */
{
    booking b;
    OWNED(cb_db) db = NULL;
    char role[40];
    booking_open(&b);
    snprintf(role, sizeof role, "effects_%d", (int)getpid());
    with_role("CREATE ROLE %1$s LOGIN IN ROLE commandbus_worker", role);
    with_role("GRANT INSERT ON public.ledger TO %1$s", role);
    with_role("SET SESSION AUTHORIZATION %1$s", role);
    cr_assert(cb_db_borrow(bus.conn, &db, &b.e));
    booking_run(&b, booking_handler);

    bool fine = cb_settle_with_effects(db, "w", &b.item, b.ctx, 1, &b.e);
    test_exec(bus.conn, "RESET SESSION AUTHORIZATION");
    with_role("DROP OWNED BY %1$s", role);
    with_role("DROP ROLE %1$s", role);

    cr_assert(fine, "%s", b.e.message);
    expect_effect_failed(&b, "effect 2 of 2: 42501, permission denied for table account");
    booking_close(&b);
}

Test(effects, need_a_transaction_of_their_own)
{
    booking b;
    booking_open(&b);
    booking_run(&b, booking_handler);
    cr_assert(cb_db_begin(b.db, &b.e));

    cr_expect_not(booking_settle(&b, 0));

    cr_expect_eq(b.e.code, CB_MISUSE);
    cr_assert(cb_db_rollback(b.db, &b.e));
    expect_ledger("0 entries, 0 balance");
    booking_close(&b);
}

static cb_outcome does_nothing(cb_context *ctx, const cb_command *c, json_object **result)
{
    (void)ctx, (void)c, (void)result;
    return CB_SUCCESS;
}

Test(effects, that_are_empty_settle_as_always)
{
    booking b;
    booking_open(&b);
    booking_run(&b, does_nothing);

    expect_settled(&b, CB_SETTLED);

    expect_command("COMPLETED", b.item.command_id, "status, error_code");
    booking_close(&b);
}
