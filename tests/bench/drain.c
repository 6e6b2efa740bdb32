/* How fast one worker finishes a backlog of commands that do nothing, with and without replies,
 * beside raw pgmq.read + pgmq.delete at batch 100 from one connection. */
#include "worker_bench.h"

static const int raw_batch = 100;
static const double raw_slice = 0.6;
/* Enough for a slice at the highest rate that this machine was seen to give. */
static const long raw_backlog = 40000;

typedef struct {
    int slots, prefetch;
    long commands; /* in one backlog: about a second's work */
    double goal;   /* with replies, as a ratio to raw */
} drain_case;

static const drain_case cases[] = {
    { .slots = 1, .commands = 1000 },
    { .slots = 10, .commands = 5000 },
    { .slots = 100, .commands = 20000, .goal = 0.6 },
    { .slots = 100, .prefetch = 100, .commands = 20000 },
    { .slots = 100, .prefetch = 1000, .commands = 30000 },
};

enum {
    RAW,
    REPLIES,
    SILENT,
    RIVALS
};

static void drain_once(PGconn *conn, const instance *i, bench_rival *r, bool replies, long n)
{
    backlog_kind kind = { "Noop", BENCH_PAYLOAD, replies };

    backlog_send(conn, &kind, n);
    r->seconds += backlog_drain(conn, i, 120);
    r->done += n;
}

/* Neither side starts from an empty table after the first round: both pay for what was deleted. */
static void raw_once(PGconn *conn, bench_rival *r, long *backlog)
{
    raw_life raw = { conn, raw_batch };

    raw_send(conn, raw_backlog - *backlog);
    double start = bench_now();
    long done = raw_run(&raw, start + raw_slice);
    r->seconds += bench_now() - start;
    r->done += done;
    *backlog = raw_backlog - done;
}

static void put(json_object *to, const drain_case *c, const char *what, bench_rival *rivals)
{
    char raw[96], replies[96], silent[96], ratio[96];

    snprintf(raw, sizeof raw, "pgmq.read + pgmq.delete, beside %s", what);
    snprintf(replies, sizeof replies, "drain, %s", what);
    snprintf(silent, sizeof silent, "drain without replies, %s", what);
    rivals[RAW].name = raw;
    rivals[REPLIES].name = replies;
    rivals[SILENT].name = silent;
    for (int i = 0; i < RIVALS; i++) {
        bench_put_rate(to, &rivals[i]);
        bench_say("  %-56s %.0f", rivals[i].name, bench_rate(&rivals[i]));
    }
    snprintf(ratio, sizeof ratio, "drain / raw, %s", what);
    bench_put_ratio(to, ratio, bench_rate(&rivals[REPLIES]) / bench_rate(&rivals[RAW]), c->goal);
    snprintf(ratio, sizeof ratio, "drain without replies / raw, %s", what);
    bench_put_ratio(to, ratio, bench_rate(&rivals[SILENT]) / bench_rate(&rivals[RAW]), 0);
}

static void drain(const worker_bench *b, const drain_case *c)
{
    instance_options options = { .set = "sample", .slots = c->slots, .prefetch = c->prefetch };
    bench_rival rivals[RIVALS] = { 0 };
    long raw_left = 0, n = b->quick ? c->commands / 5 : c->commands;
    int rounds = b->quick ? 2 : 4;
    char what[64];

    backlog_clear(b->conn);
    instance i = instance_start(b->conn, &options);
    instance_pause(&i);
    for (int round = 0; round < rounds; round++) {
        /* The first round warms caches, plans and the worker, and is not counted. */
        if (round == 1) {
            for (int r = 0; r < RIVALS; r++)
                rivals[r] = (bench_rival){ 0 };
        }
        raw_once(b->conn, &rivals[RAW], &raw_left);
        drain_once(b->conn, &i, &rivals[REPLIES], true, n);
        drain_once(b->conn, &i, &rivals[SILENT], false, n);
    }
    backlog_expect(b->conn, 2 * n * rounds, n * rounds);
    instance_stop(&i);

    snprintf(what, sizeof what, "concurrency %d", c->slots);
    if (c->prefetch)
        snprintf(what, sizeof what, "concurrency %d, prefetch %d", c->slots, c->prefetch);
    put(b->to, c, what, rivals);
}

void bench_drain(const worker_bench *b)
{
    bench_say("draining a backlog, per second");
    for (size_t i = 0; i < CB_COUNT(cases); i++)
        drain(b, &cases[i]);
}

void bench_drain_100(const worker_bench *b)
{
    bench_say("draining a backlog with 100 slots, per second");
    for (size_t i = 0; i < CB_COUNT(cases); i++) {
        if (cases[i].slots == 100)
            drain(b, &cases[i]);
    }
}
