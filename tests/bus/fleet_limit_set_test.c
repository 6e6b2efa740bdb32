/* Setting domain.fleet_limit while work goes on: exact from the moment it is set. RL.7. */
#include <pthread.h>
#include <stdatomic.h>

#include "claims.h"
#include "wait.h"

TestSuite(fleet_limit_set, .init = bus_open, .fini = bus_close);

static const char places[] = "SELECT count(*) FROM commandbus.fleet_lease";

Test(fleet_limit_set, counts_what_is_in_progress_already) /* DESIGN 2, section 8.2 */
{
    test_fleet_limit(0, 10);
    OWNED(cb_claim) held = test_claim(bus.db, "w", 3, 60);
    cr_assert_eq(cb_claim_count(held), 3);
    expect_value(bus.conn, "0", places);

    test_fleet_limit(4, 0);

    expect_value(
        bus.conn, "3 t",
        "SELECT count(*) || ' ' || left(bool_and(f.held_until = c.lease_until + "
        "make_interval(secs => c.timeout_seconds) AND f.worker = 'w')::text, 1) FROM "
        "commandbus.fleet_lease f JOIN commandbus.command_metadata c USING (command_id, lease_no)");
    cr_expect_eq(test_claim_count(bus.db, "w", 10, 60), 1);
    expect_verdict(CB_SETTLED,
                   test_settle_one(bus.db, "w", test_outcome(cb_claim_at(held, 0), CB_SUCCESS)));
    cr_expect_eq(test_claim_count(bus.db, "w", 10, 60), 1);
}

Test(fleet_limit_set, counts_what_runs_whatever_its_queue_holds) /* section 8.2 */
{
    test_fleet_limit(0, 10);
    test_exec(bus.conn, "SELECT commandbus.keep_messages('fx')"); /* has looked through all once */
    OWNED(cb_claim) unread = test_claim(bus.db, "w", 1, 60);
    test_exec(bus.conn, "UPDATE pgmq.q_fx__commands SET read_ct = 0");
    test_fleet_limit(4, 0);
    expect_value(bus.conn, "1", places);
    test_fleet_limit(0, 0);
    OWNED(cb_claim) deleted = test_claim(bus.db, "w", 2, 60);
    test_exec(bus.conn, "DELETE FROM pgmq.q_fx__commands WHERE read_ct > 0");

    test_fleet_limit(4, 0);

    expect_value(bus.conn, "3", places);
    cr_expect_eq(test_claim_count(bus.db, "w", 10, 60), 1);
    expect_verdict(CB_SETTLED,
                   test_settle_one(bus.db, "w", test_outcome(cb_claim_at(deleted, 0), CB_SUCCESS)));
    cr_expect_eq(test_claim_count(bus.db, "w", 10, 60), 1);
}

/* A thread: it waits for the claim that is open, and starts over if that takes longer than it may
 * wait. */
static void *set_limit_meanwhile(void *conninfo)
{
    cb_db *db = NULL;
    cb_error e = { 0 };
    bool set = false;

    if (cb_db_open(conninfo, &db, &e)) {
        do
            set = cb_fleet_limit_set(db, "fx", 4, &e);
        while (!set && e.code == CB_AGAIN);
    }
    cb_db_free(db);
    return set ? conninfo : NULL;
}

/* Most is looked for while everybody claims: so what was claimed since must be found, too. */
Test(fleet_limit_set, counts_what_was_claimed_while_it_looked) /* section 8.2 */
{
    test_fleet_limit(0, 10);
    OWNED(cb_claim) early = test_claim(bus.db, "w", 1, 60);
    PGconn *other = test_pq_open(bus.conninfo);
    pthread_t thread;
    void *set = NULL;

    test_exec(other, "BEGIN; SELECT FROM commandbus.receive('fx', 'w', 2, 60)");
    cr_assert_eq(pthread_create(&thread, NULL, set_limit_meanwhile, bus.conninfo), 0);
    wait_until(bus.conn,
               "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted "
               "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())");
    test_exec(other, "COMMIT");
    pthread_join(thread, &set);

    cr_expect(set);
    expect_value(bus.conn, "3", places);
    cr_expect_eq(test_claim_count(bus.db, "w", 10, 60), 1);
    PQfinish(other);
}

/* Under the lock that claims wait for, messages that are delayed are not asked for their
 * commands. */
Test(fleet_limit_set, looks_only_at_what_has_changed_while_nobody_can_claim) /* section 8.7 */
{
    test_fleet_limit(0, 3);
    for (int i = 0; i < 300; i++)
        test_send_one(bus.db, .delay_seconds = 3600);
    const char *looks = "SELECT pg_stat_get_xact_numscans('commandbus.command_metadata_message'::"
                        "regclass)";
    char *since =
        test_value(bus.conn, "SELECT pg_current_xact_id()::xid", NULL); /* after all of them */
    OWNED(cb_claim) held = test_claim(bus.db, "w", 2, 60);

    test_exec(bus.conn, "BEGIN");
    expect_value(bus.conn, "2",
                 "SELECT cardinality(commandbus.commands_in_progress('fx', $1::text::xid))", since);
    cr_expect_lt(test_number(bus.conn, looks, NULL), 10);
    expect_value(bus.conn, "2", "SELECT cardinality(commandbus.commands_in_progress('fx'))");
    cr_expect_geq(test_number(bus.conn, looks, NULL), 300);
    test_exec(bus.conn, "ROLLBACK");
    free(since);
}

Test(fleet_limit_set, below_what_is_in_progress_takes_nothing_back_and_gives_nothing_out)
{
    test_fleet_limit(0, 10);
    OWNED(cb_claim) held = test_claim(bus.db, "w", 3, 60);

    test_fleet_limit(1, 0);

    cr_expect_eq(test_claim_count(bus.db, "w", 10, 60), 0);
    for (size_t i = 0; i < 3; i++) {
        cr_expect_eq(test_claim_count(bus.db, "w", 10, 60), 0, "with %zu still held", 3 - i);
        test_settle_one(bus.db, "w", test_outcome(cb_claim_at(held, i), CB_SUCCESS));
    }
    cr_expect_eq(test_claim_count(bus.db, "w", 10, 60), 1);
}

Test(fleet_limit_set, to_none_and_back_leaves_no_place_taken) /* section 8.2 */
{
    test_fleet_limit(2, 10);
    OWNED(cb_claim) held = test_claim(bus.db, "w", 2, 60);

    test_fleet_limit(0, 0);
    expect_value(bus.conn, "0", places);
    for (size_t i = 0; i < 2; i++)
        expect_verdict(CB_SETTLED, test_settle_one(bus.db, "w",
                                                   test_outcome(cb_claim_at(held, i), CB_SUCCESS)));
    OWNED(cb_claim) more = test_claim(bus.db, "w", 5, 60);
    cr_expect_eq(cb_claim_count(more), 5);
    test_fleet_limit(6, 0);

    expect_value(bus.conn, "5", places);
    cr_expect_eq(test_claim_count(bus.db, "w", 10, 60), 1);
}

Test(fleet_limit_set, keeps_the_place_of_a_silent_holder_while_there_is_no_limit) /* DESIGN 2 */
{
    test_fleet_limit(1, 3);
    OWNED(cb_claim) held = test_claim(bus.db, "w", 1, 60);
    cb_settlement timeout = test_outcome(cb_claim_at(held, 0), CB_TRANSIENT);
    timeout.error_code = "HANDLER_TIMEOUT";
    timeout.still_running = true;
    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "w", timeout));

    test_fleet_limit(0, 0);
    test_fleet_limit(1, 0);

    cr_expect_eq(test_claim_count(bus.db, "w", 10, 60), 0, "its handler still runs");
}

/* A claim of fx that its client leaves open. */
static PGconn *open_claim(void)
{
    PGconn *idle = test_pq_open(bus.conninfo);

    test_exec(idle, "BEGIN; SELECT * FROM commandbus.receive('fx', 'idle', 1)");
    return idle;
}

Test(fleet_limit_set, again_to_the_same_waits_for_nobody) /* DESIGN 2: never waits */
{
    test_fleet_limit(0, 3);
    OWNED(cb_db) impatient = test_bus_open_impatient(bus.conninfo);
    cb_error e = { 0 };
    test_fleet_limit(2, 0);
    PGconn *idle = open_claim();

    cr_expect(cb_fleet_limit_set(impatient, "fx", 2, &e), "%s", e.message);

    PQfinish(idle);
}

Test(fleet_limit_set, says_so_when_a_claim_is_left_open_and_changes_nothing)
{
    test_fleet_limit(0, 3);
    cb_error e = { 0 };
    PGconn *idle = open_claim();

    cr_expect_not(cb_fleet_limit_set(bus.db, "fx", 2, &e));

    cr_expect_eq(e.code, CB_AGAIN, "%s", e.message);
    cr_expect(strstr(e.message, "'fx'") && strstr(e.hint, "doctor"), "%s %s", e.message, e.hint);
    expect_value(bus.conn, "0", "SELECT fleet_limit FROM commandbus.domain WHERE domain = 'fx'");
    test_exec(idle, "COMMIT");
    test_fleet_limit(2, 0);
    expect_value(bus.conn, "1", places);
    PQfinish(idle);
}

Test(fleet_limit_set, refuses_an_invalid_limit_and_an_unknown_domain)
{
    test_fleet_limit(0, 0);
    cb_error e = { 0 };

    cr_expect_not(cb_fleet_limit_set(bus.db, "fx", -1, &e));
    cr_expect_eq(e.code, CB_INVALID_DATA, "%s", e.message);
    cr_expect_not(cb_fleet_limit_set(bus.db, "nobody", 1, &e));
    cr_expect_eq(e.code, CB_UNKNOWN_DOMAIN, "%s", e.message);
    cr_expect_str_eq(test_sqlstate(bus.conn, "SELECT commandbus.set_fleet_limit('fx', NULL)"),
                     "CB011");
    cr_expect_str_eq(test_sqlstate(bus.conn, "BEGIN ISOLATION LEVEL REPEATABLE READ; "
                                             "SELECT commandbus.set_fleet_limit('fx', 1)"),
                     "CB007");
}

Test(fleet_limit_set, wakes_workers_that_sleep_for_lack_of_a_place) /* DESIGN 2: wake-up */
{
    static const char *const queues[] = { "fx__commands" };
    test_fleet_limit(2, 3);
    PGconn *listener = test_pq_open(bus.conninfo);
    cb_error e = { 0 };
    OWNED(cb_claim) claim = test_claim(bus.db, "busy", 2, 60);
    test_exec(listener, "LISTEN commandbus_fx__commands; LISTEN marker");
    cr_assert(cb_sleep_announce(bus.db, "waiting", queues, 1, 60, &e), "%s", e.message);

    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "busy",
                                               test_outcome(cb_claim_at(claim, 0), CB_SUCCESS)));
    char *channel = wait_for_notify(listener);
    cr_expect_str_eq(channel, "commandbus_fx__commands");
    free(channel);

    /* Whoever wants a place has found that one: the next wakes nobody. */
    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "busy",
                                               test_outcome(cb_claim_at(claim, 1), CB_SUCCESS)));
    test_exec(bus.conn, "NOTIFY marker");
    channel = wait_for_notify(listener);
    cr_expect_str_eq(channel, "marker");
    free(channel);
    PQfinish(listener);
}

enum {
    WORKERS = 8,
    COMMANDS = 200,
    ROUNDS = 12
};

typedef struct {
    const char *conninfo;
    atomic_bool *stop;
    atomic_long *claimed;
    cb_error error;
} claimer;

static bool give_back(claimer *t, cb_db *db, const cb_claim *claim)
{
    cb_settlement items[COMMANDS];
    size_t n = claim ? cb_claim_count(claim) : 0;

    for (size_t i = 0; i < n; i++)
        items[i] = test_outcome(cb_claim_at(claim, i), CB_INTERRUPTED);
    for (bool busy = n > 0; busy;) {
        if (!cb_settle(db, "w", items, n, &t->error))
            return false;
        busy = false;
        for (size_t i = 0; i < n; i++)
            busy |= items[i].verdict == CB_BUSY;
    }
    return true;
}

/* Claims a few, gives the older ones back unrun, for ever. */
static void *claim_and_give_back(void *arg)
{
    claimer *t = arg;
    OWNED(cb_db) db = NULL;
    OWNED(cb_receiver) receiver = NULL;
    cb_claim *older = NULL, *claim = NULL;
    bool fine =
        cb_db_open(t->conninfo, &db, &t->error) &&
        cb_receiver_open("fx", &(cb_receive_options){ .worker = "w" }, &receiver, &t->error);

    while (fine && !*t->stop) {
        fine = cb_receive(db, receiver, 4, &claim, &t->error) && give_back(t, db, older);
        *t->claimed += claim ? (long)cb_claim_count(claim) : 0;
        cb_claim_free(older);
        older = claim;
        claim = NULL;
    }
    if (fine)
        fine = give_back(t, db, older);
    cb_claim_free(older);
    return NULL;
}

/* How many are in progress; in the same snapshot each has its place and no place is without one. */
static long leased(void)
{
    expect_value(bus.conn, "0",
                 "SELECT count(*) FROM (SELECT command_id, lease_no FROM "
                 "commandbus.command_metadata WHERE status = 'IN_PROGRESS') c FULL JOIN "
                 "commandbus.fleet_lease f USING (command_id, lease_no) "
                 "WHERE c IS NULL OR f IS NULL");
    return test_number(bus.conn,
                       "SELECT count(*) FROM commandbus.command_metadata "
                       "WHERE status = 'IN_PROGRESS'",
                       NULL);
}

/* Above the limit only what was claimed before: it may shrink, and never grows past the limit
 * again. */
static void watch_limit(int limit)
{
    long most = leased();

    for (int look = 0; look < 25; look++) {
        long now = leased();
        cr_expect_leq(now, most > limit ? most : limit, "%ld leases, limit %d", now, limit);
        most = now;
    }
}

Test(fleet_limit_set, holds_from_its_commit_on_while_eight_connections_claim) /* section 8.2 */
{
    test_fleet_limit(0, COMMANDS);
    claimer all[WORKERS];
    pthread_t ids[WORKERS];
    atomic_bool stop = false;
    atomic_long claimed = 0;
    for (int i = 0; i < WORKERS; i++) {
        all[i] = (claimer){ .conninfo = bus.conninfo, .stop = &stop, .claimed = &claimed };
        cr_assert_eq(pthread_create(&ids[i], NULL, claim_and_give_back, &all[i]), 0);
    }
    wait_until(bus.conn, "SELECT count(*) >= 16 FROM commandbus.command_metadata "
                         "WHERE status = 'IN_PROGRESS'");

    for (int round = 0; round < ROUNDS; round++) {
        long before = claimed;
        test_fleet_limit(3 + round % 2 * 2, 0);
        watch_limit(3 + round % 2 * 2);
        test_fleet_limit(round % 3 == 0 ? 0 : 20, 0);
        for (double end = test_clock() + patience_seconds;
             claimed < before + 20 && test_clock() < end;)
            free(test_value(bus.conn, "SELECT 1", NULL));
        cr_expect_geq(claimed, before + 20, "nobody claims any more");
    }
    stop = true;
    for (int i = 0; i < WORKERS; i++)
        pthread_join(ids[i], NULL);

    for (int i = 0; i < WORKERS; i++)
        cr_expect_eq(all[i].error.code, CB_OK, "%s %s", all[i].error.sqlstate,
                     all[i].error.message);
    test_fleet_limit(3, 0);
    cr_expect_eq(leased(), 0);
}
