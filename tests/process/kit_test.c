/* The kit that is installed (commandbus/test.h), by itself: a database of its own, failures that
 * are said and do not end the program, steps that behave as they are told. STP.24. */
#include <commandbus/test.h>
#include <criterion/criterion.h>
#include <string.h>

#include "database.h"
#include "expect.h"
#include "fixture.h"
#include "trip.h"

static int called;

static cb_outcome pay(cb_context *ctx, void *state)
{
    called++;
    return trip_step(ctx, state);
}

static bool nothing_to_say(const void *state, json_object *data)
{
    (void)state;
    (void)data;
    return true;
}

static cb_flow walk_and_pay(cb_process *p, void *state)
{
    (void)state;
    CB_DO(cb_command_step(p, "book", nothing_to_say, trip_take_hotel, .domain = "hotels",
                          .command_type = "BookHotel"));
    CB_DO(cb_wait(p, "awaitGo", trip_may_go, .timeout_ms = CB_HOURS(1)));
    CB_DO(cb_step(p, "pay", pay, .max_attempts = 3));
    return CB_DONE;
}

TRIP_TYPE(walk, walk_and_pay, .version = 1);
static const cb_process_type *const types[] = { &walk };
static const char *const domains[] = { "hotels", NULL };

static cb_test t;

static void open_kit(void)
{
    cb_error e;

    bus_open(); /* a copy of a database: sooner there than one that is migrated */
    expect_ok(cb_test_open(&t, &e, .types = types, .n_types = 1, .domains = domains, .db = bus.db),
              e);
}

static void close_kit(void)
{
    cb_test_close(&t);
    bus_close();
}

TestSuite(kit, .init = open_kit, .fini = close_kit);

static const cb_test_answer booked = { .command_type = "BookHotel",
                                       .result = "{\"hotel\": \"Ritz\"}" };

/* To where it pays. */
static cb_uuid at_payment(void)
{
    cb_uuid id;
    cb_error e;

    expect_ok(cb_test_start(&t, "walk", "{}", &id, &e), e);
    expect_ok(cb_test_go(&t, NULL, &e), e);
    expect_ok(cb_test_serve(&t, "hotels", &booked, NULL, &e), e);
    expect_ok(cb_test_go(&t, NULL, &e), e);
    expect_ok(cb_test_respond(&t, id.text, "go", "{}", &e), e);
    return id;
}

/* S1 12.3: the pattern of an end-to-end test. */
Test(kit, a_process_runs_on_the_tests_thread_while_the_test_plays_handlers_and_answers)
{
    cb_error e;
    int runs = 0;
    cb_uuid id = at_payment();

    expect_ok(cb_test_expect_status(&t, id.text, "WAITING_FOR_ASYNC", &e), e);
    expect_ok(cb_test_go(&t, &runs, &e), e);

    cr_expect_geq(runs, 1);
    expect_ok(cb_test_expect_status(&t, id.text, "COMPLETED", &e), e);
    expect_ok(cb_test_expect_state(&t, id.text, "hotel", "Ritz", &e), e);
    expect_ok(cb_test_expect_commands(&t, id.text, "hotels/BookHotel COMPLETED", &e), e);
    expect_ok(cb_test_expect_history(&t, id.text,
                                     "COMMAND book COMPLETED, WAIT awaitGo COMPLETED, "
                                     "RESPONSE go COMPLETED, STEP pay COMPLETED",
                                     &e),
              e);
    cr_expect_eq(t.last.steps, 1);
    cr_expect_eq(called, 1);
}

/* S1 12.2: behaviour injection. */
Test(kit, a_step_fails_as_often_as_it_is_told_and_its_function_is_not_called)
{
    static const cb_test_answer down = { .outcome = CB_TRANSIENT,
                                         .error_code = "GATEWAY_DOWN",
                                         .error_message = "nobody answers" };
    cb_error e;
    cb_uuid id = at_payment();

    expect_ok(cb_test_inject(&t, "pay", 2, &down, &e), e);
    expect_ok(cb_test_go(&t, NULL, &e), e);
    expect_ok(cb_test_expect_status(&t, id.text, "WAITING_FOR_RETRY GATEWAY_DOWN", &e), e);
    cr_expect_eq(called, 0);
    for (int i = 0; i < 2; i++) {
        expect_ok(cb_test_wait(&t, 60, &e), e);
        expect_ok(cb_test_go(&t, NULL, &e), e);
    }

    expect_ok(cb_test_expect_status(&t, id.text, "COMPLETED", &e), e);
    cr_expect_eq(called, 1);
}

Test(kit, a_business_failure_that_is_injected_undoes_the_process)
{
    static const cb_test_answer no = { .outcome = CB_BUSINESS_RULE, .error_code = "NO_MONEY" };
    cb_error e;
    cb_uuid id = at_payment();

    expect_ok(cb_test_inject(&t, "pay", 1, &no, &e), e);
    expect_ok(cb_test_go(&t, NULL, &e), e);

    expect_ok(cb_test_expect_status(&t, id.text, "COMPENSATED NO_MONEY", &e), e);
}

Test(kit, a_worker_dies_where_it_is_told_and_another_one_goes_on)
{
    cb_error e;
    cb_uuid id = at_payment();

    t.durable = 0;
    t.crash_after = 1; /* the payment is STARTED */
    expect_ok(cb_test_go(&t, NULL, &e), e);
    cr_assert(t.crashed);
    cr_expect_eq(called, 0);
    expect_error(CB_MISUSE, cb_test_go(&t, NULL, &e), e);
    expect_ok(cb_test_restart(&t, &e), e);
    expect_ok(cb_test_go(&t, NULL, &e), e);

    expect_ok(cb_test_expect_status(&t, id.text, "COMPLETED", &e), e);
    cr_expect_eq(called, 1);
}

Test(kit, the_clock_is_moved_and_operators_decide)
{
    cb_uuid id, late;
    cb_error e;

    expect_ok(cb_test_start(&t, "walk", "{}", &id, &e), e);
    expect_ok(cb_test_start_due(&t, "walk", "{}", -1, &late, &e), e);
    expect_ok(cb_test_go(&t, NULL, &e), e);
    expect_ok(cb_test_expect_status(&t, late.text, "WAITING_FOR_TSQ DEADLINE_EXCEEDED", &e), e);
    expect_ok(cb_test_serve(&t, "hotels", &booked, NULL, &e), e);
    expect_ok(cb_test_go(&t, NULL, &e), e);
    expect_ok(cb_test_wait(&t, 3601, &e), e);
    expect_ok(cb_test_go(&t, NULL, &e), e);
    expect_ok(cb_test_expect_status(&t, id.text, "WAITING_FOR_TSQ WAIT_TIMEOUT", &e), e);

    expect_ok(cb_process_retry(t.db, id.text, "ann", "again", NULL, &e), e);
    expect_ok(cb_test_respond(&t, id.text, "go", "{}", &e), e);
    expect_ok(cb_test_go(&t, NULL, &e), e);
    expect_ok(cb_test_expect_status(&t, id.text, "COMPLETED", &e), e);
}

Test(kit, what_is_not_as_expected_is_an_error_that_says_both)
{
    cb_error e;
    cb_uuid id;
    static const cb_test_answer other = { .command_type = "BookFlight" };

    expect_ok(cb_test_start(&t, "walk", "{}", &id, &e), e);
    expect_error(CB_INVALID_DATA, cb_test_serve(&t, "hotels", &booked, NULL, &e), e);
    cr_expect(strstr(e.message, "there is no command for hotels"), "%s", e.message);
    expect_ok(cb_test_go(&t, NULL, &e), e);
    expect_error(CB_INVALID_DATA, cb_test_expect_status(&t, id.text, "COMPLETED", &e), e);
    cr_expect(strstr(e.message, "expected 'COMPLETED', found 'WAITING_FOR_ASYNC'"), "%s",
              e.message);
    expect_error(CB_INVALID_DATA, cb_test_serve(&t, "hotels", &other, NULL, &e), e);
    cr_expect(strstr(e.message, "expected a command BookFlight, found BookHotel"), "%s", e.message);
    expect_error(CB_INVALID_DATA, cb_test_expect_status(&t, cb_uuid_new().text, "COMPLETED", &e),
                 e);
}

static cb_flow shorter_execute(cb_process *p, void *state)
{
    (void)state;
    CB_DO(cb_wait(p, "awaitGo", trip_may_go, .timeout_ms = CB_HOURS(1)));
    return CB_DONE;
}

Test(kit, another_release_of_the_code_runs_what_is_there)
{
    static const cb_process_type shorter = { .name = "walk",
                                             .domain = "fx",
                                             .version = 2,
                                             .state = &trip_fields,
                                             .responses = trip_responses,
                                             .n_responses = 1,
                                             .execute = shorter_execute };
    static const cb_process_type *const next[] = { &shorter };
    cb_error e;
    cb_uuid id = at_payment();

    expect_ok(cb_test_release(&t, &e, .types = next, .n_types = 1), e);
    expect_ok(cb_test_go(&t, NULL, &e), e);

    expect_ok(cb_test_expect_status(&t, id.text, "WAITING_FOR_TSQ NON_DETERMINISTIC", &e), e);
}

Test(kit_open, a_database_of_its_own_is_dropped_at_the_end)
{
    char name[64];
    cb_uuid id;
    cb_error e;
    PGconn *server = test_pq_open(test_server_url());

    expect_ok(cb_test_open(&t, &e, .types = types, .n_types = 1, .domains = domains), e);
    strcpy(name, t.database);
    expect_ok(cb_test_start(&t, "walk", "{}", &id, &e), e);
    expect_ok(cb_test_go(&t, NULL, &e), e);
    expect_ok(cb_test_expect_status(&t, id.text, "WAITING_FOR_ASYNC", &e), e);
    expect_number(server, 1, "SELECT count(*) FROM pg_database WHERE datname = $1", name);
    cb_test_close(&t);
    expect_number(server, 0, "SELECT count(*) FROM pg_database WHERE datname = $1", name);
    PQfinish(server);
}

Test(kit_open, without_a_server_or_a_sound_type_it_says_why_and_can_be_closed)
{
    static const cb_process_type nameless = { .domain = "fx", .state = &trip_fields };
    static const cb_process_type *const wrong[] = { &nameless };
    cb_error e;

    expect_error(CB_MISUSE, cb_test_open(&t, &e, .types = wrong, .n_types = 1), e);
    cb_test_close(&t);
    cr_assert_eq(unsetenv("COMMANDBUS_TEST_URL"), 0);
    expect_error(CB_MISUSE, cb_test_open(&t, &e, .types = types, .n_types = 1), e);
    cr_expect(strstr(e.message, "COMMANDBUS_TEST_URL"), "%s", e.message);
    cb_test_close(&t);
}
