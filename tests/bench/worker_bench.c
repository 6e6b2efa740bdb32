/* tests/bench/run worker: figures of the worker, as JSON on stdout, progress on stderr. */
#include "worker_bench.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    void (*run)(const worker_bench *b);
    bool if_named; /* a piece of another part, for tests/bench/run peers */
} parts[] = {
    { "drain", bench_drain, false },     { "drain-100", bench_drain_100, true },
    { "latency", bench_latency, false }, { "latency-50", bench_latency_50, true },
    { "notify", bench_notify, false },   { "memory", bench_memory, false },
    { "idle", bench_idle, false },       { "wk11", bench_wk11, false },
};

static bool is_part(const char *name)
{
    for (size_t i = 0; i < CB_COUNT(parts); i++) {
        if (strcmp(parts[i].name, name) == 0)
            return true;
    }
    return false;
}

/* worker_bench [PART] [--quick], in any order. */
int main(int argc, char **argv)
{
    worker_bench b = { .to = json_object_new_object() };
    const char *only = NULL;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            b.quick = true;
        else if (!only && is_part(argv[i]))
            only = argv[i];
        else
            bench_die("'%s' is not part of the worker's benchmark: see tests/bench/run --help",
                      argv[i]);
    }
    b.conn = bench_prepare();
    for (size_t i = 0; i < CB_COUNT(parts); i++) {
        if (only ? strcmp(only, parts[i].name) == 0 : !parts[i].if_named) {
            backlog_clear(b.conn);
            parts[i].run(&b);
        }
    }
    bench_print(b.to);
    json_object_put(b.to);
    PQfinish(b.conn);
    return 0;
}
