/* A setting that nobody says: the same in commandbus-worker and in a program that embeds a
 * worker. */
#include "assembly.h"
#include "defaults.h"
#include "engine.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static cb_worker *opened(const cb_worker_options *options)
{
    cb_worker *w = NULL;
    cb_error e = { 0 };

    cr_assert(cb_worker_open(options, &w, &e), "%s", e.message);
    return w;
}

Test(defaults, an_embedded_worker_has_those_of_the_settings)
{
    const char *settings[] = { "domains.sample.enabled=true", "worker.name=test" };
    config_request request = { .settings = settings, .n_settings = CB_COUNT(settings) };
    OWNED(config) c = NULL;
    cb_error e = { 0 };
    assembly parts;
    cr_assert(config_load(&request, NULL, NULL, &c, &e), "%s", e.message);
    free(c->modules_dir);
    c->modules_dir = strdup(getenv("COMMANDBUS_MODULES_DIR"));
    cr_assert(assembly_init(&parts, c, &e), "%s", e.message);

    OWNED(cb_worker) binary = opened(&parts.worker);
    cb_worker_domain_options domain = { .domain = "sample",
                                        .sets = parts.worker.domains[0].sets,
                                        .n_sets = parts.worker.domains[0].n_sets };
    OWNED(cb_worker)
    embedded = opened(
        &(cb_worker_options){ .url = "x", .name = "test", .domains = &domain, .n_domains = 1 });

    const command_lane *a = &binary->domains[0].commands, *b = &embedded->domains[0].commands;
    cr_expect_eq(a->lane.n_slots, b->lane.n_slots);
    cr_expect_eq(a->lane.n_places, b->lane.n_places);
    cr_expect_eq(a->lane.vt_seconds, b->lane.vt_seconds);
    cr_expect_eq(a->lane.claiming.sleep.poll_seconds, b->lane.claiming.sleep.poll_seconds);
    cr_expect_eq(a->lane.claiming.sleep.notify, b->lane.claiming.sleep.notify);
    cr_expect_eq(a->fleet_limit, b->fleet_limit);
    for (int attempt = 1; attempt <= 5; attempt++)
        cr_expect_eq(command_backoff(a, attempt), command_backoff(b, attempt), "attempt %d",
                     attempt);
    cr_expect_eq(binary->kill_grace_seconds, embedded->kill_grace_seconds);
    cr_expect_eq(binary->unknown_grace_seconds, embedded->unknown_grace_seconds);
    cr_expect_eq(binary->result_limit, embedded->result_limit);

    cr_expect_eq(command_backoff(b, 1), 10);
    cr_expect_eq(command_backoff(b, 2), 60);
    cr_expect_eq(command_backoff(b, 3), 300);
    cr_expect_eq(command_backoff(b, 9), 300);
    cb_worker_free(cb_worker_take(&binary));
    cb_worker_free(cb_worker_take(&embedded));
    assembly_done(&parts);
}
