/* Does the cost of a life grow with what lies in the tables? */
#include "bench.h"

#define BATCH 100

/* Minutes lie between two of these, so each is measured in turn with raw PGMQ,
 * which our history does not touch: what is compared is the ratio to that. */
static double rate_now(PGconn *conn, const char *what, json_object *to)
{
    life *l = life_open(BATCH);
    raw_life raw = { conn, BATCH };
    bench_rival rivals[] = { { "raw", raw_run, &raw, 0, 0 }, { what, life_run, l, 0, 0 } };

    bench_exec(conn, "TRUNCATE pgmq.q_" BENCH_RAW_QUEUE);
    raw_send(conn, 300000);
    life_send(conn, 120000, 0);
    bench_in_turn(rivals, 2, 9, 0.6);
    bench_put_rate(to, &rivals[1]);
    life_close(l);
    return bench_rate(&rivals[1]) / bench_rate(&rivals[0]);
}

/* Finished commands with their trail, as a month of work leaves them. */
static void add_history(PGconn *conn)
{
    bench_exec(
        conn,
        "INSERT INTO commandbus.command_metadata (command_id, correlation_id, msg_id, lease_no, "
        "created_at, updated_at, completed_at, status, attempts, max_attempts, timeout_seconds, "
        "domain, command_type, reply_to, result, data) "
        "SELECT gen_random_uuid(), gen_random_uuid(), -n, 1, now() - n * interval '1 second', "
        "now() - n * interval '1 second', now() - n * interval '1 second', 'COMPLETED', 1, 3, 30, "
        "'" BENCH_DOMAIN "', 'BookFx', '" BENCH_REPLIES "', '" BENCH_RESULT "', "
        "'" BENCH_PAYLOAD "' FROM generate_series(1, 1000000) n");
    bench_exec(
        conn,
        "INSERT INTO commandbus.audit (at, command_id, lease_no, attempt, domain, "
        "event_type, worker) SELECT c.created_at, c.command_id, 1, 1, c.domain, e, 'past' "
        "FROM commandbus.command_metadata c, unnest(ARRAY['SENT', 'RECEIVED', 'COMPLETED']) e "
        "WHERE c.msg_id < 0");
}

void bench_history(json_object *to)
{
    PGconn *conn = bench_pq();

    bench_say("with history, per second (batch %d)", BATCH);
    bench_exec(conn, "TRUNCATE commandbus.command_metadata, commandbus.audit, "
                     "pgmq.q_" BENCH_DOMAIN "__commands, pgmq.q_" BENCH_REPLIES);
    double before = rate_now(conn, "life, empty tables", to);

    bench_say("  adding 1,000,000 finished commands");
    add_history(conn);
    /* What autovacuum would do sooner or later, out of the measurement. */
    bench_exec(conn, "VACUUM (ANALYZE) commandbus.command_metadata, commandbus.audit");
    bench_exec(conn, "CHECKPOINT");
    double after = rate_now(conn, "life, 1,000,000 finished commands", to);
    bench_put_ratio(to, "with 1,000,000 finished / with none", after / before, 0.85);

    life_send(conn, 100000, 86400);
    double crowded = rate_now(conn, "life, and 100,000 invisible messages", to);
    bench_put_ratio(to, "with 100,000 invisible / without", crowded / after, 0.8);
    PQfinish(conn);
}
