/* Replicas × concurrent-messages below a limit: what each way of dividing it can do, which to
 * take, and how that is said. */
#ifndef CLI_PLAN_H
#define CLI_PLAN_H

#include "cli.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How long work waits for a free slot: Poisson arrivals, exponential times, one queue (M/M/c). */

/* The chance that an arrival has to wait (Erlang C). `load` is arrivals a second times seconds a
 * call. 1 when the load is all that the slots can do, or more. */
double erlang_c(int slots, double load);

/* The mean wait in seconds. Only for a load below the slots: above it there is no mean. */
double erlang_mean_wait(int slots, double rate, double seconds);

/* What only one in `one_in` arrivals waits longer than, in seconds; 0 when fewer wait at all.
 * Only for a load below the slots. */
double erlang_rare_wait(int slots, double rate, double seconds, double one_in);

enum {
    PLAN_MOST_LIMIT = 10000,  /* concurrent-messages of one instance end there too */
    PLAN_MOST_REPLICAS = 100, /* that an option may have */
    PLAN_MOST_OPTIONS = 2 * PLAN_MOST_REPLICAS + 1,
};

/* What is asked for. */
typedef struct {
    int limit;      /* calls in flight that the API takes, 1 to PLAN_MOST_LIMIT */
    double rate;    /* calls to make a second, above 0 */
    double seconds; /* a call takes on average, above 0 */
    int surge;      /* pods, or a percentage of the replicas, which Kubernetes rounds up */
    bool surge_is_percent;
    int min_replicas; /* that a recommended option has, if the limit allows */
    int max_replicas;
    int present_replicas,
        present_each; /* what runs now, to be shown among the options; 0: unknown */
} plan_request;

/* One way to divide the limit. */
typedef struct {
    int replicas, each; /* each: concurrent-messages of one instance */
    int slots;          /* replicas × each */
    int in_flight;      /* slots, or the limit where it is lower: only fleet-limit keeps it then */
    bool is_present;

    double possible;    /* calls a second */
    double throughput;  /* what of the rate it makes */
    double headroom;    /* possible − rate; below 0 is what the queue grows by */
    double utilisation; /* 1 and above: overloaded */
    bool carries;       /* utilisation below 1; the waits mean something */
    double wait_chance, mean_wait, rare_wait; /* seconds; rare: one in a hundred waits longer */

    /* Calls in flight during a rollout without fleet-limit: with the pods of the surge, and when
     * the old pods are Terminating and still finish what they run while all new ones work. */
    int surge_pods, surge_in_flight, worst_in_flight;

    /* With one pod lost. */
    int left_in_flight;
    double left_possible;
    bool left_carries;
} plan_option;

typedef struct {
    plan_option options[PLAN_MOST_OPTIONS]; /* by replicas */
    size_t n;
    size_t best;   /* the recommended one, or where none carries the rate the one to fall back on */
    bool carries;  /* the recommended one does */
    double load;   /* calls in flight on average, were there no limit */
    int64_t least; /* the lowest limit that carries the rate */
    int64_t pleasant;        /* the lowest that is used to 80 % */
    int worthwhile_replicas; /* min_replicas, but not above the limit */
} plan;

/* The limit that keeps an API below `most` calls a second, by Little's law; 0 when even one call
 * at a time makes more. */
int plan_limit_for(double most, double seconds);

void plan_make(const plan_request *request, plan *ret);

/* What a domain has to do and what it has for that, measured: for --from-database. */
typedef struct {
    double seconds;            /* that the figures are of */
    int64_t arrivals, retries; /* retries are among the arrivals */
    double busiest;            /* a second, in the busiest minute */
    int64_t runs;
    double mean_seconds; /* of a run */
    double variation;    /* of that: 0 always the same, 1 exponential */

    /* Now. */
    int instances, slots_each, slots; /* slots_each 0: they differ */
    int fleet_limit;                  /* 0: none */
    int64_t depth;                    /* of the queue */
} plan_load;

/* The answer, for people and for programs. */
typedef struct {
    const char *domain;                                /* NULL: not said */
    const char *surge;                                 /* as it was written */
    double limit_rate;                                 /* that the API allows; 0: not said */
    const char *limit_from, *rate_from, *latency_from; /* where each figure is from */
    plan_request request;
    const plan_load *load; /* what was measured; NULL: nothing */
    plan plan;
} plan_answer;

enum {
    PLAN_TEXT = 512
};

/* Why this one is recommended, or why none is. Returns the buffer. */
const char *plan_why(const plan_answer *a, char buffer[PLAN_TEXT]);

/* What the figures stand on, one sentence each; NULL ends them. */
extern const char *const plan_assumptions[];

/* The name of the variable that sets a key of the domain, such as "CONCURRENT_MESSAGES". Returns
 * the buffer. */
const char *plan_variable(const plan_answer *a, const char *key, char *buffer, size_t size);

void plan_print(const cli *c, const plan_answer *a);
void plan_print_json(const plan_answer *a);

#endif
