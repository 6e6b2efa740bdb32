/* The life of a command (receive, settle, reply, all audited) beside raw pgmq.read + pgmq.delete.
 *
 * "life" does one after the other on one connection, as raw does. "life, two connections" claims on
 * one and settles on another at the same time, as the worker does. */
#include "bench.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORKER "bench-worker"

struct life {
    int batch;
    cb_db *db;
    cb_receiver *receiver;
};

/* A fresh backlog, 1000 in a transaction so that not all of it is due at the same microsecond. */
void life_send(PGconn *conn, long n, double delay_seconds)
{
    char delay[32];
    const char *params[] = { BENCH_PAYLOAD, delay };

    snprintf(delay, sizeof delay, "%f", delay_seconds);
    for (long i = 0; i < n; i += 1000)
        PQclear(bench_query(conn,
                            "SELECT count(*) FROM commandbus.send_many((SELECT jsonb_agg("
                            "jsonb_build_object('domain', '" BENCH_DOMAIN
                            "', 'command_type', 'BookFx', "
                            "'reply_to', '" BENCH_REPLIES "', 'data', $1::jsonb, 'delay_seconds', "
                            "$2::float8)) FROM generate_series(1, 1000)))",
                            2, params));
}

void raw_send(PGconn *conn, long n)
{
    const char *params[] = { BENCH_RAW_MESSAGE };

    for (long i = 0; i < n; i += 1000)
        PQclear(bench_query(conn,
                            "SELECT count(*) FROM pgmq.send_batch('" BENCH_RAW_QUEUE
                            "', array_fill($1::jsonb, ARRAY[1000]))",
                            1, params));
}

life *life_open(int batch)
{
    life *l = calloc(1, sizeof *l);
    cb_error e;

    l->batch = batch;
    l->db = bench_open();
    if (!cb_receiver_open(BENCH_DOMAIN, &(cb_receive_options){ .worker = WORKER }, &l->receiver,
                          &e))
        bench_die("%s", e.message);
    return l;
}

void life_close(life *l)
{
    cb_receiver_free(l->receiver);
    cb_db_free(l->db);
    free(l);
}

static cb_claim *claim(life *l)
{
    cb_claim *claim = NULL;
    cb_error e;

    if (!cb_receive(l->db, l->receiver, l->batch, &claim, &e))
        bench_die("%s", e.message);
    return claim;
}

static void settle(cb_db *db, const cb_claim *claim)
{
    static _Thread_local cb_settlement items[1000];
    size_t n = cb_claim_count(claim);
    cb_error e;

    for (size_t i = 0; i < n; i++) {
        const cb_command *c = cb_claim_at(claim, i);
        items[i] = (cb_settlement){ .domain = BENCH_DOMAIN,
                                    .command_id = c->command_id,
                                    .lease_no = c->lease_no,
                                    .outcome = CB_SUCCESS,
                                    .result = BENCH_RESULT };
    }
    if (!cb_settle(db, WORKER, items, n, &e))
        bench_die("%s", e.message);
    for (size_t i = 0; i < n; i++) {
        if (items[i].verdict != CB_SETTLED)
            bench_die("a command was not settled: %s", cb_verdict_name(items[i].verdict));
    }
}

long life_run(void *life_, double until)
{
    life *l = life_;
    long done = 0;

    while (bench_now() < until) {
        cb_claim *c = claim(l);
        size_t n = cb_claim_count(c);
        if (n == 0)
            bench_die("the backlog was too small for the time");
        settle(l->db, c);
        cb_claim_free(c);
        done += (long)n;
    }
    return done;
}

/* One claim under way while the one before is settled. */
typedef struct {
    life *claims;
    cb_db *settles;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    cb_claim *waiting; /* claimed, not yet taken by the settler */
    bool ended;
    long done;
} overlapped;

static void *settle_claims(void *arg)
{
    overlapped *o = arg;

    for (;;) {
        pthread_mutex_lock(&o->lock);
        while (!o->waiting && !o->ended)
            pthread_cond_wait(&o->moved, &o->lock);
        cb_claim *c = o->waiting;
        o->waiting = NULL;
        pthread_cond_signal(&o->moved);
        pthread_mutex_unlock(&o->lock);
        if (!c)
            return NULL;
        settle(o->settles, c);
        o->done += (long)cb_claim_count(c);
        cb_claim_free(c);
    }
}

static long overlapped_run(void *self, double until)
{
    overlapped *o = self;
    pthread_t settler;

    o->ended = false;
    o->done = 0;
    if (pthread_create(&settler, NULL, settle_claims, o) != 0)
        bench_die("no thread");
    while (bench_now() < until) {
        cb_claim *c = claim(o->claims);
        if (cb_claim_count(c) == 0)
            bench_die("the backlog was too small for the time");
        pthread_mutex_lock(&o->lock);
        while (o->waiting)
            pthread_cond_wait(&o->moved, &o->lock);
        o->waiting = c;
        pthread_cond_signal(&o->moved);
        pthread_mutex_unlock(&o->lock);
    }
    pthread_mutex_lock(&o->lock);
    o->ended = true;
    pthread_cond_signal(&o->moved);
    pthread_mutex_unlock(&o->lock);
    pthread_join(settler, NULL);
    return o->done;
}

long raw_run(void *self, double until)
{
    raw_life *l = self;
    char batch[16], *ids = malloc(1000 * 24);
    long done = 0;

    snprintf(batch, sizeof batch, "%d", l->batch);
    while (bench_now() < until) {
        const char *params[] = { batch };
        PGresult *read = bench_query(
            l->conn, "SELECT * FROM pgmq.read('" BENCH_RAW_QUEUE "', 30, $1::integer)", 1, params);
        int n = PQntuples(read);
        if (n == 0)
            bench_die("the raw backlog was too small for the time");
        char *at = ids;
        for (int i = 0; i < n; i++)
            at += sprintf(at, "%c%s", i ? ',' : '{', PQgetvalue(read, i, 0));
        strcpy(at, "}");
        params[0] = ids;
        PQclear(bench_query(l->conn, "SELECT pgmq.delete('" BENCH_RAW_QUEUE "', $1::bigint[])", 1,
                            params));
        PQclear(read);
        done += n;
    }
    free(ids);
    return done;
}

static void at_batch(json_object *to, int batch, double goal)
{
    PGconn *conn = bench_pq();
    raw_life raw = { conn, batch };
    life *one = life_open(batch);
    overlapped two = { .claims = life_open(batch),
                       .settles = bench_open(),
                       .lock = PTHREAD_MUTEX_INITIALIZER,
                       .moved = PTHREAD_COND_INITIALIZER };
    char raw_name[64], one_name[64], two_name[64], ratio_name[96];
    snprintf(raw_name, sizeof raw_name, "pgmq.read + pgmq.delete, batch %d", batch);
    snprintf(one_name, sizeof one_name, "life, batch %d", batch);
    snprintf(two_name, sizeof two_name, "life, two connections, batch %d", batch);
    bench_rival rivals[] = { { raw_name, raw_run, &raw, 0, 0 },
                             { one_name, life_run, one, 0, 0 },
                             { two_name, overlapped_run, &two, 0, 0 } };

    /* Enough for every slice at the highest rate that this machine was seen to give. */
    bench_exec(conn, "TRUNCATE pgmq.q_" BENCH_RAW_QUEUE ", pgmq.q_" BENCH_REPLIES);
    long rate = batch == 1 ? 4000 : batch == 10 ? 20000 : 60000;
    raw_send(conn, rate * 5);
    life_send(conn, rate * 7, 0);
    bench_in_turn(rivals, 3, 7, 0.6);

    for (int i = 0; i < 3; i++)
        bench_put_rate(to, &rivals[i]);
    snprintf(ratio_name, sizeof ratio_name, "life / raw, batch %d", batch);
    bench_put_ratio(to, ratio_name, bench_rate(&rivals[1]) / bench_rate(&rivals[0]), goal);
    snprintf(ratio_name, sizeof ratio_name, "life on two connections / raw, batch %d", batch);
    bench_put_ratio(to, ratio_name, bench_rate(&rivals[2]) / bench_rate(&rivals[0]), 0);
    life_close(one);
    life_close(two.claims);
    cb_db_free(two.settles);
    PQfinish(conn);
}

void bench_life(json_object *to)
{
    bench_say("the life of a command, per second");
    at_batch(to, 1, 0);
    at_batch(to, 10, 0);
    at_batch(to, 100, 0.6);
    at_batch(to, 1000, 0.75);
}
