/* What a manager makes of a step that has failed: the same step again, another one, undone,
 * parked. PM.3, PM.8, PM.9. */
#include "dying.h"
#include "order.h"

/* What on_failure says, and what it was told. */
static int answers[10], n_asked;
static int kinds[10];
static int patience;
static PGconn *meanwhile; /* an operator is there while the first failure is judged; NULL: none */

static void retry_and_fail_again(PGconn *sql);

static int on_failure(int step, void *state, const cb_caught *failure)
{
    order *o = state;
    char note[100];

    if (meanwhile)
        retry_and_fail_again(meanwhile);
    meanwhile = NULL;
    kinds[n_asked % 10] = (int)failure->kind;
    n_asked++;
    snprintf(note, sizeof note, "%s by %s", failure->code, order_steps[step].name);
    cb_text_set(&o->note, note);
    o->repeat += 10; /* once for each failure that is taken */
    if (answers[step] == step && o->repeat > patience)
        return CB_STEP_PARK;
    return answers[step];
}

static cb_process_manager manager;
static cb_process_type type;

static stage open_failing_order(void)
{
    manager = order_manager;
    manager.on_failure = on_failure;
    type = order_type;
    type.manager = &manager;
    patience = 1000;
    for (int i = 0; i < 10; i++)
        answers[i] = CB_STEP_DEFAULT;
    return order_open(&type);
}

static void fail_charge(stage *s, cb_outcome outcome)
{
    stage_serve(s, "fx", outcome, NULL, "NO_MARKET");
    stage_go(s);
}

Test(manager_failure, goes_to_another_step)
{
    stage s = open_failing_order();
    cb_uuid id = order_at_charge(&s);

    answers[CHARGE] = SHIP;
    fail_charge(&s, CB_BUSINESS_RULE);
    expect_status(&s, "WAITING_FOR_REPLY", id);
    expect_state(&s, "NO_MARKET by charge", id, "note");
    expect_state(&s, "10", id, "repeat");
    answers[CHARGE] = CB_STEP_UNDO; /* what was recorded counts */
    order_book(&s, "payments", 1);
    stage_go(&s);

    expect_value(bus.conn, "charge CAUGHT, ship COMPLETED, charge#2 WAITING",
                 "SELECT string_agg(concat_ws(' ', name, status), ', ' ORDER BY ordinal) FROM "
                 "commandbus.process_history WHERE process_id = $1 AND ordinal > 2",
                 id.text);
    stage_close(&s);
}

Test(manager_failure, sends_a_new_command_for_the_same_step)
{
    stage s = open_failing_order();
    cb_uuid id = order_at_charge(&s);

    answers[CHARGE] = CHARGE;
    fail_charge(&s, CB_PERMANENT); /* ended in the troubleshooting queue, then sent again */
    expect_status(&s, "WAITING_FOR_REPLY", id);
    expect_commands(&s, "risk/BookRisk COMPLETED, fx/BookFx CANCELED, fx/BookFx PENDING", id);
    order_book(&s, "fx", 8);
    stage_go(&s);
    expect_state(&s, "8", id, "fx_id");
    expect_state(&s, "10", id, "repeat");
    expect_value(bus.conn, "charge CAUGHT, charge#2 COMPLETED, ship WAITING",
                 "SELECT string_agg(concat_ws(' ', name, status), ', ' ORDER BY ordinal) FROM "
                 "commandbus.process_history WHERE process_id = $1 AND ordinal > 2",
                 id.text);
    stage_close(&s);
}

Test(manager_failure, a_step_that_timed_out_is_made_again_and_then_parked) /* S2 retry_on_timeout */
{
    stage s = open_failing_order();
    cb_uuid id = order_at_charge(&s);

    answers[CHARGE] = CHARGE;
    patience = 15;
    stage_wait(&s, 601);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_REPLY", id);
    expect_commands(&s, "risk/BookRisk COMPLETED, fx/BookFx CANCELED, fx/BookFx PENDING", id);
    cr_expect_eq(kinds[0], CB_FAILURE_TIMEOUT);
    stage_wait(&s, 601);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ COMMAND_STEP_TIMEOUT", id);
    expect_state(&s, "10", id, "repeat");
    stage_close(&s);
}

Test(manager_failure, one_that_runs_when_its_time_is_over_is_not_made_again) /* DESIGN 8.9 */
{
    stage s = open_failing_order();
    cb_uuid id = order_at_charge(&s);
    OWNED(cb_claim) claim = stage_receive(&s, "fx");

    answers[CHARGE] = CHARGE;
    stage_wait(&s, 601);
    stage_go(&s);
    stage_wait(&s, 121);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ OUTCOME_UNKNOWN", id);
    expect_commands(&s, "risk/BookRisk COMPLETED, fx/BookFx IN_PROGRESS", id);
    stage_close(&s);
}

Test(manager_failure, undoes_what_it_calls_undone_with_the_failures_words)
{
    stage s = open_failing_order();
    cb_uuid id = order_at_charge(&s);

    answers[CHARGE] = CB_STEP_UNDO;
    fail_charge(&s, CB_PERMANENT);
    order_book(&s, "risk", 7);
    stage_go(&s);
    expect_status(&s, "COMPENSATED NO_MARKET", id);
    expect_commands(&s, "risk/BookRisk COMPLETED, fx/BookFx CANCELED, risk/ReleaseRisk COMPLETED",
                    id);
    stage_close(&s);
}

/* An operator retries the command, and this time its handler does not know whether it has
 * booked. */
static void retry_and_fail_again(PGconn *sql)
{
    test_exec(sql, "SELECT commandbus.tsq_retry('fx', command_id, 'ann', 'again') FROM "
                   "commandbus.command_metadata WHERE domain = 'fx'");
    test_exec(sql, "SELECT commandbus.settle('fx', 'w', ARRAY[r.command_id], ARRAY[r.lease_no], "
                   "ARRAY['PERMANENT'], error_codes => ARRAY['OUTCOME_UNKNOWN']) FROM "
                   "commandbus.receive('fx', 'w', 1) r");
}

Test(manager_failure, does_not_end_a_command_by_a_failure_that_it_has_not_judged) /* DESIGN 8.9 */
{
    stage s = open_failing_order();
    cb_uuid id = order_at_charge(&s);

    answers[CHARGE] = CHARGE;
    meanwhile = bus.conn;
    fail_charge(&s, CB_PERMANENT);

    expect_status(&s, "WAITING_FOR_TSQ COMMAND_IN_TSQ", id);
    expect_commands(&s, "risk/BookRisk COMPLETED, fx/BookFx IN_TROUBLESHOOTING_QUEUE", id);
    expect_state(&s, "created", id, "note");
    stage_close(&s);
}

Test(manager_failure, parks_what_it_wants_a_person_to_see)
{
    stage s = open_failing_order();
    cb_uuid id = order_at_charge(&s);

    answers[CHARGE] = CB_STEP_PARK;
    fail_charge(&s, CB_BUSINESS_RULE);
    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);
    expect_state(&s, "created", id, "note");
    tour_retry(id);
    stage_go(&s);
    expect_commands(&s, "risk/BookRisk COMPLETED, fx/BookFx FAILED, fx/BookFx PENDING", id);
    stage_close(&s);
}

Test(manager_failure, left_to_the_default_ends_as_without_it)
{
    stage s = open_failing_order();
    cb_uuid id = order_at_charge(&s);

    fail_charge(&s, CB_PERMANENT);
    expect_status(&s, "WAITING_FOR_TSQ COMMAND_IN_TSQ", id);
    expect_state(&s, "created", id, "note");
    stage_close(&s);
}

Test(manager_failure, a_response_that_does_not_come_in_time_goes_on_without_it)
{
    stage s = open_failing_order();
    cb_uuid id;

    manager.next_step = order_manager.next_step;
    type.wait_timeout_ms = CB_MINUTES(5);
    answers[APPROVE] = CHARGE;
    id = stage_start(&s, "Order", "{}");
    stage_go(&s);
    order_book(&s, "risk", 7);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    stage_wait(&s, 301);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_REPLY", id);
    expect_state(&s, "WAIT_TIMEOUT by approve", id, "note");
    stage_respond(&s, id, "approval", "{\"ok\":true}"); /* kept, and taken by nobody */
    stage_go(&s);
    order_book(&s, "fx", 8);
    stage_go(&s);
    expect_state(&s, "reserve charge", id, "trail");
    stage_close(&s);
}

/* ---- what next_step may see ---- */

/* By the reply alone: an id above 100 is charged again. */
static int next_by(int step, const void *state, const void *reply)
{
    const int64_t *id = reply;

    if (step == CHARGE && *id > 100)
        return CHARGE;
    return order_manager.next_step(step, state);
}

Test(manager_failure, the_next_step_may_be_found_by_the_reply) /* S2 get_next_step */
{
    stage s = open_failing_order();

    manager.next_step = NULL;
    manager.next_step_by = next_by;
    cb_uuid id = order_at_charge(&s);
    order_book(&s, "fx", 101);
    stage_go(&s);
    order_book(&s, "fx", 8);
    stage_go(&s);

    expect_status(&s, "WAITING_FOR_REPLY", id);
    expect_state(&s, "reserve charge charge", id, "trail");
    order_book(&s, "payments", 9);
    stage_go(&s);
    expect_status(&s, "COMPLETED", id);
    stage_close(&s);
}

/* DESIGN 8.4: it was booked, whatever its result looks like. */
Test(manager_failure, a_late_success_that_does_not_fit_its_type_is_undone_all_the_same)
{
    stage s = open_failing_order();
    manager.next_step = NULL;
    manager.next_step_by = next_by;
    type.deadline_action = CB_DEADLINE_COMPENSATE;
    cb_uuid id = stage_start_due(&s, "Order", "{\"skip_approval\":true}", 60);
    stage_go(&s);
    order_book(&s, "risk", 7);
    stage_go(&s);
    OWNED(cb_claim) claim = stage_receive(&s, "fx");
    stage_wait(&s, 61);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_REPLY DEADLINE_EXCEEDED", id);

    cb_settlement late = test_outcome(cb_claim_at(claim, 0), CB_SUCCESS);
    late.result = "{\"id\":\"eight\"}";
    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "handlers", late));
    stage_go(&s);
    expect_status(&s, "COMPENSATING DEADLINE_EXCEEDED", id);
    stage_serve(&s, "fx", CB_SUCCESS, "{}", NULL);
    stage_go(&s);
    stage_serve(&s, "risk", CB_SUCCESS, "{}", NULL);
    stage_go(&s);

    expect_status(&s, "COMPENSATED DEADLINE_EXCEEDED", id);
    expect_commands(&s,
                    "risk/BookRisk COMPLETED, fx/BookFx COMPLETED, fx/ReleaseFx COMPLETED, "
                    "risk/ReleaseRisk COMPLETED",
                    id);
    expect_state(&s, "reserve refund release", id, "trail");
    stage_close(&s);
}

/* ---- crashes ---- */

/* The first charge fails for ever, the second is fine. */
static void serve_failing_order(stage *s, cb_uuid id)
{
    if (stage_is_queued("risk"))
        order_book(s, "risk", 7);
    if (stage_is_queued("fx") &&
        test_number(bus.conn,
                    "SELECT count(*) FROM commandbus.command_metadata WHERE domain = 'fx' AND "
                    "correlation_id = $1",
                    id.text, NULL) == 1)
        stage_serve(s, "fx", CB_PERMANENT, NULL, "NO_MARKET");
    else if (stage_is_queued("fx"))
        order_book(s, "fx", 8);
    if (stage_is_queued("payments"))
        order_book(s, "payments", 9);
    test_exec(bus.conn, "SELECT commandbus.deliver_replies('payments__replies', 'stage')");
}

static void expect_failed_order_end(stage *s, cb_uuid id)
{
    expect_status(s, "COMPLETED", id);
    expect_state(s, "reserve charge ship", id, "trail");
    expect_state(s, "NO_MARKET by charge", id, "note");
    expect_value(bus.conn,
                 "create_state COMPLETED, reserve COMPLETED, charge CAUGHT, charge#2 COMPLETED, "
                 "ship COMPLETED",
                 "SELECT string_agg(concat_ws(' ', name, status), ', ' ORDER BY ordinal) FROM "
                 "commandbus.process_history WHERE process_id = $1",
                 id.text);
}

static bool dies_before(stage *s, int at)
{
    cb_uuid id = stage_start(s, "Order", "{\"skip_approval\":true,\"repeat\":-10}");
    dying d = { .stage = s, .die_at = at };

    for (int i = 0; i < 60 && !stage_is_over(id); i++) {
        if (!dying_step(&d) && !d.dead)
            serve_failing_order(s, id);
    }
    expect_failed_order_end(s, id);
    return d.settles >= at;
}

static bool dies_after(stage *s, int at)
{
    cb_uuid id = stage_start(s, "Order", "{\"skip_approval\":true,\"repeat\":-10}");
    bool crashed = false;

    s->kit.durable = 0;
    s->kit.crash_after = at;
    for (int i = 0; i < 40 && !stage_is_over(id); i++) {
        stage_go(s);
        crashed = crashed || s->kit.crashed;
        if (s->kit.crashed)
            stage_restart(s);
        else
            serve_failing_order(s, id);
    }
    expect_failed_order_end(s, id);
    return crashed;
}

Test(manager_failure, after_and_before_every_durable_point_the_end_is_the_same) /* DESIGN 8.4 */
{
    stage s = open_failing_order();
    int after = 0, before = 1;

    answers[CHARGE] = CHARGE;
    while (dies_after(&s, after + 1))
        after++;
    cr_expect_eq(after, 6, "%d: four commands, the end of one in the TSQ, the end", after);
    while (dies_before(&s, before))
        before++;
    cr_expect_eq(before, 7, "%d settles", before - 1);
    stage_close(&s);
}
