/* WK-11 of the worker's acceptance criteria: 1,000 handlers that block for a second, in one
 * instance. */
#include "worker_bench.h"

enum {
    SLOTS = 1000
};

void bench_wk11(const worker_bench *b)
{
    backlog_kind sleep = { "Sleep", "{\"ms\": 1000}", true };
    long n = b->quick ? 3000 : 10000;
    char name[64];

    bench_say("WK-11");
    instance i = instance_start(b->conn, &(instance_options){ .set = "sample", .slots = SLOTS });
    instance_pause(&i);
    backlog_send(b->conn, &sleep, n);
    snprintf(name, sizeof name, "%ld commands that block 1 s, %d slots, s", n, SLOTS);
    bench_put_most(b->to, name, backlog_drain(b->conn, &i, 120), b->quick ? 0 : 13);
    backlog_expect(b->conn, n, n);
    instance_stop(&i);
}
