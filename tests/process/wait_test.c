/* Waits: until a condition on the state holds, or its first timeout has passed. */
#include "tale.h"

static bool take_approver(void *state, json_object *payload)
{
    tale *t = state;
    json_object *by = NULL;

    t->approved = true;
    json_object_object_get_ex(payload, "by", &by);
    return cb_text_set(&t->note, json_object_get_string(by));
}

static bool take_count(void *state, json_object *payload)
{
    (void)payload;
    ((tale *)state)->count++;
    return true;
}

static const cb_response responses[] = { { "approve", take_approver }, { "count", take_count } };

static int asked;

static bool ask_if_approved(const void *state)
{
    asked++;
    return ((const tale *)state)->approved;
}

static int64_t timeout_ms = 60000;

static cb_flow waits(cb_process *p, void *state)
{
    tale_say(state, "began");
    CB_DO(cb_wait(p, "approval", ask_if_approved, .timeout_ms = timeout_ms));
    tale_say(state, "ended");
    return CB_DONE;
}

static const cb_process_type type =
    tale_type("Waits", waits, .responses = responses, .n_responses = 2, .wait_timeout_ms = 7200000);

Test(wait, suspends_until_its_condition_holds) /* STP.6 */
{
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Waits", "{}");

    cr_expect_eq(stage_go(&s), 1);
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_process("approval", id, "current_wait");
    expect_process("t", id, "next_wait_timeout_at = updated_at + interval '60 s'");
    expect_process("t", id, "wake_at = next_wait_timeout_at AND lease_owner IS NULL");
    expect_value(bus.conn, "t",
                 "SELECT timeout_at = at + interval '60 s' FROM commandbus.process_history "
                 "WHERE process_id = $1",
                 id.text);
    cr_expect_eq(stage_go(&s), 0);

    stage_respond(&s, id, "approve", "{\"by\":\"ann\"}");
    cr_expect_eq(stage_go(&s), 1);
    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "began ended", id, "trail");
    expect_state(&s, "ann", id, "note");
    expect_process("t", id, "current_wait IS NULL AND next_wait_timeout_at IS NULL");
    expect_history(&s, "WAIT approval COMPLETED, RESPONSE approve COMPLETED", id);
    stage_close(&s);
}

Test(wait, passes_at_once_when_its_condition_holds_already) /* STP.6 */
{
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Waits", "{\"approved\":true}");

    cr_expect_eq(stage_go(&s), 1);

    expect_status(&s, "COMPLETED", id);
    expect_history(&s, "WAIT approval COMPLETED", id);
    cr_expect_eq(asked, 1);
    stage_close(&s);
}

Test(wait, has_the_types_timeout_unless_it_says_one) /* STP.1, STP.6 */
{
    timeout_ms = 0;
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Waits", "{}");

    stage_go(&s);

    expect_process("t", id, "next_wait_timeout_at = updated_at + interval '2 h'");
    stage_close(&s);
}

Test(wait, keeps_its_first_timeout_whatever_wakes_it) /* STP.6 */
{
    timeout_ms = 3600000;
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Waits", "{}");
    const char first[] = "SELECT timeout_at FROM commandbus.process_history WHERE process_id = $1 "
                         "AND kind = 'WAIT'";

    stage_go(&s);
    char *timeout = test_value(bus.conn, first, id.text, NULL);
    for (int i = 0; i < 5; i++) {
        stage_wait(&s, 700);
        stage_respond(&s, id, "count", "{}");
        cr_expect_eq(stage_go(&s), 1);
        expect_status(&s, "WAITING_FOR_ASYNC", id);
        expect_value(bus.conn, timeout, first, id.text);
        expect_process("t", id,
                       "abs(extract(epoch FROM next_wait_timeout_at - (SELECT timeout_at FROM "
                       "commandbus.process_history h WHERE h.process_id = process.process_id AND "
                       "h.kind = 'WAIT'))) < 0.002");
    }
    stage_wait(&s, 101);
    cr_expect_eq(stage_go(&s), 1);

    expect_status(&s, "WAITING_FOR_TSQ WAIT_TIMEOUT", id);
    expect_state(&s, "5", id, "count");
    free(timeout);
    stage_close(&s);
}

Test(wait,
     times_out_into_the_troubleshooting_queue_and_gets_its_whole_time_again) /* STP.6, STP.12 */
{
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Waits", "{}");

    stage_go(&s);
    stage_wait(&s, 61);
    cr_expect_eq(stage_go(&s), 1);
    expect_status(&s, "WAITING_FOR_TSQ WAIT_TIMEOUT", id);
    expect_process("Wait condition 'approval' timed out", id, "error_message");
    expect_events(&s, "PROCESS_CREATED WAIT_TIMEOUT PARKED", id);
    expect_process("t", id, "wake_at IS NULL AND current_wait = 'approval'");

    stage_respond(&s, id, "count", "{}");
    stage_respond(&s, id, "approve", "{}");
    cr_expect_eq(stage_go(&s), 0, "a response takes nothing out of the troubleshooting queue");
    expect_status(&s, "WAITING_FOR_TSQ WAIT_TIMEOUT", id);
    tale_retry(id);
    stage_go(&s);
    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "1", id, "count");
    stage_close(&s);
}

Test(wait, a_retry_restarts_its_timer) /* STP.12 */
{
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Waits", "{}");

    stage_go(&s);
    stage_wait(&s, 61);
    stage_go(&s);
    tale_retry(id);
    cr_expect_eq(stage_go(&s), 1);
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_process("t", id, "next_wait_timeout_at = updated_at + interval '60 s'");

    stage_wait(&s, 61);
    cr_expect_eq(stage_go(&s), 1);
    expect_status(&s, "WAITING_FOR_TSQ WAIT_TIMEOUT", id);
    tale_retry(id);
    stage_go(&s);
    stage_respond(&s, id, "approve", "{}");
    stage_go(&s);
    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "began ended", id, "trail");
    stage_close(&s);
}

Test(wait, an_answer_that_comes_with_the_timeout_counts) /* STP.6 */
{
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Waits", "{}");

    stage_go(&s);
    stage_wait(&s, 61);
    stage_respond(&s, id, "approve", "{}");
    cr_expect_eq(stage_go(&s), 1);

    expect_status(&s, "COMPLETED", id);
    expect_events(&s, "PROCESS_CREATED", id);
    stage_close(&s);
}

Test(wait, a_worker_that_died_does_not_push_it_out) /* STP.6 */
{
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Waits", "{}");

    stage_go(&s);
    stage_wait(&s, 30);
    test_exec(bus.conn, "UPDATE commandbus.process SET status = 'EXECUTING', lease_owner = 'dead', "
                        "lease_until = '-infinity', wake_at = commandbus.now()");
    cr_expect_eq(stage_go(&s), 1);
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    stage_wait(&s, 31);
    stage_go(&s);

    expect_status(&s, "WAITING_FOR_TSQ WAIT_TIMEOUT", id);
    stage_close(&s);
}
