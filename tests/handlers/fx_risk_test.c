/* The sets fx and risk against the simulator: real HTTP, real contexts. */
#include "apis.h"
#include "parallel.h"
#include "simulator_run.h"
#include "wait.h"

#include <commandbus/set.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static test_simulator sim;

static void open_apis(void)
{
    sim = simulator_start(NULL, NULL);
    apis_open(sim.url);
}

static void close_apis(void)
{
    apis_close();
    simulator_stop(&sim);
}

TestSuite(fx_risk, .init = open_apis, .fini = close_apis);

#define FX(amount, from, to, day)                                                  \
    "{\"amount\": " amount ", \"fromCurrency\": " from ", \"toCurrency\": " to "," \
    " \"valueDate\": " day "}"
#define RISK(amount, currency, debit, credit)                                           \
    "{\"amount\": " amount ", \"currency\": " currency ", \"debitAccount\": " debit "," \
    " \"creditAccount\": " credit "}"

static const char good_fx[] = FX("\"250.50\"", "\"EUR\"", "\"JPY\"", "\"2099-12-31\"");
static const char good_risk[] = RISK("\"250.50\"", "\"EUR\"", "\"DE-1\"", "\"FR-2\"");

/* Whether the simulator has a booking with this key. */
static bool is_booked(const char *api, const char *key)
{
    char path[32];

    snprintf(path, sizeof path, "/bookings/%s", api);
    json_object *list = simulator_ask(&sim, "GET", path, NULL);
    bool found = strstr(json_object_to_json_string(list), key);
    json_object_put(list);
    return found;
}

/* SIM.3's data; the key of a call is the id of its command. */
Test(fx_risk, a_booking_gives_back_what_the_api_says)
{
    cb_command fx = api_command("BookFx", good_fx), risk = api_command("BookRisk", good_risk);

    api_run booked = api_do(&fx, NULL, NULL), approved = api_do(&risk, NULL, NULL);

    cr_expect_str_eq(booked.outcome, "SUCCESS", "%s", booked.message);
    cr_expect(
        strstr(booked.result, "\"contractId\":\"FXC-") &&
            strstr(booked.result, "\"reference\":\"FX-REF-") &&
            strstr(booked.result, "\"rate\":\"162.50000000\"") &&
            strstr(booked.result, "\"creditAmount\":\"40706\""), /* 250.50 × 162.5 = 40706.25 */
        "%s", booked.result);
    cr_expect(is_booked("fx", fx.command_id.text));
    cr_expect_str_eq(approved.outcome, "SUCCESS", "%s", approved.message);
    cr_expect(strstr(approved.result, "\"reference\":\"RISK-") &&
                  strstr(approved.result, "\"status\":\"APPROVED\"") &&
                  strstr(approved.result, "\"score\":"),
              "%s", approved.result);
    cr_expect(is_booked("risk", risk.command_id.text));
}

/* SIM.2 */
Test(fx_risk, a_command_that_runs_twice_books_once)
{
    cb_command c = api_command("BookFx", good_fx);

    api_run first = api_do(&c, NULL, NULL), second = api_do(&c, NULL, NULL);

    cr_expect_str_eq(second.outcome, "SUCCESS");
    cr_expect_str_eq(second.result, first.result);
    cr_expect_eq(simulator_number(&sim, "fx/bookings/booked"), 1);
    cr_expect_eq(simulator_number(&sim, "fx/repeats"), 1);
}

/* SIM.3: what a booking gave back is the data of its release. */
Test(fx_risk, a_release_gives_back_once_however_often_it_runs)
{
    static const struct {
        const char *book, *release, *data, *open, *released, *again;
    } cases[] = {
        { "BookFx", "ReleaseFx", good_fx, "fx/bookings/open", "fx/bookings/released",
          "fx/bookings/released_again" },
        { "BookRisk", "ReleaseRisk", good_risk, "risk/bookings/open", "risk/bookings/released",
          "risk/bookings/released_again" },
    };

    for (size_t i = 0; i < CB_COUNT(cases); i++) {
        api_run booked = api_do_once(cases[i].book, cases[i].data);
        cr_expect_eq(simulator_number(&sim, cases[i].open), 1);
        cb_command release = api_command(cases[i].release, booked.result);

        cr_expect_str_eq(api_do(&release, NULL, NULL).outcome, "SUCCESS");
        cr_expect_str_eq(api_do(&release, NULL, NULL).outcome, "SUCCESS"); /* delivered again */

        cr_expect_eq(simulator_number(&sim, cases[i].released), 1);
        cr_expect_eq(simulator_number(&sim, cases[i].again), 0);
        /* Another command for the same: fine too, but seen. */
        cr_expect_str_eq(api_do_once(cases[i].release, booked.result).outcome, "SUCCESS");
        cr_expect_eq(simulator_number(&sim, cases[i].released), 1);
        cr_expect_eq(simulator_number(&sim, cases[i].open), 0);
    }
}

/* SIM.1: what each failure of the API is for the command. */
Test(fx_risk, failures_of_the_api_become_outcomes)
{
    static const struct {
        const char *behaviour, *outcome;
    } cases[] = {
        { "{\"failPermanent\": 100}", "PERMANENT PERM_ERROR" },
        { "{\"failPermanent\": 0, \"failTransient\": 100}", "TRANSIENT TRANS_ERROR" },
        { "{\"failTransient\": 0, \"failBusinessRule\": 100}", "BUSINESS_RULE BIZ_ERROR" },
        { "{\"failBusinessRule\": 0}", "SUCCESS" },
    };

    for (size_t i = 0; i < CB_COUNT(cases); i++) {
        simulator_behave(&sim, "fx", cases[i].behaviour);
        simulator_behave(&sim, "risk", cases[i].behaviour);
        api_run fx = api_do_once("BookFx", good_fx), risk = api_do_once("BookRisk", good_risk);
        cr_expect_str_eq(fx.outcome, cases[i].outcome);
        cr_expect_str_eq(risk.outcome, cases[i].outcome);
    }
    cr_expect_eq(simulator_number(&sim, "fx/bookings/booked"), 1);
}

/* RL.1: the only one who may see a 429 is this test. */
static api_run runs[8];

static void book_at_once(size_t i, void *arg)
{
    (void)arg;
    runs[i] = api_do_once("BookFx", good_fx);
}

Test(fx_risk, over_capacity_is_transient_and_waits_as_long_as_it_is_told)
{
    int booked = 0;
    simulator_behave(&sim, "fx", "{\"capacity\": 7, \"minMs\": 800, \"maxMs\": 800}");

    parallel_run(8, book_at_once, NULL);

    for (int i = 0; i < 8; i++) {
        if (strcmp(runs[i].outcome, "SUCCESS") == 0) {
            booked++;
            continue;
        }
        cr_expect_str_eq(runs[i].outcome, "TRANSIENT CAPACITY");
        cr_expect_eq(runs[i].retry_seconds, 1);
    }
    cr_expect_eq(booked, 7);
}

/* A run that ends at *arg, by the clock. */
static int64_t remaining_until_end(void *arg)
{
    return *(int64_t *)arg - test_clock_ms();
}

static bool is_lost_at_end(void *arg)
{
    return remaining_until_end(arg) <= 0;
}

Test(fx_risk, a_call_without_an_answer_ends_within_the_time_of_the_run)
{
    static const cb_host host = { .remaining_ms = remaining_until_end };
    cb_command c = api_command("BookFx", good_fx);
    int64_t end = test_clock_ms() + 3000;
    simulator_behave(&sim, "fx", "{\"timeout\": 100}");

    api_run run = api_do(&c, &host, &end);

    cr_expect_str_eq(run.outcome, "TRANSIENT CALL_TIMEOUT", "%s", run.message);
    cr_expect_lt(test_clock_ms(), end + (int64_t)(1000 * (test_slowness() - 1)));
    simulator_await(&sim, "fx/in_flight", 0);
}

Test(fx_risk, without_time_or_lease_nobody_is_called)
{
    static const cb_host no_time = { .remaining_ms = remaining_until_end },
                         lost = { .is_lost = is_lost_at_end };
    cb_command c = api_command("BookFx", good_fx);
    int64_t end = test_clock_ms();

    cr_expect_str_eq(api_do(&c, &no_time, &end).outcome, "TRANSIENT OUT_OF_TIME");
    cr_expect_str_eq(api_do(&c, &lost, &end).outcome, "TRANSIENT LEASE_LOST");

    cr_expect_eq(simulator_number(&sim, "fx/calls"), 0);
}

/* A call whose outcome does not count any more gives its slot back. */
Test(fx_risk, a_call_ends_when_its_lease_is_lost)
{
    static const cb_host host = { .is_lost = is_lost_at_end };
    cb_command c = api_command("BookFx", good_fx);
    int64_t end = test_clock_ms() + 300;
    simulator_behave(&sim, "fx", "{\"timeout\": 100}");

    api_run run = api_do(&c, &host, &end);

    cr_expect_str_eq(run.outcome, "TRANSIENT LEASE_LOST", "%s", run.message);
    cr_expect_lt(test_clock_ms(), end + (int64_t)(5000 * test_slowness()));
}

Test(fx_risk, an_api_that_is_away_is_transient_and_goes_on_when_it_is_back)
{
    char port[16];
    cb_command c = api_command("BookFx", good_fx);
    snprintf(port, sizeof port, "%d", sim.port);
    cr_assert_str_eq(api_do_once("BookFx", good_fx).outcome, "SUCCESS");
    simulator_stop(&sim);

    cr_expect_str_eq(api_do(&c, NULL, NULL).outcome, "TRANSIENT API_UNREACHABLE");

    sim = simulator_start(NULL, (const char *const[]){ "--port", port, NULL });
    cr_expect_str_eq(api_do(&c, NULL, NULL).outcome, "SUCCESS");
}

/* "What bad input gets": refused with a code, and nobody is called. */
Test(fx_risk, bad_input_is_refused_before_anybody_is_called)
{
    static const char day[] = "2099-01-01";
    static const struct {
        const char *type, *data, *outcome;
    } cases[] = {
        { "BookFx", "{}", "PERMANENT INVALID_DATA" },
        { "BookFx", FX("true", "\"EUR\"", "\"USD\"", "\"2099-01-01\""), "PERMANENT INVALID_DATA" },
        { "BookFx", FX("12.505", "\"EUR\"", "\"USD\"", "\"2099-01-01\""),
          "PERMANENT INVALID_AMOUNT" },
        { "BookFx", FX("1e2", "\"EUR\"", "\"USD\"", "\"2099-01-01\""), "PERMANENT INVALID_AMOUNT" },
        { "BookFx", FX("\"1\"", "\"EUR\"", "\"USD\"", "7"), "PERMANENT INVALID_DATA" },
        { "BookFx", FX("\"1\"", "\"EUR\"", "\"USD\"", "\"2099-01-01\", \"behaviour\": \"a text\""),
          "PERMANENT INVALID_DATA" },
        { "BookFx",
          FX("\"1\"", "\"EUR\"", "\"USD\"",
             "\"2099-01-01\", \"behaviour\": {\"bookFx\": \"caf\u00e9\"}"),
          "PERMANENT INVALID_DATA" },
        { "BookFx", FX("null", "\"EUR\"", "\"USD\"", "\"2099-01-01\""), "PERMANENT INVALID_DATA" },
        { "BookFx", FX("\"1\"", "\"EUR\"", "[]", "\"2099-01-01\""), "PERMANENT INVALID_DATA" },
        { "BookFx", FX("\"1\"", "\"EUX\"", "\"USD\"", "\"2099-01-01\""),
          "PERMANENT INVALID_CURRENCY" },
        { "BookFx", FX("\"1\"", "\"EUR\"", "\"usd\"", "\"2099-01-01\""),
          "PERMANENT INVALID_CURRENCY" },
        { "BookFx", FX("\"-1\"", "\"EUR\"", "\"USD\"", "\"2099-01-01\""),
          "PERMANENT INVALID_AMOUNT" },
        { "BookFx", FX("\"0.00\"", "\"EUR\"", "\"USD\"", "\"2099-01-01\""),
          "PERMANENT INVALID_AMOUNT" },
        { "BookFx", FX("\"1.005\"", "\"EUR\"", "\"USD\"", "\"2099-01-01\""),
          "PERMANENT INVALID_AMOUNT" },
        { "BookFx", FX("\"1.5\"", "\"JPY\"", "\"USD\"", "\"2099-01-01\""),
          "PERMANENT INVALID_AMOUNT" },
        { "BookFx", FX("\"1e3\"", "\"EUR\"", "\"USD\"", "\"2099-01-01\""),
          "PERMANENT INVALID_AMOUNT" },
        { "BookFx", FX("\"99999999999999999999\"", "\"EUR\"", "\"USD\"", "\"2099-01-01\""),
          "PERMANENT INVALID_AMOUNT" },
        { "BookFx", FX("\"1\"", "\"EUR\"", "\"EUR\"", "\"2099-01-01\""),
          "PERMANENT SAME_CURRENCY" },
        { "BookFx", FX("\"1\"", "\"EUR\"", "\"USD\"", "\"2099-02-31\""),
          "PERMANENT INVALID_VALUE_DATE" },
        { "BookFx", FX("\"1\"", "\"EUR\"", "\"USD\"", "\"2099-2-1\""),
          "PERMANENT INVALID_VALUE_DATE" },
        { "BookFx", FX("\"1\"", "\"EUR\"", "\"USD\"", "\"2020-01-01\""),
          "BUSINESS_RULE VALUE_DATE_PAST" },
        { "BookRisk", "{}", "PERMANENT INVALID_DATA" },
        { "BookRisk", RISK("\"1\"", "\"EUR\"", "\"A\"", "7"), "PERMANENT INVALID_DATA" },
        { "BookRisk", RISK("\"1\"", "\"XXZ\"", "\"A\"", "\"B\""), "PERMANENT INVALID_CURRENCY" },
        { "BookRisk", RISK("\"1.001\"", "\"EUR\"", "\"A\"", "\"B\""), "PERMANENT INVALID_AMOUNT" },
        { "BookRisk", RISK("\"1\"", "\"EUR\"", "\"A\"", "\"A\""), "PERMANENT SAME_ACCOUNT" },
        { "BookRisk", RISK("\"1\"", "\"EUR\"", "\"A/../B\"", "\"B\""),
          "PERMANENT INVALID_ACCOUNT" },
        { "ReleaseFx", "{}", "PERMANENT INVALID_DATA" },
        { "ReleaseFx", "{\"contractId\": \"../../stats\"}", "PERMANENT INVALID_REFERENCE" },
        { "ReleaseRisk", "{\"reference\": \"a b\"}", "PERMANENT INVALID_REFERENCE" },
    };

    for (size_t i = 0; i < CB_COUNT(cases); i++) {
        api_run run = api_do_once(cases[i].type, cases[i].data);
        cr_expect_str_eq(run.outcome, cases[i].outcome, "%s: %s, %s", cases[i].data, run.outcome,
                         run.message);
        cr_expect_not(strstr(run.message, day));
    }
    cr_expect_eq(simulator_number(&sim, "fx/calls"), 0);
    cr_expect_eq(simulator_number(&sim, "risk/calls"), 0);
}

Test(fx_risk, a_value_date_of_today_is_fine)
{
    time_t now = time(NULL);
    struct tm today;
    char day[16], data[200];
    gmtime_r(&now, &today);
    strftime(day, sizeof day, "%Y-%m-%d", &today);
    snprintf(data, sizeof data, FX("\"1\"", "\"EUR\"", "\"USD\"", "\"%s\""), day);

    cr_expect_str_eq(api_do_once("BookFx", data).outcome, "SUCCESS");
}

/* An earlier run may have booked, also before an operator had it tried again as attempt 1: the API
 * is asked. */
Test(fx_risk, a_value_date_that_passed_between_two_runs_is_the_apis_to_judge)
{
    cb_command c = api_command("BookFx", FX("\"1\"", "\"EUR\"", "\"USD\"", "\"2020-01-01\""));

    cr_expect_str_eq(api_do(&c, NULL, NULL).outcome, "BUSINESS_RULE VALUE_DATE_PAST");
    cr_expect_eq(simulator_number(&sim, "fx/calls"), 0);
    c.lease_no = 4;
    cr_expect_str_eq(api_do(&c, NULL, NULL).outcome, "SUCCESS");
    cr_expect_eq(simulator_number(&sim, "fx/calls"), 1);
}

Test(fx_risk, releasing_what_was_never_booked_waits_for_a_person)
{
    cr_expect_str_eq(api_do_once("ReleaseFx", "{\"contractId\": \"FXC-0\"}").outcome,
                     "PERMANENT UNKNOWN_BOOKING");
}

/* A set says what it has to be told, before anything is claimed. */
Test(fx_risk, settings_are_checked_at_the_start)
{
    static const struct {
        cb_setting setting;
        const char *says;
    } cases[] = {
        { { NULL, NULL }, "handlers.fx.url" },
        { { "url", "somewhere" }, "handlers.fx.url must be" },
        { { "url", "file:///etc/passwd" }, "handlers.fx.url must be" },
        { { "url", "http://x/?key=1" }, "handlers.fx.url must be" },
        { { "uri", "http://x" }, "unknown setting handlers.fx.uri" },
    };

    for (size_t i = 0; i < CB_COUNT(cases); i++) {
        const cb_module_config config = { NULL, &cases[i].setting, cases[i].setting.name ? 1 : 0 };
        cb_set *set = NULL;
        cb_error e = { 0 };
        cr_expect_not(cb_set_load_with(getenv("COMMANDBUS_MODULES_DIR"), "fx", &config, &set, &e));
        cr_expect(strstr(e.message, cases[i].says), "%s", e.message);
    }
}

/* SIM.9: S4's literal payload, whose amount is a number and which has no value date. */
Test(fx_risk, the_payloads_of_s4_are_taken_to_the_letter)
{
    api_run fx = api_do_once("BookFx", "{\"processId\": \"00000000-0000-4000-8000-000000000001\", "
                                       "\"stepName\": \"bookFx\", \"amount\": 100.10, "
                                       "\"fromCurrency\": \"EUR\", \"toCurrency\": \"USD\"}");
    cr_expect_str_eq(fx.outcome, "SUCCESS", "%s: %s", fx.outcome, fx.message);

    api_run risk =
        api_do_once("BookRisk", "{\"processId\": \"00000000-0000-4000-8000-000000000001\", "
                                "\"stepName\": \"bookRisk\", \"amount\": 100.10, "
                                "\"currency\": \"EUR\", \"debitAccount\": \"A\", "
                                "\"creditAccount\": \"B\"}");
    cr_expect_str_eq(risk.outcome, "SUCCESS", "%s: %s", risk.outcome, risk.message);
}

/* SIM.1, SIM.7: what a payment brings counts for its own calls, and for the step that it names. */
Test(fx_risk, a_behaviour_travels_to_the_simulator_with_the_command)
{
#define BEHAVING(said) \
    FX("\"1\"", "\"EUR\"", "\"USD\"", "\"2099-01-01\", \"behaviour\": {" said "}")
    static const struct {
        const char *data, *outcome;
    } cases[] = {
        { BEHAVING("\"bookFx\": {\"failBusinessRulePct\": 100}"), "BUSINESS_RULE BIZ_ERROR" },
        { BEHAVING("\"bookFx\": {\"failPermanentPct\": 100}"), "PERMANENT PERM_ERROR" },
        { BEHAVING("\"bookRisk\": {\"failPermanentPct\": 100}"), "SUCCESS" },
        { BEHAVING("\"bookFx\": {\"failPermanentPct\": 101}"), "PERMANENT INVALID_DATA" },
        { BEHAVING("\"bookFx\": {}, \"teaTime\": {}"), "PERMANENT INVALID_DATA" },
    };

    for (size_t i = 0; i < CB_COUNT(cases); i++) {
        api_run run = api_do_once("BookFx", cases[i].data);
        cr_expect_str_eq(run.outcome, cases[i].outcome, "%s: %s, %s", cases[i].data, run.outcome,
                         run.message);
    }
}
