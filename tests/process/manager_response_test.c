/* Steps of a manager that wait for a response. PM.2 */
#include "order.h"

#include <stdio.h>
#include <string.h>

static cb_uuid at_approval(stage *s)
{
    cb_uuid id = stage_start(s, "Order", "{}");

    stage_go(s);
    order_book(s, "risk", 7);
    stage_go(s);
    return id;
}

static bool respond_approval(cb_uuid id, const char *payload, cb_uuid response_id)
{
    bool accepted = false;
    cb_error e;

    cr_assert(
        cb_process_respond(bus.db, id.text, "approval", payload, response_id.text, &accepted, &e),
        "%s", e.message);
    return accepted;
}

Test(manager_response, a_step_waits_for_it_and_takes_it) /* PM.2 */
{
    stage s = order_open(&order_type);
    cb_uuid id = at_approval(&s);

    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_process("approve", id, "current_wait");
    expect_process("", id, "wake_at"); /* no timeout: none */
    stage_respond(&s, id, "approval", "{\"ok\":true,\"by\":\"ann\"}");
    stage_go(&s);

    expect_process("WAITING_FOR_REPLY charge", id, "status || ' ' || current_wait");
    expect_history(&s,
                   "STEP create_state COMPLETED, COMMAND reserve COMPLETED, WAIT approve "
                   "COMPLETED, RESPONSE approval COMPLETED, COMMAND charge WAITING",
                   id);
    expect_record("4", id, "WAIT", "approve", "during::text");
    expect_state(&s, "reserve approve", id, "trail");
    stage_close(&s);
}

Test(manager_response, before_its_step_it_is_kept_and_does_not_touch_the_state) /* PM.2 */
{
    stage s = order_open(&order_type);
    cb_uuid id = stage_start(&s, "Order", "{}");

    stage_respond(&s, id, "approval", "{\"ok\":true,\"by\":\"ann\"}"); /* before anything */
    stage_go(&s);
    expect_process("reserve", id, "current_wait");
    expect_state(&s, "", id, "trail");
    order_book(&s, "risk", 7);
    stage_go(&s);

    expect_process("charge", id, "current_wait");
    expect_state(&s, "reserve approve", id, "trail");
    cr_expect_eq(order_updated, 2);
    stage_close(&s);
}

Test(manager_response, the_same_one_twice_is_taken_once) /* PM.2 */
{
    stage s = order_open(&order_type);
    cb_uuid id = at_approval(&s), response = cb_uuid_new();

    cr_expect(respond_approval(id, "{\"ok\":true}", response));
    cr_expect_not(respond_approval(id, "{\"ok\":true}", response));
    stage_go(&s);
    cr_expect_not(respond_approval(id, "{\"ok\":false}", response));
    stage_respond(&s, id, "approval", "{\"ok\":false}"); /* another one: nobody waits for it */
    stage_go(&s);

    expect_process("charge", id, "current_wait");
    expect_state(&s, "true", id, "approved");
    expect_state(&s, "reserve approve", id, "trail");
    stage_close(&s);
}

/* Serves charge and ship. */
static void go_round(stage *s)
{
    order_book(s, "fx", 8);
    stage_go(s);
    order_book(s, "payments", 9);
    stage_go(s);
}

Test(manager_response, each_visit_takes_its_own_in_the_order_of_arrival) /* PM.2 */
{
    stage s = order_open(&order_type);
    cb_uuid id = stage_start(&s, "Order", "{\"repeat\":3}");
    stage_go(&s);
    order_book(&s, "risk", 7);
    stage_respond(&s, id, "approval", "{\"ok\":true}");
    stage_go(&s);
    go_round(&s);
    expect_process("WAITING_FOR_ASYNC approve#2", id, "status || ' ' || current_wait");

    stage_respond(&s, id, "approval", "{\"ok\":true}");
    stage_respond(&s, id, "approval", "{\"ok\":false}"); /* of the third visit */
    stage_go(&s);
    expect_process("charge#2", id, "current_wait");
    go_round(&s);

    expect_status(&s, "COMPENSATING BUSINESS_FAILURE", id);
    expect_state(&s, "reserve approve charge ship approve charge ship approve", id, "trail");
    stage_close(&s);
}

Test(manager_response, one_that_does_not_fit_is_refused_and_the_step_waits_on) /* manager.h */
{
    stage s = order_open(&order_type);
    cb_uuid id = at_approval(&s);

    test_exec(bus.conn, "UPDATE commandbus.process_type SET responses = NULL"); /* none was said */
    stage_respond(&s, id, "approval", "{\"ok\":\"perhaps\"}");
    stage_respond(&s, id, "approval", "[1]");
    stage_respond(&s, id, "approval", "{\"ok\":true,\"by\":\"nobody\"}"); /* update_state says no */
    stage_respond(&s, id, "rumour", "{}");
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_state(&s, "reserve", id, "trail");
    expect_value(bus.conn, "RESPONSE_REFUSED RESPONSE_REFUSED RESPONSE_REFUSED UNKNOWN_RESPONSE",
                 "SELECT string_agg(error_code, ' ' ORDER BY ordinal) FROM "
                 "commandbus.process_history WHERE process_id = $1 AND kind = 'RESPONSE' AND "
                 "status = 'FAILED'",
                 id.text);

    stage_respond(&s, id, "approval", "{\"ok\":true,\"by\":\"ann\"}");
    stage_go(&s);
    expect_process("charge", id, "current_wait");
    expect_state(&s, "reserve approve", id, "trail");
    stage_close(&s);
}

Test(manager_response, may_lead_to_undoing) /* manager.h: CB_STEP_UNDO */
{
    stage s = order_open(&order_type);
    cb_uuid id = at_approval(&s);

    stage_respond(&s, id, "approval", "{\"ok\":false}");
    stage_go(&s);
    expect_status(&s, "COMPENSATING BUSINESS_FAILURE", id);
    order_book(&s, "risk", 70);
    stage_go(&s);
    expect_status(&s, "COMPENSATED BUSINESS_FAILURE", id);
    stage_close(&s);
}

static int undone_behind; /* the step that it was asked for */

static const char *say_why(int step, const void *state, char *message, size_t room)
{
    const order *o = state;

    undone_behind = step;
    cr_expect_neq(strlen(message), 0); /* what is said without it */
    snprintf(message, room, "after '%s'", o->trail);
    return "NOT_APPROVED";
}

Test(manager_response, that_leads_to_undoing_can_say_why) /* manager.h: undo_code */
{
    cb_process_manager manager = order_manager;
    cb_process_type type = order_type;
    manager.undo_code = say_why;
    type.manager = &manager;
    stage s = order_open(&type);
    cb_uuid id = at_approval(&s);

    stage_respond(&s, id, "approval", "{\"ok\":false}");
    stage_go(&s);
    expect_status(&s, "COMPENSATING NOT_APPROVED", id);
    order_book(&s, "risk", 70);
    stage_go(&s);

    expect_status(&s, "COMPENSATED NOT_APPROVED", id);
    expect_process("after 'reserve approve'", id, "error_message");
    cr_expect_str_eq(order_steps[undone_behind].name, "approve");
    stage_close(&s);
}

Test(manager_response, a_timeout_parks_and_a_retry_gives_the_whole_time_again) /* PM.2 */
{
    cb_process_type hasty = order_type;
    hasty.wait_timeout_ms = CB_SECONDS(5);
    stage s = order_open(&hasty);
    cb_uuid id = at_approval(&s);

    stage_wait(&s, 6);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ WAIT_TIMEOUT", id);
    tour_retry(id);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    stage_respond(&s, id, "approval", "{\"ok\":true}");
    stage_go(&s);
    expect_process("charge", id, "current_wait");
    stage_close(&s);
}

Test(manager_response, for_a_process_that_has_ended_is_recorded_as_late) /* STP.6 */
{
    stage s = order_open(&order_type);
    cb_uuid id = order_at_ship(&s);
    order_book(&s, "payments", 9);
    stage_go(&s);
    expect_status(&s, "COMPLETED", id);

    stage_respond(&s, id, "approval", "{\"ok\":true}");
    stage_go(&s);
    expect_status(&s, "COMPLETED", id);
    expect_told("1", id, "LATE_ASYNC_RESPONSE");
    expect_state(&s, "reserve charge ship", id, "trail");
    stage_close(&s);
}

/* STP.25 */
Test(manager_response, whose_payload_does_not_fit_its_fields_is_refused_when_it_is_brought)
{
    static const struct {
        const char *payload, *why;
    } cases[] = {
        { "{\"ok\":\"perhaps\"}", "field 'ok' of response approval must be boolean" },
        { "{\"ok\":1,\"bye\":\"ann\"}", "field 'ok' of response approval must be boolean" },
        { "[1]", "the payload of response approval must be a JSON object, not array" },
    };
    stage s = order_open(&order_type);
    cb_uuid id = at_approval(&s);
    bool accepted;

    for (size_t i = 0; i < CB_COUNT(cases); i++) {
        cb_error e = { 0 };
        cr_expect_not(
            cb_process_respond(bus.db, id.text, "approval", cases[i].payload, NULL, &accepted, &e));
        cr_expect_str_eq(e.message, cases[i].why);
    }
    expect_value(bus.conn, "0", "SELECT count(*) FROM commandbus.process_inbox");
    stage_close(&s);
}

/* CONTRACT: unknown fields are tolerated on the wire. */
Test(manager_response, with_a_field_that_nobody_knows_is_taken_and_kept_as_it_came)
{
    stage s = order_open(&order_type);
    cb_uuid id = at_approval(&s);

    stage_respond(&s, id, "approval", "{\"ok\":true,\"desk\":{\"floor\":3}}");
    stage_go(&s);

    expect_status(&s, "WAITING_FOR_REPLY", id);
    expect_state(&s, "reserve approve", id, "trail");
    expect_record("{\"ok\": true, \"desk\": {\"floor\": 3}}", id, "RESPONSE", "approval",
                  "result::text");
    stage_close(&s);
}
