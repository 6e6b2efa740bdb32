/* Code that changed under a process: detected, reported with what was recorded and what is
 * called, and repaired by the right code and a retry. */
#include "tale.h"

static const cb_response responses[] = { { "go", tale_approve } };

/* Which release of the code this is. */
static enum {
    RIGHT,
    ORDER,
    NAME,
    KIND,
    REMOVED,
    ADDED,
    ENDS,
    FAILS,
    SIDE_EFFECT_KIND,
    WAIT_RENAMED,
    RELEASES
} release;

static cb_flow count_step(cb_process *p, const char *name)
{
    return cb_step(p, name, tale_count, .local = true);
}

static cb_flow released(cb_process *p, void *state)
{
    cb_uuid uuid;
    int64_t now;

    (void)state;
    CB_DO(count_step(p, release == ORDER ? "b" : "a"));
    if (release == ENDS)
        return CB_DONE;
    if (release == FAILS)
        return cb_business_failure(p, "CHANGED", "its mind");
    if (release == ADDED)
        CB_DO(count_step(p, "added"));
    if (release == KIND)
        CB_DO(cb_wait(p, "b", tale_is_approved, .timeout_ms = 0));
    else if (release != REMOVED)
        CB_DO(count_step(p, release == ORDER ? "a" : release == NAME ? "bb" : "b"));
    if (release == SIDE_EFFECT_KIND)
        CB_DO(cb_side_effect_time(p, "chance", &now));
    else
        CB_DO(cb_side_effect_uuid(p, "chance", &uuid));
    CB_DO(cb_wait(p, release == WAIT_RENAMED ? "go now" : "go", tale_is_approved, .timeout_ms = 0));
    CB_DO(count_step(p, "c"));
    return CB_DONE;
}

static const cb_process_type type =
    tale_type("Released", released, .responses = responses, .n_responses = 1);

static const char *const told[RELEASES] = {
    [ORDER] = "record 1 is STEP 'a', but the code calls STEP 'b'",
    [NAME] = "record 2 is STEP 'b', but the code calls STEP 'bb'",
    [KIND] = "record 2 is STEP 'b', but the code calls WAIT 'b'",
    [REMOVED] = "record 2 is STEP 'b', but the code calls SIDE_EFFECT 'chance'",
    [ADDED] = "record 2 is STEP 'b', but the code calls STEP 'added'",
    [ENDS] = "record 2 is STEP 'b', but the code ends before it",
    [FAILS] = "record 2 is STEP 'b', but the code fails before it",
    [SIDE_EFFECT_KIND] = "side effect 'chance' was recorded as something other than a moment",
    [WAIT_RENAMED] = "record 4 is WAIT 'go', but the code calls WAIT 'go now'",
};

Test(determinism, code_that_went_another_way_is_parked_and_goes_on_when_it_is_right_again)
/* DESIGN 4, STP.12 */
{
    stage s = tale_open(&type);

    for (int wrong = RIGHT + 1; wrong < RELEASES; wrong++) {
        release = RIGHT;
        tale_counted = 0;
        cb_uuid id = stage_start(&s, "Released", "{}");
        stage_go(&s);
        expect_status(&s, "WAITING_FOR_ASYNC", id);
        char *before = test_value(
            bus.conn, "SELECT state FROM commandbus.process WHERE process_id = $1", id.text, NULL);

        release = wrong;
        stage_respond(&s, id, "go", "{}");
        stage_go(&s);
        expect_status(&s, "WAITING_FOR_TSQ NON_DETERMINISTIC", id);
        expect_message(told[wrong], id);
        expect_process(before, id, "state");
        expect_history(&s,
                       "STEP a COMPLETED, STEP b COMPLETED, SIDE_EFFECT chance COMPLETED, WAIT go "
                       "WAITING",
                       id);
        cr_expect_eq(tale_counted, 2, "release %d ran something", wrong);

        release = RIGHT;
        tale_retry(id);
        stage_go(&s);
        expect_status(&s, "COMPLETED", id);
        expect_state(&s, "3", id, "count");
        cr_expect_eq(tale_counted, 3);
        free(before);
    }
    stage_close(&s);
}

Test(determinism, a_check_finds_the_same_before_anything_runs) /* DESIGN 4: --replay */
{
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Released", "{}");
    cb_error e;

    stage_go(&s);
    for (int wrong = RIGHT; wrong < RELEASES; wrong++) {
        OWNED(cb_process_claim) read = NULL;
        release = wrong;
        cr_assert(cb_process_read(bus.db, id.text, &read, &e));
        bool same = cb_run_replay(s.kit.run, cb_process_claim_at(read, 0), &e);
        cr_expect_eq(same, wrong == RIGHT, "release %d: %s", wrong, e.message);
        if (!same)
            cr_expect(strstr(e.message, "NON_DETERMINISTIC"), "%s", e.message);
    }
    cr_expect_eq(tale_counted, 2);
    stage_close(&s);
}

Test(determinism, a_process_that_only_has_to_end_is_found_out_too) /* DESIGN 4 */
{
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Released", "{}");

    stage_go(&s);
    stage_respond(&s, id, "go", "{}");
    stage_go(&s);
    expect_status(&s, "COMPLETED", id);
    stage_respond(&s, id, "go", "{}"); /* late: no replay, so a changed code does not matter */
    release = ORDER;
    stage_go(&s);

    expect_status(&s, "COMPLETED", id);
    stage_close(&s);
}
