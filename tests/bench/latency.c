/* How soon a handler starts after a command was sent, on a worker that has little to do.
 *
 * The handler gives back the monotonic time at its entry; the sender notes the same clock before
 * and after each send. From "after" on it is the latency proper, send committed to handler started.
 * A handler may start before the sender has read the answer to its COMMIT: such a latency is below
 * 0 and stays so, the time from before the send bounds it from above. */
#include "worker_bench.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

enum {
    RATE_OF_ONE = 100, /* one connection keeps its times at that many a second */
    SENDERS = 5,
};

typedef struct {
    cb_uuid id;
    double called, returned, started;
} sent_command;

typedef struct {
    int rate;
    double seconds;
    double goal_p50, goal_p99; /* ms; 0: none */
} latency_case;

static const latency_case cases[] = {
    { .rate = 50, .seconds = 20, .goal_p50 = 1, .goal_p99 = 4 },
    { .rate = 500, .seconds = 8 },
};

/* One connection, one thread: a part of the commands at a part of the rate. */
typedef struct {
    cb_db *db;
    sent_command *all;
    size_t n;
    double rate;
    unsigned seed;
    pthread_t thread;
} sender;

/* Around the rate, but never in step with anything that ticks in the worker. */
static double gap(sender *s)
{
    return (0.5 + (double)rand_r(&s->seed) / RAND_MAX) / s->rate;
}

static void *send_paced(void *arg)
{
    cb_send command = { .domain = BENCH_DOMAIN, .command_type = "Started", .data = BENCH_PAYLOAD };
    sender *s = arg;
    double due = bench_now();
    cb_error e;

    for (size_t i = 0; i < s->n; i++) {
        due += gap(s);
        double early = due - bench_now();
        if (early > 0)
            bench_pause(early);
        s->all[i].called = bench_now();
        if (!cb_send_command(s->db, &command, &s->all[i].id, &e))
            bench_die("%s", e.message);
        s->all[i].returned = bench_now();
    }
    return NULL;
}

/* Sends n commands; returns how many a second it really were. */
static double send_all(sent_command *all, size_t n, int rate)
{
    sender senders[SENDERS];
    int used = rate > RATE_OF_ONE ? SENDERS : 1;
    size_t share = n / (size_t)used;
    double start = bench_now();

    for (int i = 0; i < used; i++) {
        sender *s = &senders[i];
        *s = (sender){ .db = bench_open(),
                       .all = all + (size_t)i * share,
                       .n = share,
                       .rate = (double)rate / used,
                       .seed = 4711 + (unsigned)i };
        if (pthread_create(&s->thread, NULL, send_paced, s) != 0)
            bench_die("no thread");
    }
    for (int i = 0; i < used; i++) {
        pthread_join(senders[i].thread, NULL);
        cb_db_free(senders[i].db);
    }
    return (double)n / (bench_now() - start);
}

static void read_started(PGconn *conn, sent_command *all, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *params[] = { all[i].id.text };
        PGresult *found = bench_query(conn,
                                      "SELECT result->>'started_ns' FROM "
                                      "commandbus.command_metadata WHERE command_id = $1::uuid",
                                      1, params);
        all[i].started = strtod(PQgetvalue(found, 0, 0), NULL) / 1e9;
        PQclear(found);
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const double *sorted, size_t n, double q)
{
    size_t at = (size_t)ceil(q * (double)n);
    return sorted[at > 0 ? at - 1 : 0];
}

/* `what` with the rate and the figure behind it. */
static void put(json_object *to, const char *what, const latency_case *c, double *ms, size_t n)
{
    const struct {
        const char *name;
        double q, goal;
    } figures[] = { { "p50", 0.5, c->goal_p50 }, { "p99", 0.99, c->goal_p99 }, { "max", 1, 0 } };
    char name[96];

    qsort(ms, n, sizeof *ms, compare);
    for (size_t i = 0; i < CB_COUNT(figures); i++) {
        snprintf(name, sizeof name, "%s, %d/s, %s ms", what, c->rate, figures[i].name);
        bench_put_most(to, name, quantile(ms, n, figures[i].q), figures[i].goal);
    }
}

static void latency(const worker_bench *b, const latency_case *c)
{
    const latency_case without_goal = { .rate = c->rate };
    size_t n = (size_t)(c->rate * (b->quick ? c->seconds / 5 : c->seconds));
    sent_command *all = calloc(n, sizeof *all);
    double *ms = calloc(n, sizeof *ms);
    char name[96];

    double rate = send_all(all, n, c->rate);
    backlog_wait(b->conn, 30);
    read_started(b->conn, all, n);

    for (size_t i = 0; i < n; i++)
        ms[i] = (all[i].started - all[i].returned) * 1000;
    put(b->to, "send committed to handler", c, ms, n);
    for (size_t i = 0; i < n; i++)
        ms[i] = (all[i].started - all[i].called) * 1000;
    put(b->to, "send called to handler", &without_goal, ms, n);
    /* Senders that could not keep up measured something else. */
    snprintf(name, sizeof name, "sent per second for %d/s", c->rate);
    bench_put_most(b->to, name, rate, 0);
    free(ms);
    free(all);
}

/* What the least that a worker can do takes at that rate: one message read, and committed. A server
 * that had nothing to do for a while answers later than one under load, and so does its disk. */
static void bare_read(const worker_bench *b, const latency_case *c)
{
    const latency_case without_goal = { .rate = c->rate };
    size_t n = (size_t)(c->rate * (b->quick ? c->seconds / 5 : c->seconds) / 4);
    sender pace = { .rate = c->rate, .seed = 4711 };
    double *ms = calloc(n, sizeof *ms);
    char count[24];

    snprintf(count, sizeof count, "%zu", n);
    PQclear(bench_query(b->conn,
                        "SELECT count(*) FROM generate_series(1, $1::integer), "
                        "LATERAL pgmq.send('" BENCH_RAW_QUEUE "', '" BENCH_PAYLOAD "')",
                        1, (const char *[]){ count }));
    for (size_t i = 0; i < n; i++) {
        bench_pause(gap(&pace));
        double called = bench_now();
        bench_exec(b->conn, "SELECT msg_id FROM pgmq.read('" BENCH_RAW_QUEUE "', 600, 1)");
        ms[i] = (bench_now() - called) * 1000;
    }
    bench_exec(b->conn, "TRUNCATE pgmq.q_" BENCH_RAW_QUEUE);
    put(b->to, "pgmq.read of one message, beside", &without_goal, ms, n);
    free(ms);
}

static void warm_up(PGconn *conn)
{
    sent_command all[50];

    send_all(all, CB_COUNT(all), 50);
    backlog_wait(conn, 30);
}

static void latencies(const worker_bench *b, size_t n)
{
    instance i = instance_start(b->conn, &(instance_options){ .set = "trial", .slots = 100 });

    bench_say("latency");
    warm_up(b->conn);
    for (size_t c = 0; c < n; c++) {
        latency(b, &cases[c]);
        bare_read(b, &cases[c]);
    }
    instance_stop(&i);
}

void bench_latency(const worker_bench *b)
{
    latencies(b, CB_COUNT(cases));
}

void bench_latency_50(const worker_bench *b)
{
    latencies(b, 1); /* the first case */
}
