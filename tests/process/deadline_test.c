/* The deadline: when it is looked at, and what it does. STP.10. */
#include <stdlib.h>
#include <unistd.h>

#include "tour.h"

static cb_process_type due(cb_deadline_action action)
{
    cb_process_type type = tour_type;

    type.deadline_action = action;
    return type;
}

/* Waits for the reply of bookRisk, with a deadline in a minute. */
static cb_uuid start_due_tour(stage *s)
{
    cb_uuid id = stage_start_due(s, "Tour", "{}", 60);

    stage_go(s);
    return id;
}

Test(deadline, parks_and_a_retry_spends_it) /* STP.10, STP.12 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = start_due_tour(&s);

    stage_wait(&s, 59);
    cr_expect_eq(stage_go(&s), 0);
    stage_wait(&s, 2);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ DEADLINE_EXCEEDED", id);
    expect_told("1", id, "DEADLINE_EXCEEDED");
    tour_book(&s, "risk"); /* what arrives meanwhile is not lost, and decides nothing */
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ DEADLINE_EXCEEDED", id);

    tour_retry(id);
    stage_go(&s);
    tour_book(&s, "fx");
    stage_go(&s);
    expect_status(&s, "COMPLETED", id);
    expect_told("1", id, "DEADLINE_EXCEEDED"); /* never twice */
    stage_close(&s);
}

Test(deadline, a_new_one_counts_from_then_on) /* STP.12 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = start_due_tour(&s);
    cb_error e;

    stage_wait(&s, 61);
    stage_go(&s);
    char *later = test_value(bus.conn, "SELECT commandbus.now() + interval '100 seconds'", NULL);
    cr_assert(cb_process_retry(bus.db, id.text, "olga", NULL, later, &e), "%s", e.message);
    free(later);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    stage_wait(&s, 101);
    stage_go(&s);

    expect_status(&s, "WAITING_FOR_TSQ DEADLINE_EXCEEDED", id);
    expect_told("2", id, "DEADLINE_EXCEEDED");
    stage_close(&s);
}

Test(deadline, that_has_passed_before_the_first_run_runs_nothing) /* STP.10 at claim */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = stage_start_due(&s, "Tour", "{}", -1);

    stage_go(&s);

    expect_status(&s, "WAITING_FOR_TSQ DEADLINE_EXCEEDED", id);
    cr_expect_str_empty(tour_calls);
    stage_close(&s);
}

/* ---- between two steps of one run ---- */

/* Works for as long as the deadlines of its processes are away, so that the claim comes before
 * them. */
static cb_outcome slow_step(cb_context *ctx, void *state)
{
    (void)state;
    while (cb_context_remaining_ms(ctx) > 27000) /* of 30 s */
        usleep(1000);
    return CB_SUCCESS;
}

static cb_outcome never_run(cb_context *ctx, void *state)
{
    (void)state;
    return cb_permanent(ctx, "RAN", "after the deadline");
}

static bool by_command;

static cb_flow two_execute(cb_process *p, void *state)
{
    (void)state;
    CB_DO(cb_step(p, "slow", slow_step, .compensate = slow_step));
    if (by_command)
        CB_DO(cb_command_step(p, "second", NULL, NULL, .domain = "fx", .command_type = "Never"));
    else
        CB_DO(cb_step(p, "second", never_run));
    return CB_DONE;
}

static const cb_process_type two = {
    .name = "Two", .domain = "payments", .state = &tour_fields, .execute = two_execute
};

Test(deadline, that_passes_in_a_step_is_seen_before_the_next_one) /* STP.10 before STARTED */
{
    const cb_process_type *types[] = { &two };
    stage s = stage_open(types, 1, NULL, 0);

    cb_uuid id = stage_start_due(&s, "Two", "{}", 3);
    stage_go(&s);

    expect_status(&s, "WAITING_FOR_TSQ DEADLINE_EXCEEDED", id);
    expect_history(&s, "STEP slow COMPLETED", id); /* it was never stopped inside */
    stage_close(&s);
}

Test(deadline, that_passes_in_a_step_is_seen_before_a_command_is_sent) /* STP.10 */
{
    const cb_process_type *types[] = { &two };
    stage s = stage_open(types, 1, NULL, 0);
    by_command = true;

    cb_uuid id = stage_start_due(&s, "Two", "{}", 3);
    stage_go(&s);

    expect_status(&s, "WAITING_FOR_TSQ DEADLINE_EXCEEDED", id);
    expect_commands(&s, "", id);
    stage_close(&s);
}

Test(deadline, that_passes_in_a_step_undoes_it) /* STP.10 COMPENSATE */
{
    cb_process_type type = two;
    const cb_process_type *types[] = { &type };
    type.deadline_action = CB_DEADLINE_COMPENSATE;
    stage s = stage_open(types, 1, NULL, 0);

    cb_uuid id = stage_start_due(&s, "Two", "{}", 3);
    stage_go(&s);

    expect_status(&s, "COMPENSATED DEADLINE_EXCEEDED", id);
    expect_history(&s, "STEP slow COMPLETED, COMPENSATION slow COMPLETED", id);
    expect_told("1", id, "DEADLINE_EXCEEDED"); /* though it was told with a checkpoint */
    stage_close(&s);
}

/* ---- what it does ---- */

static cb_deadline_action by_state(const void *state)
{
    return ((const tour *)state)->decline ? CB_DEADLINE_FAIL : CB_DEADLINE_COMPENSATE;
}

Test(deadline, may_depend_on_the_state) /* STP.1, STP.10 */
{
    cb_process_type type = tour_type;
    type.deadline_action_of = by_state;
    stage s = tour_open(&type);

    cb_uuid fails = stage_start_due(&s, "Tour", "{\"decline\":true}", -1);
    cb_uuid undone = stage_start_due(&s, "Tour", "{}", -1);
    stage_go(&s);

    expect_status(&s, "FAILED DEADLINE_EXCEEDED", fails);
    expect_status(&s, "COMPENSATED DEADLINE_EXCEEDED", undone);
    stage_close(&s);
}

Test(deadline, ends_the_wait_for_a_retry) /* STP.10, DESIGN 8.7: and does not spin */
{
    stage s = tour_open(&tour_type);
    tour_plays.prepare = CB_TRANSIENT;
    tour_plays.undo_attempts = 5;
    cb_uuid id = stage_start_due(&s, "Tour", "{}", 5);

    stage_go(&s);
    expect_status(&s, "WAITING_FOR_RETRY E_AGAIN", id);
    stage_wait(&s, 6); /* the retry is due in ten seconds */
    cr_expect_eq(stage_go(&s), 1);

    expect_status(&s, "WAITING_FOR_TSQ DEADLINE_EXCEEDED", id);
    stage_close(&s);
}

Test(deadline, does_nothing_to_a_process_that_is_being_undone) /* STP.10 */
{
    cb_process_type type = due(CB_DEADLINE_FAIL);
    stage s = tour_open(&type);
    cb_uuid id = stage_start_due(&s, "Tour", "{\"decline\":true}", 60);
    stage_go(&s);
    tour_book(&s, "risk");
    stage_go(&s);
    tour_book(&s, "fx");
    stage_go(&s);
    expect_status(&s, "COMPENSATING DECLINED", id);

    stage_wait(&s, 61);
    cr_expect_eq(stage_go(&s), 0);
    stage_serve(&s, "risk", CB_SUCCESS, NULL, NULL);
    stage_go(&s);

    expect_status(&s, "COMPENSATED DECLINED", id);
    expect_told("0", id, "DEADLINE_EXCEEDED");
    stage_close(&s);
}

Test(deadline, does_nothing_to_a_process_that_waits_for_an_operator) /* STP.10 */
{
    cb_process_type type = due(CB_DEADLINE_FAIL);
    stage s = tour_open(&type);
    cb_uuid id = start_due_tour(&s);
    stage_serve(&s, "risk", CB_PERMANENT, NULL, "BROKEN");
    stage_go(&s);

    stage_wait(&s, 61);
    cr_expect_eq(stage_go(&s), 0);

    expect_status(&s, "WAITING_FOR_TSQ COMMAND_IN_TSQ", id);
    stage_close(&s);
}

/* Who retries because of a deadline has not been told that a step was begun and has no end. */
Test(deadline, that_passed_after_a_crash_does_not_make_the_step_run_twice) /* DESIGN 4, STP.9 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = stage_start_due(&s, "Tour", "{}", 60);
    s.kit.crash_after = 1; /* prepare is STARTED, and may have left this machine */
    stage_go(&s);
    stage_wait(&s, 61);
    stage_restart(&s);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ DEADLINE_EXCEEDED", id);

    tour_retry(id);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ RETRIES_EXHAUSTED_CRASH_RECOVERY", id);
    cr_expect_str_empty(tour_calls);
    tour_retry(id);
    stage_go(&s);

    expect_status(&s, "WAITING_FOR_ASYNC", id);
    cr_expect_str_eq(tour_calls, "prepare");
    stage_close(&s);
}

/* C takes 0 for "no deadline": it was woken for one that it did not see, again and again. */
Test(deadline, before_1970_is_past_too) /* STP.10, DESIGN 8.7 */
{
    static const char *const moments[] = { "1970-01-01Z", "1960-01-01Z", "4713-01-01Z BC",
                                           "-infinity" };

    for (size_t i = 0; i < CB_COUNT(moments); i++) {
        stage s = tour_open(&tour_type);
        cb_uuid id = start_due_tour(&s);
        free(test_value(bus.conn,
                        "UPDATE commandbus.process SET deadline_at = $1::timestamptz, "
                        "wake_at = $1::timestamptz RETURNING 1",
                        moments[i], NULL));
        stage_go(&s);
        expect_status(&s, "WAITING_FOR_TSQ DEADLINE_EXCEEDED", id);
        stage_close(&s);
    }
}
