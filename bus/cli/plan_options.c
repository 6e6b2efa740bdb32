/* Replicas × concurrent-messages below a limit. */
#include "plan_options.h"

#include "erlang.h"

#include <math.h>

/* Of the limit: an option that leaves more of it unused does not use it in full. Of the slots: above it, waits
 * grow fast. */
static const double full_use = 0.8;
static const double pleasant_use = 0.8;
/* 20/s × 200 ms are 4 calls and not a hair more or less. */
static const double hair = 1e-9;

static int at_most(int value, int most)
{
    return value < most ? value : most;
}

int plan_limit_for(double most, double seconds)
{
    double calls = floor(most * seconds * (1 + hair));

    return calls < PLAN_MOST_LIMIT ? (int)calls : PLAN_MOST_LIMIT;
}

static bool carries(const plan_request *r, int in_flight)
{
    return r->rate * r->seconds < in_flight * (1 - hair);
}

static void foresee_load(const plan_request *r, plan_option *o)
{
    o->possible = o->in_flight / r->seconds;
    o->headroom = fabs(o->possible - r->rate) > hair * r->rate ? o->possible - r->rate : 0;
    o->throughput = fmin(o->possible, r->rate);
    o->utilisation = r->rate * r->seconds / o->in_flight;
    o->carries = carries(r, o->in_flight);
    if (!o->carries)
        return;
    o->wait_chance = erlang_c(o->in_flight, r->rate * r->seconds);
    o->mean_wait = erlang_mean_wait(o->in_flight, r->rate, r->seconds);
    o->rare_wait = erlang_rare_wait(o->in_flight, r->rate, r->seconds, 100);
}

/* A Deployment has at most as many new pods as replicas, and as many old ones: the surge adds pods to those
 * that count as running, but Terminating ones do not count, so up to twice the replicas may run handlers. */
static void foresee_rollout(const plan_request *r, plan_option *o)
{
    int surge = r->surge_is_percent ? (int)ceil(o->replicas * (r->surge / 100.0) - hair) : r->surge;

    o->surge_pods = at_most(surge, o->replicas);
    o->surge_in_flight = (o->replicas + o->surge_pods) * o->each;
    o->worst_in_flight = 2 * o->slots;
}

static void foresee_loss(const plan_request *r, plan_option *o)
{
    o->left_in_flight = at_most(o->slots - o->each, r->limit);
    o->left_possible = o->left_in_flight / r->seconds;
    o->left_carries = carries(r, o->left_in_flight);
}

static void add(const plan_request *r, plan *p, int replicas, int each)
{
    plan_option o = { .replicas = replicas, .each = each, .slots = replicas * each };

    o.in_flight = at_most(o.slots, r->limit);
    o.is_present = replicas == r->present_replicas && each == r->present_each;
    foresee_load(r, &o);
    foresee_rollout(r, &o);
    foresee_loss(r, &o);
    p->options[p->n++] = o;
}

/* At or below the limit, unless one more replica could have as many slots each. */
static bool is_wanted_below(const plan_request *r, int replicas, int each)
{
    bool more_can = replicas < r->max_replicas && r->limit / (replicas + 1) == each;

    return each > 0 && !more_can;
}

/* Above the limit, where staying below leaves much of it unused, unless one replica fewer could do. */
static bool is_wanted_above(const plan_request *r, int replicas, int each)
{
    bool fewer_can = replicas > 1 && (replicas - 1) * each >= r->limit;

    return r->limit / replicas * replicas < full_use * r->limit && !fewer_can;
}

static void add_with(const plan_request *r, plan *p, int replicas)
{
    int below = r->limit / replicas, above = below + 1;
    int present = replicas == r->present_replicas ? r->present_each : 0;

    if (present > 0 && present < below)
        add(r, p, replicas, present);
    if (below == present ? present > 0 : is_wanted_below(r, replicas, below))
        add(r, p, replicas, below);
    if (above == present || is_wanted_above(r, replicas, above))
        add(r, p, replicas, above);
    if (present > above)
        add(r, p, replicas, present);
}

/* The wishes, the most important first; each is 1 or 0. */
static void wishes_of(const plan_request *r, const plan *p, const plan_option *o, int wishes[5])
{
    wishes[0] = o->carries;
    wishes[1] = o->replicas >= p->worthwhile_replicas;
    wishes[2] = o->slots <= r->limit; /* safe also without fleet-limit */
    wishes[3] = o->left_carries;
    wishes[4] = o->in_flight >= full_use * r->limit;
}

/* Fewer pods are better, once all wishes are the same: each costs five connections or more. */
static bool is_better(const plan_request *r, const plan *p, const plan_option *a,
                      const plan_option *b)
{
    int of_a[5], of_b[5];

    wishes_of(r, p, a, of_a);
    wishes_of(r, p, b, of_b);
    for (size_t i = 0; i < 5; i++) {
        if (of_a[i] != of_b[i])
            return of_a[i] > of_b[i];
    }
    return a->replicas < b->replicas || (a->replicas == b->replicas && a->in_flight > b->in_flight);
}

void plan_make(const plan_request *r, plan *p)
{
    *p = (plan){ .load = r->rate * r->seconds };
    p->least = (int64_t)floor(p->load * (1 + hair)) + 1;
    p->pleasant = (int64_t)ceil(p->load / pleasant_use * (1 - hair));
    p->worthwhile_replicas = at_most(r->min_replicas, r->limit);
    for (int replicas = 1; replicas <= r->max_replicas; replicas++)
        add_with(r, p, replicas);
    for (size_t i = 1; i < p->n; i++) {
        if (is_better(r, p, &p->options[i], &p->options[p->best]))
            p->best = i;
    }
    p->carries = p->options[p->best].carries;
}
