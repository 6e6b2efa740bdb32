/* tests/bench/run process: figures of the process runtime, as JSON on stdout, progress on
 * stderr. */
#include "process_backlog.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    PGconn *conn;
    json_object *to;
    bool quick;
} process_bench;

static const int raw_batch = 100;
static const double raw_slice = 0.6;
static const long raw_backlog = 40000;

enum {
    PROCESS_SLOTS = 200,
    SLOTS = 200
};

static void raw_once(PGconn *conn, bench_rival *r, long *left)
{
    raw_life raw = { conn, raw_batch };

    raw_send(conn, raw_backlog - *left);
    double start = bench_now();
    long done = raw_run(&raw, start + raw_slice);
    r->seconds += bench_now() - start;
    r->done += done;
    *left = raw_backlog - done;
}

/* A backlog of processes and raw PGMQ in turn; the first round is not counted. */
static void drain(const process_bench *b, const char *type, long n, double goal)
{
    bench_rival raw = { .name = "pgmq.read + pgmq.delete" }, ours = { .name = type };
    int rounds = b->quick ? 2 : 5;
    long left = 0;
    server_cost before = { 0 }, spent = { 0 };
    char name[100];

    processes_clear(b->conn);
    instance i = process_instance(b->conn, PROCESS_SLOTS, SLOTS);
    instance_pause(&i);
    for (int round = 0; round < rounds; round++) {
        if (round == 1)
            raw.done = ours.done = 0, raw.seconds = ours.seconds = 0;
        raw_once(b->conn, &raw, &left);
        processes_start(b->conn, type, n, 0);
        before = server_cost_now(b->conn);
        double start = bench_now();
        instance_resume(&i);
        processes_wait(b->conn, 300);
        ours.seconds += bench_now() - start;
        instance_pause(&i);
        ours.done += n;
        server_cost after = server_cost_now(b->conn);
        spent = (server_cost){ after.commits - before.commits, after.wal_bytes - before.wal_bytes };
    }
    instance_stop(&i);
    snprintf(name, sizeof name, "%s, processes", type);
    ours.name = name;
    bench_put_rate(b->to, &raw);
    bench_put_rate(b->to, &ours);
    bench_say("  %-40s %.0f/s beside raw %.0f/s", name, bench_rate(&ours), bench_rate(&raw));
    snprintf(name, sizeof name, "%s / raw", type);
    bench_put_ratio(b->to, name, bench_rate(&ours) / bench_rate(&raw), goal);
    snprintf(name, sizeof name, "%s, commits per process", type);
    bench_put_most(b->to, name, spent.commits / (double)n, 0);
    snprintf(name, sizeof name, "%s, WAL bytes per process", type);
    bench_put_most(b->to, name, spent.wal_bytes / (double)n, 0);
}

static void bench_five(const process_bench *b)
{
    bench_say("S4's five steps");
    drain(b, "Five", b->quick ? 500 : 3000, 0.06);
}

static void bench_locals(const process_bench *b)
{
    bench_say("three local steps");
    drain(b, "Locals", b->quick ? 2000 : 10000, 0);
}

/* The time of one process alone: of as many as fit into a second, the whole divided. */
static double one(const process_bench *b, const instance *i, const char *type, long steps,
                  int times)
{
    double took = 0;

    for (int k = 0; k < times; k++)
        took += processes_drain(b->conn, i, type, 1, steps);
    return took / times;
}

static void bench_linear(const process_bench *b)
{
    static const char *const types[] = { "Inline", "InlineDurable" };
    int times = b->quick ? 3 : 10;
    char name[100];

    bench_say("a thousand steps beside a hundred");
    processes_clear(b->conn);
    instance i = process_instance(b->conn, 2, 2);
    for (size_t t = 0; t < CB_COUNT(types); t++) {
        one(b, &i, types[t], 100, 2);
        double hundred = one(b, &i, types[t], 100, times),
               thousand = one(b, &i, types[t], 1000, times);
        bench_say("  %-20s %.1f ms, %.1f ms", types[t], hundred * 1e3, thousand * 1e3);
        snprintf(name, sizeof name, "%s, 100 steps, ms", types[t]);
        bench_put_most(b->to, name, hundred * 1e3, 0);
        snprintf(name, sizeof name, "%s, 1000 steps, ms", types[t]);
        bench_put_most(b->to, name, thousand * 1e3, 0);
        snprintf(name, sizeof name, "%s, 1000 steps / 100 steps", types[t]);
        bench_put_most(b->to, name, thousand / hundred, 12);
    }
    instance_stop(&i);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* From start_process to COMPLETED as the database's own clock has it, one process every 200 ms. */
static void bench_latency(const process_bench *b)
{
    enum {
        MOST = 200
    };
    int n = b->quick ? 20 : MOST;
    double took[MOST];

    bench_say("one process on an idle system");
    processes_clear(b->conn);
    instance i = process_instance(b->conn, 5, 5);
    bench_pause(0.5);
    for (int k = 0; k < n; k++) {
        processes_start(b->conn, "Five", 1, 0);
        processes_wait(b->conn, 10);
        bench_pause(0.2);
    }
    instance_stop(&i);
    PGresult *found = bench_query(
        b->conn,
        "SELECT extract(epoch FROM completed_at - created_at) * 1000 FROM commandbus.process", 0,
        NULL);
    n = PQntuples(found) < n ? PQntuples(found) : n;
    for (int k = 0; k < n; k++)
        took[k] = strtod(PQgetvalue(found, k, 0), NULL);
    PQclear(found);
    qsort(took, (size_t)n, sizeof *took, by_size);
    bench_say("  p50 %.1f ms, p99 %.1f ms", took[n / 2], took[n - 1 - n / 100]);
    bench_put_most(b->to, "Five, idle, start to COMPLETED p50, ms", took[n / 2], 12);
    bench_put_most(b->to, "Five, idle, start to COMPLETED p99, ms", took[n - 1 - n / 100], 0);
}

static const struct {
    const char *name;
    void (*run)(const process_bench *b);
} parts[] = {
    { "five", bench_five },
    { "locals", bench_locals },
    { "linear", bench_linear },
    { "latency", bench_latency },
};

static bool is_part(const char *name)
{
    for (size_t i = 0; i < CB_COUNT(parts); i++) {
        if (strcmp(parts[i].name, name) == 0)
            return true;
    }
    return false;
}

/* process_bench [PART] [--quick], in any order. */
int main(int argc, char **argv)
{
    process_bench b = { .to = json_object_new_object() };
    const char *only = NULL;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            b.quick = true;
        else if (!only && is_part(argv[i]))
            only = argv[i];
        else
            bench_die("'%s' is not part of the process benchmark: see tests/bench/run --help",
                      argv[i]);
    }
    b.conn = bench_prepare();
    for (size_t i = 0; i < CB_COUNT(parts); i++) {
        if (!only || strcmp(only, parts[i].name) == 0)
            parts[i].run(&b);
    }
    bench_print(b.to);
    json_object_put(b.to);
    PQfinish(b.conn);
    return 0;
}
