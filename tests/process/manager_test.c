/* The manager: a machine of steps on the same engine. */
#include "order.h"

Test(manager, steps_follow_each_other_reply_by_reply) /* PM.1, PM.2, PM.3 */
{
    stage s = order_open(&order_type);
    cb_uuid id = stage_start(&s, "Order", "{\"skip_approval\":true,\"card\":\"4000-1234\"}");

    cr_expect_eq(stage_go(&s), 1); /* the first command goes with the first settle */
    expect_status(&s, "WAITING_FOR_REPLY", id);
    expect_process("reserve", id, "current_wait");
    expect_commands(&s, "risk/BookRisk PENDING", id); /* process_id = correlation_id */
    order_book(&s, "risk", 7);
    stage_go(&s);
    expect_state(&s, "7", id, "risk_id");
    order_book(&s, "fx", 8);
    stage_go(&s);
    order_book(&s, "payments", 9);
    stage_go(&s);

    expect_status(&s, "COMPLETED", id);
    expect_commands(&s, "risk/BookRisk COMPLETED, fx/BookFx COMPLETED, payments/Ship COMPLETED",
                    id);
    expect_history(&s,
                   "STEP create_state COMPLETED, COMMAND reserve COMPLETED, COMMAND charge "
                   "COMPLETED, COMMAND ship COMPLETED",
                   id);
    expect_state(&s, "reserve charge ship", id, "trail");
    expect_state(&s, "created", id, "note");
    cr_expect_eq(order_created, 1, "it was created %d times", order_created);
    cr_expect_eq(order_updated, 3, "the state was updated %d times", order_updated);
    stage_close(&s);
}

Test(manager, is_registered_as_step_based) /* PM.1 */
{
    stage s = order_open(&order_type);
    cb_uuid id = stage_start(&s, "Order", "{}");

    expect_process("STEP_BASED", id, "execution_model");
    expect_value(bus.conn, "STEP_BASED {card}",
                 "SELECT concat_ws(' ', execution_model, redact) FROM commandbus.process_type");
    expect_events(&s, "PROCESS_CREATED", id);
    stage_close(&s);
}

Test(manager, a_request_is_the_struct_of_its_step_and_its_numbers_go_along) /* PM.2 */
{
    stage s = order_open(&order_type);
    cb_uuid id = order_at_charge(&s);

    expect_value(bus.conn, "{\"id\": 0, \"card\": \"4000-1234\"} 2 17",
                 "SELECT concat_ws(' ', data, max_attempts, timeout_seconds) FROM "
                 "commandbus.command_metadata WHERE correlation_id = $1 AND domain = 'fx'",
                 id.text);
    order_book(&s, "fx", 8);
    stage_go(&s);
    expect_value(bus.conn, "{}",
                 "SELECT data FROM commandbus.command_metadata WHERE correlation_id = $1 AND "
                 "domain = 'payments'",
                 id.text); /* ship has no request */
    stage_close(&s);
}

Test(manager, the_configuration_goes_before_the_table_also_on_a_later_visit) /* CONTRACT */
{
    static const cb_step_route routes[] = { { .step = "charge",
                                              .domain = "risk",
                                              .command_type = "ChargeRisk",
                                              .max_attempts = 5,
                                              .wait_timeout_ms = CB_MINUTES(1) } };
    const cb_process_type *type = &order_type;
    stage s = order_open(&order_type);
    stage_release(&s, &type, 1, routes, 1);
    cb_uuid id = stage_start(&s, "Order", "{\"skip_approval\":true,\"repeat\":2}");

    stage_go(&s);
    order_book(&s, "risk", 7);
    stage_go(&s);
    order_book(&s, "risk", 8);
    stage_go(&s);
    order_book(&s, "payments", 9);
    stage_go(&s);

    expect_process("charge#2", id, "current_wait");
    expect_commands(&s,
                    "risk/BookRisk COMPLETED, risk/ChargeRisk COMPLETED, payments/Ship COMPLETED, "
                    "risk/ChargeRisk PENDING",
                    id);
    stage_wait(&s, 61);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ COMMAND_STEP_TIMEOUT", id);
    stage_close(&s);
}

Test(manager, a_step_may_be_visited_again_under_a_name_of_its_own) /* PM.2 */
{
    stage s = order_open(&order_type);
    cb_uuid id = stage_start(&s, "Order", "{\"skip_approval\":true,\"repeat\":2}");

    stage_go(&s);
    order_book(&s, "risk", 7);
    for (int i = 0; i < 2; i++) {
        stage_go(&s);
        order_book(&s, "fx", 8 + i);
        stage_go(&s);
        order_book(&s, "payments", 20 + i);
    }
    stage_go(&s);

    expect_status(&s, "COMPLETED", id);
    expect_history(&s,
                   "STEP create_state COMPLETED, COMMAND reserve COMPLETED, COMMAND charge "
                   "COMPLETED, COMMAND ship COMPLETED, COMMAND charge#2 COMPLETED, COMMAND ship#2 "
                   "COMPLETED",
                   id);
    expect_state(&s, "9", id, "fx_id");
    expect_value(bus.conn, "5",
                 "SELECT count(DISTINCT command_id) FROM commandbus.command_metadata "
                 "WHERE correlation_id = $1",
                 id.text);
    stage_close(&s);
}

Test(manager, what_create_state_refuses_waits_for_a_person) /* PM.2 */
{
    stage s = order_open(&order_type);
    order_plays.refuse_create = true;
    cb_uuid id = stage_start(&s, "Order", "{\"skip_approval\":true}");

    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);
    expect_process("create_state", id, "current_step");
    expect_history(&s, "STEP create_state FAILED", id);

    order_plays.refuse_create = false;
    tour_retry(id);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_REPLY", id);
    expect_state(&s, "created", id, "note");
    stage_close(&s);
}

Test(manager, a_refused_request_and_an_unknown_step_wait_for_a_person) /* PM.2 */
{
    stage s = order_open(&order_type);
    order_plays.refuse_build = RESERVE;
    cb_uuid built = stage_start(&s, "Order", "{}");
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", built);

    order_plays.refuse_build = 0;
    order_plays.first = ORDER_STEPS;
    cb_uuid lost = stage_start(&s, "Order", "{}");
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", lost);
    expect_value(bus.conn, "t",
                 "SELECT error_message LIKE '%leads to step 7,%' FROM commandbus.process "
                 "WHERE process_id = $1",
                 lost.text);

    order_plays.first = 0;
    tour_retry(built);
    tour_retry(lost);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_REPLY", built);
    expect_status(&s, "WAITING_FOR_REPLY", lost);
    stage_close(&s);
}

Test(manager, without_a_timeout_it_waits_for_ever_and_with_one_not_longer) /* PM.3 */
{
    stage s = order_open(&order_type);
    cb_uuid id = stage_start(&s, "Order", "{\"skip_approval\":true}");
    stage_go(&s);

    expect_process("", id, "wake_at");
    expect_process("", id, "next_wait_timeout_at");
    stage_wait(&s, 10.0 * 365 * 86400);
    cr_expect_eq(stage_go(&s), 0);
    expect_status(&s, "WAITING_FOR_REPLY", id);

    order_book(&s, "risk", 7);
    stage_go(&s);
    expect_process("charge", id, "current_wait");
    cb_claim_free(stage_receive(&s, "fx"));
    stage_wait(&s, 599);
    cr_expect_eq(stage_go(&s), 0);
    stage_wait(&s, 2);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ COMMAND_STEP_TIMEOUT", id);
    stage_close(&s);
}

Test(manager, the_timeout_of_its_type_is_for_responses) /* process.h */
{
    cb_process_type hasty = order_type;
    hasty.wait_timeout_ms = CB_SECONDS(5);
    stage s = order_open(&hasty);
    cb_uuid id = stage_start(&s, "Order", "{\"skip_approval\":true}");

    stage_go(&s);
    stage_wait(&s, 6);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_REPLY", id);
    stage_close(&s);
}

/* ---- replay ---- */

static bool replays(stage *s, cb_uuid id, cb_error *e)
{
    OWNED(cb_process_claim) claim = NULL;

    cr_assert(cb_process_read(bus.db, id.text, &claim, e), "%s", e->message);
    return cb_run_replay(s->kit.run, cb_process_claim_at(claim, 0), e);
}

Test(manager, is_replayed_as_any_process_is) /* STP.14, DESIGN 4 */
{
    static cb_manager_step renamed[ORDER_STEPS];
    static cb_process_manager other;
    cb_process_type changed = order_type;
    const cb_process_type *type = &changed;
    stage s = order_open(&order_type);
    cb_uuid id = order_at_ship(&s);
    cb_error e = { 0 };

    cr_expect(replays(&s, id, &e), "%s", e.message);
    cr_expect_eq(order_created, 1);

    memcpy(renamed, order_steps, sizeof renamed);
    renamed[CHARGE].name = "bill";
    other = order_manager;
    other.steps = renamed;
    changed.manager = &other;
    stage_release(&s, &type, 1, NULL, 0);
    cr_expect_not(replays(&s, id, &e));
    cr_expect(strstr(e.message, "record 3 is COMMAND 'charge', but the code calls COMMAND 'bill'"),
              "%s", e.message);
    cr_expect_null(strstr(e.message, "cb_version"), "a manager has none");

    renamed[CHARGE].name = "charge";
    renamed[CHARGE].compensation = 0;
    cr_expect_not(replays(&s, id, &e), "a record owes what the table does not have");
    stage_close(&s);
}
