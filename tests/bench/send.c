/* Sending, beside raw PGMQ: one at a time from 1 and 8 connections, and 1000 in a call. */
#include "bench.h"

#include <pthread.h>
#include <stdlib.h>

#define MANY 1000

struct send_rival {
    int connections;
    struct sender {
        PGconn *conn;
        const char *command_type; /* NULL: raw PGMQ */
        double until;
        long done;
        pthread_t thread;
    } senders[8];
};

/* Both are one statement with text parameters, as a client without prepared statements sends it. */
static void *send_until(void *arg)
{
    struct sender *s = arg;
    const char *const ours[] = { BENCH_PAYLOAD, s->command_type };
    static const char *const raw[] = { BENCH_RAW_MESSAGE };

    for (s->done = 0; bench_now() < s->until; s->done++)
        PQclear(s->command_type
                    ? bench_query(s->conn,
                                  "SELECT commandbus.send('" BENCH_DOMAIN "', $2, $1::jsonb, "
                                  "reply_to => '" BENCH_REPLIES "')",
                                  2, ours)
                    : bench_query(s->conn, "SELECT pgmq.send('" BENCH_RAW_QUEUE "', $1::jsonb)", 1,
                                  raw));
    return NULL;
}

long senders_run(void *self, double until)
{
    send_rival *r = self;
    long done = 0;

    for (int i = 0; i < r->connections; i++) {
        r->senders[i].until = until;
        if (pthread_create(&r->senders[i].thread, NULL, send_until, &r->senders[i]) != 0)
            bench_die("no thread");
    }
    for (int i = 0; i < r->connections; i++) {
        pthread_join(r->senders[i].thread, NULL);
        done += r->senders[i].done;
    }
    return done;
}

send_rival *senders_open(int connections, const char *command_type)
{
    send_rival *r = calloc(1, sizeof *r);

    r->connections = connections;
    for (int i = 0; i < connections; i++)
        r->senders[i] = (struct sender){ .conn = bench_pq(), .command_type = command_type };
    return r;
}

void senders_close(send_rival *r)
{
    for (int i = 0; i < r->connections; i++)
        PQfinish(r->senders[i].conn);
    free(r);
}

static void one_at_a_time(json_object *to, int connections, double goal)
{
    char raw_name[64], our_name[64], ratio_name[64];

    snprintf(raw_name, sizeof raw_name, "pgmq.send, %d connections", connections);
    snprintf(our_name, sizeof our_name, "send, %d connections", connections);
    snprintf(ratio_name, sizeof ratio_name, "send / pgmq.send, %d connections", connections);
    send_rival *raw = senders_open(connections, NULL), *ours = senders_open(connections, "BookFx");
    bench_rival rivals[] = { { raw_name, senders_run, raw, 0, 0 },
                             { our_name, senders_run, ours, 0, 0 } };

    bench_in_turn(rivals, 2, 9, 1.0);

    bench_put_rate(to, &rivals[0]);
    bench_put_rate(to, &rivals[1]);
    bench_put_ratio(to, ratio_name, bench_rate(&rivals[1]) / bench_rate(&rivals[0]), goal);
    senders_close(raw);
    senders_close(ours);
}

static long send_many_ours(void *self, double until)
{
    static cb_send commands[MANY];
    cb_error e;
    long done = 0;

    for (int i = 0; i < MANY; i++)
        commands[i] = (cb_send){ .domain = BENCH_DOMAIN,
                                 .command_type = "BookFx",
                                 .data = BENCH_PAYLOAD,
                                 .reply_to = BENCH_REPLIES };
    for (; bench_now() < until; done += MANY) {
        if (!cb_send_many(self, commands, MANY, NULL, NULL, NULL, &e))
            bench_die("%s", e.message);
    }
    return done;
}

/* An array literal of MANY copies of the message. */
static char *raw_batch(void)
{
    char *text = malloc(MANY * 1024), *at = text;

    *at++ = '{';
    for (int i = 0; i < MANY; i++) {
        if (i)
            *at++ = ',';
        *at++ = '"';
        for (const char *c = BENCH_RAW_MESSAGE; *c; c++) {
            if (*c == '"')
                *at++ = '\\';
            *at++ = *c;
        }
        *at++ = '"';
    }
    *at++ = '}';
    *at = '\0';
    return text;
}

static long send_many_raw(void *self, double until)
{
    char *batch = raw_batch();
    const char *params[] = { batch };
    long done = 0;

    for (; bench_now() < until; done += MANY)
        PQclear(bench_query(self, "SELECT pgmq.send_batch('" BENCH_RAW_QUEUE "', $1::jsonb[])", 1,
                            params));
    free(batch);
    return done;
}

static void many_in_a_call(json_object *to)
{
    PGconn *raw = bench_pq();
    cb_db *ours = bench_open();
    bench_rival rivals[] = { { "pgmq.send_batch of 1000", send_many_raw, raw, 0, 0 },
                             { "send_many of 1000", send_many_ours, ours, 0, 0 } };

    bench_in_turn(rivals, 2, 9, 1.0);

    bench_put_rate(to, &rivals[0]);
    bench_put_rate(to, &rivals[1]);
    bench_put_ratio(to, "send_many / pgmq.send_batch",
                    bench_rate(&rivals[1]) / bench_rate(&rivals[0]), 0.5);
    cb_db_free(ours);
    PQfinish(raw);
}

void bench_send(json_object *to)
{
    bench_say("sending, per second");
    one_at_a_time(to, 1, 0);
    one_at_a_time(to, 8, 0.6);
    many_in_a_call(to);
}
