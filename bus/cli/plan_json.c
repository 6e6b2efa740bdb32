/* The answer of plan for programs. */
#include "plan.h"

#include "json_text.h"

#include <json-c/json.h>
#include <stdio.h>

/* With nine digits behind the point at most: 0.2 and not 0.20000000000000001. */
static void plan_put_number(json_object *to, const char *name, double value)
{
    char text[64];
    size_t end = (size_t)snprintf(text, sizeof text, "%.9f", value);

    while (text[end - 1] == '0')
        text[--end] = '\0';
    if (text[end - 1] == '.')
        text[--end] = '\0';
    json_object_object_add(to, name, json_object_new_double_s(value, text));
}

static void plan_put_number_if(json_object *to, const char *name, bool known, double value)
{
    if (known)
        plan_put_number(to, name, value);
    else
        json_object_object_add(to, name, NULL);
}

static json_object *plan_json_request(const plan_answer *a)
{
    json_object *o = json_object_new_object();

    json_put_int(o, "limit", a->request.limit);
    plan_put_number_if(o, "limit_rate_per_second", a->limit_rate > 0, a->limit_rate);
    plan_put_number(o, "latency_seconds", a->request.seconds);
    plan_put_number(o, "rate_per_second", a->request.rate);
    json_put_text(o, "surge", a->surge);
    json_put_int(o, "min_replicas", a->request.min_replicas);
    json_put_int(o, "max_replicas", a->request.max_replicas);
    return o;
}

static json_object *plan_json_measured(const plan_load *l)
{
    json_object *o = l ? json_object_new_object() : NULL;

    if (!o)
        return NULL;
    plan_put_number(o, "seconds", l->seconds);
    json_put_int(o, "arrivals", l->arrivals);
    json_put_int(o, "retries", l->retries);
    plan_put_number(o, "busiest_minute_per_second", l->busiest);
    json_put_int(o, "runs", l->runs);
    plan_put_number_if(o, "mean_seconds", l->runs > 0, l->mean_seconds);
    plan_put_number_if(o, "variation", l->runs > 1, l->variation);
    json_put_int(o, "instances", l->instances);
    json_put_int(o, "slots", l->slots);
    json_put_int(o, "fleet_limit", l->fleet_limit);
    json_put_int(o, "depth", l->depth);
    return o;
}

static json_object *plan_json_option(const plan_answer *a, const plan_option *p, bool recommended)
{
    json_object *o = json_object_new_object();

    json_put_int(o, "replicas", p->replicas);
    json_put_int(o, "concurrent_messages", p->each);
    json_put_int(o, "slots", p->slots);
    json_put_int(o, "in_flight", p->in_flight);
    json_put_bool(o, "needs_fleet_limit", p->slots > a->request.limit);
    json_put_bool(o, "carries_the_rate", p->carries);
    plan_put_number(o, "possible_per_second", p->possible);
    plan_put_number(o, "throughput_per_second", p->throughput);
    plan_put_number(o, "headroom_per_second", p->headroom);
    plan_put_number(o, "utilisation", p->utilisation);
    plan_put_number_if(o, "wait_chance", p->carries, p->wait_chance);
    plan_put_number_if(o, "mean_wait_seconds", p->carries, p->mean_wait);
    plan_put_number_if(o, "p99_wait_seconds", p->carries, p->rare_wait);
    plan_put_number(o, "queue_growth_per_second", p->headroom < 0 ? -p->headroom : 0);
    json_put_int(o, "one_lost_in_flight", p->left_in_flight);
    plan_put_number(o, "one_lost_per_second", p->left_possible);
    json_put_bool(o, "one_lost_carries_the_rate", p->left_carries);
    json_put_int(o, "surge_pods", p->surge_pods);
    json_put_int(o, "rollout_in_flight", p->surge_in_flight);
    json_put_int(o, "rollout_in_flight_terminating", p->worst_in_flight);
    json_put_int(o, "rollout_in_flight_fleet_limit", a->request.limit);
    json_put_bool(o, "is_present", p->is_present);
    json_put_bool(o, "recommended", recommended);
    return o;
}

static json_object *plan_json_recommended(const plan_answer *a)
{
    const plan_option *best = &a->plan.options[a->plan.best];
    json_object *o = json_object_new_object(), *environment = json_object_new_object();
    char name[128], value[16];

    json_put_int(o, "replicas", best->replicas);
    json_put_int(o, "concurrent_messages", best->each);
    json_put_int(o, "fleet_limit", a->request.limit);
    json_put_int(o, "max_surge", 0);
    if (a->domain) {
        snprintf(value, sizeof value, "%d", best->each);
        json_put_text(environment, plan_variable(a, "CONCURRENT_MESSAGES", name, sizeof name),
                      value);
        snprintf(value, sizeof value, "%d", a->request.limit);
        json_put_text(environment, plan_variable(a, "FLEET_LIMIT", name, sizeof name), value);
    }
    json_object_object_add(o, "env", environment);
    return o;
}

void plan_print_json(const plan_answer *a)
{
    json_object *o = json_object_new_object(), *options = json_object_new_array(),
                *assumptions = json_object_new_array();
    char why[PLAN_TEXT];

    for (size_t i = 0; i < a->plan.n; i++)
        json_object_array_add(options, plan_json_option(a, &a->plan.options[i],
                                                        a->plan.carries && i == a->plan.best));
    for (const char *const *line = plan_assumptions; *line; line++)
        json_object_array_add(assumptions, json_object_new_string(*line));
    json_put_text(o, "domain", a->domain);
    json_object_object_add(o, "request", plan_json_request(a));
    json_object_object_add(o, "measured", plan_json_measured(a->load));
    plan_put_number(o, "load", a->plan.load);
    json_put_bool(o, "carries_the_rate", a->plan.carries);
    json_put_int(o, "least_limit", a->plan.least);
    json_put_int(o, "pleasant_limit", a->plan.pleasant);
    json_object_object_add(o, "options", options);
    json_object_object_add(o, "recommended", a->plan.carries ? plan_json_recommended(a) : NULL);
    json_put_text(o, "why", plan_why(a, why));
    json_object_object_add(o, "assumptions", assumptions);
    json_print_adopt(o);
}
