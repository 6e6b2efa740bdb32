/* The frame of the benchmarks. See bench.h. */
#include "bench.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

double bench_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void bench_pause(double seconds)
{
    struct timespec t = { (time_t)seconds, (long)((seconds - floor(seconds)) * 1e9) };

    while (nanosleep(&t, &t) != 0)
        ;
}

void bench_die(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

void bench_say(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
}

static const char *url(void)
{
    const char *found = getenv("COMMANDBUS_TEST_URL");

    if (!found)
        bench_die("COMMANDBUS_TEST_URL is not set: start with tests/bench/run");
    return found;
}

cb_db *bench_open(void)
{
    cb_db *db = NULL;
    cb_error e;

    if (!cb_db_open(url(), &db, &e))
        bench_die("%s", e.message);
    return db;
}

PGconn *bench_pq(void)
{
    PGconn *conn = PQconnectdb(url());

    if (PQstatus(conn) != CONNECTION_OK)
        bench_die("%s", PQerrorMessage(conn));
    bench_exec(conn, "SET client_min_messages = warning");
    return conn;
}

PGresult *bench_query(PGconn *conn, const char *sql, int n, const char *const *params)
{
    PGresult *result = PQexecParams(conn, sql, n, NULL, params, NULL, NULL, 0);
    ExecStatusType status = PQresultStatus(result);

    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        bench_die("%s: %s", sql, PQerrorMessage(conn));
    return result;
}

void bench_exec(PGconn *conn, const char *sql)
{
    PQclear(bench_query(conn, sql, 0, NULL));
}

PGconn *bench_prepare(void)
{
    cb_db *db = bench_open();
    cb_migrate_report report;
    cb_error e;

    if (!cb_migrate(db, &report, &e) || !cb_domain_register(db, BENCH_DOMAIN, NULL, &e))
        bench_die("%s", e.message);
    cb_db_free(db);
    PGconn *conn = bench_pq();
    bench_exec(conn, "SELECT pgmq.create('" BENCH_RAW_QUEUE "')");
    return conn;
}

void bench_in_turn(bench_rival *rivals, int n, int rounds, double slice)
{
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < n; i++) {
            bench_rival *r = &rivals[i];
            double start = bench_now();
            long done = r->run(r->self, start + slice);
            /* The first slice warms caches and plans and is not counted. */
            if (round > 0) {
                r->done += done;
                r->seconds += bench_now() - start;
            }
        }
    }
}

double bench_rate(const bench_rival *r)
{
    return r->seconds > 0 ? (double)r->done / r->seconds : 0;
}

void bench_put_rate(json_object *to, const bench_rival *r)
{
    json_object_object_add(to, r->name, json_object_new_int64((int64_t)llround(bench_rate(r))));
}

static void put_number(json_object *to, const char *name, double value)
{
    char text[32];

    snprintf(text, sizeof text, "%.2f", value);
    json_object_object_add(to, name, json_object_new_double_s(value, text));
}

static void put_figure(json_object *to, const char *name, const char *what, double value,
                       double goal, bool met)
{
    json_object *entry = json_object_new_object();

    put_number(entry, what, value);
    if (goal > 0)
        put_number(entry, "goal", goal);
    json_object_object_add(to, name, entry);
    bench_say("  %-56s %.2f%s", name, value,
              goal > 0 ? (met ? "  goal met" : "  goal missed") : "");
}

void bench_put_ratio(json_object *to, const char *name, double ratio, double goal)
{
    put_figure(to, name, "ratio", ratio, goal, ratio >= goal);
}

void bench_put_most(json_object *to, const char *name, double value, double goal)
{
    put_figure(to, name, "value", value, goal, value <= goal);
}

void bench_print(json_object *all)
{
    puts(json_object_to_json_string_ext(all, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
                                                 JSON_C_TO_STRING_NOSLASHESCAPE));
}
