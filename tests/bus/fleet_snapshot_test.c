/* A snapshot that somebody holds keeps every dead row: a place costs what it did when there were
 * none. */
#include "claims.h"

TestSuite(fleet_snapshot, .init = bus_open, .fini = bus_close);

/* How many of our rows and index entries a statement looks at, including dead ones. */
static const char looks_function[] =
    "CREATE FUNCTION public.looked() RETURNS bigint LANGUAGE sql AS $$ "
    "    SELECT sum(pg_stat_get_xact_tuples_returned(c.oid))::bigint FROM pg_class c "
    "    WHERE c.relnamespace IN ('commandbus'::regnamespace, 'pgmq'::regnamespace) $$; "
    "CREATE FUNCTION public.looks(statement text) RETURNS bigint LANGUAGE plpgsql AS $$ "
    "DECLARE before bigint := public.looked(); "
    "BEGIN EXECUTE statement; RETURN public.looked() - before; END $$";

/* Commands are sent, claimed, renewed and settled one by one, while somebody sleeps. */
static void take_turns(int n)
{
    static const char *const queues[] = { "fx__commands" };
    OWNED(cb_receiver) receiver = NULL;
    cb_error e = { 0 };

    cr_assert(cb_receiver_open("fx", &(cb_receive_options){ .worker = "w" }, &receiver, &e));
    for (int i = 0; i < n; i++) {
        OWNED(cb_claim) claim = NULL;
        test_send_one(bus.db, .command_type = "Test");
        cr_assert(cb_receive(bus.db, receiver, 1, &claim, &e), "%s", e.message);
        cr_assert_eq(cb_claim_count(claim), 1);
        cr_assert_eq(test_extend_one(bus.db, "w", test_lease(cb_claim_at(claim, 0)), 30),
                     CB_LEASE_EXTENDED);
        cr_assert(cb_sleep_announce(bus.db, "idle", queues, 1, 1, &e), "%s", e.message);
        expect_verdict(
            CB_SETTLED,
            test_settle_one(bus.db, "w", test_outcome(cb_claim_at(claim, 0), CB_SUCCESS)));
    }
}

enum {
    SEND,
    RECEIVE,
    EXTEND,
    SETTLE,
    CALLS
};

static const char *const calls[CALLS] = {
    [SEND] = "SELECT public.looks('SELECT commandbus.send(''fx'', ''Test'', ''{}'')')",
    [RECEIVE] = "SELECT public.looks(format('SELECT * FROM commandbus.receive(''fx'', ''w'', 1, "
                "after => %L)', max(vt))) FROM pgmq.q_fx__commands",
    [EXTEND] = "SELECT public.looks(format('SELECT commandbus.extend(''fx'', ''w'', "
               "ARRAY[%L::uuid], ''{1}'', 30)', command_id)) FROM commandbus.command_metadata "
               "WHERE status = 'IN_PROGRESS'",
    [SETTLE] = "SELECT public.looks(format('SELECT commandbus.settle(''fx'', ''w'', "
               "ARRAY[%L::uuid], ''{1}'', ''{SUCCESS}'')', command_id)) "
               "FROM commandbus.command_metadata WHERE status = 'IN_PROGRESS'",
};

/* Ends with the command settled that it sent. */
static void measure(long looks[CALLS])
{
    test_exec(bus.conn, "DISCARD PLANS");
    for (int i = 0; i < CALLS; i++)
        looks[i] = test_number(bus.conn, calls[i], NULL);
}

/* The planner must not be led astray by what it knows of small tables: autovacuum may come by at
 * any time. */
static const char *const statistics[] = {
    "SELECT 1",
    "ANALYZE commandbus.sleeper",
    "ANALYZE commandbus.command_metadata, commandbus.fleet_place",
    "VACUUM ANALYZE",
};

Test(fleet_snapshot, held_by_somebody_makes_no_place_more_expensive) /* BUS.19, section 8.7 */
{
    test_fleet_limit(6, 0);
    PGconn *holder = test_pq_open(bus.conninfo);
    long few[CALLS];
    test_exec(bus.conn, looks_function);
    test_exec(holder, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class");

    take_turns(30);
    measure(few);
    take_turns(800);

    for (size_t s = 0; s < CB_COUNT(statistics); s++) {
        long many[CALLS];
        test_exec(bus.conn, statistics[s]);
        measure(many);
        for (int i = 0; i < CALLS; i++) {
            cr_expect_leq(many[i], 2 * few[i] + 20, "%ld rows, and %ld after 30 turns (%s): %s",
                          many[i], few[i], statistics[s], calls[i]);
            fprintf(stderr, "%s: %ld rows after 30 turns, %ld after 830\n", statistics[s], few[i],
                    many[i]);
        }
    }
    PQfinish(holder);
}
