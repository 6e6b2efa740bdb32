/* The sample set, handler by handler and without a worker: how a team tests its own (see
 * handlers/README.md). */
#include "expect.h"
#include "test_handler.h"
#include "wait.h"

#include <commandbus/host.h>
#include <commandbus/set.h>
#include <time.h>

static cb_set *sample;

static void load_sample(void)
{
    cb_error e = { 0 };

    expect_ok(cb_set_load(getenv("COMMANDBUS_MODULES_DIR"), "sample", &sample, &e), e);
}

static void unload_sample(void)
{
    cb_set_free(sample);
}

TestSuite(sample, .init = load_sample, .fini = unload_sample);

/* A command as a worker would have received it. */
static cb_command sample_command(const char *type, const char *data)
{
    return (cb_command){ .command_id = cb_uuid_new(),
                         .correlation_id = cb_uuid_new(),
                         .domain = "sample",
                         .command_type = type,
                         .data = data,
                         .lease_no = 1,
                         .attempt = 1,
                         .max_attempts = 3,
                         .timeout_seconds = 30 };
}

/* Runs a command and looks at what came of it: outcome, code and result or message. */
static void expect_run(const cb_command *c, const cb_host *host, void *arg, const char *expected)
{
    OWNED(cb_context) ctx = NULL;
    cb_settlement out;
    char found[1024];
    cb_error e = { 0 };

    expect_ok(cb_context_open(c, host, arg, &ctx, &e), e);
    cb_context_run(ctx, test_handler(sample, c->command_type), 0, &out);

    if (out.outcome == CB_SUCCESS)
        snprintf(found, sizeof found, "SUCCESS %s", out.result ? out.result : "nothing");
    else
        snprintf(found, sizeof found, "%s %s: %s", cb_outcome_name(out.outcome),
                 out.error_code ? out.error_code : "", out.error_message ? out.error_message : "");
    cr_expect_str_eq(found, expected, "%s %s:\nfound    %s\nexpected %s", c->command_type, c->data,
                     found, expected);
}

static void expect_outcome(const char *type, const char *data, const char *expected)
{
    cb_command c = sample_command(type, data);

    expect_run(&c, NULL, NULL, expected);
}

/* ---- Echo, Noop ---- */

Test(sample, echo_gives_back_its_data)
{
    expect_outcome("Echo", "{\"a\": [1, {\"b\": null}], \"\xc3\xa9\": \"\\u20ac\"}",
                   "SUCCESS {\"a\":[1,{\"b\":null}],\"\xc3\xa9\":\"\xe2\x82\xac\"}");
    expect_outcome("Echo", "{}", "SUCCESS {}");
}

Test(sample, noop_succeeds_with_nothing)
{
    expect_outcome("Noop", "{}", "SUCCESS nothing");
}

/* ---- Sleep ---- */

/* A worker as the handlers see one. */
typedef struct {
    int64_t remaining_ms; /* goes down by 10 at each look */
    bool is_lost, is_stopping;
} fake_worker;

static int64_t fake_remaining_ms(void *arg)
{
    fake_worker *w = arg;

    return w->remaining_ms > 0 ? w->remaining_ms -= 10 : 0;
}

static bool fake_is_lost(void *arg)
{
    return ((fake_worker *)arg)->is_lost;
}

static bool fake_is_stopping(void *arg)
{
    return ((fake_worker *)arg)->is_stopping;
}

static const cb_host host = { fake_remaining_ms, NULL, fake_is_lost, fake_is_stopping };

Test(sample, sleep_takes_as_long_as_told)
{
    int64_t began = test_clock_ms();

    expect_outcome("Sleep", "{\"ms\": 150}", "SUCCESS {\"slept_ms\":150}");

    cr_expect_geq(test_clock_ms() - began, 150);
}

Test(sample, sleep_ends_with_the_time_of_its_run)
{
    cb_command c = sample_command("Sleep", "{\"ms\": 60000}");
    fake_worker w = { .remaining_ms = 100 };
    int64_t began = test_clock_ms();

    expect_run(&c, &host, &w, "TRANSIENT OUT_OF_TIME: the time of this run is up");

    cr_expect_lt(test_clock_ms() - began, 30000);
}

Test(sample, sleep_ends_when_the_lease_is_lost)
{
    cb_command c = sample_command("Sleep", "{\"ms\": 60000}");
    fake_worker w = { .remaining_ms = 100000, .is_lost = true };

    expect_run(&c, &host, &w, "TRANSIENT LEASE_LOST: somebody else may run this command now");
}

/* WRK.11 */
Test(sample, sleep_is_given_back_to_a_worker_that_stops_only_if_the_sender_allows)
{
    cb_command yes = sample_command("Sleep", "{\"ms\": 60000, \"interruptible\": true}");
    cb_command no = sample_command("Sleep", "{\"ms\": 20}");
    fake_worker w = { .remaining_ms = 100000, .is_stopping = true };

    expect_run(&yes, &host, &w, "INTERRUPTED : ");
    expect_run(&no, &host, &w, "SUCCESS {\"slept_ms\":20}");
}

/* ---- Fail ---- */

Test(sample, fail_fails_as_told)
{
    expect_outcome("Fail", "{\"outcome\": \"TRANSIENT\"}",
                   "TRANSIENT SAMPLE_FAILURE: failed as told");
    expect_outcome("Fail",
                   "{\"outcome\": \"PERMANENT\", \"code\": \"NO_IBAN\", \"message\": \"50% %s\"}",
                   "PERMANENT NO_IBAN: 50% %s");
    expect_outcome("Fail", "{\"outcome\": \"BUSINESS_RULE\", \"code\": \"DECLINED\"}",
                   "BUSINESS_RULE DECLINED: failed as told");
}

Test(sample, fail_succeeds_after_the_last_attempt_that_was_to_fail)
{
    cb_command c = sample_command("Fail", "{\"outcome\": \"TRANSIENT\", \"until_attempt\": 2}");

    c.attempt = 2;
    expect_run(&c, NULL, NULL, "TRANSIENT SAMPLE_FAILURE: failed as told");
    c.attempt = 3;
    expect_run(&c, NULL, NULL, "SUCCESS {\"attempt\":3}");
}

Test(sample, fail_says_when_to_come_back)
{
    cb_command c = sample_command("Fail", "{\"outcome\": \"TRANSIENT\", \"retry_after\": 2.5}");
    OWNED(cb_context) ctx = NULL;
    cb_settlement out;
    cr_assert(cb_context_open(&c, NULL, NULL, &ctx, NULL));

    cb_context_run(ctx, test_handler(sample, "Fail"), 0, &out);

    cr_expect_eq(out.outcome, CB_TRANSIENT);
    cr_expect_eq(out.retry_seconds, 2.5);
}

/* ---- data ---- */

Test(sample, handlers_refuse_data_they_cannot_use_for_good_and_say_what_is_wrong)
{
    static const struct {
        const char *type, *data, *problem;
    } cases[] = {
        { "Sleep", "{}", "\"ms\" must be a whole number from 0 to 86400000" },
        { "Sleep", "{\"ms\": -1}", "\"ms\" must be a whole number from 0 to 86400000" },
        { "Sleep", "{\"ms\": 1.5}", "\"ms\" must be a whole number from 0 to 86400000" },
        { "Sleep", "{\"ms\": \"1\"}", "\"ms\" must be a whole number from 0 to 86400000" },
        { "Sleep", "{\"ms\": null}", "\"ms\" must be a whole number from 0 to 86400000" },
        { "Sleep", "{\"ms\": 9223372036854775807}",
          "\"ms\" must be a whole number from 0 to 86400000" },
        { "Sleep", "{\"ms\": 1, \"interruptible\": 1}", "\"interruptible\" must be true or false" },
        { "Fail", "{}", "\"outcome\" must be a text" },
        { "Fail", "{\"outcome\": \"SUCCESS\"}",
          "\"outcome\" must be TRANSIENT, PERMANENT or BUSINESS_RULE" },
        { "Fail", "{\"outcome\": \"TRANSIENT\", \"code\": 7}", "\"code\" must be a text" },
        { "Fail", "{\"outcome\": \"TRANSIENT\", \"retry_after\": -1}",
          "\"retry_after\" must be a number of seconds, at most a day" },
        { "Fail", "{\"outcome\": \"PERMANENT\", \"retry_after\": 1}",
          "\"retry_after\" goes with TRANSIENT only" },
        { "Hold", "{\"port\": 0, \"ms\": 1}", "\"port\" must be a whole number from 1 to 65535" },
        { "Hold", "{\"port\": 9}", "\"ms\" must be a whole number from 0 to 86400000" },
        { "Record", "{\"amount\": \"1\"}", "\"account\" must be a text" },
        { "Record", "{\"account\": \"\", \"amount\": \"1\"}", "\"account\" must be a text" },
        { "Record", "{\"account\": \"A\", \"amount\": 1.5}", "\"amount\" must be a text" },
    };
    char expected[256];

    for (size_t i = 0; i < CB_COUNT(cases); i++) {
        snprintf(expected, sizeof expected, "PERMANENT INVALID_DATA: %s", cases[i].problem);
        expect_outcome(cases[i].type, cases[i].data, expected);
    }
}

Test(sample, record_takes_money_as_a_decimal_text_only)
{
    static const char *const amounts[] = {
        "1,50", "1.", ".5", "--1", "1e3", "NaN", "-", " 1", "1.2.3", "$1", "1234567890123456789"
    };
    char data[96];

    for (size_t i = 0; i < CB_COUNT(amounts); i++) {
        snprintf(data, sizeof data, "{\"account\": \"A\", \"amount\": \"%s\"}", amounts[i]);
        expect_outcome("Record", data,
                       "PERMANENT INVALID_DATA: \"amount\" must be a decimal number in a text, "
                       "such as \"12.50\"");
    }
}
