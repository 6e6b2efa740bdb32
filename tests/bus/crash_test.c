/* kill -9 of a worker at random moments: whatever it was doing, each command ends, and ends
 * once. */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "claims.h"

TestSuite(crash, .init = bus_open, .fini = bus_close);

enum {
    ROUNDS = 15,
    COMMANDS = 3000,
    CLAIMED = 10,                                 /* at once */
    MOST_CLAIMS = COMMANDS / ROUNDS / CLAIMED - 1 /* of one worker: some are left for the heir */
};

/* Receives and settles with outcomes of every kind until it is killed. Says a byte once it has
 * settled something. */
static void work_until_killed(const char *conninfo, int started, unsigned seed)
{
    static const cb_outcome outcomes[] = { CB_SUCCESS,   CB_SUCCESS,     CB_SUCCESS,
                                           CB_TRANSIENT, CB_INTERRUPTED, CB_BUSINESS_RULE,
                                           CB_PERMANENT };
    cb_db *db = NULL;
    cb_receiver *receiver = NULL;
    cb_receive_options options = { .worker = "doomed", .vt_seconds = 0.2 };

    if (!cb_db_open(conninfo, &db, NULL) || !cb_receiver_open("fx", &options, &receiver, NULL))
        _exit(1);
    for (int n = 0; n < MOST_CLAIMS; n++) {
        cb_claim *claim = NULL;
        cb_settlement items[CLAIMED];
        if (!cb_receive(db, receiver, CLAIMED, &claim, NULL))
            _exit(1);
        for (size_t i = 0; i < cb_claim_count(claim); i++)
            items[i] = test_outcome(cb_claim_at(claim, i), outcomes[(unsigned)rand_r(&seed) % 7]);
        if (!cb_settle(db, "doomed", items, cb_claim_count(claim), NULL))
            _exit(1);
        cb_claim_free(claim);
        if (n == 0 && write(started, "!", 1) != 1)
            _exit(1);
    }
    for (;;)
        pause();
}

/* A worker of its own process, killed some 0 to 60 ms after it settled something. */
static void run_and_kill(const char *conninfo, unsigned *seed)
{
    int started[2], status = 0;
    char byte;

    cr_assert_eq(pipe(started), 0);
    pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        close(started[0]);
        work_until_killed(conninfo, started[1], *seed);
    }
    close(started[1]);
    cr_assert_eq(read(started[0], &byte, 1), 1, "the worker did not start");
    close(started[0]);
    long moment = rand_r(seed) % 60000;
    nanosleep(&(struct timespec){ .tv_nsec = moment * 1000 }, NULL);
    cr_assert_eq(kill(child, SIGKILL), 0);
    waitpid(child, &status, 0);
    cr_assert(WIFSIGNALED(status), "the worker failed by itself: exit %d", WEXITSTATUS(status));
}

/* Section 8 for every command: ended or in the TSQ, its row, message, audit and replies agree. */
static void expect_section_8(void)
{
    expect_value(
        bus.conn, "3000 ended",
        "SELECT count(*) || ' ended' FROM commandbus.command_metadata WHERE lease_owner IS NULL "
        "AND (completed_at IS NOT NULL AND status IN ('COMPLETED', 'FAILED') "
        "OR tsq_at IS NOT NULL AND status = 'IN_TROUBLESHOOTING_QUEUE')");
    expect_value(bus.conn, "0 left", "SELECT count(*) || ' left' FROM pgmq.q_fx__commands");
    expect_value(bus.conn, "t",
                 "SELECT (SELECT count(*) FROM pgmq.a_fx__commands) = (SELECT count(*) "
                 "FROM commandbus.command_metadata WHERE status <> 'COMPLETED')");
    expect_value(
        bus.conn, "0 wrong replies",
        "SELECT count(*) || ' wrong replies' FROM commandbus.command_metadata c "
        "LEFT JOIN (SELECT (message ->> 'command_id')::uuid command_id, count(*) n, "
        "bool_and((message ->> 'final')::boolean) final, min(message ->> 'outcome') outcome "
        "FROM pgmq.q_payments__replies GROUP BY 1) p USING (command_id) "
        "WHERE p.n IS DISTINCT FROM 1 OR p.final <> (c.status <> 'IN_TROUBLESHOOTING_QUEUE') "
        "OR p.outcome <> CASE c.status WHEN 'COMPLETED' THEN 'SUCCESS' ELSE 'FAILED' END");
    expect_value(
        bus.conn, "0 wrong trails",
        "SELECT count(*) || ' wrong trails' FROM commandbus.command_metadata c "
        "JOIN (SELECT command_id, count(*) FILTER (WHERE event_type = 'SENT') sent, "
        "count(*) FILTER (WHERE event_type = 'RECEIVED') received, "
        "count(*) FILTER (WHERE event_type = 'RELEASED') released, "
        "count(*) FILTER (WHERE event_type IN ('COMPLETED', 'BUSINESS_RULE_FAILED', 'MOVED_TO_TSQ')) ended "
        "FROM commandbus.audit GROUP BY 1) a USING (command_id) "
        "WHERE sent <> 1 OR ended <> 1 OR received - released <> c.attempts");
    expect_value(
        bus.conn, "0 poisoned",
        "SELECT count(*) || ' poisoned' FROM commandbus.audit WHERE event_type = 'POISON_ARCHIVED'");
}

Test(crash, a_worker_killed_again_and_again_loses_nothing_and_repeats_no_end) /* section 8 */
{
    unsigned seed = (unsigned)time(NULL);
    size_t drained = 0;
    fprintf(stderr, "crash: seed %u\n", seed);
    test_send(bus.db, COMMANDS, NULL);

    for (int round = 0; round < ROUNDS; round++)
        run_and_kill(bus.conninfo, &seed);
    /* Its last statement may still run: a session ends when it finds that nobody listens. */
    wait_until(
        bus.conn,
        "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = current_database() "
        "AND state <> 'idle' AND pid <> pg_backend_pid() AND backend_type = 'client backend'");
    long interrupted = test_number(bus.conn,
                                   "SELECT count(*) FROM commandbus.command_metadata "
                                   "WHERE status = 'IN_PROGRESS'",
                                   NULL);
    cr_expect_gt(
        test_number(bus.conn,
                    "SELECT count(*) FROM commandbus.command_metadata WHERE status = 'COMPLETED'",
                    NULL),
        0, "every worker died before it had done anything");
    while (test_number(bus.conn, "SELECT count(*) FROM pgmq.q_fx__commands", NULL) > 0)
        drained += test_run_all(bus.db, "heir", 500);

    cr_log_info("%ld were in progress when their worker died, %zu were left", interrupted, drained);
    cr_expect_gt(drained, 0, "nothing was left to the heir");
    expect_section_8();
}
