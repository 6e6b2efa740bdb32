/* Attempts of a step: what fails, times out or crashes is tried again as often as it may be, never
 * more. */
#include <time.h>

#include "tale.h"

/* What the step of this test does, and what it has done. */
static struct {
    int fails;   /* so many of its first runs fail */
    int yields;  /* so many of them give themselves back instead */
    int slow_ms; /* how long a run takes */
    cb_outcome failure;
    int max_attempts;
    int64_t retry_delay_ms, timeout_ms;
    bool local;
    double asks_seconds;
    int ran;
    char keys[40][40];
} step = { .failure = CB_TRANSIENT };

static void take_time(int ms)
{
    struct timespec t = { ms / 1000, ms % 1000 * 1000000L };

    nanosleep(&t, NULL);
}

static cb_outcome flaky(cb_context *ctx, void *state)
{
    tale *t = state;

    snprintf(step.keys[step.ran++], sizeof *step.keys, "%s", cb_context_key(ctx));
    t->count++;
    tale_say(t, "tried");
    if (step.slow_ms)
        take_time(step.slow_ms);
    if (step.yields-- > 0)
        return cb_interrupted(ctx);
    if (step.ran > step.fails)
        return CB_SUCCESS;
    if (step.failure == CB_PERMANENT)
        return cb_permanent(ctx, "E_WRONG", "wrong");
    if (step.asks_seconds > 0)
        return cb_transient_after(ctx, step.asks_seconds, "E_BUSY", "busy");
    return cb_transient(ctx, "E_BUSY", "busy in run %d", step.ran);
}

static cb_flow one_step(cb_process *p, void *state)
{
    tale *t = state;

    cb_text_set(&t->note, "before"); /* not the step's: it stays when the step fails */
    CB_DO(cb_step(p, "flaky", flaky, .max_attempts = step.max_attempts,
                  .retry_delay_ms = step.retry_delay_ms, .timeout_ms = step.timeout_ms,
                  .local = step.local));
    return CB_DONE;
}

static const cb_process_type type = tale_type("Attempts", one_step, .version = 1);

/* Milliseconds from the settle to next_retry_at. */
static double retry_ms(cb_uuid id)
{
    char *ms = test_value(bus.conn,
                          "SELECT extract(epoch FROM next_retry_at - updated_at) * 1000 "
                          "FROM commandbus.process WHERE process_id = $1",
                          id.text, NULL);
    double found = strtod(ms, NULL);

    free(ms);
    return found;
}

Test(attempt, there_is_one_unless_more_are_allowed) /* STP.4, STP.7 */
{
    step.fails = 1;
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Attempts", "{\"count\":5}");

    cr_expect_eq(stage_go(&s), 1);

    expect_status(&s, "WAITING_FOR_TSQ RETRIES_EXHAUSTED", id);
    expect_message("step 'flaky', attempt 1: E_BUSY: busy in run 1", id);
    expect_history(&s, "STEP flaky FAILED", id);
    expect_state(&s, "5", id, "count");
    expect_state(&s, "before", id, "note");
    expect_process("t", id, "wake_at IS NULL AND tsq_at IS NOT NULL");
    cr_expect_eq(step.ran, 1);
    stage_close(&s);
}

Test(attempt, a_failed_one_is_retried_later_and_leaves_nothing_in_the_state) /* STP.7 */
{
    step.fails = 2;
    step.max_attempts = 3;
    step.retry_delay_ms = 60000;
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Attempts", "{}");

    cr_expect_eq(stage_go(&s), 1);
    expect_status(&s, "WAITING_FOR_RETRY E_BUSY", id);
    expect_history(&s, "STEP flaky RETRY", id);
    expect_state(&s, "0", id, "count");
    expect_process("t", id, "wake_at = next_retry_at AND current_step = 'flaky'");
    expect_process("t", id, "lease_owner IS NULL");
    stage_wait(&s, 61);
    cr_expect_eq(stage_go(&s), 1);
    stage_wait(&s, 70);
    cr_expect_eq(stage_go(&s), 0, "the second delay is twice the first");
    stage_wait(&s, 51);
    cr_expect_eq(stage_go(&s), 1);

    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "1", id, "count");
    expect_state(&s, "tried", id, "trail");
    expect_process("t", id, "next_retry_at IS NULL AND error_message IS NULL");
    expect_value(bus.conn, "3",
                 "SELECT attempts FROM commandbus.process_history WHERE process_id = $1", id.text);
    cr_expect_eq(step.ran, 3);
    cr_expect_str_eq(step.keys[0], step.keys[2], "the key is the same on each attempt");
    cr_expect_str_neq(step.keys[0], id.text);
    stage_close(&s);
}

Test(attempt, delays_double_up_to_five_minutes_with_half_a_second_of_chance) /* STP.7 */
{
    step.fails = step.max_attempts = 7;
    step.retry_delay_ms = 20000;
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Attempts", "{}");
    double base = 20000;

    for (int attempt = 1; attempt < 7; attempt++, base *= 2) {
        cr_expect_eq(stage_go(&s), 1);
        double ms = retry_ms(id);
        double least = base < 300000 ? base : 300000, most = base + 500;
        cr_expect(ms >= least - 1 && ms <= (most < 300000 ? most : 300000),
                  "%.0f ms after attempt %d", ms, attempt);
        stage_wait(&s, ms / 1000 + 0.01);
    }
    cr_expect_eq(stage_go(&s), 1);

    expect_status(&s, "WAITING_FOR_TSQ RETRIES_EXHAUSTED", id);
    expect_process("t", id, "next_retry_at IS NULL AND wake_at IS NULL");
    cr_expect_eq(step.ran, 7);
    stage_close(&s);
}

Test(attempt, processes_that_fail_together_come_again_apart) /* STP.7 */
{
    step.fails = 100;
    step.max_attempts = 2;
    step.retry_delay_ms = 60000;
    stage s = tale_open(&type);

    for (int i = 0; i < 19; i++)
        stage_start(&s, "Attempts", "{}");
    cr_expect_eq(stage_go(&s), 19);

    expect_value(bus.conn, "t",
                 "SELECT count(DISTINCT round(extract(epoch FROM next_retry_at - updated_at) * "
                 "1000)) > 9 FROM commandbus.process");
    stage_close(&s);
}

Test(attempt, a_step_that_asks_for_more_time_gets_it) /* STP.7, BUS: Retry-After */
{
    step.fails = 1;
    step.max_attempts = 2;
    step.asks_seconds = 900;
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Attempts", "{}");

    stage_go(&s);

    double ms = retry_ms(id);
    cr_expect(ms >= 900000 && ms <= 900500, "%.0f", ms);
    stage_close(&s);
}

Test(attempt, a_permanent_failure_is_not_tried_again) /* STP.8 */
{
    step.fails = 1;
    step.max_attempts = 3;
    step.failure = CB_PERMANENT;
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Attempts", "{}");

    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);
    expect_message("E_WRONG: wrong", id);
    tale_retry(id);
    stage_go(&s);

    expect_status(&s, "COMPLETED", id);
    expect_history(&s, "STEP flaky COMPLETED, OPERATOR RETRY COMPLETED", id);
    expect_state(&s, "1", id, "count");
    stage_close(&s);
}

static cb_outcome knows_wrong(const char *code)
{
    return strcmp(code, "E_WRONG") == 0 ? CB_TRANSIENT : CB_PERMANENT;
}

Test(attempt, the_type_may_know_a_failure_better) /* STP.1 */
{
    static const cb_process_type wiser = tale_type("Attempts", one_step, .classify = knows_wrong);
    step.fails = 1;
    step.max_attempts = 2;
    step.failure = CB_PERMANENT;
    stage s = tale_open(&wiser);
    cb_uuid id = stage_start(&s, "Attempts", "{}");

    stage_go(&s);

    expect_status(&s, "WAITING_FOR_RETRY E_WRONG", id);
    stage_close(&s);
}

Test(attempt, one_that_returns_too_late_has_failed_whatever_it_says) /* STP.4 */
{
    step.timeout_ms = 5;
    step.slow_ms = 30;
    step.max_attempts = 2;
    step.retry_delay_ms = 60000;
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Attempts", "{}");

    stage_go(&s);
    expect_status(&s, "WAITING_FOR_RETRY STEP_TIMEOUT", id);
    expect_state(&s, "0", id, "count");
    stage_wait(&s, 61);
    stage_go(&s);

    expect_status(&s, "WAITING_FOR_TSQ RETRIES_EXHAUSTED", id);
    expect_message("STEP_TIMEOUT", id);
    expect_state(&s, "0", id, "count");
    cr_expect_eq(step.ran, 2);
    stage_close(&s);
}

Test(attempt, an_early_wake_up_does_not_start_an_attempt_early) /* STP.7, STP.11 */
{
    step.fails = 1;
    step.max_attempts = 2;
    step.retry_delay_ms = 60000;
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Attempts", "{}");

    stage_go(&s);
    test_exec(bus.conn, "UPDATE commandbus.process_type SET responses = NULL"); /* any is kept */
    stage_respond(&s, id, "whatever", "{}");
    cr_expect_eq(stage_go(&s), 0, "a response wakes nothing that waits for its retry");
    test_exec(bus.conn, "UPDATE commandbus.process SET wake_at = commandbus.now()");
    cr_expect_eq(stage_go(&s), 1);

    cr_expect_eq(step.ran, 1);
    expect_status(&s, "WAITING_FOR_RETRY E_BUSY", id);
    expect_process("t", id, "abs(extract(epoch FROM wake_at - next_retry_at)) < 0.002");
    stage_wait(&s, 61);
    stage_go(&s);
    expect_status(&s, "COMPLETED", id);
    expect_history(&s, "STEP flaky COMPLETED, RESPONSE whatever FAILED", id);
    stage_close(&s);
}

Test(attempt, a_worker_that_dies_while_it_waits_does_not_make_it_earlier) /* STP.7 */
{
    step.fails = 1;
    step.max_attempts = 2;
    step.retry_delay_ms = 60000;
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Attempts", "{}");

    stage_go(&s);
    test_exec(bus.conn, "UPDATE commandbus.process SET wake_at = commandbus.now(), "
                        "status = 'EXECUTING', lease_owner = 'dead', lease_until = '-infinity', "
                        "unsettled = 1");
    cr_expect_eq(stage_go(&s), 1);

    cr_expect_eq(step.ran, 1);
    expect_status(&s, "WAITING_FOR_RETRY E_BUSY", id);
    stage_wait(&s, 61);
    stage_go(&s);
    expect_status(&s, "COMPLETED", id);
    stage_close(&s);
}

Test(attempt, a_deadline_does_not_wait_for_the_retry) /* STP.10 */
{
    step.fails = 1;
    step.max_attempts = 2;
    step.retry_delay_ms = 300000;
    stage s = tale_open(&type);
    cb_uuid id = stage_start_due(&s, "Attempts", "{}", 200);

    stage_go(&s);
    stage_wait(&s, 210);
    cr_expect_eq(stage_go(&s), 1);

    expect_status(&s, "WAITING_FOR_TSQ DEADLINE_EXCEEDED", id);
    stage_close(&s);
}

/* ---- crashes ---- */

static bool settle_unseen(void *arg, cb_process_settlement *settlement)
{
    stage *s = arg;
    cb_error e;

    cr_assert(cb_process_settle(bus.db, s->kit.worker, settlement, 1, &e), "%s", e.message);
    return true;
}

/* A worker that dies in the middle of a run: its checkpoints are there, its outcome is not. */
static void die_in_a_run(stage *s)
{
    static const cb_run_host host = { .checkpoint = settle_unseen };
    cb_process_claim_options o = { .worker = s->kit.worker,
                                   .kinds = cb_process_types_kinds(s->kit.types),
                                   .n_kinds = 1,
                                   .vt_seconds = 1 };
    OWNED(cb_process_claim) claim = NULL;
    cb_process_look look;
    cb_error e;

    cr_assert(cb_process_claim_due(bus.db, &o, 1, &claim, &look, &e), "%s", e.message);
    cr_assert_eq(cb_process_claim_count(claim), 1);
    cb_run_process(s->kit.run, cb_process_claim_at(claim, 0), &host, s, &s->kit.last);
    stage_restart(s);
}

Test(attempt, one_that_began_and_has_no_end_is_never_repeated_if_there_is_only_one) /* STP.9 */
{
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Attempts", "{}");

    die_in_a_run(&s);
    expect_history(&s, "STEP flaky STARTED", id);
    cr_expect_eq(stage_go(&s), 1);

    expect_status(&s, "WAITING_FOR_TSQ RETRIES_EXHAUSTED_CRASH_RECOVERY", id);
    expect_message("step 'flaky' was started 1 times", id);
    cr_expect_eq(step.ran, 1);
    tale_retry(id);
    stage_go(&s);
    expect_status(&s, "COMPLETED", id);
    cr_expect_eq(step.ran, 2);
    stage_close(&s);
}

Test(attempt, a_crash_counts_as_one) /* STP.9 */
{
    step.max_attempts = 3;
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Attempts", "{}");

    for (int i = 1; i <= 3; i++) {
        die_in_a_run(&s);
        cr_expect_eq(step.ran, i);
    }
    stage_go(&s);

    expect_status(&s, "WAITING_FOR_TSQ RETRIES_EXHAUSTED_CRASH_RECOVERY", id);
    expect_message("started 3 times", id);
    cr_expect_eq(step.ran, 3);
    stage_close(&s);
}

Test(attempt, a_process_that_ends_its_workers_is_parked) /* STP.9, DESIGN 8.7 */
{
    step.local = true; /* no checkpoint: nothing of it is known */
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Attempts", "{}");

    for (int i = 0; i < 10; i++)
        die_in_a_run(&s);
    cr_expect_eq(stage_go(&s), 1);

    expect_status(&s, "WAITING_FOR_TSQ RETRIES_EXHAUSTED_CRASH_RECOVERY", id);
    expect_message("claimed 10 times", id);
    cr_expect_eq(step.ran, 10);
    stage_close(&s);
}

Test(attempt, nor_does_an_operators_retry_make_it_end_workers_for_ever) /* STP.9, STP.12 */
{
    step.local = true;
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Attempts", "{}");

    for (int i = 0; i < 10; i++)
        die_in_a_run(&s);
    stage_go(&s);
    tale_retry(id);
    for (int i = 0; i < 10; i++)
        die_in_a_run(&s);
    cr_expect_eq(stage_go(&s), 1);

    expect_status(&s, "WAITING_FOR_TSQ RETRIES_EXHAUSTED_CRASH_RECOVERY", id);
    cr_expect_eq(step.ran, 20);
    tale_retry(id);
    stage_go(&s);
    expect_status(&s, "COMPLETED", id);
    stage_close(&s);
}

/* ---- what is kept of them ---- */

/* What the audit says about the step, in the order of time. */
#define expect_attempts(s, expected, id)                                                     \
    expect_value(                                                                            \
        bus.conn, expected,                                                                  \
        "SELECT string_agg(concat_ws(' ', event, step_status, attempt_number || ' of ' || "  \
        "max_attempts, worker, details ->> 'error_message', "                                \
        "CASE WHEN details ? 'took_ms' THEN 'took' END), '; ' ORDER BY at, attempt_number) " \
        "FROM commandbus.process_audit WHERE process_id = $1 AND step_name = 'flaky' "       \
        "AND entry_type IS NOT NULL",                                                        \
        (id).text)

static void expect_every_attempt_kept(void)
{
    step.fails = 2;
    step.max_attempts = 3;
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Attempts", "{}");

    stage_go(&s);
    expect_attempts(&s, "STEP_RETRY WAITING_RETRY 1 of 3 stage busy in run 1 took", id);
    s.kit.worker = "second";
    for (int i = 0; i < 2; i++) {
        stage_wait(&s, 61);
        stage_go(&s);
    }

    expect_status(&s, "COMPLETED", id);
    expect_attempts(&s,
                    "STEP_RETRY WAITING_RETRY 1 of 3 stage busy in run 1 took; "
                    "STEP_RETRY WAITING_RETRY 2 of 3 second busy in run 2 took; "
                    "STEP_COMPLETED COMPLETED 3 of 3 second took",
                    id);
    expect_value(bus.conn, "t",
                 "SELECT bool_and(ended_at >= a.at AND ended_at < h.finished_at) FROM "
                 "commandbus.process_attempt a JOIN commandbus.process_history h USING "
                 "(process_id, ordinal) WHERE process_id = $1",
                 id.text);
    stage_close(&s);
}

Test(attempt, each_is_kept_with_its_worker_its_time_and_its_error) /* S0 StepRecord */
{
    expect_every_attempt_kept();
}

Test(attempt, each_is_kept_also_of_a_local_step)
{
    step.local = true;
    expect_every_attempt_kept();
}

Test(attempt, one_that_failed_for_good_is_kept_when_an_operator_retries) /* STP.12 */
{
    step.fails = 1;
    step.max_attempts = 3;
    step.failure = CB_PERMANENT;
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Attempts", "{}");
    stage_go(&s);

    tale_retry(id);
    stage_go(&s);

    expect_attempts(&s,
                    "STEP_FAILED FAILED 1 of 3 stage wrong took; STEP_COMPLETED COMPLETED 1 of 3 "
                    "stage took",
                    id);
    expect_events(&s, "PROCESS_CREATED PARKED TSQ_RETRY", id);
    stage_close(&s);
}

Test(attempt, one_whose_end_nobody_knows_is_kept_too) /* STP.9 */
{
    step.max_attempts = 3;
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Attempts", "{}");

    for (int i = 1; i <= 2; i++)
        die_in_a_run(&s);
    stage_go(&s);

    expect_attempts(&s,
                    "STEP_LOST STARTED 1 of 3 stage; STEP_LOST STARTED 2 of 3 stage; "
                    "STEP_COMPLETED COMPLETED 3 of 3 stage took",
                    id);
    stage_close(&s);
}

Test(attempt, one_that_gives_itself_back_is_not_counted)
{
    step.yields = 3;
    step.max_attempts = 2;
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Attempts", "{}");

    for (int i = 0; i < 4; i++) {
        stage_go(&s);
        stage_wait(&s, 2);
    }

    expect_attempts(&s, "STEP_COMPLETED COMPLETED 1 of 2 stage took", id);
    cr_expect_eq(step.ran, 4);
    stage_close(&s);
}

Test(attempt, the_state_document_says_which_of_how_many_and_what_the_step_saw) /* S0 StepRecord */
{
    step.fails = 1;
    step.max_attempts = 3;
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Attempts", "{\"count\":5}");
    stage_go(&s);

    expect_value(
        bus.conn, "WAITING_RETRY 1 3 5 before",
        "SELECT concat_ws(' ', d ->> 'status', d ->> 'attemptCount', d ->> 'maxRetries', "
        "(d ->> 'requestJson')::jsonb ->> 'count', (d ->> 'requestJson')::jsonb ->> 'note') "
        "FROM commandbus.process_state_document v, "
        "LATERAL (SELECT v.document #> '{stepHistory,0}' AS d) s WHERE process_id = $1",
        id.text);
    stage_close(&s);
}

Test(attempt, a_process_that_goes_well_costs_no_more_rows_for_it)
{
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Attempts", "{}");
    stage_go(&s);

    expect_status(&s, "COMPLETED", id);
    expect_value(bus.conn, "1 0 1",
                 "SELECT concat_ws(' ', (SELECT count(*) FROM commandbus.process_history), "
                 "(SELECT count(*) FROM commandbus.process_attempt), "
                 "(SELECT count(*) FROM commandbus.process_event))");
    stage_close(&s);
}
