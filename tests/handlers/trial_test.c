/* The trial set really does what it is for: what it gives is refused by whoever runs it. */
#include "expect.h"

#include <commandbus/host.h>
#include <commandbus/set.h>
#include <signal.h>
#include <time.h>

static cb_set *trial;

static void load_trial(void)
{
    char folder[512];
    cb_error e = { 0 };

    snprintf(folder, sizeof folder, "%s/tests/modules", getenv("COMMANDBUS_BUILD_DIR"));
    expect_ok(cb_set_load(folder, "trial", &trial, &e), e);
}

static void unload_trial(void)
{
    cb_set_free(trial);
}

TestSuite(trial, .init = load_trial, .fini = unload_trial);

/* Runs a command on its second of two attempts; the caller frees the context, which `out` borrows
 * from. */
static cb_context *run_trial(const char *type, const char *data, const cb_host *host,
                             cb_settlement *out)
{
    static cb_command c; /* borrowed by the context */
    const cb_module *m = cb_set_module(trial);
    cb_context *ctx = NULL;
    cb_error e = { 0 };

    c = (cb_command){ .domain = "fx",
                      .command_type = type,
                      .data = data,
                      .attempt = 2,
                      .max_attempts = 2,
                      .timeout_seconds = 30 };
    expect_ok(cb_context_open(&c, host, NULL, &ctx, &e), e);
    for (size_t i = 0; i < m->n_handlers; i++) {
        if (strcmp(m->handlers[i].command_type, type) == 0) {
            cb_context_run(ctx, m->handlers[i].run, 0, out);
            return ctx;
        }
    }
    cr_assert_fail("no %s", type);
    return ctx;
}

/* WRK.14, DESIGN section 2: results are checked when the handler returns. */
Test(trial, bad_results_are_refused_whatever_is_wrong_with_them)
{
    static const char *const kinds[] = { "nan", "infinity", "deep", "utf8", "nul", "large" };
    char data[64];

    for (size_t i = 0; i < CB_COUNT(kinds); i++) {
        cb_settlement out;
        snprintf(data, sizeof data, "{\"kind\": \"%s\"}", kinds[i]);
        OWNED(cb_context) ctx = run_trial("BadResult", data, NULL, &out);
        cr_expect_eq(out.outcome, CB_PERMANENT, "%s", kinds[i]);
        cr_expect_str_eq(out.error_code, "RESULT_INVALID", "%s", kinds[i]);
        cr_expect_null(out.result);
    }
}

Test(trial, an_outcome_outside_the_enum_is_an_internal_error)
{
    cb_settlement out;
    OWNED(cb_context) ctx = run_trial("BadOutcome", "{}", NULL, &out);

    cr_expect_eq(out.outcome, CB_TRANSIENT);
    cr_expect_str_eq(out.error_code, "INTERNAL_ERROR");
}

Test(trial, more_effects_than_allowed_end_permanent)
{
    cb_settlement enough, many;
    OWNED(cb_context) sixteen = run_trial("ManyEffects", "{\"n\": 16}", NULL, &enough);

    cr_expect_eq(enough.outcome, CB_SUCCESS);
    cr_expect_eq(cb_context_effects(sixteen), 16);

    OWNED(cb_context) seventeen = run_trial("ManyEffects", "{\"n\": 17}", NULL, &many);

    cr_expect_eq(many.outcome, CB_PERMANENT);
    cr_expect_str_eq(many.error_code, "EFFECT_FAILED");
}

static int64_t remaining_4711(void *arg)
{
    (void)arg;
    return 4711;
}

static bool extend_a_second(void *arg, int64_t ms)
{
    (void)arg;
    return ms <= 1000;
}

static const cb_host host = { remaining_4711, extend_a_second, NULL, NULL };

Test(trial, tells_what_it_was_told)
{
    cb_settlement out;
    OWNED(cb_context) remaining = run_trial("Remaining", "{}", &host, &out);
    cr_expect_str_eq(out.result, "{\"remaining_ms\":4711,\"attempt\":2,\"max_attempts\":2,"
                                 "\"is_last\":true}");

    OWNED(cb_context) granted = run_trial("Extend", "{\"ms\": 1000, \"times\": 2}", &host, &out);
    cr_expect_str_eq(out.result,
                     "{\"granted\":[true,true],\"remaining_ms\":[4711,4711],\"lost\":false}");

    OWNED(cb_context) refused = run_trial("Extend", "{\"ms\": 1001}", &host, &out);
    cr_expect_str_eq(out.result, "{\"granted\":[false],\"remaining_ms\":[4711],\"lost\":false}");
}

Test(trial, started_says_when_by_the_clock_of_this_machine)
{
    struct timespec before, after;
    cb_settlement out;

    clock_gettime(CLOCK_MONOTONIC, &before);
    OWNED(cb_context) ctx = run_trial("Started", "{}", NULL, &out);
    clock_gettime(CLOCK_MONOTONIC, &after);

    long long started = 0;
    cr_assert_eq(sscanf(out.result, "{\"started_ns\":\"%lld\"}", &started), 1, "%s", out.result);
    cr_expect_geq(started, before.tv_sec * 1000000000LL + before.tv_nsec);
    cr_expect_leq(started, after.tv_sec * 1000000000LL + after.tv_nsec);
}

Test(trial, hang_looks_at_nothing)
{
    cb_settlement out;
    struct timespec before, after;

    clock_gettime(CLOCK_MONOTONIC, &before);
    OWNED(cb_context) ctx = run_trial("Hang", "{\"ms\": 50}", NULL, &out);
    clock_gettime(CLOCK_MONOTONIC, &after);

    cr_expect_eq(out.outcome, CB_SUCCESS);
    cr_expect_geq(
        (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000, 49);
}

Test(trial, crash_takes_everything_with_it, .signal = SIGABRT)
{
    cb_settlement out;

    cb_context_free(run_trial("Crash", "{}", NULL, &out));
}
