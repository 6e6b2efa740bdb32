/* What a worker costs that has nothing to do: memory after work in every slot, and processor
 * time. */
#include "worker_bench.h"

#define SLEEP_DATA(ms) "{\"ms\": " #ms "}"

/* Until every slot has a command at the same moment. */
static void wait_for_all_slots(PGconn *conn, int slots)
{
    double until = bench_now() + 30;

    while (backlog_count(conn, "IN_PROGRESS") < slots) {
        if (bench_now() > until)
            bench_die("%d slots never were busy at once", slots);
        bench_pause(0.02);
    }
}

static void use_every_slot(PGconn *conn, int slots)
{
    backlog_kind noop = { "Noop", BENCH_PAYLOAD, true },
                 sleep = { "Sleep", SLEEP_DATA(2000), true };

    backlog_send(conn, &noop, 10000);
    backlog_wait(conn, 60);
    backlog_send(conn, &sleep, slots);
    wait_for_all_slots(conn, slots);
    backlog_wait(conn, 60);
}

static void memory(const worker_bench *b, int slots, double goal)
{
    instance_options options = { .set = "sample", .slots = slots };
    char name[64];

    backlog_clear(b->conn);
    instance i = instance_start(b->conn, &options);
    use_every_slot(b->conn, slots);
    snprintf(name, sizeof name, "RSS, %d slots, MB", slots);
    bench_put_most(b->to, name, instance_memory(&i, "VmRSS"), goal);
    snprintf(name, sizeof name, "RSS at its highest, %d slots, MB", slots);
    bench_put_most(b->to, name, instance_memory(&i, "VmHWM"), 0);
    instance_stop(&i);
}

void bench_memory(const worker_bench *b)
{
    bench_say("memory");
    memory(b, 100, 20);
    memory(b, 1000, 64);
}

/* In % of a core, of two workers over the same seconds. */
void bench_idle(const worker_bench *b)
{
    static const int slots[] = { 100, 1000 };
    static const double goals[] = { 0.5, 0 };
    double seconds = b->quick ? 5 : 20, before[CB_COUNT(slots)];
    instance all[CB_COUNT(slots)];
    backlog_kind noop = { "Noop", BENCH_PAYLOAD, true };

    bench_say("idle for %.0f s", seconds);
    for (size_t i = 0; i < CB_COUNT(slots); i++)
        all[i] = instance_start(b->conn, &(instance_options){ .set = "sample", .slots = slots[i] });
    backlog_send(b->conn, &noop, 1000);
    backlog_wait(b->conn, 60);
    bench_pause(2); /* until they have gone to sleep: what they do before is not idling */
    for (size_t i = 0; i < CB_COUNT(slots); i++)
        before[i] = instance_cpu_seconds(&all[i]);
    double start = bench_now();
    bench_pause(seconds);
    double passed = bench_now() - start;
    for (size_t i = 0; i < CB_COUNT(slots); i++) {
        double used = instance_cpu_seconds(&all[i]) - before[i];
        char name[64];
        snprintf(name, sizeof name, "idle, %d slots, %% of a core", slots[i]);
        bench_put_most(b->to, name, 100 * used / passed, goals[i]);
    }
    for (size_t i = 0; i < CB_COUNT(slots); i++)
        instance_stop(&all[i]);
}
