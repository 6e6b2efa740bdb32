/* Command steps, the way out: what is sent, where to, and together with what. RL.2. */
#include "tour.h"

#define COMMAND(expression) \
    "SELECT " expression " FROM commandbus.command_metadata WHERE correlation_id = $1"

Test(command_send, the_command_and_the_suspension_are_one_settle) /* RL.2, DESIGN 8.3 */
{
    stage s = tour_open(&tour_type);

    cb_uuid id = tour_at_risk(&s, "{}");

    cr_expect_eq(s.kit.durable, 2); /* STARTED of prepare, then all the rest */
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_process("bookRisk", id, "current_wait");
    expect_history(&s, "STEP prepare COMPLETED, COMMAND bookRisk WAITING", id);
    expect_commands(&s, "risk/BookRisk PENDING", id);
    expect_value(bus.conn, "payments__replies", COMMAND("reply_to"), id.text);
    expect_value(bus.conn, "{\"trail\": \"prepare\"}", COMMAND("data"), id.text);
    stage_close(&s);
}

Test(command_send, its_id_is_that_of_the_process_the_step_and_the_send_number) /* RL.2, DESIGN 4 */
{
    stage s = tour_open(&tour_type);

    cb_uuid id = tour_at_risk(&s, "{}");

    cb_uuid expected = cb_uuid_derived(&id, "command/bookRisk/1");
    expect_value(bus.conn, expected.text, COMMAND("command_id"), id.text);
    expect_record("1", id, "COMMAND", "bookRisk", "send_no::text");
    stage_close(&s);
}

Test(command_send, timeout_and_attempts_travel_with_the_command) /* DESIGN 4 */
{
    stage s = tour_open(&tour_type);

    cb_uuid id = tour_at_risk(&s, "{}");

    expect_value(bus.conn, "17 2", COMMAND("concat_ws(' ', timeout_seconds, max_attempts)"),
                 id.text);
    expect_value(bus.conn, "00:10:00",
                 "SELECT next_wait_timeout_at - updated_at FROM commandbus.process "
                 "WHERE process_id = $1",
                 id.text);
    stage_close(&s);
}

Test(command_send, the_configuration_goes_before_the_code) /* RL.2, CONTRACT command-steps */
{
    const cb_process_type *types[] = { &tour_type };
    const cb_step_route routes[] = { { .step = "bookRisk",
                                       .domain = "fx",
                                       .command_type = "Other",
                                       .timeout_seconds = 5,
                                       .max_attempts = 9,
                                       .wait_timeout_ms = 60000 } };
    stage s = stage_open(types, 1, routes, 1);

    cb_uuid id = tour_at_risk(&s, "{}");

    expect_commands(&s, "fx/Other PENDING", id);
    expect_value(bus.conn, "5 9", COMMAND("concat_ws(' ', timeout_seconds, max_attempts)"),
                 id.text);
    expect_value(bus.conn, "00:01:00",
                 "SELECT next_wait_timeout_at - updated_at FROM commandbus.process "
                 "WHERE process_id = $1",
                 id.text);
    stage_close(&s);
}

static cb_flow lost_execute(cb_process *p, void *state)
{
    (void)state;
    CB_DO(cb_command_step(p, "ask", NULL, NULL));
    return CB_DONE;
}

static const cb_process_type lost = {
    .name = "Lost", .domain = "payments", .state = &tour_fields, .execute = lost_execute
};

Test(command_send, without_a_route_it_is_parked_and_says_what_to_do) /* RL.2 */
{
    const cb_process_type *types[] = { &lost };
    const cb_step_route routes[] = { { .step = "ask", .domain = "fx", .command_type = "Ask" } };
    stage s = stage_open(types, 1, NULL, 0);
    cb_uuid id = stage_start(&s, "Lost", "{}");

    stage_go(&s);

    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);
    expect_value(bus.conn, "t",
                 "SELECT error_message LIKE '%command-steps.ask.domain%then retry%' "
                 "FROM commandbus.process WHERE process_id = $1",
                 id.text);
    expect_commands(&s, "", id);

    stage_release(&s, types, 1, routes, 1); /* somebody has set it */
    tour_retry(id);
    stage_go(&s);
    expect_commands(&s, "fx/Ask PENDING", id);
    stage_close(&s);
}

Test(command_send, a_domain_that_does_not_exist_parks_the_process) /* DESIGN 8.7 */
{
    const cb_process_type *types[] = { &lost };
    const cb_step_route routes[] = {
        { .step = "ask", .domain = "nowhere", .command_type = "Ask" }
    };
    const cb_step_route mended[] = { { .step = "ask", .domain = "fx", .command_type = "Ask" } };
    stage s = stage_open(types, 1, routes, 1);
    tour state = { 0 };
    cb_uuid id;
    cb_error e;

    cr_assert(cb_process_start_with(bus.db, s.kit.types, "Lost", &state, NULL, &id, NULL, &e), "%s",
              e.message);

    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);
    expect_value(bus.conn, "t",
                 "SELECT error_message LIKE '%nowhere%' FROM commandbus.process "
                 "WHERE process_id = $1",
                 id.text);

    stage_release(&s, types, 1, mended, 1);
    tour_retry(id);
    stage_go(&s);
    expect_commands(&s, "fx/Ask PENDING", id);
    stage_close(&s);
}

Test(command_send, a_request_that_cannot_be_built_sends_nothing) /* process.h */
{
    stage s = tour_open(&tour_type);
    tour_plays.refuse_request = true;

    cb_uuid id = tour_at_risk(&s, "{}");

    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);
    expect_commands(&s, "", id);

    tour_plays.refuse_request = false;
    tour_retry(id);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_commands(&s, "risk/BookRisk PENDING", id);
    stage_close(&s);
}

Test(command_send,
     a_wait_that_is_woken_for_nothing_sends_nothing_again) /* RL.2 waiting → suspend */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");

    char *due = test_value(bus.conn,
                           "SELECT date_trunc('milliseconds', next_wait_timeout_at) "
                           "FROM commandbus.process WHERE process_id = $1",
                           id.text, NULL);
    stage_wait(&s, 100);
    stage_respond(&s, id, "note", "{\"word\":\"hello\"}");
    cr_expect_eq(stage_go(&s), 1);

    expect_commands(&s, "risk/BookRisk PENDING", id);
    expect_state(&s, "prepare hello", id, "trail");
    expect_process(
        due, id,
        "date_trunc('milliseconds', next_wait_timeout_at)"); /* STP.6: the first one stays */
    free(due);
    stage_close(&s);
}
