/* domain.fleet_limit: leases over the whole fleet never exceed it, whoever claims. */
#include <pthread.h>
#include <stdatomic.h>

#include "claims.h"

static rig limited_rig(int limit, size_t commands)
{
    rig r = rig_open();
    char text[16];

    snprintf(text, sizeof text, "%d", limit);
    free(test_value(
        r.sql,
        "UPDATE commandbus.domain SET fleet_limit = $1::integer WHERE domain = 'fx' RETURNING 1",
        text, NULL));
    if (commands)
        test_send(r.db, commands, NULL);
    return r;
}

static size_t claim_count(rig *r, const char *worker, int quantity, double vt_seconds)
{
    OWNED(cb_claim) claim = test_claim(r->db, worker, quantity, vt_seconds);

    return cb_claim_count(claim);
}

Test(fleet_limit, bounds_claims_over_all_workers) /* section 8.2 */
{
    rig r = limited_rig(3, 10);

    cr_expect_eq(claim_count(&r, "a", 2, 60), 2);
    cr_expect_eq(claim_count(&r, "b", 10, 60), 1);
    cr_expect_eq(claim_count(&r, "c", 10, 60), 0);

    expect_value(
        r.sql, "3 of a b",
        "SELECT count(*) || ' of ' || string_agg(DISTINCT worker, ' ') FROM commandbus.fleet_lease");
    rig_close(&r);
}

Test(fleet_limit, capacity_returns_with_every_kind_of_outcome) /* section 8.2 */
{
    rig r = limited_rig(1, 10);
    cb_claim *held = test_claim(r.db, "w", 10, 60);

    for (int outcome = CB_SUCCESS; outcome <= CB_INTERRUPTED; outcome++) {
        cr_assert_eq(cb_claim_count(held), 1);
        test_settle_one(r.db, "w", test_outcome(cb_claim_at(held, 0), (cb_outcome)outcome));
        cb_claim_free(held);
        held = test_claim(r.db, "w", 10, 60);
        cr_expect_eq(cb_claim_count(held), 1, "after %s", cb_outcome_name((cb_outcome)outcome));
    }
    cb_claim_free(held);
    rig_close(&r);
}

Test(fleet_limit, capacity_returns_with_a_release) /* section 8.2 */
{
    rig r = limited_rig(2, 4);
    cb_error e = { 0 };
    cr_assert_eq(claim_count(&r, "w", 10, 60), 2);

    cr_assert(cb_lease_release_unknown(r.db, "fx", "w", NULL, 0, NULL, &e), "%s", e.message);

    cr_expect_eq(claim_count(&r, "w", 10, 60), 2);
    rig_close(&r);
}

/* A holder that fell silent may still be calling: its place is free after lease + handler timeout. */
Test(fleet_limit, a_silent_holder_counts_until_its_lease_and_its_timeout_are_over) /* DESIGN 2 */
{
    rig r = limited_rig(1, 0);
    test_send_one(r.db, .timeout_seconds = 1);
    cr_assert_eq(claim_count(&r, "silent", 1, 0.2), 1);
    char *held_until = test_value(r.sql, "SELECT held_until FROM commandbus.fleet_lease", NULL);
    expect_value(r.sql, "00:00:01",
                 "SELECT held_until - lease_until FROM commandbus.fleet_lease "
                 "JOIN commandbus.command_metadata USING (command_id)");
    test_await(r.sql, "SELECT clock_timestamp() > lease_until FROM commandbus.command_metadata");
    cr_expect_eq(claim_count(&r, "w", 1, 1), 0, "the lease alone has freed the place");

    OWNED(cb_claim) claim = test_claim_awaited(r.db, "w", 1, 30);

    cr_assert_eq(cb_claim_count(claim), 1);
    expect_value(r.sql, "t",
                 "SELECT updated_at >= $1::timestamptz FROM commandbus.command_metadata",
                 held_until);
    free(held_until);
    rig_close(&r);
}

Test(fleet_limit, an_extended_holder_keeps_its_place) /* DESIGN 2 */
{
    rig r = limited_rig(1, 0);
    test_send_one(r.db, .timeout_seconds = 1);
    OWNED(cb_claim) claim = test_claim(r.db, "w", 1, 0.1);
    cr_assert_eq(cb_claim_count(claim), 1);

    cr_expect_eq(test_extend_one(r.db, "w", test_lease(cb_claim_at(claim, 0)), 60),
                 CB_LEASE_EXTENDED);

    expect_value(
        r.sql, "t",
        "SELECT f.held_until = c.lease_until + interval '1 second' "
        "FROM commandbus.fleet_lease f JOIN commandbus.command_metadata c USING (command_id)");
    rig_close(&r);
}

Test(fleet_limit, a_late_holders_outcome_frees_its_own_place_not_its_heirs) /* section 8.2, 8.3 */
{
    rig r = limited_rig(2, 3);
    OWNED(cb_claim) late = test_claim(r.db, "late", 1, 0.05);
    cr_assert_eq(cb_claim_count(late), 1);
    test_await(r.sql,
               "SELECT clock_timestamp() > max(lease_until) FROM commandbus.command_metadata");
    /* The one whose lease expired is the last to be visible: claim all that the limit lets through. */
    test_exec(r.sql,
              "UPDATE pgmq.q_fx__commands SET vt = vt - interval '1 hour' WHERE read_ct > 0");
    OWNED(cb_claim) heir = test_claim(r.db, "heir", 10, 1);
    cr_assert_eq(cb_claim_count(heir), 1, "two places, one of them the silent holder's");

    expect_verdict(CB_STALE,
                   test_settle_one(r.db, "late", test_outcome(cb_claim_at(late, 0), CB_SUCCESS)));

    expect_value(r.sql, "heir", "SELECT string_agg(worker, ' ') FROM commandbus.fleet_lease");
    cr_expect_eq(claim_count(&r, "w", 10, 60), 1);
    rig_close(&r);
}

/* Two claimed commands of a limited domain; the observer settles them in a transaction left open. */
static void settled_meanwhile(rig *r, cb_settlement items[2], double vt_seconds)
{
    OWNED(cb_claim) claim = test_claim(r->db, "w", 2, vt_seconds);

    cr_assert_eq(cb_claim_count(claim), 2);
    for (size_t i = 0; i < 2; i++)
        items[i] = test_outcome(cb_claim_at(claim, i), CB_SUCCESS);
    test_exec(r->sql, "BEGIN; SELECT commandbus.settle('fx', 'w', array_agg(command_id), "
                      "array_agg(lease_no), array_agg('SUCCESS'::text)) "
                      "FROM commandbus.command_metadata WHERE status = 'IN_PROGRESS'");
}

Test(fleet_limit, settle_does_not_wait_for_another_settle) /* DESIGN 2: never waits */
{
    rig r = limited_rig(2, 2);
    OWNED(cb_db) impatient = test_bus_open_impatient(r.conninfo);
    cb_settlement items[2];
    cb_error e = { 0 };
    settled_meanwhile(&r, items, 60);

    cr_assert(cb_settle(impatient, "w", items, 2, &e), "%s", e.message);

    expect_verdict(CB_BUSY, items[0].verdict);
    expect_verdict(CB_BUSY, items[1].verdict);
    test_exec(r.sql, "COMMIT");
    expect_value(r.sql, "0", "SELECT count(*) FROM commandbus.fleet_lease");
    rig_close(&r);
}

Test(fleet_limit, extend_does_not_wait_for_a_settle) /* DESIGN 2: never waits */
{
    rig r = limited_rig(2, 2);
    OWNED(cb_db) impatient = test_bus_open_impatient(r.conninfo);
    cb_settlement items[2];
    settled_meanwhile(&r, items, 60);
    cb_lease lease = { .domain = "fx",
                       .command_id = items[0].command_id,
                       .lease_no = items[0].lease_no };

    cr_expect_eq(test_extend_one(impatient, "w", lease, 60), CB_LEASE_BUSY);
    rig_close(&r);
}

Test(fleet_limit, a_claim_does_not_wait_for_a_settle) /* section 8.7 */
{
    rig r = limited_rig(3, 3);
    OWNED(cb_db) impatient = test_bus_open_impatient(r.conninfo);
    cb_settlement items[2];
    test_exec(r.sql, "UPDATE commandbus.command_metadata SET timeout_seconds = 0");
    settled_meanwhile(&r, items, 0.05);
    PGconn *watch = test_pq_open(r.conninfo);
    test_await(watch, "SELECT clock_timestamp() > max(held_until) FROM commandbus.fleet_lease");

    OWNED(cb_claim) claim = test_claim(impatient, "other", 3, 60);

    cr_expect_eq(cb_claim_count(claim), 1);
    PQfinish(watch);
    rig_close(&r);
}

Test(fleet_limit, of_one_domain_does_not_bound_another) /* section 8.2 */
{
    rig r = limited_rig(1, 2);
    OWNED(cb_receiver) risk = NULL;
    OWNED(cb_claim) claim = NULL;
    cb_error e = { 0 };
    cr_assert_eq(claim_count(&r, "w", 10, 60), 1);
    for (int i = 0; i < 3; i++)
        test_send_one(r.db, .domain = "risk");
    cr_assert(cb_receiver_open("risk", &(cb_receive_options){ .worker = "w" }, &risk, &e));

    cr_assert(cb_receive(r.db, risk, 10, &claim, &e), "%s", e.message);

    cr_expect_eq(cb_claim_count(claim), 3);
    rig_close(&r);
}

Test(fleet_limit, is_claimed_in_read_committed_only) /* DESIGN 2: counts in a new statement */
{
    rig r = limited_rig(1, 1);

    cr_expect_str_eq(test_sqlstate(r.sql, "BEGIN ISOLATION LEVEL REPEATABLE READ; "
                                          "SELECT commandbus.receive('fx', 'w', 1)"),
                     "CB007");
    rig_close(&r);
}

enum {
    WORKERS = 8,
    COMMANDS = 400,
    LIMIT = 3
};

typedef struct {
    const char *conninfo;
    atomic_int *held, *most, *done;
    cb_error error;
} worker_thread;

static bool settle_claim(worker_thread *t, cb_db *db, const cb_claim *claim)
{
    for (size_t i = 0; claim && i < cb_claim_count(claim); i++) {
        cb_settlement item = test_outcome(cb_claim_at(claim, i), CB_SUCCESS);
        (*t->held)--; /* before it is true: what is counted is never more than what is held */
        if (!cb_settle(db, "w", &item, 1, &t->error))
            return false;
        (*t->done)++;
    }
    return true;
}

/* Claims on top of what it holds, counts what everybody holds, then settles the older claim. */
static void *work(void *arg)
{
    worker_thread *t = arg;
    OWNED(cb_db) db = NULL;
    OWNED(cb_receiver) receiver = NULL;
    cb_claim *older = NULL, *claim = NULL;

    if (!cb_db_open(t->conninfo, &db, &t->error) ||
        !cb_receiver_open("fx", &(cb_receive_options){ .worker = "w" }, &receiver, &t->error))
        return NULL;
    for (double end = test_clock() + 30; *t->done < COMMANDS && test_clock() < end;) {
        if (!cb_receive(db, receiver, 2, &claim, &t->error))
            break;
        int n = (int)cb_claim_count(claim), now = atomic_fetch_add(t->held, n) + n;
        for (int most = *t->most; now > most && !atomic_compare_exchange_weak(t->most, &most, now);)
            ;
        if (!settle_claim(t, db, older))
            break;
        cb_claim_free(older);
        older = claim;
        claim = NULL;
    }
    cb_claim_free(claim);
    cb_claim_free(older);
    return NULL;
}

Test(fleet_limit, is_never_exceeded_by_eight_connections_that_claim_at_once) /* section 8.2 */
{
    rig r = limited_rig(LIMIT, COMMANDS);
    worker_thread threads[WORKERS];
    pthread_t ids[WORKERS];
    atomic_int held = 0, most = 0, done = 0;
    long most_rows = 0;
    for (int i = 0; i < WORKERS; i++) {
        threads[i] =
            (worker_thread){ .conninfo = r.conninfo, .held = &held, .most = &most, .done = &done };
        cr_assert_eq(pthread_create(&ids[i], NULL, work, &threads[i]), 0);
    }

    for (double end = test_clock() + 30; done < COMMANDS && test_clock() < end;) {
        long rows = test_number(
            r.sql,
            "SELECT greatest((SELECT count(*) FROM commandbus.fleet_lease), "
            "(SELECT count(*) FROM commandbus.command_metadata WHERE status = 'IN_PROGRESS'))",
            NULL);
        most_rows = rows > most_rows ? rows : most_rows;
    }
    for (int i = 0; i < WORKERS; i++)
        pthread_join(ids[i], NULL);

    for (int i = 0; i < WORKERS; i++)
        cr_expect_eq(threads[i].error.code, CB_OK, "%s %s", threads[i].error.sqlstate,
                     threads[i].error.message);
    cr_expect_eq(done, COMMANDS);
    cr_expect_leq(most_rows, LIMIT, "%ld leases at once", most_rows);
    cr_expect_leq(most, LIMIT, "%d held at once", most);
    cr_expect_eq(most, LIMIT, "never used to the full: nothing was proven");
    expect_value(r.sql, "0", "SELECT count(*) FROM commandbus.fleet_lease");
    rig_close(&r);
}
