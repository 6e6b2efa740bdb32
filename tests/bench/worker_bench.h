/* The parts of tests/bench/run worker, one file each. */
#ifndef WORKER_BENCH_H
#define WORKER_BENCH_H

#include "backlog.h"
#include "bench.h"
#include "instance.h"

typedef struct {
    PGconn *conn;
    json_object *to;
    bool quick; /* less of everything: to see that it works, not to compare */
} worker_bench;

void bench_drain(const worker_bench *b);
void bench_drain_100(const worker_bench *b); /* of these only the cases with 100 slots */
void bench_latency(const worker_bench *b);
void bench_latency_50(const worker_bench *b); /* of these only 50/s */
void bench_notify(const worker_bench *b);
void bench_memory(const worker_bench *b);
void bench_idle(const worker_bench *b);
void bench_wk11(const worker_bench *b);

#endif
