/* cb_version: the code changes, and every process goes the way of its time. STP.23. */
#include "tale.h"

static const cb_response responses[] = { { "go", tale_approve } };

static cb_outcome say_old(cb_context *ctx, void *state)
{
    (void)ctx;
    tale_say(state, "old");
    return CB_SUCCESS;
}

static cb_outcome say_new(cb_context *ctx, void *state)
{
    (void)ctx;
    tale_say(state, "new");
    return CB_SUCCESS;
}

static bool waits_first, changed; /* which process, which release */
static int least = 1, most = 2;
static int chosen[10], n_chosen;

static cb_flow evolving(cb_process *p, void *state)
{
    int version = 1;

    (void)state;
    if (waits_first)
        CB_DO(cb_wait(p, "go first", tale_is_approved, .timeout_ms = 0));
    if (changed) {
        version = cb_version(p, "wording", least, most);
        cr_expect_eq(cb_version(p, "wording", least, most), version, "asked twice, one answer");
        chosen[n_chosen++] = version;
    }
    if (version >= 2)
        CB_DO(cb_step(p, "say anew", say_new, .local = true));
    else
        CB_DO(cb_step(p, "say", say_old, .local = true));
    ((tale *)state)->approved = ((tale *)state)->approved && !waits_first;
    CB_DO(cb_wait(p, "go", tale_is_approved, .timeout_ms = 0));
    return CB_DONE;
}

static const cb_process_type type =
    tale_type("Evolving", evolving, .responses = responses, .n_responses = 1);

static void respond_and_go(stage *s, cb_uuid id)
{
    stage_respond(s, id, "go", "{}");
    stage_go(s);
}

Test(change, a_new_process_takes_the_new_way_and_stays_on_it) /* DESIGN 4 */
{
    stage s = tale_open(&type);
    changed = true;
    cb_uuid id = stage_start(&s, "Evolving", "{}");

    stage_go(&s);
    most = 3; /* the code goes on changing */
    respond_and_go(&s, id);

    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "new", id, "trail");
    cr_expect_eq(chosen[0], 2);
    cr_expect_eq(chosen[1], 2);
    expect_history(
        &s,
        "VERSION wording COMPLETED, STEP say anew COMPLETED, WAIT go COMPLETED, RESPONSE "
        "go COMPLETED",
        id);
    stage_close(&s);
}

Test(change, a_process_that_went_by_before_there_was_a_choice_keeps_the_old_way) /* DESIGN 4 */
{
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Evolving", "{}");

    stage_go(&s);
    changed = true;
    respond_and_go(&s, id);

    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "old", id, "trail");
    cr_expect_eq(chosen[0], 1);
    stage_close(&s);
}

Test(change, a_process_that_has_not_come_to_it_yet_takes_the_new_way) /* DESIGN 4 */
{
    stage s = tale_open(&type);
    waits_first = true;
    cb_uuid id = stage_start(&s, "Evolving", "{}");

    stage_go(&s);
    changed = true;
    respond_and_go(&s, id);
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_state(&s, "new", id, "trail");
    respond_and_go(&s, id);

    expect_status(&s, "COMPLETED", id);
    expect_history(
        &s,
        "WAIT go first COMPLETED, RESPONSE go COMPLETED, VERSION wording COMPLETED, STEP "
        "say anew COMPLETED, WAIT go COMPLETED, RESPONSE go COMPLETED",
        id);
    stage_close(&s);
}

Test(change, a_version_that_the_code_does_not_know_any_more_is_parked) /* DESIGN 4 */
{
    stage s = tale_open(&type);
    changed = true;
    cb_uuid id = stage_start(&s, "Evolving", "{}");

    stage_go(&s);
    least = most = 3;
    respond_and_go(&s, id);
    expect_status(&s, "WAITING_FOR_TSQ NON_DETERMINISTIC", id);
    expect_message("change 'wording' was recorded as 2, but this code knows 3 to 3", id);

    least = 1;
    tale_retry(id);
    stage_go(&s);
    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "new", id, "trail");
    stage_close(&s);
}

Test(change, a_check_sees_the_choice_as_a_run_does) /* DESIGN 4: --replay */
{
    stage s = tale_open(&type);
    cb_uuid old = stage_start(&s, "Evolving", "{}");
    cb_error e;

    stage_go(&s);
    changed = true;
    cb_uuid new = stage_start(&s, "Evolving", "{}");
    stage_go(&s);
    for (int i = 0; i < 2; i++) {
        OWNED(cb_process_claim) read = NULL;
        cr_assert(cb_process_read(bus.db, i ? new.text : old.text, &read, &e));
        cr_expect(cb_run_replay(s.kit.run, cb_process_claim_at(read, 0), &e), "%s", e.message);
    }
    stage_close(&s);
}

Test(change, an_older_worker_leaves_alone_what_a_newer_one_wrote) /* DESIGN 4, STP.13 */
{
    static const cb_process_type newer =
        tale_type("Evolving", evolving, .version = 5, .responses = responses, .n_responses = 1);
    stage s = tale_open(&newer);
    cb_uuid id = stage_start(&s, "Evolving", "{}");

    stage_go(&s);
    expect_process("5", id, "version");
    tale_release(&s, &type);
    stage_respond(&s, id, "go", "{}");
    cr_expect_eq(stage_go(&s), 0);
    tale_release(&s, &newer);
    cr_expect_eq(stage_go(&s), 1);

    expect_status(&s, "COMPLETED", id);
    stage_close(&s);
}
