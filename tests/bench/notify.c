/* What NOTIFY costs senders at full speed. A commit with a notification waits for every other such
 * commit, so a worker that is kept busy must not ask for any; one that only polls never does.
 * Beside them: nobody there at all, and somebody who always sleeps, so that every commit
 * notifies. */
#include "worker_bench.h"

enum {
    CONNECTIONS = 8
};
static const double slice = 1.5;

typedef enum {
    NOBODY,
    WOKEN,
    POLLING,
    ASLEEP,
    STATES
} state;

static const char *const names[] = {
    [NOBODY] = "send, 8 connections, no worker",
    [WOKEN] = "send, 8 connections, a busy worker",
    [POLLING] = "send, 8 connections, a busy worker that only polls",
    [ASLEEP] = "send, 8 connections, a notification in every commit",
};

/* From nothing: a backlog would keep the worker too busy to ever want a notification. */
static void run_state(PGconn *conn, state s, send_rival *senders, bench_rival *r, long *settled)
{
    instance_options options = { .set = "sample", .slots = 100, .polls = s == POLLING };
    bool worker = s == WOKEN || s == POLLING;
    instance i;

    backlog_clear(conn);
    bench_exec(conn, "TRUNCATE commandbus.sleeper");
    if (s == ASLEEP)
        bench_exec(conn, "SELECT commandbus.sleep_announce('nobody', ARRAY['" BENCH_DOMAIN
                         "__commands'], 3600)");
    if (worker)
        i = instance_start(conn, &options);
    double start = bench_now();
    r->done += senders_run(senders, start + slice);
    r->seconds += bench_now() - start;
    *settled += backlog_count(conn, "COMPLETED");
    if (worker)
        instance_stop(&i);
}

static void put_settled(json_object *to, const char *name, long settled, const bench_rival *r)
{
    bench_rival done = { .name = name, .done = settled, .seconds = r->seconds };

    bench_put_rate(to, &done);
    bench_say("  %-56s %.0f", name, bench_rate(&done));
}

void bench_notify(const worker_bench *b)
{
    send_rival *senders = senders_open(CONNECTIONS, "Noop");
    bench_rival rivals[STATES] = { 0 };
    long settled[STATES] = { 0 };
    int rounds = b->quick ? 2 : 6;

    bench_say("sending at full speed, per second");
    for (int round = 0; round < rounds; round++) {
        for (state s = 0; s < STATES; s++) {
            /* Those without a goal need not be known to a few per cent. */
            if (round > 2 && (s == NOBODY || s == ASLEEP))
                continue;
            /* The first round warms up and is not counted. */
            if (round == 1) {
                rivals[s] = (bench_rival){ .name = names[s] };
                settled[s] = 0;
            }
            run_state(b->conn, s, senders, &rivals[s], &settled[s]);
        }
    }
    bench_exec(b->conn, "TRUNCATE commandbus.sleeper");
    for (state s = 0; s < STATES; s++) {
        bench_put_rate(b->to, &rivals[s]);
        bench_say("  %-56s %.0f", names[s], bench_rate(&rivals[s]));
    }
    put_settled(b->to, "settled meanwhile", settled[WOKEN], &rivals[WOKEN]);
    put_settled(b->to, "settled meanwhile by polling only", settled[POLLING], &rivals[POLLING]);
    bench_put_ratio(b->to, "send, a busy worker / one that only polls",
                    bench_rate(&rivals[WOKEN]) / bench_rate(&rivals[POLLING]), 0.95);
    bench_put_ratio(b->to, "send, a notification in every commit / none",
                    bench_rate(&rivals[ASLEEP]) / bench_rate(&rivals[NOBODY]), 0);
    senders_close(senders);
}
