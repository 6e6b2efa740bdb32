/* What is counted, and how a scrape reads. */
#include "metrics.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metrics_state.h"

static registry_entry fx_types[] = { { .command_type = "BookFx" }, { .command_type = "UnwindFx" } };
static const registry fx = { fx_types, 2 };
static registry_entry odd_types[] = { { .command_type = "A\"b\\c\nd" },
                                      { .command_type = "unknown" } };
static const registry odd = { odd_types, 2 };

static const metrics_domain domains[] = { { .domain = "fx", .types = &fx, .slots = 5 },
                                          { .domain = "odd", .types = &odd, .slots = 7 } };
static const metrics_now now[] = { { .in_flight = 4, .running = 3, .overdue = 2 },
                                   { .in_flight = 0 } };

static metrics *open_metrics(void)
{
    metrics *m = NULL;
    cb_error e;

    cr_assert(metrics_open(domains, 2, &m, &e), "%s", e.message);
    return m;
}

static char *render(const metrics *m)
{
    char *text = NULL;
    cb_error e;

    cr_assert(metrics_render(m, now, true, "host-1", "1.2.3", &text, &e), "%s", e.message);
    return text;
}

static bool has_line(const char *text, const char *line)
{
    size_t n = strlen(line);

    for (const char *c = text; (c = strstr(c, line)); c++) {
        if ((c == text || c[-1] == '\n') && c[n] == '\n')
            return true;
    }
    return false;
}

/* One line of the scrape is there. */
#define expect_line(text, line) \
    cr_expect(has_line((text), (line)), "no line '%s' in:\n%s", line, text)

static void finish(metrics *m, char *text)
{
    free(text);
    metrics_free(m);
}

Test(metrics, every_family_has_its_help_and_type_once_before_its_samples)
{
    metrics *m = open_metrics();
    char *text = render(m), *state = NULL, family[128] = "";
    int families = 0;

    for (char *line = strtok_r(text, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
        if (strncmp(line, "# HELP ", 7) == 0) {
            sscanf(line, "# HELP %127s", family);
            line = strtok_r(NULL, "\n", &state);
            cr_assert_eq(strncmp(line, "# TYPE ", 7), 0, "%s", line);
            cr_assert_eq(strncmp(line + 7, family, strlen(family)), 0, "%s", line);
            families++;
        } else {
            cr_assert_eq(strncmp(line, family, strlen(family)), 0, "%s in %s", line, family);
        }
    }
    cr_assert_eq(families, 61);
    finish(m, text);
}

Test(metrics, the_moment_of_the_scrape_is_shown)
{
    metrics *m = open_metrics();
    char *text = render(m);

    expect_line(text, "commandbus_worker_info{worker=\"host-1\",version=\"1.2.3\"} 1");
    expect_line(text, "commandbus_ready 1");
    expect_line(text, "commandbus_slots{domain=\"fx\"} 5");
    expect_line(text, "commandbus_slots{domain=\"odd\"} 7");
    expect_line(text, "commandbus_in_flight{domain=\"fx\"} 4");
    expect_line(text, "commandbus_running{domain=\"fx\"} 3");
    expect_line(text, "commandbus_overdue{domain=\"fx\"} 2");
    finish(m, text);
}

Test(metrics, a_claim_counts_what_came_and_what_did_not_come_through)
{
    metrics *m = open_metrics();

    metrics_claim(m, 0, 10, 2, 1);
    metrics_claim(m, 0, 5, 0, 0);

    char *text = render(m);
    expect_line(text, "commandbus_claimed_total{domain=\"fx\"} 15");
    expect_line(text, "commandbus_poison_archived_total{domain=\"fx\"} 2");
    expect_line(text, "commandbus_lease_exhausted_total{domain=\"fx\"} 1");
    expect_line(text, "commandbus_claimed_total{domain=\"odd\"} 0");
    finish(m, text);
}

Test(metrics, an_outcome_counts_once_under_its_type_when_it_is_settled)
{
    metrics *m = open_metrics();

    metrics_outcome(m, 0, 0, CB_SUCCESS, CB_SETTLED, NULL);
    metrics_outcome(m, 0, 0, CB_SUCCESS, CB_ALREADY, NULL);
    metrics_outcome(m, 0, 0, CB_SUCCESS, CB_BUSY, NULL);
    metrics_outcome(m, 0, 1, CB_BUSINESS_RULE, CB_SETTLED, "LIMIT");
    metrics_outcome(m, 0, 1, CB_INTERRUPTED, CB_SETTLED, NULL);

    char *text = render(m);
    expect_line(text, "commandbus_outcomes_total{domain=\"fx\",command_type=\"BookFx\","
                      "outcome=\"success\"} 2");
    expect_line(text, "commandbus_outcomes_total{domain=\"fx\",command_type=\"UnwindFx\","
                      "outcome=\"business_rule\"} 1");
    expect_line(text, "commandbus_outcomes_total{domain=\"fx\",command_type=\"UnwindFx\","
                      "outcome=\"interrupted\"} 1");
    expect_line(text, "commandbus_outcomes_total{domain=\"fx\",command_type=\"BookFx\","
                      "outcome=\"permanent\"} 0");
    cr_expect_eq(metrics_settled(m, 0), 4);
    finish(m, text);
}

/* WRK.8 */
Test(metrics, a_timeout_and_a_stale_outcome_have_counters_of_their_own)
{
    metrics *m = open_metrics();

    metrics_outcome(m, 0, 0, CB_TRANSIENT, CB_SETTLED, "HANDLER_TIMEOUT");
    metrics_outcome(m, 0, 0, CB_SUCCESS, CB_STALE, NULL);

    char *text = render(m);
    expect_line(text, "commandbus_handler_timeouts_total{domain=\"fx\"} 1");
    expect_line(text, "commandbus_stale_outcomes_total{domain=\"fx\"} 1");
    expect_line(text, "commandbus_outcomes_total{domain=\"fx\",command_type=\"BookFx\","
                      "outcome=\"success\"} 0");
    cr_expect_eq(metrics_settled(m, 0), 1);
    finish(m, text);
}

/* WRK.8 */
Test(metrics, types_that_nobody_offers_share_one_series)
{
    metrics *m = open_metrics();

    metrics_outcome(m, 0, -1, CB_PERMANENT, CB_SETTLED, "HANDLER_NOT_FOUND");
    metrics_outcome(m, 0, -1, CB_PERMANENT, CB_SETTLED, "HANDLER_NOT_FOUND");

    char *text = render(m);
    expect_line(text, "commandbus_outcomes_total{domain=\"fx\",command_type=\"unknown\","
                      "outcome=\"permanent\"} 2");
    finish(m, text);
}

static size_t count_of(const char *text, const char *part)
{
    size_t n = 0;

    while ((text = strstr(text, part))) {
        text += strlen(part);
        n++;
    }
    return n;
}

/* STP.16: code may make names as it runs */
Test(metrics, names_of_waits_without_a_place_share_one_series)
{
    static const cb_process_kind kind = { .process_type = "Loop", .domain = "fx", .version = 1 };
    static const metrics_domain one = {
        .domain = "fx", .types = &fx, .kinds = &kind, .n_kinds = 1
    };
    static const metrics_now idle = { 0 };
    metrics *m = NULL;
    char name[20], *text = NULL;
    cb_error e = { 0 };

    cr_assert(metrics_open(&one, 1, &m, &e), "%s", e.message);
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "wait-%d", i % 100);
        metrics_process_waited(m, 0, 0, i % 100 == 99, name, 1000);
    }
    cr_assert(metrics_render(m, &idle, true, "w", "1", &text, &e));

    const char of_type[] = "commandbus_process_wait_duration_seconds_count{domain=\"fx\","
                           "process_type=\"Loop\",name=\"";
    cr_expect_eq(count_of(text, of_type), METRICS_NAMES);
    expect_line(text, "commandbus_process_wait_duration_seconds_count{domain=\"fx\","
                      "process_type=\"Loop\",name=\"wait-30\"} 2");
    expect_line(text, "commandbus_process_wait_duration_seconds_count{domain=\"fx\","
                      "process_type=\"Loop\",name=\"other\"} 136");
    expect_line(text, "commandbus_process_command_duration_seconds_count{domain=\"fx\","
                      "process_type=\"Loop\",name=\"wait-99\"} 2");
    finish(m, text);
}

Test(metrics, a_type_that_is_really_called_unknown_makes_no_series_twice)
{
    metrics *m = open_metrics();
    const char series[] = "commandbus_outcomes_total{domain=\"odd\",command_type=\"unknown\","
                          "outcome=\"success\"} 2\n";

    metrics_outcome(m, 1, 1, CB_SUCCESS, CB_SETTLED, NULL);
    metrics_outcome(m, 1, -1, CB_SUCCESS, CB_SETTLED, NULL);

    char *text = render(m), *found = strstr(text, series);
    cr_assert_not_null(found, "%s", text);
    cr_expect_null(strstr(found + strlen(series),
                          "{domain=\"odd\",command_type=\"unknown\",outcome=\"success\"}"));
    finish(m, text);
}

Test(metrics, label_values_are_escaped)
{
    metrics *m = open_metrics();
    char *text = render(m);

    expect_line(text, "commandbus_outcomes_total{domain=\"odd\",command_type=\"A\\\"b\\\\c\\nd\","
                      "outcome=\"success\"} 0");
    finish(m, text);
}

Test(metrics, a_histogram_is_cumulative_and_in_seconds)
{
    metrics *m = open_metrics();
    const char name[] = "commandbus_handler_duration_seconds";

    metrics_run(m, 0, 0, 1000);      /* on the bound of 1 ms: inside */
    metrics_run(m, 0, 0, 1001);      /* just above */
    metrics_run(m, 0, 0, 400000000); /* above all bounds */
    metrics_run(m, 0, 0, -5);        /* a clock went back */

    char *text = render(m), line[160];
    const char *const expected[][2] = {
        { "_bucket{domain=\"fx\",command_type=\"BookFx\",le=\"0.0005\"}", "1" },
        { "_bucket{domain=\"fx\",command_type=\"BookFx\",le=\"0.001\"}", "2" },
        { "_bucket{domain=\"fx\",command_type=\"BookFx\",le=\"0.0025\"}", "3" },
        { "_bucket{domain=\"fx\",command_type=\"BookFx\",le=\"300\"}", "3" },
        { "_bucket{domain=\"fx\",command_type=\"BookFx\",le=\"+Inf\"}", "4" },
        { "_sum{domain=\"fx\",command_type=\"BookFx\"}", "400.002001" },
        { "_count{domain=\"fx\",command_type=\"BookFx\"}", "4" },
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        snprintf(line, sizeof line, "%s%s %s", name, expected[i][0], expected[i][1]);
        expect_line(text, line);
    }
    finish(m, text);
}

Test(metrics, flushes_are_counted_by_size_and_duration)
{
    metrics *m = open_metrics();

    metrics_settle(m, 1, 700);
    metrics_settle(m, 100, 1500);
    metrics_refused(m, 3);

    char *text = render(m);
    expect_line(text, "commandbus_settle_batch_size_bucket{le=\"1\"} 1");
    expect_line(text, "commandbus_settle_batch_size_bucket{le=\"100\"} 2");
    expect_line(text, "commandbus_settle_batch_size_sum 101");
    expect_line(text, "commandbus_settle_batch_size_count 2");
    expect_line(text, "commandbus_settle_duration_seconds_bucket{le=\"0.001\"} 1");
    expect_line(text, "commandbus_settle_duration_seconds_sum 0.002200");
    expect_line(text, "commandbus_settle_refused_total 3");
    finish(m, text);
}

Test(metrics, what_is_not_known_is_not_there)
{
    metrics *m = open_metrics();

    char *before = render(m);
    cr_expect_null(strstr(before, "commandbus_queue_depth{"));
    cr_expect_null(strstr(before, "commandbus_queue_oldest_due_seconds{"));
    cr_expect_null(strstr(before, "commandbus_connection_up{"));
    free(before);

    metrics_sample(m, 0, &(cb_queue_sample){ .depth = 12, .oldest_due_seconds = 1.5 });
    metrics_sample(m, 1, &(cb_queue_sample){ .depth = -1 });
    metrics_connection_up(m, CONNECTION_CLAIM, true);
    metrics_connection_up(m, CONNECTION_LISTEN, false);
    metrics_reconnect(m, CONNECTION_LISTEN);

    char *text = render(m);
    expect_line(text, "commandbus_queue_depth{domain=\"fx\"} 12");
    expect_line(text, "commandbus_queue_oldest_due_seconds{domain=\"fx\"} 1.500000");
    expect_line(text, "commandbus_connection_up{connection=\"claim\"} 1");
    expect_line(text, "commandbus_connection_up{connection=\"listen\"} 0");
    expect_line(text, "commandbus_reconnects_total{connection=\"listen\"} 1");
    cr_expect_null(strstr(text, "commandbus_queue_depth{domain=\"odd\"}"));
    cr_expect_null(strstr(text, "commandbus_connection_up{connection=\"effect\"}"));
    finish(m, text);
}

Test(metrics, the_rest_is_counted_too)
{
    metrics *m = open_metrics();

    metrics_renewed(m, 0, 5, 1);
    metrics_released(m, 0, 2);
    metrics_notified(m);
    metrics_housekeeping(m, 1, 200, 3, 4);
    metrics_wait(m, 0, 3000);

    char *text = render(m);
    expect_line(text, "commandbus_renewals_total{domain=\"fx\"} 5");
    expect_line(text, "commandbus_leases_lost_total{domain=\"fx\"} 1");
    expect_line(text, "commandbus_released_unknown_total{domain=\"fx\"} 2");
    expect_line(text, "commandbus_notifications_total 1");
    expect_line(text, "commandbus_housekeeping_batches_closed_total 1");
    expect_line(text, "commandbus_housekeeping_rows_purged_total 200");
    expect_line(text, "commandbus_housekeeping_messages_restored_total 3");
    expect_line(text, "commandbus_housekeeping_replies_restored_total 4");
    expect_line(text, "commandbus_queue_wait_seconds_bucket{domain=\"fx\",le=\"0.004\"} 1");
    expect_line(text, "commandbus_queue_wait_seconds_sum{domain=\"fx\"} 0.003000");
    finish(m, text);
}

Test(metrics, domains_of_the_database_are_shown_whoever_serves_them)
{
    metrics *m = open_metrics();
    metrics_fleet_figure *figures = calloc(2, sizeof *figures);
    cr_assert(figures);
    figures[0] = (metrics_fleet_figure){ "fx", .instances = 3, .limit = 6, .leases = 5 };
    figures[1] = (metrics_fleet_figure){ "risk", .in_tsq = 2, .oldest_due_us = 61500000 };

    metrics_fleet_adopt(m, figures, 2);

    char *text = render(m);
    expect_line(text, "commandbus_fleet_instances{domain=\"fx\"} 3");
    expect_line(text, "commandbus_fleet_instances{domain=\"risk\"} 0");
    expect_line(text, "commandbus_fleet_limit{domain=\"fx\"} 6");
    expect_line(text, "commandbus_fleet_leases{domain=\"fx\"} 5");
    expect_line(text, "commandbus_fleet_oldest_due_seconds{domain=\"risk\"} 61.500000");
    expect_line(text, "commandbus_tsq_commands{domain=\"risk\"} 2");
    cr_expect_null(strstr(text, "commandbus_fleet_limit{domain=\"risk\"}"), "a limit of none");
    cr_expect_null(strstr(text, "commandbus_fleet_leases{domain=\"risk\"}"), "leases not counted");
    finish(m, text);
}

static void *count_many(void *arg)
{
    for (int i = 0; i < 100000; i++) {
        metrics_outcome(arg, 0, 0, CB_SUCCESS, CB_SETTLED, NULL);
        metrics_run(arg, 0, 0, 1000);
    }
    return NULL;
}

Test(metrics, threads_lose_no_count)
{
    metrics *m = open_metrics();
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, count_many, m), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);

    char *text = render(m);
    cr_expect_eq(metrics_settled(m, 0), 400000);
    expect_line(text, "commandbus_handler_duration_seconds_count{domain=\"fx\",command_type="
                      "\"BookFx\"} 400000");
    expect_line(text, "commandbus_handler_duration_seconds_sum{domain=\"fx\",command_type="
                      "\"BookFx\"} 400.000000");
    finish(m, text);
}

Test(metrics, a_worker_without_domains_renders_too)
{
    metrics *m = NULL;
    char *text = NULL;
    cb_error e;

    cr_assert(metrics_open(NULL, 0, &m, &e));
    cr_assert(metrics_render(m, NULL, false, "host-1", "1.2.3", &text, &e));

    expect_line(text, "commandbus_ready 0");
    finish(m, text);
}

Test(histogram, bounds_ascend_and_read_as_they_are)
{
    const struct {
        const histogram_scale *scale;
        double unit;
    } scales[] = { { &histogram_run, 1e6 },
                   { &histogram_wait, 1e6 },
                   { &histogram_brief, 1e6 },
                   { &histogram_items, 1 } };

    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        for (size_t j = 0; j < scales[i].scale->n; j++) {
            const histogram_bound *bound = &scales[i].scale->bounds[j];
            double read = strtod(bound->le, NULL) * scales[i].unit;
            cr_expect_eq((int64_t)(read + 0.5), bound->most, "%s", bound->le);
            cr_expect(j == 0 || bound->most > bound[-1].most, "%s", bound->le);
        }
    }
}
