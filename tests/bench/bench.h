/* What the benchmarks share: connections that must work, a clock, slices of time in turn, JSON out.
 *
 * These machines are noisy, so figures that are compared are measured in turn: a slice of the one,
 * a slice of the other, and again. A ratio of sums over the same seconds means something; two
 * absolute rates from different minutes do not. */
#ifndef BENCH_H
#define BENCH_H

#include <commandbus/internal.h>
#include <json-c/json.h>
#include <libpq-fe.h>
#include <stdbool.h>

#define BENCH_DOMAIN    "bench"
#define BENCH_RAW_QUEUE "bench_raw"
#define BENCH_REPLIES   "bench__replies"
#define BENCH_PAYLOAD                                                                        \
    "{\"amount\":\"1250.00\",\"fromCurrency\":\"EUR\",\"toCurrency\":\"USD\",\"valueDate\":" \
    "\"2026-11-16\",\"debitAccount\":\"DE02120300000000202051\",\"creditAccount\":"          \
    "\"US64SVBKUS6S3300958879\",\"note\":\"invoice 4711\"}"
/* The same command as it stands in its queue: what raw PGMQ carries in these measurements. */
#define BENCH_RAW_MESSAGE                                                                         \
    "{\"domain\":\"bench\",\"command_type\":\"BookFx\",\"command_id\":\"01933e3e-7d14-7b3f-a6d2-" \
    "2f2d9a3f1c11\",\"correlation_id\":\"01933e3e-7d14-7b3f-a6d2-2f2d9a3f1c12\",\"reply_to\":"    \
    "\"bench__replies\",\"data\":" BENCH_PAYLOAD "}"
#define BENCH_RESULT "{\"contractId\":\"FX-20261116-000042\",\"rate\":\"1.0842\"}"

double bench_now(void);
void bench_pause(double seconds);

/* Exit with a message on any failure: a benchmark that goes on after an error measures nothing. */
cb_db *bench_open(void);
PGconn *bench_pq(void);
/* The schema, the domain and the raw queue, on a connection to go on with. */
PGconn *bench_prepare(void);
PGresult *bench_query(PGconn *conn, const char *sql, int n, const char *const *params);
void bench_exec(PGconn *conn, const char *sql);
_Noreturn void bench_die(const char *fmt, ...) CB_PRINTF(1, 2);
void bench_say(const char *fmt, ...) CB_PRINTF(1, 2); /* progress, on stderr */

/* Something to run for a while: does work until `until` (bench_now), returns how much it did. */
typedef struct {
    const char *name;
    long (*run)(void *self, double until);
    void *self;
    long done;      /* out */
    double seconds; /* out */
} bench_rival;

/* Runs the rivals in turn, `rounds` slices of `slice` seconds each. */
void bench_in_turn(bench_rival *rivals, int n, int rounds, double slice);
double bench_rate(const bench_rival *r);

/* {"name": rate, ...} and {"<a>/<b>": ratio}. */
void bench_put_rate(json_object *to, const bench_rival *r);
void bench_put_ratio(json_object *to, const char *name, double ratio, double goal);
/* {"name": {"value": ..., "goal": ...}}: less of it is better. A goal of 0 means none. */
void bench_put_most(json_object *to, const char *name, double value, double goal);
void bench_print(json_object *all); /* on stdout */

/* The measurements, one file each. They add to `to`. */
void bench_send(json_object *to);
void bench_life(json_object *to);
void bench_history(json_object *to);

/* send.c, used by notify.c too: connections that send one command after the other, all at once.
 * Commands of that type to BENCH_DOMAIN; NULL: raw PGMQ. */
typedef struct send_rival send_rival;
send_rival *senders_open(int connections, const char *command_type);
void senders_close(send_rival *r);
long senders_run(void *send_rival_, double until);

/* life.c, used by history.c too. `backlog` commands are sent first; returns commands per second. */
typedef struct life life;
life *life_open(int batch);
void life_close(life *l);
long life_run(void *life_, double until);
void life_send(PGconn *conn, long n, double delay_seconds);

/* Raw PGMQ, the same way. */
typedef struct {
    PGconn *conn;
    int batch;
} raw_life;
long raw_run(void *raw_life_, double until);
void raw_send(PGconn *conn, long n);

#endif
