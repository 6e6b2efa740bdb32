/* Asynchronous responses: each applied once, in the order of arrival, whatever the process does
 * just then. */
#include "tale.h"

/* Adds the word of the payload to the trail. */
static bool take_word(void *state, json_object *payload)
{
    json_object *word = NULL;

    if (!json_object_object_get_ex(payload, "word", &word))
        return false;
    tale_say(state, json_object_get_string(word));
    return true;
}

static bool take_word_and_approve(void *state, json_object *payload)
{
    ((tale *)state)->approved = true;
    return take_word(state, payload);
}

/* Changes what it must not keep, then refuses. */
static bool take_and_refuse(void *state, json_object *payload)
{
    (void)payload;
    tale_say(state, "spoiled");
    ((tale *)state)->count = -1;
    return false;
}

static bool take_nan(void *state, json_object *payload)
{
    (void)payload;
    ((tale *)state)->ratio = NAN;
    return true;
}

static const cb_response responses[] = { { "word", take_word },
                                         { "approve", take_word_and_approve },
                                         { "refused", take_and_refuse },
                                         { "nan", take_nan } };
#define RESPONSES .responses = responses, .n_responses = 4

static int runs;
static int fails;
static stage *here;         /* with an answer that arrives while the step runs */
static cb_uuid answered_id; /* whose */

static cb_outcome work_or_fail(cb_context *ctx, void *state)
{
    runs++;
    tale_say(state, "worked");
    if (here)
        stage_respond(here, answered_id, "approve", "{\"word\":\"meanwhile\"}");
    here = NULL;
    return runs <= fails ? cb_transient(ctx, "E", "again") : CB_SUCCESS;
}

static cb_flow works_and_waits(cb_process *p, void *state)
{
    (void)state;
    CB_DO(cb_step(p, "work", work_or_fail, .max_attempts = 2, .retry_delay_ms = 60000));
    CB_DO(cb_wait(p, "approval", tale_is_approved, .timeout_ms = 3600000));
    tale_say(state, "done");
    return CB_DONE;
}

static const cb_process_type type = tale_type("Answers", works_and_waits, RESPONSES);

Test(response, before_the_first_run_is_applied_by_it) /* STP.11 */
{
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Answers", "{}");

    stage_respond(&s, id, "approve", "{\"word\":\"early\"}");
    cr_expect_eq(stage_go(&s), 1);

    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "early worked done", id, "trail");
    expect_history(&s, "RESPONSE approve COMPLETED, STEP work COMPLETED, WAIT approval COMPLETED",
                   id);
    expect_value(bus.conn, "0", "SELECT count(*) FROM commandbus.process_inbox");
    stage_close(&s);
}

Test(response, while_a_step_runs_is_seen_before_the_process_sleeps) /* STP.11 */
{
    stage s = tale_open(&type);
    cb_uuid id = answered_id = stage_start(&s, "Answers", "{}");

    here = &s;
    cr_expect_eq(stage_go(&s), 2, "the first run suspends, the second finds it at once");

    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "worked meanwhile done", id, "trail");
    cr_expect_eq(runs, 1);
    stage_close(&s);
}

Test(response, while_it_waits_for_a_retry_is_applied_with_the_retry) /* STP.7, STP.11 */
{
    fails = 1;
    stage s = tale_open(&type);
    cb_uuid id = answered_id = stage_start(&s, "Answers", "{}");

    here = &s;
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_RETRY E", id);
    stage_respond(&s, id, "word", "{\"word\":\"second\"}");
    cr_expect_eq(stage_go(&s), 0);
    cr_expect_eq(runs, 1);
    stage_wait(&s, 61);
    stage_go(&s);

    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "meanwhile second worked done", id, "trail");
    expect_history(&s,
                   "STEP work COMPLETED, RESPONSE approve COMPLETED, RESPONSE word COMPLETED, "
                   "WAIT approval COMPLETED",
                   id);
    stage_close(&s);
}

Test(response, four_at_once_are_each_applied_once_in_their_order) /* STP.11: L1–L4 */
{
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Answers", "{}");

    stage_go(&s);
    stage_respond(&s, id, "word", "{\"word\":\"L1\"}");
    stage_respond(&s, id, "word", "{\"word\":\"L2\"}");
    stage_respond(&s, id, "approve", "{\"word\":\"L3\"}");
    stage_respond(&s, id, "word", "{\"word\":\"L4\"}");
    cr_expect_eq(stage_go(&s), 1);

    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "worked L1 L2 L3 L4 done", id, "trail");
    stage_close(&s);
}

Test(response, with_the_same_id_counts_once) /* STP.11 */
{
    static const char twice[] = "6f1ab1c4-9f3d-4f5e-8a37-0c8f4f1d2a11";
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Answers", "{}");
    bool accepted;
    cb_error e;

    stage_go(&s);
    cr_assert(
        cb_process_respond(bus.db, id.text, "word", "{\"word\":\"once\"}", twice, &accepted, &e));
    cr_expect(accepted);
    stage_go(&s);
    cr_assert(
        cb_process_respond(bus.db, id.text, "approve", "{\"word\":\"no\"}", twice, &accepted, &e));
    cr_expect_not(accepted, "it is in the history");
    stage_go(&s);

    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_state(&s, "worked once", id, "trail");
    stage_close(&s);
}

Test(response, that_nobody_takes_is_kept_and_changes_nothing) /* STP.11 */
{
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Answers", "{\"count\":4}");

    test_exec(bus.conn, "UPDATE commandbus.process_type SET responses = NULL"); /* none was said */
    stage_go(&s);
    stage_respond(&s, id, "unheard-of", "{\"a\":1}");
    stage_respond(&s, id, "refused", "{\"b\":2}");
    stage_respond(&s, id, "nan", "null");
    stage_respond(&s, id, "word", "[1]");
    cr_expect_eq(stage_go(&s), 1);

    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_state(&s, "worked", id, "trail");
    expect_state(&s, "4", id, "count");
    expect_value(bus.conn,
                 "unheard-of FAILED UNKNOWN_RESPONSE {\"a\": 1}, refused FAILED RESPONSE_REFUSED "
                 "{\"b\": 2}, nan FAILED RESPONSE_REFUSED, word FAILED RESPONSE_REFUSED [1]",
                 "SELECT string_agg(concat_ws(' ', name, status, error_code, nullif(result, "
                 "'null')), ', ' ORDER BY ordinal) FROM commandbus.process_history "
                 "WHERE process_id = $1 AND kind = 'RESPONSE'",
                 id.text);
    stage_respond(&s, id, "approve", "{\"word\":\"yes\"}");
    stage_go(&s);
    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "worked yes done", id, "trail");
    stage_close(&s);
}

/* STP.25 */
Test(response, of_a_name_that_the_type_does_not_take_is_refused_when_it_is_brought)
{
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Answers", "{}");
    bool accepted;
    cb_error e = { 0 };

    stage_go(&s);
    cr_expect_not(cb_process_respond(bus.db, id.text, "unheard-of", "{}", NULL, &accepted, &e));

    cr_expect_eq(e.code, CB_INVALID_NAME, "%s", e.message);
    cr_expect_str_eq(e.message, "process type Answers takes no response 'unheard-of'");
    cr_expect(strstr(e.hint, "It takes approve, "), "%s", e.hint);
    expect_value(bus.conn, "0", "SELECT count(*) FROM commandbus.process_inbox");
    stage_close(&s);
}

Test(response, after_the_end_is_applied_to_the_state_and_recorded_as_late) /* STP.11 */
{
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Answers", "{\"approved\":true}");

    test_exec(bus.conn, "UPDATE commandbus.process_type SET responses = NULL"); /* none was said */
    stage_go(&s);
    expect_status(&s, "COMPLETED", id);
    char *ended = test_value(bus.conn, "SELECT completed_at FROM commandbus.process", NULL);
    stage_respond(&s, id, "word", "{\"word\":\"late\"}");
    stage_respond(&s, id, "nan", "{}");
    stage_respond(&s, id, "unheard-of", "{}");
    cr_expect_eq(stage_go(&s), 1);

    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "worked done late", id, "trail");
    expect_events(&s, "PROCESS_CREATED LATE_ASYNC_RESPONSE LATE_ASYNC_RESPONSE LATE_ASYNC_RESPONSE",
                  id);
    expect_process(ended, id, "completed_at");
    expect_process("t", id, "wake_at IS NULL");
    cr_expect_eq(runs, 1, "no replay");
    cr_expect_eq(s.kit.last.replayed, 0);
    stage_respond(&s, id, "word", "{\"word\":\"later\"}");
    stage_go(&s);
    expect_state(&s, "worked done late later", id, "trail");
    free(ended);
    stage_close(&s);
}

Test(response, that_ends_workers_after_the_end_is_put_aside) /* STP.11, DESIGN 8.7 */
{
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Answers", "{\"approved\":true}");

    stage_go(&s);
    stage_respond(&s, id, "word", "{\"word\":\"deadly\"}");
    test_exec(bus.conn, "UPDATE commandbus.process SET unsettled = 10");
    cr_expect_eq(stage_go(&s), 1);

    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "worked done", id, "trail");
    expect_events(&s, "PROCESS_CREATED LATE_ASYNC_RESPONSE", id);
    expect_value(bus.conn, "0", "SELECT count(*) FROM commandbus.process_inbox");
    stage_close(&s);
}

Test(response, that_comes_while_the_worker_dies_is_not_lost) /* STP.11 */
{
    stage s = tale_open(&type);
    cb_uuid id = answered_id = stage_start(&s, "Answers", "{}");

    here = &s;
    s.kit.crash_after = 2; /* after the settle that suspends */
    stage_go(&s);
    cr_assert(s.kit.crashed);
    stage_restart(&s);
    stage_go(&s);

    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "worked meanwhile done", id, "trail");
    stage_close(&s);
}
