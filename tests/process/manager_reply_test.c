/* What a stage_reply does to a manager. */
#include "order.h"

Test(manager_reply, duplicates_advance_once) /* PM.3: answered once */
{
    stage s = order_open(&order_type);
    cb_uuid id = stage_start(&s, "Order", "{\"skip_approval\":true}");
    stage_go(&s);

    cb_uuid command = order_book(&s, "risk", 7);
    for (int i = 0; i < 3; i++) /* before it is claimed, and after it */
        stage_reply(id, command, "{\"outcome\":\"SUCCESS\",\"result\":{\"id\":70}}");
    stage_go(&s);
    stage_reply(id, command, "{\"outcome\":\"SUCCESS\",\"result\":{\"id\":71}}");
    stage_reply(id, command, "{\"outcome\":\"FAILED\",\"final\":false}");
    stage_go(&s);

    expect_status(&s, "WAITING_FOR_REPLY", id);
    expect_process("charge", id, "current_wait");
    expect_state(&s, "7", id, "risk_id");
    expect_state(&s, "reserve", id, "trail");
    expect_commands(&s, "risk/BookRisk COMPLETED, fx/BookFx PENDING", id);
    expect_told("2", id, "LATE_REPLY");
    cr_expect_eq(order_updated, 1);
    stage_close(&s);
}

Test(manager_reply, out_of_order_each_finds_the_step_that_sent_its_command) /* PM.3 */
{
    stage s = order_open(&order_type);
    cb_uuid id = stage_start(&s, "Order", "{\"skip_approval\":true,\"repeat\":2}");
    cb_uuid first = cb_uuid_derived(&id, "command/charge/1"),
            second = cb_uuid_derived(&id, "command/charge#2/1");

    stage_go(&s);
    order_book(&s, "risk", 7);
    stage_go(&s);
    stage_reply(id, second, "{\"outcome\":\"SUCCESS\",\"result\":{\"id\":66}}"); /* of the future */
    stage_go(&s);
    expect_process("charge", id, "current_wait");
    order_book(&s, "fx", 8);
    stage_go(&s);
    order_book(&s, "payments", 20);
    stage_go(&s);
    expect_process("charge#2", id, "current_wait");
    stage_reply(id, first, "{\"outcome\":\"SUCCESS\",\"result\":{\"id\":55}}"); /* of the past */
    stage_go(&s);

    expect_process("charge#2", id, "current_wait");
    expect_state(&s, "8", id, "fx_id");
    order_book(&s, "fx", 9);
    stage_go(&s);
    expect_state(&s, "9", id, "fx_id");
    stage_close(&s);
}

Test(manager_reply, of_two_to_one_command_the_final_one_counts_whatever_their_order) /* PM.3 */
{
    stage s = order_open(&order_type);
    static const char not_final[] = "{\"outcome\":\"FAILED\",\"error_type\":\"PERMANENT\","
                                    "\"error_code\":\"BROKEN\",\"final\":false}";
    static const char final[] = "{\"outcome\":\"SUCCESS\",\"result\":{\"id\":7}}";

    for (int i = 0; i < 2; i++) {
        cb_uuid id = stage_start(&s, "Order", "{\"skip_approval\":true}");
        stage_go(&s);
        cb_uuid command = cb_uuid_derived(&id, "command/reserve/1");
        stage_reply(id, command, i ? not_final : final);
        stage_reply(id, command, i ? final : not_final);
        stage_go(&s);
        expect_process("WAITING_FOR_REPLY charge", id, "status || ' ' || current_wait");
    }
    stage_close(&s);
}

Test(manager_reply, a_business_rule_undoes_completed_steps_in_reverse_one_at_a_time) /* PM.4 */
{
    stage s = order_open(&order_type);
    cb_uuid id = order_at_ship(&s);

    stage_serve(&s, "payments", CB_BUSINESS_RULE, NULL, "NO_STOCK");
    stage_go(&s);
    expect_status(&s, "COMPENSATING NO_STOCK", id);
    expect_commands(&s,
                    "risk/BookRisk COMPLETED, fx/BookFx COMPLETED, payments/Ship FAILED, "
                    "fx/ReleaseFx PENDING",
                    id); /* release waits for its stage_reply */
    expect_value(bus.conn, "{\"id\": 8, \"card\": \"4000-1234\"} 7 5",
                 "SELECT concat_ws(' ', data, max_attempts, timeout_seconds) FROM "
                 "commandbus.command_metadata WHERE correlation_id = $1 AND command_type = "
                 "'ReleaseFx'",
                 id.text);
    order_book(&s, "fx", 80);
    stage_go(&s);
    expect_status(&s, "COMPENSATING NO_STOCK", id);
    order_book(&s, "risk", 70);
    stage_go(&s);

    expect_status(&s, "COMPENSATED NO_STOCK", id);
    expect_history(&s,
                   "STEP create_state COMPLETED, COMMAND reserve COMPLETED, COMMAND charge "
                   "COMPLETED, COMMAND ship FAILED, COMPENSATION charge COMPLETED, COMPENSATION "
                   "reserve COMPLETED",
                   id);
    expect_state(&s, "reserve charge refund release", id, "trail"); /* update_state, also here */
    stage_close(&s);
}

Test(manager_reply, what_undoes_a_step_is_built_when_it_completes) /* PM.4, DESIGN 4 */
{
    stage s = order_open(&order_type);
    cb_uuid id = stage_start(&s, "Order", "{\"skip_approval\":true,\"repeat\":2}");

    stage_go(&s);
    order_book(&s, "risk", 7);
    stage_go(&s);
    order_book(&s, "fx", 8);
    stage_go(&s);
    order_book(&s, "payments", 20);
    stage_go(&s);
    order_book(&s, "fx", 9); /* of charge#2 */
    stage_go(&s);
    stage_serve(&s, "payments", CB_BUSINESS_RULE, NULL, "NO_STOCK");
    for (int i = 0; i < 2; i++) {
        stage_go(&s);
        order_book(&s, "fx", 80);
    }
    stage_go(&s);
    order_book(&s, "risk", 70);
    stage_go(&s);

    expect_status(&s, "COMPENSATED NO_STOCK", id);
    expect_value(bus.conn, "9 8",
                 "SELECT string_agg(data ->> 'id', ' ' ORDER BY created_at) FROM "
                 "commandbus.command_metadata WHERE correlation_id = $1 AND command_type = "
                 "'ReleaseFx'",
                 id.text);
    stage_close(&s);
}

Test(manager_reply, a_cancel_in_the_tsq_undoes_and_ends_only_when_all_is_undone) /* PM.3, PM.4 */
{
    stage s = order_open(&order_type);
    cb_uuid id = order_at_ship(&s);

    cb_uuid ship = stage_serve(&s, "payments", CB_PERMANENT, NULL, "BROKEN");
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ COMMAND_IN_TSQ", id);

    stage_tsq("tsq_cancel", "payments", ship);
    stage_go(&s);
    expect_status(&s, "COMPENSATING CANCELED", id);
    order_book(&s, "fx", 80);
    stage_go(&s);
    expect_status(&s, "COMPENSATING CANCELED", id);
    expect_process("", id, "completed_at");
    order_book(&s, "risk", 70);
    stage_go(&s);

    expect_status(&s, "COMPENSATED CANCELED", id);
    expect_commands(&s,
                    "risk/BookRisk COMPLETED, fx/BookFx COMPLETED, payments/Ship CANCELED, "
                    "fx/ReleaseFx COMPLETED, risk/ReleaseRisk COMPLETED",
                    id);
    stage_close(&s);
}

Test(manager_reply, a_command_retried_or_completed_by_an_operator_goes_on) /* PM.3 */
{
    stage s = order_open(&order_type);
    cb_uuid retried = order_at_charge(&s);
    cb_uuid command = stage_serve(&s, "fx", CB_PERMANENT, NULL, "BROKEN");
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ COMMAND_IN_TSQ", retried);
    stage_tsq("tsq_retry", "fx", command);
    order_book(&s, "fx", 8);
    stage_go(&s);
    expect_process("ship", retried, "current_wait");

    cb_uuid completed = order_at_charge(&s);
    command = stage_serve(&s, "fx", CB_PERMANENT, NULL, "BROKEN");
    stage_go(&s);
    stage_tsq("tsq_complete", "fx", command); /* without a result */
    stage_go(&s);
    expect_process("ship", completed, "current_wait");
    expect_state(&s, "0", completed, "fx_id");
    stage_close(&s);
}

Test(manager_reply, another_final_failure_waits_and_the_operators_decision_continues) /* PM.3 */
{
    stage s = order_open(&order_type);
    cb_uuid id = order_at_charge(&s), first = cb_uuid_derived(&id, "command/charge/1");

    cb_claim_free(stage_receive(&s, "fx"));
    stage_reply(id, first,
                "{\"outcome\":\"FAILED\",\"error_type\":\"PERMANENT\",\"error_code\":\"BROKEN\"}");
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);

    tour_retry(id);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_REPLY", id);
    order_book(&s, "fx", 8);
    stage_go(&s);
    expect_process("ship", id, "current_wait");
    stage_close(&s);
}

Test(manager_reply, an_operator_who_cancels_the_process_has_it_undone) /* PM.3, STP.12 */
{
    stage s = order_open(&order_type);
    cb_uuid id = order_at_ship(&s);
    stage_serve(&s, "payments", CB_PERMANENT, NULL, "BROKEN");
    stage_go(&s);

    tour_cancel(id, true);
    stage_go(&s);
    order_book(&s, "fx", 80);
    stage_go(&s);
    expect_status(&s, "COMPENSATING CANCELED", id);
    order_book(&s, "risk", 70);
    stage_go(&s);
    expect_status(&s, "CANCELED CANCELED", id);
    stage_close(&s);
}

Test(manager_reply, a_compensation_that_fails_waits_and_the_rest_with_it) /* PM.4, STP.8 */
{
    stage s = order_open(&order_type);
    cb_uuid id = order_at_ship(&s);
    stage_serve(&s, "payments", CB_BUSINESS_RULE, NULL, "NO_STOCK");
    stage_go(&s);

    cb_uuid refund = stage_serve(&s, "fx", CB_PERMANENT, NULL, "CLOSED");
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ COMPENSATION_FAILED", id);
    stage_tsq("tsq_retry", "fx", refund);
    order_book(&s, "fx", 80);
    stage_go(&s);
    expect_status(&s, "COMPENSATING NO_STOCK", id);
    order_book(&s, "risk", 70);
    stage_go(&s);
    expect_status(&s, "COMPENSATED NO_STOCK", id);
    stage_close(&s);
}

Test(manager_reply, a_compensation_has_the_timeout_of_its_own_step_or_none) /* PM.3, PM.4 */
{
    stage s = order_open(&order_type);
    cb_uuid id = order_at_ship(&s);
    stage_serve(&s, "payments", CB_BUSINESS_RULE, NULL, "NO_STOCK");
    stage_go(&s);

    stage_wait(&s, 1199);
    cr_expect_eq(stage_go(&s), 0);
    stage_wait(&s, 2);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ COMPENSATION_FAILED", id);
    order_book(&s, "fx", 80); /* late, but it is the answer */
    stage_go(&s);
    expect_status(&s, "COMPENSATING NO_STOCK", id);
    expect_process("", id, "wake_at"); /* release has none */
    stage_close(&s);
}

Test(manager_reply, a_result_that_is_not_taken_parks_and_waits_for_better_code) /* manager.h */
{
    stage s = order_open(&order_type);
    cb_uuid refused = order_at_charge(&s), shapeless = order_at_charge(&s);

    order_plays.refuse_reply = true;
    order_book(&s, "fx", 8);
    stage_go(&s);
    order_plays.refuse_reply = false;
    stage_serve(&s, "fx", CB_SUCCESS, "{\"id\":\"eight\"}", NULL);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", refused);
    expect_state(&s, "reserve", refused, "trail");
    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", shapeless);
    expect_value(bus.conn, "t",
                 "SELECT error_message LIKE '%id%COMPLETED%' FROM commandbus.process WHERE "
                 "process_id = $1",
                 shapeless.text);

    tour_retry(refused);
    stage_go(&s);
    expect_process("ship", refused, "current_wait");
    stage_close(&s);
}

Test(manager_reply, to_nobody_is_kept_for_a_while_then_archived_and_counted) /* PM.5 */
{
    stage s = order_open(&order_type);
    cb_uuid stranger = cb_uuid_new();

    stage_reply(stranger, cb_uuid_new(), "{\"outcome\":\"SUCCESS\"}");
    stage_go(&s);
    expect_value(bus.conn, "1", "SELECT count(*) FROM pgmq.q_payments__replies");
    test_exec(bus.conn, "UPDATE pgmq.q_payments__replies SET enqueued_at = enqueued_at - "
                        "interval '2 min', vt = now()");
    stage_go(&s);
    expect_value(bus.conn, "0 1",
                 "SELECT concat_ws(' ', (SELECT count(*) FROM pgmq.q_payments__replies), (SELECT "
                 "count(*) FROM commandbus.audit WHERE event_type = 'REPLY_DEAD_LETTERED'))");
    stage_close(&s);
}
