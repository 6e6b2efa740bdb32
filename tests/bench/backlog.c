/* Commands that wait for a worker. See backlog.h. */
#include "backlog.h"

#include "bench.h"

#include <stdlib.h>

#define QUEUE "pgmq.q_" BENCH_DOMAIN "__commands"

enum {
    CHUNK = 1000
};

void backlog_send(PGconn *conn, const backlog_kind *kind, long n)
{
    for (long left = n; left > 0; left -= CHUNK) {
        char count[16];
        snprintf(count, sizeof count, "%ld", left < CHUNK ? left : CHUNK);
        const char *params[] = { kind->command_type, kind->data,
                                 kind->replies ? BENCH_REPLIES : NULL, count };
        PQclear(bench_query(conn,
                            "SELECT count(*) FROM commandbus.send_many((SELECT jsonb_agg("
                            "jsonb_build_object('domain', '" BENCH_DOMAIN "', 'command_type', "
                            "$1::text, 'data', $2::jsonb, 'reply_to', $3::text)) "
                            "FROM generate_series(1, $4::integer)))",
                            4, params));
    }
}

static long number(PGconn *conn, const char *sql, const char *param)
{
    PGresult *found = bench_query(conn, sql, param ? 1 : 0, &param);
    long value = strtol(PQgetvalue(found, 0, 0), NULL, 10);

    PQclear(found);
    return value;
}

/* Asked from the end of the index: what was claimed last is there, and nobody walks past the
 * dead. */
static bool is_empty(PGconn *conn)
{
    PGresult *found = bench_query(conn, "SELECT FROM " QUEUE " ORDER BY vt DESC LIMIT 1", 0, NULL);
    bool empty = PQntuples(found) == 0;

    PQclear(found);
    return empty;
}

void backlog_wait(PGconn *conn, double seconds)
{
    double until = bench_now() + seconds;

    while (!is_empty(conn)) {
        if (bench_now() > until)
            bench_die("%ld commands are not settled after %.0f s", backlog_count(conn, "PENDING"),
                      seconds);
        bench_pause(0.005);
    }
}

double backlog_drain(PGconn *conn, const instance *i, double seconds)
{
    double start = bench_now();

    instance_resume(i);
    backlog_wait(conn, seconds);
    double took = bench_now() - start;
    instance_pause(i);
    return took;
}

long backlog_count(PGconn *conn, const char *status)
{
    return number(conn,
                  "SELECT count(*) FROM commandbus.command_metadata "
                  "WHERE status = $1::text::commandbus.command_status",
                  status);
}

void backlog_expect(PGconn *conn, long commands, long replies)
{
    long sent = number(conn, "SELECT count(*) FROM commandbus.command_metadata", NULL);
    long completed = backlog_count(conn, "COMPLETED");
    long answered = number(conn, "SELECT count(*) FROM pgmq.q_" BENCH_REPLIES, NULL);

    if (sent != commands || completed != commands || answered != replies)
        bench_die("of %ld commands %ld are there and %ld completed; %ld replies instead of %ld",
                  commands, sent, completed, answered, replies);
}

void backlog_clear(PGconn *conn)
{
    bench_exec(conn, "TRUNCATE commandbus.command_metadata, commandbus.audit, " QUEUE
                     ", pgmq.q_" BENCH_REPLIES ", pgmq.q_" BENCH_RAW_QUEUE);
}
