/* The downstream simulator, from outside: what handlers are tested against must itself be right. */
#include "parallel.h"
#include "simulator_run.h"
#include "wait.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define FX_BODY                                                                    \
    "{\"amount\": \"100.00\", \"fromCurrency\": \"EUR\", \"toCurrency\": \"USD\"," \
    " \"valueDate\": \"2099-01-31\"}"
#define RISK_BODY                                                         \
    "{\"amount\": \"5\", \"currency\": \"JPY\", \"debitAccount\": \"A\"," \
    " \"creditAccount\": \"B\"}"

static simulator_answer book_fx(const test_simulator *s, const char *key, const char *behaviour)
{
    return simulator_try(s,
                         &(simulator_call){ "POST", "/fx/bookings", key, behaviour, FX_BODY, 0 });
}

static simulator_answer post(const test_simulator *s, const char *path, const char *key,
                             const char *body)
{
    return simulator_try(s, &(simulator_call){ "POST", path, key, NULL, body, 0 });
}

/* SIM.2 */
Test(simulator, a_repeated_key_gets_the_first_answer_and_books_once)
{
    test_simulator s = simulator_start(NULL, NULL);

    simulator_answer first = book_fx(&s, "k1", NULL), again = book_fx(&s, "k1", NULL),
                     other = book_fx(&s, "k2", NULL);

    cr_expect_eq(first.status, 201);
    cr_expect(strstr(first.body, "\"creditAmount\":\"108.37\""), "%s", first.body);
    cr_expect_eq(again.status, 201);
    cr_expect_str_eq(again.body, first.body);
    cr_expect_str_neq(other.body, first.body);
    cr_expect_eq(simulator_number(&s, "fx/bookings/booked"), 2);
    cr_expect_eq(simulator_number(&s, "fx/repeats"), 1);
    simulator_stop(&s);
}

typedef struct {
    test_simulator s;
    const char *const *keys;
    simulator_answer answers[64];
} crowd;

static void book_with_key(size_t i, void *arg)
{
    crowd *c = arg;
    char key[32];

    snprintf(key, sizeof key, "%s-%zu", c->keys ? c->keys[0] : "k", c->keys ? 0 : i);
    c->answers[i] = book_fx(&c->s, key, NULL);
}

/* SIM.2: also while the first call with it is still under way. */
Test(simulator, one_key_at_once_books_once)
{
    static const char *const same[] = { "same" };
    crowd c = { .s = simulator_start(NULL, (const char *const[]){ "--fx-capacity", "20", NULL }),
                .keys = same };
    simulator_behave(&c.s, "fx", "{\"minMs\": 200, \"maxMs\": 200}");

    parallel_run(8, book_with_key, &c);

    for (int i = 0; i < 8; i++)
        cr_expect_str_eq(c.answers[i].body, c.answers[0].body);
    cr_expect_eq(simulator_number(&c.s, "fx/bookings/booked"), 1);
    cr_expect_eq(simulator_number(&c.s, "fx/repeats"), 7);
    simulator_stop(&c.s);
}

Test(simulator, a_key_with_other_data_is_refused)
{
    test_simulator s = simulator_start(NULL, NULL);
    book_fx(&s, "k1", NULL);

    simulator_answer a = post(&s, "/fx/bookings", "k1",
                              "{\"amount\": \"1.00\", \"fromCurrency\": \"EUR\", "
                              "\"toCurrency\": \"USD\", \"valueDate\": \"2099-01-31\"}");

    cr_expect_eq(a.status, 400);
    cr_expect_eq(simulator_number(&s, "fx/bookings/booked"), 1);
    simulator_stop(&s);
}

/* SIM.2: the sixth call is the last one that fits. */
Test(simulator, calls_above_the_capacity_get_429_and_are_counted)
{
    crowd c = { .s = simulator_start(NULL, NULL) };
    simulator_behave(&c.s, "fx", "{\"minMs\": 1000, \"maxMs\": 1000}");

    parallel_run(9, book_with_key, &c);

    int booked = 0, rejected = 0;
    for (int i = 0; i < 9; i++) {
        booked += c.answers[i].status == 201;
        rejected += c.answers[i].status == 429 && c.answers[i].retry_after == 1;
    }
    cr_expect_eq(booked, 6);
    cr_expect_eq(rejected, 3);
    cr_expect_eq(simulator_number(&c.s, "fx/rejected_429"), 3);
    cr_expect_eq(simulator_number(&c.s, "fx/most_in_flight"),
                 7); /* those turned away were there too */
    cr_expect_eq(simulator_number(&c.s, "fx/in_flight"), 0);

    json_object_put(simulator_ask(&c.s, "POST", "/stats/reset", NULL));
    cr_expect_eq(simulator_number(&c.s, "fx/most_in_flight"), 0);
    cr_expect_eq(simulator_number(&c.s, "fx/calls"), 0);
    simulator_stop(&c.s);
}

Test(simulator, more_than_thirty_calls_can_be_in_flight)
{
    crowd c = { .s = simulator_start(NULL, (const char *const[]){ "--fx-capacity", "64", NULL }) };
    simulator_behave(&c.s, "fx", "{\"minMs\": 1500, \"maxMs\": 1500}");

    parallel_run(40, book_with_key, &c);

    cr_expect_eq(simulator_number(&c.s, "fx/most_in_flight"), 40);
    cr_expect_eq(simulator_number(&c.s, "fx/bookings/booked"), 40);
    simulator_stop(&c.s);
}

enum {
    KEYS = 300
};

/* Who fails how, with a behaviour and a fresh simulator of seed 5. */
static void statuses_of(const char *behaviour, int statuses[KEYS])
{
    test_simulator s = simulator_start(NULL, (const char *const[]){ "--seed", "5", NULL });
    char key[32];

    simulator_behave(&s, "fx", behaviour);
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "k-%d", i);
        statuses[i] = book_fx(&s, key, NULL).status;
    }
    simulator_stop(&s);
}

/* SIM.1: one roll for a key. What two outcomes share is what the first would have alone with the
 * sum of both. */
Test(simulator, percentages_add_up_in_their_order)
{
    int both[KEYS], first[KEYS], three[KEYS], permanent = 0, transient = 0, business = 0;

    statuses_of("{\"failTransient\": 30, \"failPermanent\": 20}", both);
    statuses_of("{\"failPermanent\": 50}", first);
    statuses_of("{\"failBusinessRule\": 25, \"failPermanent\": 20, \"failTransient\": 30}", three);

    for (int i = 0; i < KEYS; i++) {
        cr_expect_eq(both[i] == 400 || both[i] == 503, first[i] == 400, "key %d: %d and %d", i,
                     both[i], first[i]);
        cr_expect(three[i] == both[i] || (three[i] == 422 && both[i] == 201), "key %d: %d and %d",
                  i, three[i], both[i]);
        permanent += three[i] == 400;
        transient += three[i] == 503;
        business += three[i] == 422;
    }
    /* 60, 90 and 75 are expected, and the seed is always the same. */
    cr_expect(permanent > 40 && permanent < 80, "%d", permanent);
    cr_expect(transient > 65 && transient < 115, "%d", transient);
    cr_expect(business > 50 && business < 100, "%d", business);
}

/* SIM.1: whatever order calls come in, a seed and a key have their outcome. */
Test(simulator, outcomes_are_the_same_however_calls_overlap)
{
    static const char *const arguments[] = { "--seed", "9", "--fx-capacity", "64", NULL };
    static const char mixed[] = "{\"failPermanent\": 25, \"failTransient\": 25, "
                                "\"failBusinessRule\": 25, \"minMs\": 0, \"maxMs\": 50}";
    crowd at_once = { .s = simulator_start(NULL, arguments) };
    test_simulator one_by_one = simulator_start(NULL, arguments);
    simulator_behave(&at_once.s, "fx", mixed);
    simulator_behave(&one_by_one, "fx", mixed);
    int kinds[600] = { 0 };

    parallel_run(40, book_with_key, &at_once);

    for (int i = 39; i >= 0; i--) {
        char key[32];
        snprintf(key, sizeof key, "k-%d", i);
        simulator_answer a = book_fx(&one_by_one, key, NULL);
        cr_expect_eq(a.status, at_once.answers[i].status);
        cr_expect_str_eq(a.body, at_once.answers[i].body);
        kinds[a.status]++;
    }
    cr_expect(kinds[201] && kinds[400] && kinds[503] && kinds[422]);
    simulator_stop(&at_once.s);
    simulator_stop(&one_by_one);
}

/* SIM.1: a failure that decides nothing leaves the key free, and the next call rolls the dice
 * again. */
Test(simulator, a_retry_after_a_transient_failure_can_succeed)
{
    test_simulator s = simulator_start(NULL, NULL);
    int tries = 0;
    simulator_behave(&s, "fx", "{\"failTransient\": 60}");

    while (tries < 100 && book_fx(&s, "k", NULL).status != 201)
        tries++;

    cr_expect_lt(tries, 100);
    cr_expect_eq(book_fx(&s, "k", NULL).status, 201);
    cr_expect_eq(simulator_number(&s, "fx/bookings/booked"), 1);
    simulator_stop(&s);
}

/* SIM.1: a header decides for its call, before what holds for the endpoint. */
Test(simulator, a_header_says_how_one_call_behaves)
{
    test_simulator s = simulator_start(NULL, NULL);
    simulator_behave(&s, "fx", "{\"failPermanent\": 100}");

    simulator_answer a = book_fx(&s, "a", "{\"failPermanent\": 0, \"failBusinessRule\": 100}"),
                     b = book_fx(&s, "b", NULL), c = book_fx(&s, "c", "{\"failPermanent\": 101}");

    cr_expect_eq(a.status, 422);
    cr_expect(strstr(a.body, "BIZ_ERROR"), "%s", a.body);
    cr_expect_eq(b.status, 400);
    cr_expect(strstr(b.body, "PERM_ERROR"), "%s", b.body);
    cr_expect_eq(c.status, 400);
    cr_expect(strstr(c.body, "INVALID_DATA"), "%s", c.body);
    simulator_stop(&s);
}

/* SIM.1: held open without an answer until the caller goes, and in flight for that long. */
Test(simulator, a_timeout_is_a_call_without_an_answer)
{
    test_simulator s = simulator_start(NULL, NULL);

    simulator_answer a = simulator_try(
        &s, &(simulator_call){ "POST", "/fx/bookings", "k", "{\"timeout\": 100}", FX_BODY, 300 });

    cr_expect_eq(a.status, 0);
    simulator_await(&s, "fx/in_flight", 0);
    cr_expect_eq(simulator_number(&s, "fx/outcomes/timeout"), 1);
    cr_expect_eq(simulator_number(&s, "fx/bookings/booked"), 0);
    simulator_stop(&s);
}

/* SIM.1 */
Test(simulator, a_call_takes_its_time)
{
    test_simulator s = simulator_start(NULL, NULL);
    simulator_behave(&s, "fx", "{\"minMs\": 150, \"maxMs\": 250}");

    int64_t start = test_clock_ms();
    book_fx(&s, "k", NULL);

    cr_expect_geq(test_clock_ms() - start, 150);
    simulator_stop(&s);
}

static void book_slowly(size_t i, void *arg)
{
    crowd *c = arg;

    if (i == 0) {
        simulator_await(&c->s, "fx/in_flight", 1);
        simulator_stop(&c->s);
    } else {
        c->answers[i] = simulator_try(&c->s, &(simulator_call){ "POST", "/fx/bookings", "k",
                                                                "{\"timeout\": 100}", FX_BODY, 0 });
    }
}

Test(simulator, ends_at_once_when_told_to_also_with_calls_open)
{
    crowd c = { .s = simulator_start(NULL, NULL) };
    int64_t start = test_clock_ms();

    parallel_run(2, book_slowly, &c);

    cr_expect_eq(c.answers[1].status, 0);
    cr_expect_lt(test_clock_ms() - start, 5000 * test_slowness());
}

/* SIM.2 */
Test(simulator, a_booking_is_released_once_however_often_it_is_asked)
{
    test_simulator s = simulator_start(NULL, NULL);
    char id[32] = "", path[80];
    simulator_answer booked = post(&s, "/risk/bookings", "k1", RISK_BODY);
    sscanf(booked.body, "{\"reference\":\"%31[^\"]\"", id);
    snprintf(path, sizeof path, "/risk/bookings/%s/release", id);

    cr_expect_eq(post(&s, path, "r1", NULL).status, 200);
    cr_expect_eq(post(&s, path, "r1", NULL).status, 200); /* a repeat: the same release */
    cr_expect_eq(simulator_number(&s, "risk/bookings/released_again"), 0);
    cr_expect_eq(post(&s, path, "r2", NULL).status, 200);

    cr_expect_eq(simulator_number(&s, "risk/bookings/released"), 1);
    cr_expect_eq(simulator_number(&s, "risk/bookings/released_again"), 1);
    cr_expect_eq(simulator_number(&s, "risk/bookings/open"), 0);
    cr_expect_eq(post(&s, "/risk/bookings/RISK-0/release", "r3", NULL).status, 404);
    simulator_stop(&s);
}

Test(simulator, declined_is_an_answer_that_holds_nothing)
{
    test_simulator s = simulator_start(NULL, NULL);
    simulator_behave(&s, "risk", "{\"declined\": 100}");

    simulator_answer a = post(&s, "/risk/bookings", "k", RISK_BODY);

    cr_expect_eq(a.status, 201);
    cr_expect(strstr(a.body, "\"status\":\"DECLINED\""), "%s", a.body);
    cr_expect_eq(simulator_number(&s, "risk/bookings/open"), 0);
    simulator_stop(&s);
}

#define FX(amount, from, to, day)                                                  \
    "{\"amount\": " amount ", \"fromCurrency\": " from ", \"toCurrency\": " to "," \
    " \"valueDate\": " day "}"

Test(simulator, nonsense_is_refused_and_books_nothing)
{
    static const simulator_call calls[] = {
        { "POST", "/fx/bookings", NULL, NULL, FX_BODY, 0 },
        { "POST", "/fx/bookings", "k", NULL, "{", 0 },
        { "POST", "/fx/bookings", "k", NULL, "[]", 0 },
        { "POST", "/fx/bookings", "k", NULL, "{}", 0 },
        { "POST", "/fx/bookings", "k", NULL, FX("1.5", "\"EUR\"", "\"USD\"", "\"2099-01-01\""), 0 },
        { "POST", "/fx/bookings", "k", NULL, FX("\"-1\"", "\"EUR\"", "\"USD\"", "\"2099-01-01\""),
          0 },
        { "POST", "/fx/bookings", "k", NULL,
          FX("\"1.234\"", "\"EUR\"", "\"USD\"", "\"2099-01-01\""), 0 },
        { "POST", "/fx/bookings", "k", NULL, FX("\"1\"", "\"EUX\"", "\"USD\"", "\"2099-01-01\""),
          0 },
        { "POST", "/fx/bookings", "k", NULL, FX("\"1\"", "\"EUR\"", "\"EUR\"", "\"2099-01-01\""),
          0 },
        { "POST", "/fx/bookings", "k", NULL, FX("\"1\"", "\"EUR\"", "\"USD\"", "\"soon\""), 0 },
        { "POST", "/fx/bookings", "k", NULL, FX("\"1\"", "\"EUR\"", "\"USD\"", "\"2099-02-29\""),
          0 },
        { "POST", "/fx/bookings", "k", NULL, FX("\"1\"", "\"EUR\"", "\"USD\"", "\"2099-1- 31\""),
          0 },
        { "POST", "/risk/bookings", "k", NULL,
          "{\"amount\": \"5\", \"currency\": \"JPY\", \"debitAccount\": \"A\", "
          "\"creditAccount\": \"A\"}",
          0 },
        { "PUT", "/behaviour/fx", NULL, NULL, "{\"failPermanent\": -1}", 0 },
        { "PUT", "/behaviour/fx", NULL, NULL, "{\"failPermanent\": 60, \"pending\": 60}", 0 },
        { "PUT", "/behaviour/fx", NULL, NULL, "{\"failPermanently\": 1}", 0 },
        { "PUT", "/behaviour/fx", NULL, NULL, "{\"minMs\": 5}", 0 },
        { "PUT", "/behaviour/network", NULL, NULL, "{\"capacity\": 5}", 0 },
        /* Without a database nothing can be kept for a person. */
        { "PUT", "/behaviour/risk", NULL, NULL, "{\"pending\": 5}", 0 },
    };
    test_simulator s = simulator_start(NULL, NULL);

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        simulator_answer a = simulator_try(&s, &calls[i]);
        cr_expect_eq(a.status, 400, "%s %s: %d", calls[i].path, calls[i].body, a.status);
        cr_expect(strstr(a.body, "INVALID_DATA"), "%s", a.body);
    }
    cr_expect_eq(simulator_number(&s, "fx/bookings/booked"), 0);
    cr_expect_eq(simulator_number(&s, "fx/invalid"), 12);
    cr_expect_eq(simulator_number(&s, "risk/bookings/booked"), 0);
    simulator_stop(&s);
}

Test(simulator, other_paths_methods_and_sizes_are_refused)
{
    static char large[70000];
    test_simulator s = simulator_start(NULL, NULL);
    memset(large, ' ', sizeof large - 1);

    cr_expect_eq(post(&s, "/fx/booking", "k", FX_BODY).status, 404);
    cr_expect_eq(post(&s, "/fx/bookings/../release", "k", FX_BODY).status, 404);
    cr_expect_eq(post(&s, "/stats", "k", NULL).status, 405);
    cr_expect_eq(post(&s, "/fx/bookings", "k", large).status, 413);
    cr_expect_eq(
        simulator_try(&s, &(simulator_call){ "PUT", "/behaviour/none", NULL, NULL, "{}", 0 })
            .status,
        404);
    simulator_stop(&s);
}
