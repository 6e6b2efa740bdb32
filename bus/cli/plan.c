/* Replicas × concurrent-messages below a limit, and how long work waits for a free slot. */
#include "plan.h"

#include <math.h>

/* The chance that all slots of a system without a queue are busy, slot by slot: neither powers nor
 * factorials, which overflow at some 170 slots, and every term lies between 0 and 1. */
static double erlang_b(int slots, double load)
{
    double blocked = 1;

    for (int n = 1; n <= slots; n++)
        blocked = load * blocked / (n + load * blocked);
    return blocked;
}

double erlang_c(int slots, double load)
{
    if (load >= slots)
        return 1;
    double blocked = erlang_b(slots, load);
    return blocked / (1 - load / slots * (1 - blocked));
}

/* Calls a second that the slots could make beyond what arrives. */
static double erlang_spare(int slots, double rate, double seconds)
{
    return slots / seconds - rate;
}

double erlang_mean_wait(int slots, double rate, double seconds)
{
    return erlang_c(slots, rate * seconds) / erlang_spare(slots, rate, seconds);
}

double erlang_rare_wait(int slots, double rate, double seconds, double one_in)
{
    double chance = erlang_c(slots, rate * seconds) * one_in;

    return chance > 1 ? log(chance) / erlang_spare(slots, rate, seconds) : 0;
}

/* Of the limit: an option that leaves more of it unused does not use it in full. Of the slots:
 * above it, waits grow fast. */
static const double plan_full_use = 0.8;
static const double plan_pleasant_use = 0.8;
/* 20/s × 200 ms are 4 calls and not a hair more or less. */
static const double plan_hair = 1e-9;

static int plan_at_most(int value, int most)
{
    return value < most ? value : most;
}

int plan_limit_for(double most, double seconds)
{
    double calls = floor(most * seconds * (1 + plan_hair));

    return calls < PLAN_MOST_LIMIT ? (int)calls : PLAN_MOST_LIMIT;
}

static bool plan_carries(const plan_request *r, int in_flight)
{
    return r->rate * r->seconds < in_flight * (1 - plan_hair);
}

static void option_foresee_load(const plan_request *r, plan_option *o)
{
    o->possible = o->in_flight / r->seconds;
    o->headroom = fabs(o->possible - r->rate) > plan_hair * r->rate ? o->possible - r->rate : 0;
    o->throughput = fmin(o->possible, r->rate);
    o->utilisation = r->rate * r->seconds / o->in_flight;
    o->carries = plan_carries(r, o->in_flight);
    if (!o->carries)
        return;
    o->wait_chance = erlang_c(o->in_flight, r->rate * r->seconds);
    o->mean_wait = erlang_mean_wait(o->in_flight, r->rate, r->seconds);
    o->rare_wait = erlang_rare_wait(o->in_flight, r->rate, r->seconds, 100);
}

/* A Deployment has at most as many new pods as replicas, and as many old ones: the surge adds
 * pods to those that count as running, but Terminating ones do not count, so up to twice the
 * replicas may run handlers. */
static void option_foresee_rollout(const plan_request *r, plan_option *o)
{
    int surge =
        r->surge_is_percent ? (int)ceil(o->replicas * (r->surge / 100.0) - plan_hair) : r->surge;

    o->surge_pods = plan_at_most(surge, o->replicas);
    o->surge_in_flight = (o->replicas + o->surge_pods) * o->each;
    o->worst_in_flight = 2 * o->slots;
}

static void option_foresee_loss(const plan_request *r, plan_option *o)
{
    o->left_in_flight = plan_at_most(o->slots - o->each, r->limit);
    o->left_possible = o->left_in_flight / r->seconds;
    o->left_carries = plan_carries(r, o->left_in_flight);
}

static void plan_add(const plan_request *r, plan *p, int replicas, int each)
{
    plan_option o = { .replicas = replicas, .each = each, .slots = replicas * each };

    o.in_flight = plan_at_most(o.slots, r->limit);
    o.is_present = replicas == r->present_replicas && each == r->present_each;
    option_foresee_load(r, &o);
    option_foresee_rollout(r, &o);
    option_foresee_loss(r, &o);
    p->options[p->n++] = o;
}

/* At or below the limit, unless one more replica could have as many slots each. */
static bool plan_wants_below(const plan_request *r, int replicas, int each)
{
    bool more_can = replicas < r->max_replicas && r->limit / (replicas + 1) == each;

    return each > 0 && !more_can;
}

/* Above the limit, where staying below leaves much of it unused, unless one replica fewer could
 * do. */
static bool plan_wants_above(const plan_request *r, int replicas, int each)
{
    bool fewer_can = replicas > 1 && (replicas - 1) * each >= r->limit;

    return r->limit / replicas * replicas < plan_full_use * r->limit && !fewer_can;
}

static void plan_add_with(const plan_request *r, plan *p, int replicas)
{
    int below = r->limit / replicas, above = below + 1;
    int present = replicas == r->present_replicas ? r->present_each : 0;

    if (present > 0 && present < below)
        plan_add(r, p, replicas, present);
    if (below == present ? present > 0 : plan_wants_below(r, replicas, below))
        plan_add(r, p, replicas, below);
    if (above == present || plan_wants_above(r, replicas, above))
        plan_add(r, p, replicas, above);
    if (present > above)
        plan_add(r, p, replicas, present);
}

/* The wishes, the most important first; each is 1 or 0. */
static void option_wishes(const plan_request *r, const plan *p, const plan_option *o, int wishes[5])
{
    wishes[0] = o->carries;
    wishes[1] = o->replicas >= p->worthwhile_replicas;
    wishes[2] = o->slots <= r->limit; /* safe also without fleet-limit */
    wishes[3] = o->left_carries;
    wishes[4] = o->in_flight >= plan_full_use * r->limit;
}

/* Fewer pods are better, once all wishes are the same: each costs five connections or more. */
static bool option_is_better(const plan_request *r, const plan *p, const plan_option *a,
                             const plan_option *b)
{
    int of_a[5], of_b[5];

    option_wishes(r, p, a, of_a);
    option_wishes(r, p, b, of_b);
    for (size_t i = 0; i < 5; i++) {
        if (of_a[i] != of_b[i])
            return of_a[i] > of_b[i];
    }
    return a->replicas < b->replicas || (a->replicas == b->replicas && a->in_flight > b->in_flight);
}

void plan_make(const plan_request *r, plan *p)
{
    *p = (plan){ .load = r->rate * r->seconds };
    p->least = (int64_t)floor(p->load * (1 + plan_hair)) + 1;
    p->pleasant = (int64_t)ceil(p->load / plan_pleasant_use * (1 - plan_hair));
    p->worthwhile_replicas = plan_at_most(r->min_replicas, r->limit);
    for (int replicas = 1; replicas <= r->max_replicas; replicas++)
        plan_add_with(r, p, replicas);
    for (size_t i = 1; i < p->n; i++) {
        if (option_is_better(r, p, &p->options[i], &p->options[p->best]))
            p->best = i;
    }
    p->carries = p->options[p->best].carries;
}
