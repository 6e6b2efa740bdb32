/* Dividing a limit: which options there are, what each can do, and which is recommended. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plan.h"

/* Kubernetes's surge, and three replicas wanted, as the command has it by default. */
static plan_request asked(int limit, double rate, double seconds)
{
    return (plan_request){ .limit = limit,
                           .rate = rate,
                           .seconds = seconds,
                           .surge = 25,
                           .surge_is_percent = true,
                           .min_replicas = 3,
                           .max_replicas = 12 };
}

static plan_request asked_between(int limit, double rate, int min_replicas, int max_replicas)
{
    plan_request r = asked(limit, rate, 0.2);

    r.min_replicas = min_replicas;
    r.max_replicas = max_replicas;
    return r;
}

static plan p;

/* "1x6 2x3 3x2 6x1*", with a star at the best. */
static const char *options_of(plan_request request)
{
    static char text[1024];

    plan_make(&request, &p);
    text[0] = '\0';
    for (size_t i = 0; i < p.n; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%dx%d%s", i ? " " : "", p.options[i].replicas,
                 p.options[i].each, i == p.best ? "*" : "");
    }
    return text;
}

static void make_plan(plan_request request)
{
    plan_make(&request, &p);
}

static const plan_option *best(void)
{
    return &p.options[p.best];
}

#define expect_equal(found, expected) \
    cr_expect_lt(fabs((found) - (expected)), 1e-9, "%s is %.12g", #found, (double)(found))

Test(plan, a_limit_is_divided_in_every_way_that_uses_it) /* RL.6 */
{
    cr_expect_str_eq(options_of(asked(6, 10, 0.2)), "1x6 2x3 3x2* 6x1");
    cr_expect_str_eq(options_of(asked(1, 1, 0.2)), "1x1*");
    cr_expect_str_eq(options_of(asked(12, 1, 0.2)), "1x12 2x6 3x4* 4x3 6x2 12x1");
}

/* S4's example: 2 × 2 is below 5, 3 × 2 above it, which only fleet-limit keeps. */
Test(plan, where_dividing_leaves_much_unused_there_is_one_above_the_limit) /* RL.6 */
{
    cr_expect_str_eq(options_of(asked(5, 10, 0.2)), "1x5 2x2 3x2 5x1*");
    cr_expect_eq(p.options[2].slots, 6);
    cr_expect_eq(p.options[2].in_flight, 5);
    expect_equal(p.options[2].possible, 25);
}

/* RL.4's table, which tests/fleet/adaptive_test.sh measures: 5 slots. */
Test(plan, calls_a_second_are_those_that_a_fleet_makes) /* RL.4, RL.6 */
{
    static const struct {
        double seconds, calls;
    } table[] = { { 0.2, 25 }, { 2, 2.5 }, { 10, 0.5 } };

    for (size_t i = 0; i < 3; i++) {
        make_plan(asked(5, 100, table[i].seconds));
        expect_equal(best()->possible, table[i].calls);
        expect_equal(best()->throughput, table[i].calls);
    }
}

Test(plan, headroom_utilisation_and_waits_follow_from_the_load) /* RL.6 */
{
    make_plan(asked(6, 20, 0.2));

    expect_equal(p.load, 4);
    expect_equal(best()->headroom, 10);
    expect_equal(best()->throughput, 20);
    expect_equal(best()->utilisation, 4.0 / 6);
    expect_equal(best()->wait_chance, 0.28476084538375973);
    expect_equal(best()->mean_wait, 0.028476084538375973);
    cr_expect_gt(best()->rare_wait, best()->mean_wait);
    cr_expect(p.carries);
}

/* 20/s × 200 ms is not a hair below four calls: four slots are overloaded. */
Test(plan, exactly_as_much_as_possible_is_overloaded) /* RL.6 */
{
    make_plan(asked(4, 20, 0.2));

    cr_expect(!p.carries);
    cr_expect_eq(best()->headroom, 0);
    cr_expect_eq(best()->mean_wait, 0);
    cr_expect_eq(p.least, 5);
}

Test(plan, overload_says_what_limit_would_do) /* RL.6 */
{
    make_plan(asked(5, 20, 2));

    cr_expect(!p.carries);
    expect_equal(best()->headroom, -17.5);
    expect_equal(best()->utilisation, 8);
    cr_expect_eq(p.least, 41);
    cr_expect_eq(p.pleasant, 50);
}

Test(plan, a_rollout_adds_the_surge_and_terminating_pods) /* RL.6; DESIGN, "The limit, exactly" */
{
    static const struct {
        int surge;
        bool is_percent;
        int pods, in_flight;
    } table[] = {
        { 25, true, 1, 8 },   { 0, true, 0, 6 },  { 34, true, 2, 10 }, { 33, true, 1, 8 },
        { 100, true, 3, 12 }, { 0, false, 0, 6 }, { 2, false, 2, 10 }, { 50, false, 3, 12 },
    };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        plan_request r = asked(6, 10, 0.2);
        r.surge = table[i].surge;
        r.surge_is_percent = table[i].is_percent;
        make_plan(r);
        cr_expect_eq(best()->replicas, 3);
        cr_expect_eq(best()->surge_pods, table[i].pods, "%d", table[i].surge);
        cr_expect_eq(best()->surge_in_flight, table[i].in_flight, "%d", table[i].surge);
        cr_expect_eq(best()->worst_in_flight, 12);
    }
}

Test(plan, recommended_is_what_carries_the_rate_with_one_pod_lost) /* RL.6 */
{
    /* 3 × 2 makes 20/s with two pods, which carries 19/s and not 20/s. */
    cr_expect_str_eq(options_of(asked(6, 19, 0.2)), "1x6 2x3 3x2* 6x1");
    cr_expect(best()->left_carries);
    cr_expect_str_eq(options_of(asked(6, 20, 0.2)), "1x6 2x3 3x2 6x1*");
    expect_equal(best()->left_possible, 25);
    /* Nothing carries 29/s with one lost: then the fewest pods. */
    cr_expect_str_eq(options_of(asked(6, 29, 0.2)), "1x6 2x3 3x2* 6x1");
    cr_expect(!best()->left_carries);
}

Test(plan, recommended_has_the_replicas_that_were_wanted) /* RL.6 */
{
    cr_expect_str_eq(options_of(asked_between(6, 1, 2, 12)), "1x6 2x3* 3x2 6x1");
    cr_expect_str_eq(options_of(asked_between(6, 1, 4, 12)), "1x6 2x3 3x2 6x1*");
    cr_expect_str_eq(options_of(asked_between(2, 1, 4, 12)), "1x2 2x1*");
}

/* Above the limit only where nothing below it carries the rate. */
Test(plan, recommended_keeps_the_limit_by_itself_if_it_can) /* RL.6 */
{
    cr_expect_str_eq(options_of(asked_between(5, 5, 3, 3)), "1x5 2x2 3x1* 3x2");
    cr_expect_str_eq(options_of(asked_between(5, 20, 3, 3)), "1x5 2x2 3x1 3x2*");
}

Test(plan, what_runs_now_is_shown_once_among_the_options) /* RL.6 */
{
    static const struct {
        int replicas, each;
        const char *options;
    } table[] = {
        { 3, 2, "1x6 2x3 3x2* 6x1" },     { 4, 1, "1x6 2x3 3x2* 4x1 6x1" },
        { 3, 1, "1x6 2x3 3x1 3x2* 6x1" }, { 3, 5, "1x6 2x3 3x2* 3x5 6x1" },
        { 4, 2, "1x6 2x3 3x2* 4x2 6x1" }, { 7, 1, "1x6 2x3 3x2* 6x1 7x1" },
        { 13, 1, "1x6 2x3 3x2* 6x1" },    { 0, 0, "1x6 2x3 3x2* 6x1" },
    };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        size_t present = 0;
        plan_request r = asked(6, 10, 0.2);
        r.present_replicas = table[i].replicas;
        r.present_each = table[i].each;
        cr_expect_str_eq(options_of(r), table[i].options, "%d x %d", table[i].replicas,
                         table[i].each);
        for (size_t o = 0; o < p.n; o++)
            present += p.options[o].is_present;
        cr_expect_eq(present, table[i].replicas > 0 && table[i].replicas <= 12, "%d x %d",
                     table[i].replicas, table[i].each);
    }
}

Test(plan, a_rate_limit_is_so_many_calls_in_flight) /* RL.6: Little's law */
{
    cr_expect_eq(plan_limit_for(25, 0.2), 5);
    cr_expect_eq(plan_limit_for(24.9, 0.2), 4);
    cr_expect_eq(plan_limit_for(30, 0.1), 3);
    cr_expect_eq(plan_limit_for(2, 0.2), 0);
    cr_expect_eq(plan_limit_for(1e6, 86400), PLAN_MOST_LIMIT);
}

/* Whatever is asked: no option takes more than the limit, none is there twice, every figure is a
 * number. */
Test(plan, holds_for_every_limit) /* RL.6 */
{
    static const double rates[] = { 1e-5, 1, 20, 1000, 1e6 };

    for (int limit = 1; limit <= PLAN_MOST_LIMIT; limit += limit < 130 ? 1 : 997) {
        for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
            plan_request r = asked(limit, rates[i], 0.25);
            r.max_replicas = PLAN_MOST_REPLICAS;
            r.present_replicas = 5;
            r.present_each = 3;
            make_plan(r);
            cr_assert(p.n > 0 && p.n <= PLAN_MOST_OPTIONS);
            for (size_t o = 0; o < p.n; o++) {
                const plan_option *it = &p.options[o], *last = o ? it - 1 : NULL;
                cr_assert_leq(it->in_flight, limit);
                cr_assert(!last || it->replicas > last->replicas ||
                          (it->replicas == last->replicas && it->each > last->each));
                cr_assert(isfinite(it->mean_wait) && isfinite(it->rare_wait) &&
                          isfinite(it->utilisation) && isfinite(it->headroom));
                cr_assert_eq(it->carries, it->utilisation < 1 - 1e-9);
                cr_assert(it->carries || !it->left_carries);
            }
            cr_assert_eq(p.carries, limit * 4 > rates[i] * (1 + 1e-9), "%d %g", limit, rates[i]);
        }
    }
}
