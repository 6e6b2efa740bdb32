/* Workers and senders that get in each other's way: nobody waits, nothing is counted twice, and the
 * capacity of a limited domain is neither lost nor given away too early. */
#include <libpq-fe.h>
#include <stdatomic.h>

#include "claims.h"
#include "crew.h"
#include "parallel.h"

TestSuite(hostile_fleet, .init = bus_open, .fini = bus_close);

/* A batch with these members, its id. */
static cb_uuid send_batch(size_t n)
{
    const cb_send commands[2] = { { .command_type = "Test" }, { .command_type = "Test" } };
    cb_uuid batch;
    cb_error e = { 0 };

    cr_assert(
        cb_batch_create(bus.db, &(cb_batch_options){ .domain = "fx" }, commands, n, &batch, &e),
        "%s", e.message);
    return batch;
}

static const char batch_is_closed[] =
    "SELECT completed_at IS NOT NULL FROM commandbus.batch WHERE batch_id = $1::uuid";

Test(hostile_fleet, a_sender_idle_in_its_transaction_does_not_make_settle_wait) /* BUS.5 */
{
    size_t closed = 0;
    cb_error e = { 0 };
    cb_uuid batch = send_batch(1);
    OWNED(cb_claim) claim = test_claim(bus.db, "w", 1, 60);
    test_exec(bus.conn, "BEGIN");
    free(test_value(bus.conn, "SELECT commandbus.send('fx', 'Test', batch_id => $1::uuid)",
                    batch.text, NULL));
    PGconn *settler = test_pq_open(bus.conninfo);
    OWNED(cb_db) db = NULL;
    cr_assert(cb_db_borrow(settler, &db, &e));
    test_exec(settler, "SET lock_timeout = '5s'"); /* who waited for the sender would fail */

    expect_verdict(CB_SETTLED,
                   test_settle_one(db, "w", test_outcome(cb_claim_at(claim, 0), CB_SUCCESS)));

    cr_expect(cb_batch_close(db, &batch, 1, &closed, &e), "%s", e.message);
    cr_expect_eq(closed, 0);
    test_exec(bus.conn, "ROLLBACK");
    expect_value(bus.conn, "f", batch_is_closed, batch.text);
    cr_expect(cb_batch_close(db, NULL, 0, &closed, &e), "%s", e.message);
    cr_expect_eq(closed, 1);
    expect_value(bus.conn, "t", batch_is_closed, batch.text);
    PQfinish(settler);
}

Test(hostile_fleet, an_old_snapshot_does_not_close_a_batch_with_an_open_member) /* BUS.5 */
{
    cb_uuid batch = send_batch(1);
    expect_verdict(CB_SETTLED, test_run_one(bus.db, "w", CB_PERMANENT));
    test_exec(bus.conn, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM commandbus.batch");
    test_send_one(bus.db, .batch_id = batch.text);

    test_exec(bus.conn, "SELECT commandbus.tsq_cancel('fx', command_id, 'ann', 'enough') "
                        "FROM commandbus.command_metadata");
    test_exec(bus.conn, "COMMIT");

    expect_value(bus.conn, "f", batch_is_closed, batch.text);
    expect_verdict(CB_SETTLED, test_run_one(bus.db, "w", CB_SUCCESS));
    expect_value(bus.conn, "2 1 1",
                 "SELECT concat_ws(' ', total, completed, canceled) FROM commandbus.batch");
}

enum {
    LATE = 2000,
    HELD = 400
};

static atomic_bool all_settled;

/* The first brings what it has held too long, all at once, until all is answered; the others
 * claim. */
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
    crew c = crew_open(bus.conninfo);
    test_send(bus.db, LATE, NULL);
    OWNED(cb_claim) claim = test_claim(bus.db, "late", LATE, 0.01);
    crew_take(&c, claim, LATE, CB_SUCCESS);
    wait_until(bus.conn,
               "SELECT clock_timestamp() > max(lease_until) FROM commandbus.command_metadata");

    all_settled = false;
    parallel_run(3, settle_or_claim, &c);

    crew_expect_fine(&c);
    expect_value(bus.conn, "0 left, 0 poison",
                 "SELECT (SELECT count(*) FROM pgmq.q_fx__commands q JOIN "
                 "commandbus.command_metadata c USING (msg_id) WHERE c.status = 'COMPLETED') || "
                 "' left, ' || (SELECT count(*) FROM commandbus.audit WHERE event_type = "
                 "'POISON_ARCHIVED') || ' poison'");
    crew_close(&c);
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
    test_fleet_limit(HELD, HELD);
    crew c = crew_open(bus.conninfo);
    /* Another domain's places, so many that ours are looked up one by one, in the caller's
     * order. */
    test_exec(bus.conn,
              "INSERT INTO commandbus.fleet_place (place, command_id, lease_no, held_until, "
              "timeout_seconds, domain, worker) SELECT s, gen_random_uuid(), 1, 'infinity', 1, "
              "'risk', 'w' FROM generate_series(1, 20000) s");
    test_exec(bus.conn, "ANALYZE commandbus.fleet_place");

    for (double end = test_clock() + 5; test_clock() < end;) {
        cb_error e = { 0 };
        OWNED(cb_claim) claim = test_claim(bus.db, "w", HELD, 60);
        crew_take(&c, claim, HELD, CB_INTERRUPTED);
        parallel_run(CREW, extend_or_settle, &c);
        crew_expect_fine(&c);
        cr_assert(cb_settle(bus.db, "w", c.items, HELD, &e), "%s", e.message);
    }

    expect_value(bus.conn, "0", "SELECT count(*) FROM commandbus.fleet_lease WHERE domain = 'fx'");
    crew_close(&c);
}

/* DESIGN 2: who extends a command that is just being settled must not keep its place alive */
Test(hostile_fleet, an_extend_that_found_the_command_busy_does_not_cost_its_capacity)
{
    test_fleet_limit(1, 2);
    OWNED(cb_db) impatient = test_bus_open_impatient(bus.conninfo);
    PGconn *extender = test_pq_open(bus.conninfo);
    OWNED(cb_claim) claim = test_claim(bus.db, "w", 2, 60);
    cr_assert_eq(cb_claim_count(claim), 1);
    test_exec(bus.conn,
              "BEGIN; SELECT FROM commandbus.command_metadata WHERE lease_no = 1 FOR UPDATE");
    test_exec(extender, "BEGIN");
    expect_value(extender, "{BUSY}",
                 "SELECT commandbus.extend('fx', 'w', ARRAY[$1::uuid], '{1}', 60)",
                 cb_claim_at(claim, 0)->command_id.text);
    test_exec(bus.conn, "COMMIT");

    expect_verdict(CB_SETTLED, test_settle_one(impatient, "w",
                                               test_outcome(cb_claim_at(claim, 0), CB_SUCCESS)));
    test_exec(extender, "COMMIT");

    expect_verdict(CB_SETTLED, test_run_one(bus.db, "w", CB_SUCCESS));
    PQfinish(extender);
}

/* A command of a domain for one, whose handler is past its timeout. The caller frees the claim. */
static cb_claim *time_out_one(cb_uuid *id, double vt_seconds)
{
    test_fleet_limit(1, 0);
    *id = test_send_one(bus.db, .timeout_seconds = 1);
    test_send(bus.db, 1, NULL);
    cb_claim *claim = test_claim(bus.db, "w", 1, vt_seconds);
    cb_settlement timeout = test_outcome(cb_claim_at(claim, 0), CB_TRANSIENT);

    timeout.error_code = "HANDLER_TIMEOUT";
    timeout.still_running = true;
    timeout.retry_seconds = 3600;
    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "w", timeout));
    OWNED(cb_claim) more = test_claim(bus.db, "w", 1, 1);
    cr_expect_eq(cb_claim_count(more), 0, "the handler still runs, its place is not free");
    return claim;
}

Test(hostile_fleet, a_timeout_keeps_the_place_until_the_late_result_comes) /* WRK.8, section 8.2 */
{
    cb_uuid id;
    OWNED(cb_claim) claim = time_out_one(&id, 60);

    expect_verdict(CB_ALREADY,
                   test_settle_one(bus.db, "w", test_outcome(cb_claim_at(claim, 0), CB_SUCCESS)));

    expect_verdict(CB_SETTLED, test_run_one(bus.db, "w", CB_SUCCESS));
    expect_trail("SENT RECEIVED FAILED RETRY_SCHEDULED STALE_OUTCOME", id);
}

Test(hostile_fleet,
     a_timeout_keeps_the_place_no_longer_than_its_lease_and_timeout) /* section 8.2 */
{
    cb_uuid id;
    cb_claim_free(time_out_one(&id, 0.3));

    cr_expect_eq(test_run_all(bus.db, "w", 1), 1);

    expect_trail("SENT RECEIVED FAILED RETRY_SCHEDULED", id);
}
