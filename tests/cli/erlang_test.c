/* How long work waits for a free slot: against what is published, exact fractions, and a
 * simulation. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "plan.h"

#define expect_near(found, expected, tolerance)                                             \
    cr_expect_lt(fabs((found) - (expected)), (tolerance), "%s is %.12g, not %.12g", #found, \
                 (double)(found), (double)(expected))

Test(erlang, with_one_slot_the_chance_to_wait_is_the_utilisation) /* RL.6 */
{
    for (double load = 0.05; load < 1; load += 0.05) {
        expect_near(erlang_c(1, load), load, 1e-12);
        /* M/M/1: utilisation / (calls possible − arrivals), calls of a second. */
        expect_near(erlang_mean_wait(1, load, 1), load / (1 - load), 1e-9);
    }
}

/* By the definition with its factorials, in exact fractions. */
Test(erlang, agrees_with_the_definition) /* RL.6 */
{
    static const struct {
        int slots;
        double load, chance;
    } known[] = {
        { 2, 1, 1.0 / 3 },
        { 3, 2, 4.0 / 9 },
        { 5, 4, 0.5541125541125541 },
        { 6, 4, 0.28476084538375973 },
        { 10, 8, 0.40918015079644354 },
        { 100, 80, 0.01964642663435951 },
        { 200, 190, 0.3652638565625464 },
        { 1000, 950, 0.06825341537714143 },
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        expect_near(erlang_c(known[i].slots, known[i].load), known[i].chance, 1e-12);
}

/* The example of every text on call centres: 200 calls of three minutes an hour, 14 agents. 17.4 %
 * wait, the mean wait is 7.8 s, 88.8 % are answered within 20 s. */
Test(erlang, agrees_with_the_call_centre_of_the_textbooks) /* RL.6 */
{
    double rate = 200.0 / 3600, answered = 1 - 0.888;

    expect_near(erlang_c(14, rate * 180), 0.174, 0.0005);
    expect_near(erlang_mean_wait(14, rate, 180), 7.8, 0.05);
    expect_near(erlang_rare_wait(14, rate, 180, 1 / answered), 20, 0.2);
}

Test(erlang, a_rare_wait_is_the_tail_of_the_distribution) /* RL.6 */
{
    /* P(wait > t) = C exp(−(possible − rate) t), which is 1 in 100 at that t. */
    double rare = erlang_rare_wait(6, 20, 0.2, 100);

    expect_near(erlang_c(6, 4) * exp(-(6 / 0.2 - 20) * rare), 0.01, 1e-12);
    cr_expect_eq(erlang_rare_wait(6, 0.1, 0.2, 100), 0, "fewer than one in a hundred wait at all");
}

Test(erlang, waits_grow_with_the_load_and_shrink_with_slots) /* RL.6 */
{
    for (int slots = 1; slots <= 64; slots *= 2) {
        double last = 0;
        for (double used = 0.1; used < 0.99; used += 0.1) {
            double wait = erlang_mean_wait(slots, used * slots, 1);
            cr_expect_gt(wait, last);
            cr_expect_lt(erlang_mean_wait(slots + 1, used * slots, 1), wait);
            last = wait;
        }
    }
}

/* Powers and factorials would have ended at some 170 slots. */
Test(erlang, stays_a_number_up_to_ten_thousand_slots) /* RL.6 */
{
    static const double loads[] = { DBL_MIN, 1e-9, 1, 5000, 9900, 9999, 9999.999999 };

    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        double chance = erlang_c(10000, loads[i]);
        cr_expect(chance >= 0 && chance <= 1, "%g at load %g", chance, loads[i]);
        cr_expect(isfinite(erlang_mean_wait(10000, loads[i], 1)));
        cr_expect(isfinite(erlang_rare_wait(10000, loads[i], 1, 100)));
    }
    cr_expect_eq(erlang_c(10000, 10000), 1);
    cr_expect_eq(erlang_c(5, 1e300), 1);
}

/* The first to become free; `free_at` are the slots' times. */
static double *first_free(double *free_at, int slots)
{
    double *first = free_at;

    for (int i = 1; i < slots; i++)
        first = free_at[i] < *first ? &free_at[i] : first;
    return first;
}

static double exponential(double mean)
{
    return -mean * log1p(-drand48());
}

Test(erlang, agrees_with_a_simulated_queue) /* RL.6 */
{
    enum {
        SLOTS = 6,
        ARRIVALS = 1000000
    };
    double free_at[SLOTS] = { 0 }, now = 0, waited = 0,
           rare = erlang_rare_wait(SLOTS, 24, 0.2, 100);
    int waiting = 0, longer = 0;

    srand48(20260301);
    for (int i = 0; i < ARRIVALS; i++) {
        double *slot = first_free(free_at, SLOTS);
        now += exponential(1.0 / 24);
        double wait = fmax(*slot - now, 0);
        *slot = now + wait + exponential(0.2);
        waited += wait;
        waiting += wait > 0;
        longer += wait > rare;
    }

    expect_near((double)waiting / ARRIVALS, erlang_c(SLOTS, 24 * 0.2), 0.01);
    expect_near(waited / ARRIVALS / erlang_mean_wait(SLOTS, 24, 0.2), 1, 0.05);
    expect_near((double)longer / ARRIVALS, 0.01, 0.002);
}
