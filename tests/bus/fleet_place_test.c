/* Places of the fleet's limit: each comes back when its handler has returned, and none before. */
#include "claims.h"
#include "crew.h"
#include "parallel.h"

TestSuite(fleet_place, .init = bus_open, .fini = bus_close);

#define expect_places(conn, expected) \
    expect_value(conn, expected, "SELECT count(*) FROM commandbus.fleet_lease")

/* The handler of the claim's first command is past its timeout, and runs on. */
static void time_out(const cb_claim *claim)
{
    cb_settlement timeout = test_outcome(cb_claim_at(claim, 0), CB_TRANSIENT);

    timeout.error_code = "HANDLER_TIMEOUT";
    timeout.still_running = true;
    timeout.retry_seconds = 3600;
    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "w", timeout));
}

static cb_verdict settle_late(const cb_claim *claim)
{
    return test_settle_one(bus.db, "w", test_outcome(cb_claim_at(claim, 0), CB_SUCCESS));
}

Test(fleet_place, stays_with_a_command_whose_outcome_was_busy) /* section 8.2 */
{
    test_fleet_limit(1, 2);
    OWNED(cb_claim) claim = test_claim(bus.db, "w", 1, 60);
    test_exec(bus.conn, "BEGIN; SELECT FROM commandbus.command_metadata WHERE lease_no = 1 "
                        "FOR UPDATE");

    expect_verdict(CB_BUSY, settle_late(claim));

    expect_places(bus.conn, "1");
    test_exec(bus.conn, "COMMIT");
    cr_expect_eq(test_claim_count(bus.db, "other", 1, 60), 0,
                 "two are in progress, the limit is one");
    expect_verdict(CB_SETTLED, settle_late(claim));
    cr_expect_eq(test_claim_count(bus.db, "other", 1, 60), 1);
}

Test(fleet_place, is_asked_for_again_when_a_late_outcome_meets_its_renewal) /* section 8.2 */
{
    test_fleet_limit(1, 2);
    OWNED(cb_claim) claim = test_claim(bus.db, "w", 1, 60);
    time_out(claim);
    test_exec(bus.conn, "BEGIN");
    expect_value(bus.conn, "{GONE}",
                 "SELECT commandbus.extend('fx', 'w', ARRAY[$1::uuid], '{1}', 60)",
                 cb_claim_at(claim, 0)->command_id.text);

    expect_verdict(CB_BUSY, settle_late(claim));
    test_exec(bus.conn, "COMMIT");
    expect_verdict(CB_ALREADY, settle_late(claim));

    expect_places(bus.conn, "0");
    cr_expect_eq(test_claim_count(bus.db, "other", 1, 60), 1);
}

Test(fleet_place, comes_back_with_a_late_outcome_while_there_is_no_limit) /* section 8.2 */
{
    test_fleet_limit(1, 2);
    OWNED(cb_claim) claim = test_claim(bus.db, "w", 1, 60);
    time_out(claim);

    test_fleet_limit(0, 0);
    expect_verdict(CB_ALREADY, settle_late(claim));
    test_fleet_limit(1, 0);

    cr_expect_eq(test_claim_count(bus.db, "other", 1, 60), 1);
}

/* A handler's own code, chosen by a payload perhaps, says nothing about whether it runs. */
Test(fleet_place, comes_back_from_a_handler_that_calls_its_error_HANDLER_TIMEOUT) /* section 8.2 */
{
    test_fleet_limit(1, 2);
    OWNED(cb_claim) claim = test_claim(bus.db, "w", 1, 60);
    cb_settlement item = test_outcome(cb_claim_at(claim, 0), CB_PERMANENT);
    item.error_code = "HANDLER_TIMEOUT";

    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "w", item));

    expect_places(bus.conn, "0");
    cr_expect_eq(test_claim_count(bus.db, "other", 1, 60), 1);
}

Test(fleet_place, is_not_lost_to_a_limit_that_could_not_be_taken_away) /* section 8.2 */
{
    test_fleet_limit(2, 4);
    OWNED(cb_claim) claim = test_claim(bus.db, "w", 2, 60);
    PGconn *holder = test_pq_open(bus.conninfo), *setter = test_pq_open(bus.conninfo);
    cb_verdict verdict;
    test_exec(holder, "BEGIN");
    free(test_value(holder,
                    "SELECT command_id FROM commandbus.fleet_lease WHERE command_id = $1 "
                    "FOR UPDATE",
                    cb_claim_at(claim, 1)->command_id.text, NULL));
    cr_assert(PQsendQuery(setter, "SELECT commandbus.set_fleet_limit('fx', 0)"));
    wait_until(bus.conn, "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                         "AND datname = current_database() AND query LIKE '%set_fleet_limit%'");

    verdict = settle_late(claim);
    PGresult *refused = PQgetResult(setter);
    cr_expect_str_eq(PQresultErrorField(refused, PG_DIAG_SQLSTATE), "55P03");
    PQclear(refused);
    while (verdict == CB_BUSY)
        verdict = settle_late(claim);

    expect_verdict(CB_SETTLED, verdict);
    expect_places(bus.conn, "1");
    cr_expect_eq(test_claim_count(bus.db, "other", 1, 60), 1);
    PQfinish(setter);
    PQfinish(holder);
}

Test(fleet_place, is_given_out_and_back_in_read_committed_only) /* DESIGN 2: in a new statement */
{
    static const char *const calls[] = {
        "SELECT commandbus.settle('fx', 'w', ARRAY[gen_random_uuid()], '{1}', '{SUCCESS}')",
        "SELECT commandbus.extend('fx', 'w', ARRAY[gen_random_uuid()], '{1}', 60)",
        "SELECT commandbus.release_unknown('fx', 'w', '{}', '{}')",
    };
    test_fleet_limit(1, 1);

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        test_exec(bus.conn, "BEGIN ISOLATION LEVEL REPEATABLE READ");
        cr_expect_str_eq(test_sqlstate(bus.conn, calls[i]), "CB007", "%s", calls[i]);
        test_exec(bus.conn, "ROLLBACK");
    }
}

Test(fleet_place, is_counted_for_a_command_whose_message_was_restored) /* section 8.2 */
{
    test_fleet_limit(0, 1);
    cr_assert_eq(test_claim_count(bus.db, "w", 1, 60), 1);
    test_exec(bus.conn, "DELETE FROM pgmq.q_fx__commands");
    test_exec(bus.conn, "SELECT commandbus.restore_messages('fx')");
    test_send(bus.db, 2, NULL);

    test_fleet_limit(1, 0);

    expect_places(bus.conn, "1");
    cr_expect_eq(test_claim_count(bus.db, "other", 2, 60), 0);
}

Test(fleet_place, is_counted_for_a_handler_past_its_timeout_when_a_limit_is_set) /* section 8.2 */
{
    test_fleet_limit(0, 2);
    OWNED(cb_claim) claim = test_claim(bus.db, "w", 1, 60);
    time_out(claim);

    test_fleet_limit(1, 0);

    cr_expect_eq(test_claim_count(bus.db, "other", 1, 60), 0, "its handler runs");
    expect_verdict(CB_ALREADY, settle_late(claim));
    cr_expect_eq(test_claim_count(bus.db, "other", 1, 60), 1);
}

Test(fleet_place, is_counted_for_a_silent_holder_when_a_limit_is_set) /* section 8.2 */
{
    test_fleet_limit(0, 1);
    OWNED(cb_claim) silent = test_claim(bus.db, "silent", 1, 0.05);
    OWNED(cb_claim) heir = test_claim_awaited(bus.db, "heir", 1, 1);
    cr_assert_eq(cb_claim_count(heir), 1);
    test_send(bus.db, 2, NULL);

    test_fleet_limit(2, 0);

    expect_value(bus.conn, "heir silent",
                 "SELECT string_agg(worker, ' ' ORDER BY worker) FROM commandbus.fleet_lease");
    cr_expect_eq(test_claim_count(bus.db, "other", 2, 60), 0);
}

/* A domain for one; its holder fell silent, and its place has run out. */
static cb_claim *run_out(void)
{
    test_fleet_limit(1, 2);
    test_exec(bus.conn, "UPDATE commandbus.command_metadata SET timeout_seconds = 0");
    cb_claim *claim = test_claim(bus.db, "w", 1, 0.05);

    wait_until(bus.conn, "SELECT clock_timestamp() > max(held_until) FROM commandbus.fleet_lease");
    return claim;
}

Test(fleet_place, that_ran_out_and_is_taken_makes_its_holders_lease_gone) /* section 8.2 */
{
    OWNED(cb_claim) claim = run_out();
    cr_assert_eq(test_claim_count(bus.db, "other", 1, 60), 1);

    cr_expect_eq(test_extend_one(bus.db, "w", test_lease(cb_claim_at(claim, 0)), 60),
                 CB_LEASE_GONE);

    expect_value(bus.conn, "t",
                 "SELECT lease_until < now() FROM commandbus.command_metadata "
                 "WHERE command_id = $1",
                 cb_claim_at(claim, 0)->command_id.text);
}

Test(fleet_place, that_ran_out_and_is_free_is_its_holders_again) /* section 8.2 */
{
    OWNED(cb_claim) claim = run_out();

    cr_expect_eq(test_extend_one(bus.db, "w", test_lease(cb_claim_at(claim, 0)), 60),
                 CB_LEASE_EXTENDED);

    cr_expect_eq(test_claim_count(bus.db, "other", 1, 60), 0);
}

Test(fleet_place, of_a_purged_command_does_not_stop_a_new_one_of_that_id) /* section 8.7 */
{
    test_fleet_limit(2, 0);
    cb_uuid id = test_send_one(bus.db, .max_attempts = 1);
    OWNED(cb_claim) claim = test_claim(bus.db, "w", 1, 60);
    time_out(claim);
    free(test_value(bus.conn, "SELECT commandbus.tsq_cancel('fx', $1::uuid, 'op', 'test')", id.text,
                    NULL));
    wait_until(bus.conn, "SELECT (commandbus.purge(interval '0')).commands = 1");
    test_send_one(bus.db, .command_id = id.text);
    test_send(bus.db, 1, NULL);

    OWNED(cb_claim) next = test_claim(bus.db, "other", 2, 60);

    cr_assert_eq(cb_claim_count(next), 1, "one place is the purged command's");
    cr_expect_eq(cb_claim_at(next, 0)->lease_no, 1);
    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "other",
                                               test_outcome(cb_claim_at(next, 0), CB_SUCCESS)));
    expect_value(bus.conn, "w", "SELECT string_agg(worker, ' ') FROM commandbus.fleet_lease");
}

typedef struct {
    cb_db *dbs[2];
    cb_error e[2];
    bool fine[2];
} pair;

static void release_or_limit(size_t i, void *arg)
{
    pair *p = arg;

    p->fine[i] = i == 0 ? cb_lease_release_unknown(p->dbs[0], "fx", "w", NULL, 0, NULL, &p->e[0])
                        : cb_fleet_limit_set(p->dbs[1], "fx", 50, &p->e[1]);
}

Test(fleet_place, is_free_after_a_release_that_met_a_new_limit) /* section 8.2 */
{
    test_fleet_limit(0, 40);
    pair p = { .dbs = { test_bus_open(bus.conninfo), test_bus_open(bus.conninfo) } };

    for (int round = 0; round < 60; round++) {
        cr_assert_eq(test_claim_count(bus.db, "w", 40, 60), 40);
        parallel_run(2, release_or_limit, &p);
        cr_assert(p.fine[0] && p.fine[1], "%s %s", p.e[0].message, p.e[1].message);
        /* What was locked just then is released by the next call. */
        cb_error e = { 0 };
        cr_assert(cb_lease_release_unknown(bus.db, "fx", "w", NULL, 0, NULL, &e), "%s", e.message);
        expect_places(bus.conn, "0");
        test_fleet_limit(0, 0);
    }
    cb_db_free(p.dbs[0]);
    cb_db_free(p.dbs[1]);
}

enum {
    HELD = 60
};

static void extend_or_limit(size_t i, void *arg)
{
    crew *c = arg;

    c->fine[i] = true;
    for (int round = 0; round < 12 && c->fine[i]; round++) {
        cb_settlement *items = crew_shuffled(c, i);
        cb_lease leases[HELD];
        for (size_t k = 0; k < HELD; k++)
            leases[k] = (cb_lease){ .domain = "fx",
                                    .command_id = items[k].command_id,
                                    .lease_no = items[k].lease_no };
        c->fine[i] = i == 0 ? cb_fleet_limit_set(c->db[i], "fx", round % 3 * HELD, &c->e[i])
                            : cb_lease_extend(c->db[i], "w", leases, HELD, 60, &c->e[i]);
        free(items);
    }
}

Test(fleet_place, of_a_limit_that_changes_is_renewed_without_a_deadlock) /* DESIGN 2: 40P01 */
{
    test_fleet_limit(HELD, HELD);
    crew c = crew_open(bus.conninfo);
    OWNED(cb_claim) claim = test_claim(bus.db, "w", HELD, 60);
    crew_take(&c, claim, HELD, CB_SUCCESS);

    for (double end = test_clock() + 5; test_clock() < end;) {
        parallel_run(CREW, extend_or_limit, &c);
        crew_expect_fine(&c);
    }

    test_fleet_limit(HELD + 1, 0);
    expect_places(bus.conn, "60");
    expect_value(
        bus.conn, "0 deadlocks",
        "SELECT deadlocks || ' deadlocks' FROM pg_stat_database WHERE datname = current_database()");
    crew_close(&c);
}
