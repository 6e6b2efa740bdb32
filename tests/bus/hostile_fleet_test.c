/* Workers and senders that get in each other's way: nobody waits, nothing is counted twice, and the
 * capacity of a limited domain is neither lost nor given away too early. */
#include <libpq-fe.h>
#include <stdatomic.h>

#include "claims.h"
#include "crew.h"
#include "fleet.h"
#include "parallel.h"

/* A batch with these members, its id. */
static cb_uuid create_batch(rig *r, size_t n)
{
    const cb_send commands[2] = { { .command_type = "Test" }, { .command_type = "Test" } };
    cb_uuid batch;
    cb_error e = { 0 };

    cr_assert(
        cb_batch_create(r->db, &(cb_batch_options){ .domain = "fx" }, commands, n, &batch, &e),
        "%s", e.message);
    return batch;
}

static const char batch_is_closed[] =
    "SELECT completed_at IS NOT NULL FROM commandbus.batch WHERE batch_id = $1::uuid";

Test(hostile_fleet, a_sender_idle_in_its_transaction_does_not_make_settle_wait) /* BUS.5 */
{
    rig r = rig_open();
    size_t closed = 0;
    cb_error e = { 0 };
    cb_uuid batch = create_batch(&r, 1);
    OWNED(cb_claim) claim = test_claim(r.db, "w", 1, 60);
    test_exec(r.sql, "BEGIN");
    free(test_value(r.sql, "SELECT commandbus.send('fx', 'Test', batch_id => $1::uuid)", batch.text,
                    NULL));
    PGconn *settler = test_pq_open(r.conninfo);
    OWNED(cb_db) db = NULL;
    cr_assert(cb_db_borrow(settler, &db, &e));
    test_exec(settler, "SET lock_timeout = '5s'"); /* who waited for the sender would fail */

    expect_verdict(CB_SETTLED,
                   test_settle_one(db, "w", test_outcome(cb_claim_at(claim, 0), CB_SUCCESS)));

    cr_expect(cb_batch_close(db, &batch, 1, &closed, &e), "%s", e.message);
    cr_expect_eq(closed, 0);
    test_exec(r.sql, "ROLLBACK");
    expect_value(r.sql, "f", batch_is_closed, batch.text);
    cr_expect(cb_batch_close(db, NULL, 0, &closed, &e), "%s", e.message);
    cr_expect_eq(closed, 1);
    expect_value(r.sql, "t", batch_is_closed, batch.text);
    PQfinish(settler);
    rig_close(&r);
}

Test(hostile_fleet, an_old_snapshot_does_not_close_a_batch_with_an_open_member) /* BUS.5 */
{
    rig r = rig_open();
    cb_uuid batch = create_batch(&r, 1);
    expect_verdict(CB_SETTLED, test_run_one(r.db, "w", CB_PERMANENT));
    test_exec(r.sql, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM commandbus.batch");
    test_send_one(r.db, .batch_id = batch.text);

    test_exec(r.sql, "SELECT commandbus.tsq_cancel('fx', command_id, 'ann', 'enough') "
                     "FROM commandbus.command_metadata");
    test_exec(r.sql, "COMMIT");

    expect_value(r.sql, "f", batch_is_closed, batch.text);
    expect_verdict(CB_SETTLED, test_run_one(r.db, "w", CB_SUCCESS));
    expect_value(r.sql, "2 1 1",
                 "SELECT concat_ws(' ', total, completed, canceled) FROM commandbus.batch");
    rig_close(&r);
}

enum {
    LATE = 2000,
    HELD = 400
};

static atomic_bool all_settled;

/* The first brings what it has held too long, all at once, until all is answered; the others claim. */
static void settle_or_claim(size_t i, void *arg)
{
    crew *c = arg;
    OWNED(cb_receiver) receiver = NULL;
    const cb_receive_options options = { .worker = "heir", .vt_seconds = 1 };
    bool busy = i == 0;

    c->fine[i] = cb_receiver_open("fx", &options, &receiver, &c->e[i]);
    while (busy && c->fine[i]) {
        c->fine[i] = cb_settle(c->db[i], "late", c->items, c->n, &c->e[i]);
        busy = false;
        for (size_t k = 0; k < c->n; k++)
            busy |= c->items[k].verdict == CB_BUSY;
    }
    while (i > 0 && c->fine[i] && !all_settled) {
        OWNED(cb_claim) claim = NULL;
        c->fine[i] = cb_receive(c->db[i], receiver, 1, &claim, &c->e[i]);
    }
    if (i == 0)
        all_settled = true;
}

Test(hostile_fleet, late_outcomes_that_race_with_claims_leave_no_message_behind) /* section 8.3 */
{
    rig r = rig_open();
    crew c = crew_open(r.conninfo);
    test_send(r.db, LATE, NULL);
    OWNED(cb_claim) claim = test_claim(r.db, "late", LATE, 0.01);
    crew_take(&c, claim, LATE, CB_SUCCESS);
    test_await(r.sql,
               "SELECT clock_timestamp() > max(lease_until) FROM commandbus.command_metadata");

    all_settled = false;
    parallel_run(3, settle_or_claim, &c);

    crew_expect_fine(&c);
    expect_value(r.sql, "0 left, 0 poison",
                 "SELECT (SELECT count(*) FROM pgmq.q_fx__commands q JOIN "
                 "commandbus.command_metadata c USING (msg_id) WHERE c.status = 'COMPLETED') || "
                 "' left, ' || (SELECT count(*) FROM commandbus.audit WHERE event_type = "
                 "'POISON_ARCHIVED') || ' poison'");
    crew_close(&c);
    rig_close(&r);
}

/* All extend, then the odd ones give back, each in an order of its own. */
static void extend_or_settle(size_t i, void *arg)
{
    crew *c = arg;
    cb_lease leases[HELD];

    for (int round = 0; round < 4 && c->fine[i]; round++) {
        cb_settlement *items = crew_shuffled(c, i);
        for (size_t k = 0; k < HELD; k++)
            leases[k] = (cb_lease){ .domain = "fx",
                                    .command_id = items[k].command_id,
                                    .lease_no = items[k].lease_no };
        c->fine[i] = i % 2 && round == 3
                         ? cb_settle(c->db[i], "w", items, HELD, &c->e[i])
                         : cb_lease_extend(c->db[i], "w", leases, HELD, 60, &c->e[i]);
        free(items);
    }
}

/* DESIGN 2: 40P01 never comes of what settle and extend do */
Test(hostile_fleet, settle_and_extend_in_any_order_never_deadlock_over_the_capacity)
{
    rig r = limited_rig(HELD, HELD);
    crew c = crew_open(r.conninfo);
    /* Another domain's places, so many that ours are looked up one by one, in the caller's order. */
    test_exec(r.sql,
              "INSERT INTO commandbus.fleet_place (place, command_id, lease_no, held_until, "
              "timeout_seconds, domain, worker) SELECT s, gen_random_uuid(), 1, 'infinity', 1, "
              "'risk', 'w' FROM generate_series(1, 20000) s");
    test_exec(r.sql, "ANALYZE commandbus.fleet_place");

    for (double end = test_clock() + 5; test_clock() < end;) {
        cb_error e = { 0 };
        OWNED(cb_claim) claim = test_claim(r.db, "w", HELD, 60);
        crew_take(&c, claim, HELD, CB_INTERRUPTED);
        parallel_run(CREW, extend_or_settle, &c);
        crew_expect_fine(&c);
        cr_assert(cb_settle(r.db, "w", c.items, HELD, &e), "%s", e.message);
    }

    expect_value(r.sql, "0", "SELECT count(*) FROM commandbus.fleet_lease WHERE domain = 'fx'");
    crew_close(&c);
    rig_close(&r);
}

/* DESIGN 2: who extends a command that is just being settled must not keep its place alive */
Test(hostile_fleet, an_extend_that_found_the_command_busy_does_not_cost_its_capacity)
{
    rig r = limited_rig(1, 2);
    OWNED(cb_db) impatient = test_bus_open_impatient(r.conninfo);
    PGconn *extender = test_pq_open(r.conninfo);
    OWNED(cb_claim) claim = test_claim(r.db, "w", 2, 60);
    cr_assert_eq(cb_claim_count(claim), 1);
    test_exec(r.sql,
              "BEGIN; SELECT FROM commandbus.command_metadata WHERE lease_no = 1 FOR UPDATE");
    test_exec(extender, "BEGIN");
    expect_value(extender, "{BUSY}",
                 "SELECT commandbus.extend('fx', 'w', ARRAY[$1::uuid], '{1}', 60)",
                 cb_claim_at(claim, 0)->command_id.text);
    test_exec(r.sql, "COMMIT");

    expect_verdict(CB_SETTLED, test_settle_one(impatient, "w",
                                               test_outcome(cb_claim_at(claim, 0), CB_SUCCESS)));
    test_exec(extender, "COMMIT");

    expect_verdict(CB_SETTLED, test_run_one(r.db, "w", CB_SUCCESS));
    PQfinish(extender);
    rig_close(&r);
}

/* A command of a domain for one, whose handler is past its timeout. The caller frees the claim. */
static cb_claim *timed_out(rig *r, cb_uuid *id, double vt_seconds)
{
    *r = limited_rig(1, 0);
    *id = test_send_one(r->db, .timeout_seconds = 1);
    test_send(r->db, 1, NULL);
    cb_claim *claim = test_claim(r->db, "w", 1, vt_seconds);
    cb_settlement timeout = test_outcome(cb_claim_at(claim, 0), CB_TRANSIENT);

    timeout.error_code = "HANDLER_TIMEOUT";
    timeout.still_running = true;
    timeout.retry_seconds = 3600;
    expect_verdict(CB_SETTLED, test_settle_one(r->db, "w", timeout));
    OWNED(cb_claim) more = test_claim(r->db, "w", 1, 1);
    cr_expect_eq(cb_claim_count(more), 0, "the handler still runs, its place is not free");
    return claim;
}

Test(hostile_fleet, a_timeout_keeps_the_place_until_the_late_result_comes) /* WRK.8, section 8.2 */
{
    rig r;
    cb_uuid id;
    OWNED(cb_claim) claim = timed_out(&r, &id, 60);

    expect_verdict(CB_ALREADY,
                   test_settle_one(r.db, "w", test_outcome(cb_claim_at(claim, 0), CB_SUCCESS)));

    expect_verdict(CB_SETTLED, test_run_one(r.db, "w", CB_SUCCESS));
    expect_trail(r.sql, "SENT RECEIVED FAILED RETRY_SCHEDULED STALE_OUTCOME", id);
    rig_close(&r);
}

Test(hostile_fleet,
     a_timeout_keeps_the_place_no_longer_than_its_lease_and_timeout) /* section 8.2 */
{
    rig r;
    cb_uuid id;
    cb_claim_free(timed_out(&r, &id, 0.3));

    cr_expect_eq(test_run_all(r.db, "w", 1), 1);

    expect_trail(r.sql, "SENT RECEIVED FAILED RETRY_SCHEDULED", id);
    rig_close(&r);
}
