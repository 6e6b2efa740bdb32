/* A client that dies inside send_many leaves all or nothing of each chunk. */
#include "expect.h"
#include "fixture.h"
#include "seed.h"
#include "wait.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    COMMANDS = 2000,
    CHUNK = 500
};

static cb_send commands[COMMANDS];
static cb_uuid ids[COMMANDS];

/* New ids; "i" of the data says which chunk a command belongs to. */
static void make_commands(void)
{
    static char data[COMMANDS][32];

    for (int i = 0; i < COMMANDS; i++) {
        ids[i] = cb_uuid_new();
        snprintf(data[i], sizeof data[i], "{\"i\": %d}", i);
        commands[i] = (cb_send){
            .domain = "fx", .command_type = "BookFx", .command_id = ids[i].text, .data = data[i]
        };
    }
}

TestSuite(killed_client, .init = bus_open, .fini = bus_close);

/* In a process of its own: connects as 'victim', tells so through the pipe, sends. */
static void send_as_victim(int ready)
{
    char conninfo[1024];
    cb_error e;
    cb_db *db;

    snprintf(conninfo, sizeof conninfo, "%s application_name='victim'", bus.conninfo);
    if (!cb_db_open(conninfo, &db, &e) || write(ready, "!", 1) != 1)
        _exit(1);
    _exit(!cb_send_many(db, commands, COMMANDS, &(cb_send_many_options){ .chunk = CHUNK }, NULL,
                        NULL, &e));
}

static pid_t start_victim(void)
{
    int ready[2];
    char byte;

    cr_assert_eq(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0)
        send_as_victim(ready[1]);
    close(ready[1]);
    cr_assert_eq(read(ready[0], &byte, 1), 1, "the victim did not get as far as sending");
    close(ready[0]);
    return child;
}

/* Kills it and waits until the server has noticed and ended what was going on. */
static bool kill_victim(pid_t child)
{
    int status;

    kill(child, SIGKILL);
    cr_assert_eq(waitpid(child, &status, 0), child);
    wait_until(bus.conn, "SELECT count(*) = 0 FROM pg_stat_activity "
                         "WHERE application_name = 'victim' AND datname = current_database()");
    return WIFSIGNALED(status);
}

/* How many commands there are, if each chunk is there as a whole or not at all. */
static long count_whole_chunks(void)
{
    expect_number(bus.conn, 0,
                  "SELECT count(*) FROM (SELECT (data ->> 'i')::integer / 500 AS chunk "
                  "FROM commandbus.command_metadata GROUP BY 1 HAVING count(*) <> 500) torn");
    expect_value(bus.conn, "t",
                 "SELECT (SELECT count(*) FROM commandbus.command_metadata) = "
                 "(SELECT count(*) FROM commandbus.command_metadata "
                 " JOIN pgmq.q_fx__commands USING (msg_id)) "
                 "AND (SELECT count(*) FROM commandbus.command_metadata) = "
                 "(SELECT count(*) FROM pgmq.q_fx__commands) "
                 "AND (SELECT count(*) FROM commandbus.command_metadata) = "
                 "(SELECT count(*) FROM commandbus.audit WHERE event_type = 'SENT')");
    return test_number(bus.conn, "SELECT count(*) FROM commandbus.command_metadata", NULL);
}

/* BUS.4 */
Test(killed_client, at_any_moment_of_send_many_leaves_whole_chunks)
{
    int killed = 0;
    unsigned seed = test_seed();

    for (int round = 0; round < 10; round++) {
        make_commands();
        pid_t child = start_victim();
        struct timespec pause = { 0, test_random(&seed, 80) * 1000000L };
        nanosleep(&pause, NULL); /* Not to wait for anything: to hit any moment of the call. */
        killed += kill_victim(child);

        long sent = count_whole_chunks();
        cr_assert_eq(sent % CHUNK, 0, "%ld commands", sent);
        test_exec(bus.conn, "TRUNCATE commandbus.command_metadata, commandbus.audit, "
                            "pgmq.q_fx__commands");
    }

    cr_assert_gt(killed, 0, "no victim was killed before it had finished");
}

/* Makes the victim stop in the middle of its third chunk: somebody holds one of its ids. */
static pid_t start_victim_and_stop_it_in_the_third_chunk(PGconn *holder)
{
    char sql[512];

    make_commands();
    snprintf(sql, sizeof sql, "BEGIN; SELECT commandbus.send('fx', 'Other', command_id => '%s')",
             ids[2 * CHUNK + CHUNK / 2].text);
    test_exec(holder, sql);
    pid_t child = start_victim();
    wait_until(bus.conn, "SELECT count(*) = 1 FROM pg_stat_activity "
                         "WHERE application_name = 'victim' AND wait_event_type = 'Lock'");
    return child;
}

/* BUS.4: the server goes on with what it has until it finds nobody to answer to */
Test(killed_client, in_the_middle_of_a_chunk_leaves_all_of_it_or_nothing)
{
    PGconn *holder = test_pq_open(bus.conninfo);
    pid_t child = start_victim_and_stop_it_in_the_third_chunk(holder);

    kill(child, SIGKILL);
    test_exec(holder, "ROLLBACK");
    cr_assert(kill_victim(child));

    long sent = count_whole_chunks();
    cr_assert(sent == 2 * CHUNK || sent == 3 * CHUNK, "%ld commands", sent);
    PQfinish(holder);
}

/* BUS.4 */
Test(killed_client, in_the_middle_of_a_chunk_that_turns_out_refused_leaves_nothing_of_it)
{
    PGconn *holder = test_pq_open(bus.conninfo);
    pid_t child = start_victim_and_stop_it_in_the_third_chunk(holder);

    kill(child, SIGKILL);
    test_exec(holder, "COMMIT");
    cr_assert(kill_victim(child));

    test_exec(bus.conn,
              "DELETE FROM commandbus.audit USING commandbus.command_metadata c "
              "WHERE audit.command_id = c.command_id AND c.command_type = 'Other';"
              "DELETE FROM pgmq.q_fx__commands WHERE message ->> 'command_type' = 'Other';"
              "DELETE FROM commandbus.command_metadata WHERE command_type = 'Other'");
    cr_assert_eq(count_whole_chunks(), 2 * CHUNK);
    PQfinish(holder);
}

/* BUS.4: the connection dies, not the client: the server rolls back what was not finished */
Test(killed_client, whose_connection_is_terminated_in_a_chunk_leaves_nothing_of_it)
{
    PGconn *holder = test_pq_open(bus.conninfo);
    pid_t child = start_victim_and_stop_it_in_the_third_chunk(holder);

    test_exec(bus.conn, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                        "WHERE datname = current_database() AND application_name = 'victim'");
    kill_victim(child);
    test_exec(holder, "ROLLBACK");

    cr_assert_eq(count_whole_chunks(), 2 * CHUNK);
    PQfinish(holder);
}
