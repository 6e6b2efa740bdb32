/* Processes that wait for a worker. See process_backlog.h. */
#include "process_backlog.h"

#include <stdlib.h>

static double number(PGconn *conn, const char *sql)
{
    PGresult *found = bench_query(conn, sql, 0, NULL);
    double value = PQntuples(found) ? strtod(PQgetvalue(found, 0, 0), NULL) : 0;

    PQclear(found);
    return value;
}

instance process_instance(PGconn *conn, int process_slots, int slots)
{
    static char text[8][100];
    const char *settings[16] = { "domains.payments.handlers=pace", "domains.fx.handlers=booking",
                                 "domains.risk.handlers=booking", "retention.commands=0" };
    int n = 4;

    snprintf(text[0], sizeof text[0], "domains.payments.concurrent-processes=%d", process_slots);
    snprintf(text[1], sizeof text[1], "domains.payments.concurrent-messages=1");
    snprintf(text[2], sizeof text[2], "domains.fx.concurrent-messages=%d", slots);
    snprintf(text[3], sizeof text[3], "domains.risk.concurrent-messages=%d", slots);
    for (int i = 0; i < 4; i++)
        settings[n++] = text[i];
    return instance_start(conn, &(instance_options){ .set = "pace", .settings = settings });
}

void processes_start(PGconn *conn, const char *type, long n, long steps)
{
    char count[24], how_many[24];
    const char *params[] = { type, count, how_many };

    snprintf(count, sizeof count, "%ld", n);
    snprintf(how_many, sizeof how_many, "%ld", steps);
    PQclear(bench_query(
        conn,
        "SELECT count(commandbus.start_process($1, jsonb_build_object('debitAccount', "
        "'DE02120300000000202051', 'creditAccount', 'US64SVBKUS6S3300958879', 'amount', '1250.00', "
        "'steps', $3::bigint))) FROM generate_series(1, $2::bigint)",
        3, params));
}

void processes_wait(PGconn *conn, double seconds)
{
    double until = bench_now() + seconds;

    /* By the index on wake_at, which an ended process has none of: asking must not cost what is
     * measured. One that waits for a reply has none either, so at the end all are asked. */
    while (number(conn,
                  "SELECT count(*) FROM (SELECT FROM commandbus.process_type t CROSS JOIN LATERAL ("
                  "SELECT FROM commandbus.process p WHERE p.process_type = t.process_type "
                  "AND p.wake_at IS NOT NULL ORDER BY p.wake_at LIMIT 1) p LIMIT 1) p") > 0 ||
           number(conn,
                  "SELECT count(*) FROM commandbus.process WHERE status NOT IN "
                  "('COMPLETED', 'COMPENSATED', 'CANCELED', 'FAILED', 'WAITING_FOR_TSQ')") > 0) {
        if (bench_now() > until)
            bench_die("processes are not done after %.0f s", seconds);
        bench_pause(0.02);
    }
    if (number(conn, "SELECT count(*) FROM commandbus.process WHERE status <> 'COMPLETED'") > 0)
        bench_die("processes have ended otherwise than COMPLETED");
}

double processes_drain(PGconn *conn, const instance *i, const char *type, long n, long steps)
{
    processes_start(conn, type, n, steps);
    double start = bench_now();
    instance_resume(i);
    processes_wait(conn, 300);
    double took = bench_now() - start;
    instance_pause(i);
    return took;
}

void processes_clear(PGconn *conn)
{
    bench_exec(conn, "TRUNCATE commandbus.process, commandbus.process_history, "
                     "commandbus.process_attempt, "
                     "commandbus.process_inbox, commandbus.process_event, "
                     "commandbus.command_metadata, commandbus.audit, pgmq.q_" BENCH_RAW_QUEUE);
}

server_cost server_cost_now(PGconn *conn)
{
    bench_exec(conn, "SELECT pg_stat_force_next_flush()");
    return (server_cost){
        .commits = number(conn, "SELECT sum(xact_commit) FROM pg_stat_database"),
        .wal_bytes = number(conn, "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn"),
    };
}
