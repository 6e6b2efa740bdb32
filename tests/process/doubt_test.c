/* Steps of which an attempt may have succeeded and none is known to have: who leaves them behind
 * has found out first. DESIGN 8.4, 8.9, STP.28. */
#include <time.h>

#include "tale.h"

typedef enum {
    FAILS,   /* for certain */
    IS_LATE, /* says that it succeeded, after its timeout */
    DOUBTS,  /* does not know what it did */
} play;

static play plays[10]; /* run by run */
static int ran;
static bool local;

static cb_outcome doubts_prepare(cb_context *ctx, void *state)
{
    (void)ctx;
    tale_say(state, "prepared");
    return CB_SUCCESS;
}

static cb_outcome doubts_undo(cb_context *ctx, void *state)
{
    (void)ctx;
    tale_say(state, "undone");
    return CB_SUCCESS;
}

static cb_outcome doubts_book(cb_context *ctx, void *state)
{
    (void)state;
    switch (plays[ran++]) {
    case IS_LATE:
        nanosleep(&(struct timespec){ .tv_nsec = 30000000 }, NULL);
        return CB_SUCCESS;
    case DOUBTS:
        return cb_transient(ctx, "OUTCOME_UNKNOWN", "the line went dead");
    case FAILS:
        break;
    }
    return cb_transient(ctx, "E_BUSY", "busy");
}

static cb_flow doubts_execute(cb_process *p, void *state)
{
    (void)state;
    CB_DO(cb_step(p, "prepare", doubts_prepare, .local = true, .compensate = doubts_undo));
    CB_DO(cb_step(p, "book", doubts_book, .max_attempts = 5, .retry_delay_ms = 1000, .local = local,
                  .timeout_ms = plays[ran] == IS_LATE ? 5 : 0, .compensate = doubts_undo));
    return CB_DONE;
}

static const cb_process_type type =
    tale_type("Doubts", doubts_execute, .deadline_action = CB_DEADLINE_COMPENSATE);

static cb_uuid start_due_doubts(stage *s)
{
    cb_uuid id = stage_start_due(s, "Doubts", "{}", 60);

    stage_go(s);
    return id;
}

static void try_again(stage *s)
{
    stage_wait(s, 10);
    stage_go(s);
}

/* The deadline has passed: the process is not undone before a person has looked at the step. */
static void expect_asked(stage *s, cb_uuid id)
{
    stage_pass(s, 61);
    expect_status(s, "WAITING_FOR_TSQ OUTCOME_UNKNOWN", id);
    expect_message("the outcome of step 'book' is unknown: an attempt of it may have succeeded",
                   id);
    expect_state(s, "prepared", id, "trail");

    tale_retry(id); /* he has: it had not */
    stage_go(s);
    expect_status(s, "COMPENSATED DEADLINE_EXCEEDED", id);
    expect_state(s, "prepared undone", id, "trail");
}

Test(doubt, a_step_that_has_failed_for_certain_is_left_without_asking)
{
    stage s = tale_open(&type);
    cb_uuid id = start_due_doubts(&s);

    try_again(&s);
    cr_expect_eq(ran, 2);
    stage_pass(&s, 61);

    expect_status(&s, "COMPENSATED DEADLINE_EXCEEDED", id);
    expect_history(
        &s, "STEP prepare COMPLETED, STEP book ABANDONED, COMPENSATION prepare COMPLETED", id);
    stage_close(&s);
}

Test(doubt, a_success_that_came_too_late_is_looked_at_first)
{
    stage s = tale_open(&type);

    plays[0] = IS_LATE;
    cb_uuid id = start_due_doubts(&s);
    expect_status(&s, "WAITING_FOR_RETRY STEP_TIMEOUT", id);

    expect_asked(&s, id);
    stage_close(&s);
}

Test(doubt, a_step_that_does_not_know_its_outcome_is_looked_at_first)
{
    stage s = tale_open(&type);

    plays[0] = DOUBTS;
    cb_uuid id = start_due_doubts(&s);

    expect_asked(&s, id);
    stage_close(&s);
}

Test(doubt, a_later_attempt_that_failed_does_not_end_it)
{
    stage s = tale_open(&type);

    plays[0] = IS_LATE;
    cb_uuid id = start_due_doubts(&s);
    try_again(&s);
    cr_expect_eq(ran, 2);

    expect_asked(&s, id);
    stage_close(&s);
}

Test(doubt, an_attempt_whose_worker_was_lost_counts_too)
{
    stage s = tale_open(&type);
    s.kit.crash_after = 1; /* book is STARTED */
    cb_uuid id = start_due_doubts(&s);
    stage_restart(&s);
    s.kit.crash_after = 0;

    stage_go(&s);
    cr_expect_eq(ran, 1);

    expect_asked(&s, id);
    stage_close(&s);
}

/* To try it again is how to find out, not what was found out. */
Test(doubt, an_operator_who_has_it_tried_again_does_not_end_it)
{
    stage s = tale_open(&type);
    cb_error e;
    for (int i = 0; i < 5; i++)
        plays[i] = DOUBTS;
    cb_uuid id = stage_start(&s, "Doubts", "{}");
    stage_go(&s);
    for (int i = 1; i < 5; i++)
        stage_wait(&s, 60), stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ RETRIES_EXHAUSTED", id);
    char *due = test_value(bus.conn, "SELECT commandbus.now() + interval '60 seconds'", NULL);
    cr_assert(cb_process_retry(bus.db, id.text, "ann", "again", due, &e), "%s", e.message);
    free(due);

    stage_go(&s); /* fails for certain */
    cr_expect_eq(ran, 6);

    expect_asked(&s, id);
    stage_close(&s);
}

Test(doubt, a_success_ends_it)
{
    stage s = tale_open(&type);

    plays[0] = DOUBTS;
    cb_uuid id = start_due_doubts(&s);
    expect_value(bus.conn, "t",
                 "SELECT in_doubt FROM commandbus.process_history WHERE name = 'book'");
    stage_expect(cb_test_inject, &s.kit, "book", 1, &(cb_test_answer){ .outcome = CB_SUCCESS });
    try_again(&s);

    expect_status(&s, "COMPLETED", id);
    expect_value(bus.conn, "t",
                 "SELECT in_doubt IS NULL FROM commandbus.process_history WHERE name = 'book'");
    stage_close(&s);
}

Test(doubt, a_step_without_outside_effects_is_never_in_doubt)
{
    stage s = tale_open(&type);

    local = true;
    plays[0] = IS_LATE;
    cb_uuid id = start_due_doubts(&s);
    stage_pass(&s, 61);

    expect_status(&s, "COMPENSATED DEADLINE_EXCEEDED", id);
    stage_close(&s);
}

Test(doubt, an_operator_who_cancels_has_looked)
{
    stage s = tale_open(&type);
    cb_error e;

    plays[0] = IS_LATE;
    cb_uuid id = start_due_doubts(&s);
    stage_pass(&s, 61);
    expect_status(&s, "WAITING_FOR_TSQ OUTCOME_UNKNOWN", id);
    cr_assert(cb_process_cancel(bus.db, id.text, "ann", "booked by nobody", true, &e), "%s",
              e.message);
    stage_go(&s);

    expect_status(&s, "CANCELED CANCELED", id);
    expect_state(&s, "prepared undone", id, "trail");
    stage_close(&s);
}
