/* fleet_limit when claims, renewals and outcomes meet: nothing waits, no place is lost or given
 * twice. */
#include <pthread.h>
#include <stdatomic.h>

#include "claims.h"

TestSuite(fleet_limit_race, .init = bus_open, .fini = bus_close);

/* Two claimed commands of a limited domain; the observer settles them in a transaction left
 * open. */
static void settled_meanwhile(cb_settlement items[2], double vt_seconds)
{
    OWNED(cb_claim) claim = test_claim(bus.db, "w", 2, vt_seconds);

    cr_assert_eq(cb_claim_count(claim), 2);
    for (size_t i = 0; i < 2; i++)
        items[i] = test_outcome(cb_claim_at(claim, i), CB_SUCCESS);
    test_exec(bus.conn, "BEGIN; SELECT commandbus.settle('fx', 'w', array_agg(command_id), "
                        "array_agg(lease_no), array_agg('SUCCESS'::text)) "
                        "FROM commandbus.command_metadata WHERE status = 'IN_PROGRESS'");
}

Test(fleet_limit_race, settle_does_not_wait_for_another_settle) /* DESIGN 2: never waits */
{
    test_fleet_limit(2, 2);
    OWNED(cb_db) impatient = test_bus_open_impatient(bus.conninfo);
    cb_settlement items[2];
    cb_error e = { 0 };
    settled_meanwhile(items, 60);

    cr_assert(cb_settle(impatient, "w", items, 2, &e), "%s", e.message);

    expect_verdict(CB_BUSY, items[0].verdict);
    expect_verdict(CB_BUSY, items[1].verdict);
    test_exec(bus.conn, "COMMIT");
    expect_value(bus.conn, "0", "SELECT count(*) FROM commandbus.fleet_lease");
}

Test(fleet_limit_race, extend_does_not_wait_for_a_settle) /* DESIGN 2: never waits */
{
    test_fleet_limit(2, 2);
    OWNED(cb_db) impatient = test_bus_open_impatient(bus.conninfo);
    cb_settlement items[2];
    settled_meanwhile(items, 60);
    cb_lease lease = { .domain = "fx",
                       .command_id = items[0].command_id,
                       .lease_no = items[0].lease_no };

    cr_expect_eq(test_extend_one(impatient, "w", lease, 60), CB_LEASE_BUSY);
}

Test(fleet_limit_race, a_claim_does_not_wait_for_a_settle) /* section 8.7 */
{
    test_fleet_limit(3, 3);
    OWNED(cb_db) impatient = test_bus_open_impatient(bus.conninfo);
    cb_settlement items[2];
    test_exec(bus.conn, "UPDATE commandbus.command_metadata SET timeout_seconds = 0");
    settled_meanwhile(items, 0.05);
    PGconn *watch = test_pq_open(bus.conninfo);
    wait_until(watch, "SELECT clock_timestamp() > max(held_until) FROM commandbus.fleet_lease");

    OWNED(cb_claim) claim = test_claim(impatient, "other", 3, 60);

    cr_expect_eq(cb_claim_count(claim), 1);
    PQfinish(watch);
}

Test(fleet_limit_race,
     a_renewal_during_a_settle_does_not_keep_the_place_of_what_is_settled) /* section 8.2 */
{
    test_fleet_limit(1, 1);
    PGconn *gate = test_pq_open(bus.conninfo);
    cb_error e = { 0 };
    OWNED(cb_claim) claim = test_claim(bus.db, "w", 1, 60);
    cr_assert_eq(cb_claim_count(claim), 1);
    /* A settle that has its command and stops before it gives the place back: at the reply. */
    test_exec(gate, "CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                    "PERFORM pg_advisory_xact_lock(7); RETURN NULL; END $$");
    test_exec(gate, "CREATE TRIGGER gate AFTER INSERT ON pgmq.q_payments__replies "
                    "FOR EACH STATEMENT EXECUTE FUNCTION wait_at_gate()");
    test_exec(gate, "SELECT pg_advisory_lock(7)");
    cr_assert(PQsendQuery(bus.conn,
                          "SELECT commandbus.settle('fx', 'w', array_agg(command_id), "
                          "array_agg(lease_no), '{SUCCESS}') FROM commandbus.command_metadata"));
    wait_until(gate,
               "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted "
               "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())");

    cr_assert(cb_db_begin(bus.db, &e), "%s", e.message);
    cr_expect_eq(test_extend_one(bus.db, "w", test_lease(cb_claim_at(claim, 0)), 60),
                 CB_LEASE_BUSY);
    test_exec(gate, "SELECT pg_advisory_unlock(7)");
    for (PGresult *result; (result = PQgetResult(bus.conn)); PQclear(result))
        cr_expect_eq(PQresultStatus(result), PGRES_TUPLES_OK, "%s", PQerrorMessage(bus.conn));
    cr_assert(cb_db_commit(bus.db, &e), "%s", e.message);

    expect_value(bus.conn, "COMPLETED", "SELECT status FROM commandbus.command_metadata");
    expect_value(bus.conn, "0", "SELECT count(*) FROM commandbus.fleet_lease");
    PQfinish(gate);
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
static void *claim_and_settle(void *arg)
{
    worker_thread *t = arg;
    OWNED(cb_db) db = NULL;
    OWNED(cb_receiver) receiver = NULL;
    cb_claim *older = NULL, *claim = NULL;

    if (!cb_db_open(t->conninfo, &db, &t->error) ||
        !cb_receiver_open("fx", &(cb_receive_options){ .worker = "w" }, &receiver, &t->error))
        return NULL;
    for (double end = test_clock() + patience_seconds; *t->done < COMMANDS && test_clock() < end;) {
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

Test(fleet_limit_race, is_never_exceeded_by_eight_connections_that_claim_at_once) /* section 8.2 */
{
    test_fleet_limit(LIMIT, COMMANDS);
    worker_thread threads[WORKERS];
    pthread_t ids[WORKERS];
    atomic_int held = 0, most = 0, done = 0;
    long most_rows = 0;
    for (int i = 0; i < WORKERS; i++) {
        threads[i] = (worker_thread){
            .conninfo = bus.conninfo, .held = &held, .most = &most, .done = &done
        };
        cr_assert_eq(pthread_create(&ids[i], NULL, claim_and_settle, &threads[i]), 0);
    }

    for (double end = test_clock() + patience_seconds; done < COMMANDS && test_clock() < end;) {
        long rows = test_number(
            bus.conn,
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
    expect_value(bus.conn, "0", "SELECT count(*) FROM commandbus.fleet_lease");
}
