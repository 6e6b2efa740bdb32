/* Prometheus' own linter reads a scrape. deploy/local/deps --tests fetches it. WRK.19. */
#include "metrics.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static registry_entry types[] = { { .command_type = "Book\"Fx\"" },
                                  { .command_type = "Unwind\nFx" } };
static const registry two = { types, 2 };
static const cb_process_kind kinds[] = { { .process_type = "Pay\\ment" },
                                         { .process_type = "Refund" } };
static const metrics_domain domains[] = {
    { .domain = "fx", .types = &two, .slots = 5, .kinds = kinds, .n_kinds = 2, .process_slots = 3 },
    { .domain = "risk", .types = &two, .slots = 7 }
};
static const metrics_now now[] = { { .in_flight = 4, .running = 3, .overdue = 2 },
                                   { .in_flight = 0 } };

/* The installed one, or what deps put into build/tools. The caller frees it. */
static char *find_promtool(void)
{
    const char *source = getenv("COMMANDBUS_SOURCE_DIR");
    char *path = NULL;

    cr_assert_not_null(source, "start the tests with tests/run");
    cr_assert_gt(asprintf(&path, "%s/build/tools/promtool", source), 0);
    if (access(path, X_OK) == 0)
        return path;
    free(path);
    cr_assert_eq(system("command -v promtool >/dev/null"), 0,
                 "there is no promtool: run deploy/local/deps --tests");
    return strdup("promtool");
}

/* What it prints goes to the test's output; returns its exit code. */
static int check(const char *text)
{
    char *promtool = find_promtool(), *command = NULL;

    cr_assert_gt(asprintf(&command, "'%s' check metrics", promtool), 0);
    FILE *pipe = popen(command, "w");
    cr_assert_not_null(pipe);
    fputs(text, pipe);
    int status = pclose(pipe);
    free(command);
    free(promtool);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Test(promtool, has_nothing_to_say_about_a_scrape_in_which_everything_happened)
{
    metrics *m = NULL;
    char *text = NULL;
    cb_error e;

    cr_assert(metrics_open(domains, 2, &m, &e));
    for (int i = 0; i < 100; i++) {
        metrics_claim(m, 0, 5, 1, 1);
        metrics_outcome(m, 0, i % 3 - 1, (cb_outcome)(i % 5), (cb_verdict)(i % 4), NULL);
        metrics_run(m, 0, i % 3 - 1, i * 3331);
        metrics_wait(m, 1, i * 77777);
        metrics_settle(m, (size_t)i, i * 55);
    }
    for (int i = 0; i < CONNECTIONS; i++) {
        metrics_connection_up(m, (connection_name)i, true);
        metrics_reconnect(m, (connection_name)i);
    }
    for (int i = 0; i < 100; i++) {
        metrics_process_claim(m, 0, 1, &(cb_process_look){ .delivered = 2, .late = 1 });
        metrics_timer_lag(m, 0, i * 999);
        metrics_process_run(m, 0, (size_t)i % 2,
                            &(process_run){ .status = i % 3 ? "COMPLETED" : "WAITING_FOR_TSQ",
                                            .steps = 2,
                                            .took_us = i,
                                            .age_ms = 77 });
        metrics_process_step(m, 0, i);
        metrics_process_settled(m, 0, i % 2);
        metrics_process_waited(m, 0, (size_t)i % 2, i % 3, i % 5 ? "ask" : "a\"w", i * 77777);
    }
    for (int by = 0; by < FIGURES; by++) {
        metrics_figure *figures = calloc(2, sizeof *figures);
        cr_assert(figures);
        figures[0] =
            (metrics_figure){ "Refund", "WAITING_FOR_REPLY", "", 7, 1, 61000000, 3700000001 };
        figures[1] = (metrics_figure){ "Refund", "WAITING_FOR_TSQ", "A\"B", 1, 2, 0, 0 };
        metrics_figures_adopt(m, (figures_by)by, figures, 2);
    }
    metrics_fleet_figure *fleet = calloc(1, sizeof *fleet);
    cr_assert(fleet);
    *fleet = (metrics_fleet_figure){ "fx", 3, 6, 5, 2, 1500000 };
    metrics_fleet_adopt(m, fleet, 1);
    metrics_sample(m, 0, &(cb_queue_sample){ .depth = 12, .oldest_due_seconds = 0.25 });

    cr_assert(metrics_render(m, now, true, "a\\b \"c\"", "1.2.3", &text, &e));
    cr_expect_eq(check(text), 0, "%s", text);
    free(text);
    metrics_free(m);
}

Test(promtool, has_nothing_to_say_about_a_scrape_before_anything_happened)
{
    metrics *m = NULL;
    char *text = NULL;
    cb_error e;

    cr_assert(metrics_open(domains, 2, &m, &e));
    cr_assert(metrics_render(m, now, false, "w", "1.2.3", &text, &e));
    cr_expect_eq(check(text), 0, "%s", text);
    free(text);
    metrics_free(m);
}

Test(promtool, would_say_something)
{
    cr_expect_neq(check("# HELP sent_total Sent.\n# TYPE sent_total gauge\nsent_total 1\n"), 0);
}
