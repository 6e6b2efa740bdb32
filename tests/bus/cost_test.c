/* What a call costs does not depend on history, nor on the plan that a session made when it was
 * young. */
#include "claims.h"

enum {
    HISTORY = 20000
};

static const char *const tables[] = { "commandbus.command_metadata", "commandbus.audit",
                                      "pgmq.q_fx__commands", "pgmq.a_fx__commands",
                                      "pgmq.q_payments__replies" };

/* A bus whose tables are never analysed. */
static void open_without_statistics(void)
{
    char sql[128];

    bus_open();
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        snprintf(sql, sizeof sql, "ALTER TABLE %s SET (autovacuum_enabled = off)", tables[i]);
        test_exec(bus.conn, sql);
    }
    test_exec(bus.conn, "CREATE TEMP TABLE mine (command_id uuid)");
    /* Looking around must not be counted among the walks. */
    test_exec(bus.conn, "SET enable_seqscan = off");
}

TestSuite(cost, .init = open_without_statistics, .fini = bus_close);

/* Blocks touched by one statement, planning not counted. */
static long blocks_of(PGconn *conn, const char *statement)
{
    char *sql = NULL;

    cr_assert_gt(
        asprintf(&sql, "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) %s", statement), 0);
    char *plan = test_value(conn, sql, NULL);
    const char *hit = strstr(plan, "Hit Blocks\": "), *read = strstr(plan, "Read Blocks\": ");
    cr_assert(hit && read, "%s", plan);
    long blocks = strtol(hit + strlen("Hit Blocks\": "), NULL, 10) +
                  strtol(read + strlen("Read Blocks\": "), NULL, 10);
    free(plan);
    free(sql);
    return blocks;
}

/* The life of ten commands, call by call. */
typedef struct {
    long received, extended, settled;
} life;

static life live_ten(void)
{
    life l;

    test_send(bus.db, 10, NULL);
    test_exec(bus.conn, "TRUNCATE mine");
    l.received = blocks_of(
        bus.conn, "INSERT INTO mine SELECT command_id FROM commandbus.receive('fx', 'w', 10)");
    l.extended = blocks_of(
        bus.conn, "SELECT commandbus.extend('fx', 'w', array_agg(command_id), array_agg(1), 30) "
                  "FROM mine");
    l.settled = blocks_of(
        bus.conn, "SELECT commandbus.settle('fx', 'w', array_agg(command_id), array_agg(1), "
                  "array_agg('SUCCESS'::text)) FROM mine");
    expect_value(bus.conn, "10",
                 "SELECT count(*) FROM commandbus.command_metadata "
                 "JOIN mine USING (command_id) WHERE status = 'COMPLETED'");
    return l;
}

static void expect_same(const char *what, long young, long old)
{
    cr_log_info("%s of 10 commands: %ld blocks at first, %ld after %d commands", what, young, old,
                HISTORY);
    /* Fuller indexes are one or two levels higher. */
    cr_expect_lt(old, 3 * young, "%s: %ld blocks at first, %ld after %d commands", what, young, old,
                 HISTORY);
}

Test(cost, of_a_command_is_the_same_after_twenty_thousand_in_the_same_sessions) /* BUS.19 */
{
    live_ten(); /* The first call of a session also reads the catalogue. */
    test_send(bus.db, 1, NULL);
    test_run_all(bus.db, "w", 1);
    life young = live_ten();

    for (int done = 0; done < HISTORY; done += 1000) {
        test_send(bus.db, 1000, NULL);
        cr_assert_eq(test_run_all(bus.db, "w", 1000), 1000);
    }
    life old = live_ten();

    expect_same("receive", young.received, old.received);
    expect_same("extend", young.extended, old.extended);
    expect_same("settle", young.settled, old.settled);
}

Test(cost, nothing_walks_through_a_table) /* BUS.19 */
{
    test_send(bus.db, 300, NULL);
    for (int i = 0; i < 30; i++)
        test_run_all(bus.db, "w", 10);
    live_ten();

    /* What a session did is counted when it ends, or is asked to. */
    cb_db_free(bus.db);
    bus.db = NULL;
    test_exec(bus.conn, "SELECT pg_stat_force_next_flush()");
    test_exec(bus.conn, "SELECT pg_stat_clear_snapshot()");

    expect_value(
        bus.conn, "",
        "SELECT string_agg(relname || ' ' || seq_scan, ', ') FROM pg_stat_user_tables "
        "WHERE seq_scan > 0 AND relname IN ('command_metadata', 'audit', 'q_fx__commands')");
}
