/* What plan says in words, and all of it for people. */
#include "plan.h"

#include "figures.h"
#include "output.h"
#include "text.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>

const char *const plan_assumptions[] = {
    "Arrivals are independent of each other (Poisson). Batches and bursts wait longer than shown.",
    "Times of calls vary much (exponential). Most APIs vary less: then waits are shorter, down to half.",
    "Retries are arrivals too: add them to --rate (--from-database has counted them).",
    "A limit on calls in flight bounds calls a second only as long as calls do not get faster.",
    NULL,
};

static void answer_say_overloaded(const plan_answer *a, const plan_option *best,
                                  char buffer[PLAN_TEXT])
{
    char rate[32], possible[32], grows[32];

    text_append(buffer, PLAN_TEXT, "no option carries %s: the limit of %d makes %s at most, ",
                frequency_format(a->request.rate, rate, sizeof rate), a->request.limit,
                frequency_format(best->possible, possible, sizeof possible));
    if (best->headroom < 0)
        text_append(buffer, PLAN_TEXT, "so the queue grows by %s without end.",
                    frequency_format(-best->headroom, grows, sizeof grows));
    else
        text_append(buffer, PLAN_TEXT,
                    "with nothing to spare, so the queue never gets empty again.");
}

static void answer_say_replicas(const plan_answer *a, const plan_option *best,
                                char buffer[PLAN_TEXT])
{
    const plan *p = &a->plan;

    if (best->replicas >= a->request.min_replicas)
        text_append(buffer, PLAN_TEXT, "%d replicas", best->replicas);
    else if (best->replicas >= p->worthwhile_replicas)
        text_append(buffer, PLAN_TEXT,
                    "as many replicas as the limit has calls (--min-replicas %d would need more)",
                    a->request.min_replicas);
    else
        text_append(buffer, PLAN_TEXT,
                    "fewer replicas than --min-replicas %d, which do not carry the rate",
                    a->request.min_replicas);
}

static void answer_say_use(const plan_answer *a, const plan_option *best, char buffer[PLAN_TEXT])
{
    if (best->slots > a->request.limit)
        text_append(buffer, PLAN_TEXT,
                    ", all of the limit (fleet-limit must hold the %d slots at %d)", best->slots,
                    a->request.limit);
    else if (best->slots == a->request.limit)
        text_append(buffer, PLAN_TEXT, ", all of the limit");
    else
        text_append(buffer, PLAN_TEXT, ", %d of the limit's %d", best->slots, a->request.limit);
}

const char *plan_why(const plan_answer *a, char buffer[PLAN_TEXT])
{
    const plan_option *best = &a->plan.options[a->plan.best];
    char rate[32], left[32];

    buffer[0] = '\0';
    if (!best->carries) {
        answer_say_overloaded(a, best, buffer);
        return buffer;
    }
    frequency_format(a->request.rate, rate, sizeof rate);
    frequency_format(best->left_possible, left, sizeof left);
    answer_say_replicas(a, best, buffer);
    answer_say_use(a, best, buffer);
    if (best->left_carries)
        text_append(buffer, PLAN_TEXT, ", and with one pod lost it still carries %s (%s possible).",
                    rate, left);
    else if (best->left_in_flight > 0)
        text_append(buffer, PLAN_TEXT,
                    "; with one pod lost it makes %s, and the rest waits until that is back.",
                    left);
    else
        text_append(buffer, PLAN_TEXT,
                    "; without its only pod everything waits until that is back.");
    return buffer;
}

const char *plan_variable(const plan_answer *a, const char *key, char *buffer, size_t size)
{
    snprintf(buffer, size, "COMMANDBUS_DOMAINS_%s_%s", a->domain ? a->domain : "<DOMAIN>", key);
    for (char *c = buffer; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    return buffer;
}

/* "0.4ms", "28ms", "1.5s", "12m", "3h". Returns the buffer. */
static const char *answer_span(double seconds, char *buffer, size_t size)
{
    static const struct {
        double below, unit;
        const char *name;
    } units[] = { { 1, 1e-3, "ms" }, { 120, 1, "s" }, { 7200, 60, "m" }, { 172800, 3600, "h" } };
    double unit = 86400;
    const char *name = "d";
    char number[32];

    for (size_t i = sizeof units / sizeof *units; i-- > 0;) {
        if (seconds < units[i].below) {
            unit = units[i].unit;
            name = units[i].name;
        }
    }
    snprintf(buffer, size, "%s%s", frequency_number(seconds / unit, number, sizeof number), name);
    return buffer;
}

static void answer_print_heading(const plan_answer *a)
{
    char rate[32], latency[32], load[32], most[32];

    printf("%s%s%s arrive%s, a call takes %s%s, at most %d in flight%s", a->domain ? a->domain : "",
           a->domain ? ": " : "", frequency_format(a->request.rate, rate, sizeof rate),
           a->rate_from, answer_span(a->request.seconds, latency, sizeof latency), a->latency_from,
           a->request.limit, a->limit_from);
    if (a->limit_rate > 0)
        printf(", to keep calls at %s or below",
               frequency_format(a->limit_rate, most, sizeof most));
    printf(".\nThat is %s calls in flight on average, were there no limit.\n",
           frequency_number(a->plan.load, load, sizeof load));
}

static void answer_print_measured(const plan_answer *a)
{
    const plan_load *l = a->load;
    char window[32], busiest[32], variation[32];

    if (!l)
        return;
    printf("measured over %s: %lld arrivals (%lld of them retries), %lld runs; busiest minute %s",
           answer_span(l->seconds, window, sizeof window), (long long)l->arrivals,
           (long long)l->retries, (long long)l->runs,
           frequency_format(l->busiest, busiest, sizeof busiest));
    if (l->runs > 1)
        printf("; times vary by %s of their mean",
               frequency_number(l->variation, variation, sizeof variation));
    printf("\nnow: %d instances with %d slots, fleet-limit ", l->instances, l->slots);
    if (l->fleet_limit > 0)
        printf("%d", l->fleet_limit);
    else
        printf("none");
    printf(", %lld in the queue\n", (long long)l->depth);
}

static void answer_add_wait(grid *g, const plan_option *o)
{
    char mean[32], rare[32];

    if (o->carries) {
        grid_add(g, GRID_PLAIN, "%s", answer_span(o->mean_wait, mean, sizeof mean));
        grid_add(g, GRID_PLAIN, "%s", answer_span(o->rare_wait, rare, sizeof rare));
    } else {
        grid_add(g, GRID_RED, "grows");
        grid_add(g, GRID_PLAIN, "-");
    }
}

/* "recommended", "as now", "only with fleet-limit", those of them that are true. */
static void answer_add_note(grid *g, const plan_answer *a, const plan_option *o, bool recommended)
{
    const struct {
        bool is_true;
        const char *text;
    } notes[] = { { recommended, "recommended" },
                  { o->is_present, "as now" },
                  { o->slots > a->request.limit, "only with fleet-limit" } };
    char all[64] = "";

    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++) {
        if (notes[i].is_true)
            text_append(all, sizeof all, "%s%s", *all ? ", " : "", notes[i].text);
    }
    grid_add(g, recommended ? GRID_GREEN : GRID_PLAIN, "%s", *all ? all : "-");
}

static void answer_add_option(grid *g, const plan_answer *a, size_t i)
{
    const plan_option *o = &a->plan.options[i];
    bool recommended = a->plan.carries && i == a->plan.best;
    char n[32];

    grid_add(g, recommended ? GRID_GREEN : GRID_PLAIN, "%d x %d = %d", o->replicas, o->each,
             o->slots);
    grid_add(g, GRID_PLAIN, "%d", o->in_flight);
    grid_add(g, GRID_PLAIN, "%s", frequency_format(o->possible, n, sizeof n));
    grid_add(g, GRID_PLAIN, "%s", frequency_format(o->throughput, n, sizeof n));
    grid_add(g, o->carries ? GRID_PLAIN : GRID_RED, "%s%s", o->headroom < 0 ? "-" : "",
             frequency_format(fabs(o->headroom), n, sizeof n));
    grid_add(g, o->utilisation > 0.8 ? GRID_YELLOW : GRID_PLAIN, "%.0f%%", o->utilisation * 100);
    answer_add_wait(g, o);
    grid_add(g, o->left_carries ? GRID_PLAIN : GRID_YELLOW, "%s",
             frequency_format(o->left_possible, n, sizeof n));
    grid_add(g, GRID_PLAIN, "%d", o->surge_in_flight);
    grid_add(g, GRID_PLAIN, "%d", o->worst_in_flight);
    answer_add_note(g, a, o, recommended);
}

static void answer_print_options(const plan_answer *a)
{
    static const char *const headers[] = { ">OPTION",   ">IN FLIGHT", ">POSSIBLE",    ">THROUGHPUT",
                                           ">HEADROOM", ">USED",      ">WAIT",        ">WAIT P99",
                                           ">ONE LOST", ">SURGE",     ">TERMINATING", "NOTE",
                                           NULL };
    OWNED(grid) g = grid_new(headers);

    for (size_t i = 0; i < a->plan.n; i++)
        answer_add_option(g, a, i);
    putchar('\n');
    grid_print(stdout, g, output_has_colour(stdout));
    putchar('\n');
}

/* What would help. Faster calls do not where calls a second are limited: fewer may be in flight
 * then. */
static void answer_print_ways_out(const plan_answer *a)
{
    const plan_request *r = &a->request;
    char rate[32], spare[32], latency[32], possible[32];

    if (a->limit_rate > 0)
        printf(
            "  An API that takes more than %s would just carry it, %s with a fifth to spare: talk with who "
            "owns it.\n",
            frequency_format(r->rate, rate, sizeof rate),
            frequency_format(r->rate / 0.8, spare, sizeof spare));
    else
        printf(
            "  A limit of %lld would just carry it, %lld with a fifth to spare: talk with who owns the API.\n"
            "  Or calls that take less than %s.\n",
            (long long)a->plan.least, (long long)a->plan.pleasant,
            answer_span(r->limit / r->rate, latency, sizeof latency));
    printf(
        "  Or less than %s of them.\n"
        "  Or nothing, if this is a peak: the queue keeps what waits, and no more than the limit is in "
        "flight.\n",
        frequency_format(r->limit / r->seconds, possible, sizeof possible));
}

static void answer_print_advice(const plan_answer *a)
{
    const plan_option *best = &a->plan.options[a->plan.best];
    char why[PLAN_TEXT], time[32], busiest[32];

    if (!a->plan.carries) {
        printf("! %s\n", plan_why(a, why));
        answer_print_ways_out(a);
        return;
    }
    printf("recommended: %d x %d: %s\n", best->replicas, best->each, plan_why(a, why));
    if (a->plan.pleasant > a->request.limit)
        printf(
            "! used to %.0f%%: above 80%% waits grow fast, and little is left for retries. A limit of %lld would "
            "do.\n",
            best->utilisation * 100, (long long)a->plan.pleasant);
    if (a->load && a->load->busiest > best->possible)
        printf(
            "! the busiest minute had %s, more than is possible, and waited. To plan for it: --rate %s\n",
            frequency_format(a->load->busiest, busiest, sizeof busiest), busiest);
    if (a->load && a->load->depth > 0 && best->headroom > 0)
        printf("What is in the queue now takes %s beside what arrives.\n",
               answer_span((double)a->load->depth / best->headroom, time, sizeof time));
}

static void answer_print_rollout(const plan_answer *a)
{
    const plan_option *best = &a->plan.options[a->plan.best];

    printf(
        "rollout of %d x %d with maxSurge %s (%d more at a time): up to %d calls in flight without fleet-limit, and %d while\n"
        "  Terminating pods still finish theirs, with maxSurge 0 too. With fleet-limit %d it is never more than %d.\n",
        best->replicas, best->each, a->surge, best->surge_pods, best->surge_in_flight,
        best->worst_in_flight, a->request.limit, a->request.limit);
}

static void answer_print_lines_to_paste(const plan_answer *a)
{
    const plan_option *best = &a->plan.options[a->plan.best];
    char slots[128], limit[128];

    printf(
        "\nspec:\n  replicas: %d\n  strategy:\n    rollingUpdate: { maxSurge: 0, maxUnavailable: 1 }\n"
        "  template:\n    spec:\n      containers:\n        - name: worker\n          env:\n"
        "            - { name: %s, value: \"%d\" }\n            - { name: %s, value: \"%d\" }\n",
        best->replicas, plan_variable(a, "CONCURRENT_MESSAGES", slots, sizeof slots), best->each,
        plan_variable(a, "FLEET_LIMIT", limit, sizeof limit), a->request.limit);
}

void plan_print(const cli *c, const plan_answer *a)
{
    answer_print_heading(a);
    answer_print_measured(a);
    answer_print_options(a);
    answer_print_advice(a);
    answer_print_rollout(a);
    if (a->plan.carries)
        answer_print_lines_to_paste(a);
    if (c->quiet)
        return;
    puts("\nassumed:");
    for (const char *const *line = plan_assumptions; *line; line++)
        printf("  %s\n", *line);
}
