/* commandbus plan: how to divide an API's limit over replicas and their slots. */
#include "cli.h"
#include "duration.h"
#include "fail.h"
#include "figures.h"
#include "fleet_view.h"
#include "name_rules.h"
#include "plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY_MS 86400000LL

typedef struct {
    int limit, min_replicas, max_replicas;
    double limit_rate, rate;
    int64_t latency, window;
    const char *surge, *domain;
    bool from_database;
} plan_args;

/* Checked here already: what is printed is pasted. */
static bool plan_read_domain(const char *text, void *field, cb_error *e)
{
    const char *rule = name_rule_domain(text);

    if (rule)
        return cb_fail(e, CB_MISUSE, "invalid domain name '%.80s'; %s", text, rule);
    *(const char **)field = text;
    return true;
}

#define AT(field) offsetof(plan_args, field)

static const arg_spec plan_specs[] = {
    { "limit", ARG_INT, AT(limit), "N", .help = "calls in flight that the API takes", .min = 1,
      .max = PLAN_MOST_LIMIT },
    { "limit-rate", ARG_OTHER, AT(limit_rate), "RATE", .read = frequency_read,
      .help = "calls that the API takes a second, such as 25/s: as many in flight as that makes" },
    { "latency", ARG_DURATION, AT(latency), "TIME", .help = "what a call takes on average",
      .min = 1, .max = DAY_MS },
    { "rate", ARG_OTHER, AT(rate), "RATE", .read = frequency_read,
      .help = "calls to make: 20/s, 90/m, 5000/h; the rate of a busy hour, with retries" },
    { "surge", ARG_TEXT, AT(surge), "N|P%",
      .help = "maxSurge of the Deployment [25%, Kubernetes's own default, rounded up]" },
    { "min-replicas", ARG_INT, AT(min_replicas), "N", .help = "recommend no fewer [3]", .min = 1,
      .max = PLAN_MOST_REPLICAS },
    { "max-replicas", ARG_INT, AT(max_replicas), "N", .help = "show no more [12]", .min = 1,
      .max = PLAN_MOST_REPLICAS },
    { "domain", ARG_OTHER, AT(domain), "DOMAIN", .read = plan_read_domain,
      .help = "for the names of what to paste" },
    { "from-database", ARG_FLAG, AT(from_database), NULL,
      .help =
          "measure what is not given: rate and time of runs of the domain, its limit or slots" },
    { "window", ARG_DURATION, AT(window), "TIME", .help = "measure over the time until now [1h]",
      .min = 60000, .max = 31 * DAY_MS },
    { 0 },
};

/* What a domain has to do and what it has for that, measured. */

static bool load_fail_unknown(const char *domain, cb_error *e)
{
    cb_fail(e, CB_UNKNOWN_DOMAIN, "domain '%.80s' is not registered in this database", domain);
    return fail_hint(
        e, "Check the spelling (commandbus queue list), or plan without --from-database.");
}

/* A number of slots or instances; what no fleet can have, because a heartbeat says what it
 * likes, is 0. */
static int load_small_number(const cb_rows *rows, size_t row, const char *column)
{
    double value = fleet_number(rows, row, column);

    return value >= 0 && value <= PLAN_MOST_LIMIT ? (int)value : 0;
}

static bool load_look_at_fleet(cb_db *db, const char *domain, plan_load *ret, cb_error *e)
{
    OWNED(cb_rows) rows = NULL;

    if (!cb_fleet_domains(db, &rows, e))
        return false;
    for (size_t i = 0; i < cb_rows_count(rows); i++) {
        if (strcmp(fleet_text(rows, i, "domain"), domain) != 0)
            continue;
        ret->instances = load_small_number(rows, i, "instances");
        ret->slots_each = load_small_number(rows, i, "slots_each");
        ret->slots = load_small_number(rows, i, "slots");
        ret->fleet_limit = load_small_number(rows, i, "fleet_limit");
        ret->depth = (int64_t)fleet_number(rows, i, "depth");
        return true;
    }
    return load_fail_unknown(domain, e);
}

/* Looks back over `window_ms`. */
static bool load_measure(cb_db *db, const char *domain, int64_t window_ms, plan_load *ret,
                         cb_error *e)
{
    OWNED(cb_rows) rows = NULL;
    char window[DURATION_SIZE];

    *ret = (plan_load){ 0 };
    duration_interval(window_ms, window, sizeof window);
    if (!cb_domain_load(db, domain, window, &rows, e))
        return false;
    if (cb_rows_count(rows) == 0)
        return load_fail_unknown(domain, e);
    ret->seconds = fleet_number(rows, 0, "seconds");
    ret->arrivals = (int64_t)fleet_number(rows, 0, "arrivals");
    ret->retries = (int64_t)fleet_number(rows, 0, "retries");
    ret->busiest = fleet_number(rows, 0, "in_busiest_minute") / fmin(ret->seconds, 60);
    ret->runs = (int64_t)fleet_number(rows, 0, "runs");
    ret->mean_seconds = fleet_number(rows, 0, "mean_seconds");
    if (ret->mean_seconds > 0)
        ret->variation = fleet_number(rows, 0, "deviation_seconds") / ret->mean_seconds;
    return load_look_at_fleet(db, domain, ret, e);
}

/* "2" or "25%". */
static bool plan_take_surge(const char *text, plan_request *r)
{
    char *end = NULL;
    long value = strtol(text, &end, 10);

    r->surge_is_percent = strcmp(end, "%") == 0;
    if (text[strspn(text, "0123456789%")] || end == text || (*end && !r->surge_is_percent) ||
        value > 1000)
        return false;
    r->surge = (int)value;
    return true;
}

static bool plan_refuse(cb_error *e, const char *message, const char *hint)
{
    cb_fail(e, CB_INVALID_OPERATION, "%s", message);
    return fail_hint(e, "%s", hint);
}

/* The limit that is in force, or what runs now. */
static bool plan_fill_limit(const plan_args *args, plan_answer *a, cb_error *e)
{
    const plan_load *l = a->load;

    if (args->limit || args->limit_rate > 0)
        return true;
    if (l->fleet_limit == 0 && l->slots == 0)
        return plan_refuse(
            e, "there is no limit to plan for: no fleet-limit is set, and no instance runs",
            "Say what the API takes: --limit 6, or --limit-rate 25/s.");
    a->request.limit = l->fleet_limit ? l->fleet_limit : l->slots;
    a->limit_from = l->fleet_limit ? " (the fleet-limit)" : " (the slots that run; no fleet-limit)";
    return true;
}

/* What was not given is taken from what was measured. */
static bool plan_fill_from(const plan_args *args, const plan_load *l, plan_answer *a, cb_error *e)
{
    char message[200], window[DURATION_SIZE];

    a->load = l;
    a->request.present_replicas = l->slots_each ? l->instances : 0;
    a->request.present_each = l->slots_each;
    duration_format(args->window ? args->window : DAY_MS / 24, window, sizeof window);
    if (!args->rate && l->arrivals == 0) {
        snprintf(message, sizeof message, "nothing was sent to %s in the last %s", args->domain,
                 window);
        return plan_refuse(e, message, "Look further back (--window 1d), or say --rate 20/s.");
    }
    if (!args->latency && l->runs == 0) {
        snprintf(message, sizeof message, "no command of %s began and ended in the last %s",
                 args->domain, window);
        return plan_refuse(e, message, "Look further back (--window 1d), or say --latency 200ms.");
    }
    if (!args->rate) {
        a->request.rate = (double)l->arrivals / l->seconds;
        a->rate_from = " (measured)";
    }
    if (!args->latency) {
        a->request.seconds = l->mean_seconds > 1e-6 ? l->mean_seconds : 1e-6;
        a->latency_from = " (measured)";
    }
    return plan_fill_limit(args, a, e);
}

/* Little's law: calls in flight are calls a second times seconds a call. */
static bool plan_apply_limit_rate(const plan_args *args, plan_answer *a, cb_error *e)
{
    char message[200], alone[32], most[32];
    int limit = plan_limit_for(args->limit_rate, a->request.seconds);

    if (!(args->limit_rate > 0))
        return true;
    if (limit == 0) {
        snprintf(message, sizeof message, "one call at a time makes %s already, more than %s",
                 frequency_format(1 / a->request.seconds, alone, sizeof alone),
                 frequency_format(args->limit_rate, most, sizeof most));
        return plan_refuse(
            e, message,
            "A limit on calls in flight cannot keep that: the handler has to take longer, or "
            "the API says no and commands are retried.");
    }
    if (!args->limit || limit < args->limit) {
        a->request.limit = limit;
        a->limit_rate = args->limit_rate;
    }
    return true;
}

/* What is wrong on the command line; NULL when nothing is. */
static const char *plan_mistake(const plan_args *args, plan_request *r)
{
    if (args->surge && !plan_take_surge(args->surge, r))
        return "--surge must be a number of pods such as 1, or a percentage such as 25%";
    if (r->min_replicas > r->max_replicas)
        return "--min-replicas is more than --max-replicas";
    if (args->from_database)
        return args->domain ? NULL : "--from-database wants to know of what: --domain fx";
    if (args->window)
        return "--window goes with --from-database";
    if (!args->limit && !(args->limit_rate > 0))
        return "--limit is missing: how many calls at a time does the API take? (or --limit-rate 25/s)";
    if (!args->latency)
        return "--latency is missing: how long does a call take, such as 200ms?";
    if (!(args->rate > 0))
        return "--rate is missing: how many calls are to be made, such as 20/s?";
    return NULL;
}

static int plan_run(cli *c, void *untyped)
{
    const plan_args *args = untyped;
    plan_load load = { 0 };
    plan_answer a = {
        .domain = args->domain,
        .surge = args->surge ? args->surge : "25%",
        .limit_from = "",
        .rate_from = "",
        .latency_from = "",
        .request = { .limit = args->limit,
                     .rate = args->rate,
                     .seconds = (double)args->latency / 1000,
                     .surge = 25,
                     .surge_is_percent = true,
                     .min_replicas = args->min_replicas ? args->min_replicas : 3,
                     .max_replicas = args->max_replicas ? args->max_replicas : 12 },
    };
    cb_error e = { 0 };

    if (args->max_replicas && !args->min_replicas && args->max_replicas < 3)
        a.request.min_replicas = args->max_replicas;
    if (args->min_replicas > 12 && !args->max_replicas)
        a.request.max_replicas = args->min_replicas;
    const char *wrong = plan_mistake(args, &a.request);
    if (wrong)
        return cli_usage(c, "%s", wrong);
    if (args->from_database &&
        (!cli_connect(c, true, &e) ||
         !load_measure(c->db, args->domain, args->window ? args->window : DAY_MS / 24, &load, &e) ||
         !plan_fill_from(args, &load, &a, &e)))
        return cli_fail(c, &e);
    if (!plan_apply_limit_rate(args, &a, &e))
        return cli_fail(c, &e);

    plan_make(&a.request, &a.plan);
    if (c->json)
        plan_print_json(&a);
    else
        plan_print(c, &a);
    return a.plan.carries ? EXIT_OK : EXIT_REFUSED;
}

const cli_command plan_command = {
    .verb = "plan",
    .summary = "Divides an API's limit: replicas x concurrent-messages, waits, rollouts",
    .details =
        "OPTION is replicas x concurrent-messages. POSSIBLE is what it can do, THROUGHPUT what it does of\n"
        "the rate, HEADROOM the difference, USED the utilisation. WAIT is the mean time in the queue by\n"
        "Erlang C, one in a hundred waits longer than WAIT P99. ONE LOST is possible with one pod less. SURGE\n"
        "is the most in flight during a rollout without fleet-limit, TERMINATING while old pods still finish\n"
        "what they run; with fleet-limit it is the limit, always.\n"
        "Recommended is what carries the rate, has --min-replicas, keeps the limit by itself, carries the rate\n"
        "with one pod lost too and uses the limit, in this order; of equals the one with the fewest pods.\n"
        "Exit code 1 when no option carries the rate. Needs no database without --from-database.\n",
    .example =
        "  commandbus plan --limit 6 --latency 200ms --rate 20/s --domain fx\n"
        "  commandbus plan --from-database --domain fx --window 1d\n"
        "  commandbus plan --limit-rate 25/s --latency 200ms --rate 18/s --json | jq .recommended\n",
    .args = plan_specs,
    .args_size = sizeof(plan_args),
    .run = plan_run,
};
