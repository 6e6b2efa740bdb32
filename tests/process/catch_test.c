/* Failures of steps and waits that the code takes: values that it branches on, recorded, and the
 * same in every run. What is not known to have failed is never taken. STP.5, DESIGN 8.4, 8.9,
 * STP.17. */
#include <time.h>

#include "dying.h"
#include "tale.h"

/* What the step does, and which kinds the code takes. */
static cb_outcome plays;
static const char *play_code = "BROKEN";
static unsigned caught;
static int attempts, tried, runs;
static bool late;

static cb_outcome try_it(cb_context *ctx, void *state)
{
    tried++;
    tale_say(state, "tried"); /* undone with the failure */
    if (late)
        nanosleep(&(struct timespec){ .tv_nsec = 30000000 }, NULL);
    switch (plays) {
    case CB_TRANSIENT:
        return cb_transient(ctx, play_code, "not now");
    case CB_PERMANENT:
        return cb_permanent(ctx, play_code, "not ever");
    case CB_BUSINESS_RULE:
        return cb_business_rule(ctx, play_code, "not here");
    default:
        return CB_SUCCESS;
    }
}

static cb_outcome undo_it(cb_context *ctx, void *state)
{
    (void)ctx;
    tale_say(state, "undone");
    return CB_SUCCESS;
}

static cb_outcome other_way(cb_context *ctx, void *state)
{
    (void)ctx;
    tale_say(state, "other");
    return CB_SUCCESS;
}

static const char *kind_word(cb_failure_kind kind)
{
    switch (kind) {
    case CB_FAILURE_BUSINESS_RULE:
        return "rule";
    case CB_FAILURE_PERMANENT:
        return "permanent";
    case CB_FAILURE_EXHAUSTED:
        return "exhausted";
    case CB_FAILURE_CANCELED:
        return "canceled";
    case CB_FAILURE_TIMEOUT:
        return "timeout";
    case CB_FAILURE_ANY:
        break;
    }
    return "?";
}

static void say_failure(cb_process *p, tale *t)
{
    const cb_caught *failure = cb_failure(p);
    char words[200] = "fine";

    if (failure)
        snprintf(words, sizeof words, "%s:%s:%s", kind_word(failure->kind), failure->code,
                 failure->message);
    cb_text_set(&t->note, words);
}

static cb_flow tries(cb_process *p, void *state)
{
    runs++;
    CB_DO(cb_step(p, "try", try_it, .compensate = undo_it, .max_attempts = attempts,
                  .timeout_ms = late ? 10 : 0, .catch = caught));
    say_failure(p, state);
    if (cb_failure(p))
        CB_DO(cb_step(p, "other", other_way));
    cr_expect_null(cb_failure(p), "of the last call, which has succeeded");
    return ((tale *)state)->approved ? cb_business_failure(p, "NO", "the state says so") : CB_DONE;
}

static const cb_process_type type = tale_type("Tries", tries, .version = 1);

static cb_uuid run_caught(stage *s, cb_outcome outcome, unsigned catches)
{
    plays = outcome;
    caught = catches;
    cb_uuid id = stage_start(s, "Tries", "{}");
    stage_go(s);
    return id;
}

static void expect_other_way(stage *s, cb_uuid id, const char *failure)
{
    expect_status(s, "COMPLETED", id);
    expect_history(s, "STEP try CAUGHT, STEP other COMPLETED", id);
    expect_state(s, "other", id, "trail");
    expect_state(s, failure, id, "note");
}

Test(catch, what_a_step_fails_with_is_a_value)
{
    stage s = tale_open(&type);

    expect_other_way(&s, run_caught(&s, CB_PERMANENT, true), "permanent:BROKEN:not ever");
    expect_other_way(&s, run_caught(&s, CB_BUSINESS_RULE, true), "rule:BROKEN:not here");
    expect_other_way(&s, run_caught(&s, CB_TRANSIENT, true), "exhausted:BROKEN:not now");
    expect_other_way(&s, run_caught(&s, CB_PERMANENT, CB_FAILURE_PERMANENT | CB_FAILURE_TIMEOUT),
                     "permanent:BROKEN:not ever");
    cb_uuid id = run_caught(&s, CB_SUCCESS, true);
    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "fine", id, "note");
    stage_close(&s);
}

Test(catch, kinds_that_the_code_does_not_take_end_as_always)
{
    stage s = tale_open(&type);

    expect_status(&s, "COMPENSATED BROKEN", run_caught(&s, CB_BUSINESS_RULE, CB_FAILURE_PERMANENT));
    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE",
                  run_caught(&s, CB_PERMANENT, CB_FAILURE_BUSINESS_RULE | CB_FAILURE_TIMEOUT));
    expect_status(&s, "WAITING_FOR_TSQ RETRIES_EXHAUSTED",
                  run_caught(&s, CB_TRANSIENT, CB_FAILURE_PERMANENT));
    stage_close(&s);
}

Test(catch, attempts_are_used_up_first)
{
    stage s = tale_open(&type);

    attempts = 3;
    cb_uuid id = run_caught(&s, CB_TRANSIENT, true);
    for (int i = 0; i < 2; i++) {
        expect_status(&s, "WAITING_FOR_RETRY BROKEN", id);
        stage_wait(&s, 400);
        stage_go(&s);
    }
    expect_other_way(&s, id, "exhausted:BROKEN:not now");
    cr_expect_eq(tried, 3);
    stage_close(&s);
}

static cb_outcome knows_broken(const char *code)
{
    return strcmp(code, "BROKEN") == 0 ? CB_BUSINESS_RULE : CB_PERMANENT;
}

Test(catch, what_the_type_calls_a_business_rule_is_taken_as_one)
{
    static const cb_process_type wiser = tale_type("Tries", tries, .classify = knows_broken);
    stage s = tale_open(&wiser);

    expect_other_way(&s, run_caught(&s, CB_PERMANENT, CB_FAILURE_BUSINESS_RULE),
                     "rule:BROKEN:not ever");
    stage_close(&s);
}

Test(catch, a_failed_step_owes_nothing_when_the_rest_is_undone)
{
    stage s = tale_open(&type);

    plays = CB_PERMANENT;
    caught = true;
    cb_uuid id = stage_start(&s, "Tries", "{\"approved\":true}");
    stage_go(&s);

    expect_status(&s, "COMPENSATED NO", id);
    expect_history(&s, "STEP try CAUGHT, STEP other COMPLETED", id);
    stage_close(&s);
}

Test(catch, a_success_after_the_timeout_is_not_a_failure) /* DESIGN 8.9 */
{
    stage s = tale_open(&type);

    late = true;
    cb_uuid id = run_caught(&s, CB_SUCCESS, true);
    expect_status(&s, "WAITING_FOR_TSQ RETRIES_EXHAUSTED", id);
    expect_message("may have succeeded", id);

    id = run_caught(&s, CB_PERMANENT, true);
    expect_status(&s, "COMPLETED", id);
    expect_value(bus.conn, "TIMEOUT",
                 "SELECT result ->> 'kind' FROM commandbus.process_history WHERE process_id = $1 "
                 "AND name = 'try'",
                 id.text);
    stage_close(&s);
}

Test(catch, a_step_that_says_its_outcome_is_unknown_waits_for_a_person) /* DESIGN 8.9 */
{
    stage s = tale_open(&type);

    play_code = "OUTCOME_UNKNOWN";
    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", run_caught(&s, CB_PERMANENT, true));
    stage_close(&s);
}

Test(catch, a_step_that_never_came_back_is_not_taken_for_a_failure) /* DESIGN 8.9, STP.9 */
{
    stage s = tale_open(&type);

    plays = CB_PERMANENT;
    caught = true;
    cb_uuid id = stage_start(&s, "Tries", "{}");
    dying d = { .stage = &s, .die_at = 2 }; /* after STARTED, before its end */
    while (dying_step(&d) || d.dead)
        ;
    expect_status(&s, "WAITING_FOR_TSQ RETRIES_EXHAUSTED_CRASH_RECOVERY", id);
    expect_history(&s, "STEP try STARTED", id);
    cr_expect_eq(tried, 1);

    tale_retry(id);
    stage_go(&s);
    expect_value(bus.conn, "CAUGHT",
                 "SELECT status FROM commandbus.process_history WHERE process_id = $1 AND name = "
                 "'try'",
                 id.text);
    expect_status(&s, "COMPLETED", id);
    stage_close(&s);
}

Test(catch, code_that_does_not_catch_it_any_more_does_not_take_it_for_a_success)
{
    stage s = tale_open(&type);

    plays = CB_PERMANENT;
    caught = true;
    cb_uuid id = stage_start(&s, "Tries", "{}");
    s.kit.durable = 0;
    s.kit.crash_after = 2; /* the failure is recorded with STARTED of the other step */
    stage_go(&s);
    cr_assert(s.kit.crashed);
    stage_restart(&s);

    caught = CB_FAILURE_TIMEOUT;
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ NON_DETERMINISTIC", id);
    expect_message("does not catch any more", id);
    stage_close(&s);
}

/* ---- waits ---- */

static bool approve_and_say_so(void *state, json_object *payload)
{
    (void)payload;
    ((tale *)state)->approved = true;
    tale_say(state, "approved");
    return true;
}

static const cb_response responses[] = { { "approval", approve_and_say_so } };

static cb_outcome remind(cb_context *ctx, void *state)
{
    (void)ctx;
    tale_say(state, "reminded");
    return CB_SUCCESS;
}

/* A reminder, a second one, then somebody else. */
static cb_flow asks(cb_process *p, void *state)
{
    tale *t = state;

    for (int i = 1; i <= 2; i++) {
        char wait[20], step[20];
        snprintf(wait, sizeof wait, "wait-%d", i);
        snprintf(step, sizeof step, "remind-%d", i);
        CB_DO(cb_wait(p, wait, tale_is_approved, .timeout_ms = CB_MINUTES(10),
                      .catch = CB_FAILURE_TIMEOUT));
        say_failure(p, t);
        if (!cb_failure(p))
            return CB_DONE;
        CB_DO(cb_step(p, step, remind, .local = true));
    }
    CB_DO(cb_wait(p, "boss", tale_is_approved, .timeout_ms = CB_HOURS(1)));
    return CB_DONE;
}

static const cb_process_type patient =
    tale_type("Asks", asks, .responses = responses, .n_responses = 1);

Test(catch, a_wait_that_times_out_sends_a_reminder_and_waits_on)
{
    stage s = tale_open(&patient);
    cb_uuid id = stage_start(&s, "Asks", "{}");

    stage_go(&s);
    stage_wait(&s, 601);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_state(&s, "timeout:WAIT_TIMEOUT:Wait condition 'wait-1' timed out", id, "note");
    expect_events(&s, "PROCESS_CREATED WAIT_TIMEOUT", id);

    stage_respond(&s, id, "approval", "{}");
    stage_go(&s);
    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "reminded approved", id, "trail");
    expect_history(&s,
                   "WAIT wait-1 CAUGHT, STEP remind-1 COMPLETED, WAIT wait-2 COMPLETED, RESPONSE "
                   "approval COMPLETED",
                   id);
    stage_close(&s);
}

Test(catch, a_response_that_is_there_when_the_time_is_over_wins)
{
    stage s = tale_open(&patient);
    cb_uuid id = stage_start(&s, "Asks", "{}");

    stage_go(&s);
    stage_respond(&s, id, "approval", "{}");
    stage_wait(&s, 601);
    stage_go(&s);

    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "approved", id, "trail");
    stage_close(&s);
}

Test(catch, what_is_not_caught_of_the_last_wait_is_parked)
{
    stage s = tale_open(&patient);
    cb_uuid id = stage_start(&s, "Asks", "{}");

    for (int i = 0; i < 3; i++) {
        stage_go(&s);
        stage_wait(&s, 3601);
    }
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ WAIT_TIMEOUT", id);
    expect_state(&s, "reminded reminded", id, "trail");
    stage_close(&s);
}
