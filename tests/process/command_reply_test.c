/* Command steps, the way back: what a stage_reply does. RL.2, RL.3. */
#include "tour.h"

static cb_uuid last_command_of(cb_uuid id)
{
    char *text =
        test_value(bus.conn,
                   "SELECT command_id FROM commandbus.process_history WHERE process_id = $1 "
                   "AND command_id IS NOT NULL ORDER BY ordinal DESC LIMIT 1",
                   id.text, NULL);
    cb_uuid command;

    cr_assert(cb_uuid_parse(text, &command));
    free(text);
    return command;
}

Test(command_reply, success_is_recorded_and_execution_goes_on) /* RL.3 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");

    tour_book(&s, "risk");
    cr_expect_eq(stage_go(&s), 1);
    expect_commands(&s, "risk/BookRisk COMPLETED, fx/BookFx PENDING", id);
    expect_record("COMPLETED {\"id\": 7}", id, "COMMAND", "bookRisk",
                  "status || ' ' || result::text");
    tour_book(&s, "fx");
    stage_go(&s);

    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "prepare risk quote fx finish completed", id, "trail");
    expect_state(&s, "7", id, "risk_id");
    expect_value(bus.conn, "0", "SELECT count(*) FROM commandbus.process_inbox");
    cr_expect_str_eq(tour_calls, "prepare quote finish"); /* RL.2: nothing ran twice */
    stage_close(&s);
}

Test(command_reply, a_business_rule_undoes_what_was_done) /* RL.3 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");

    stage_serve(&s, "risk", CB_BUSINESS_RULE, NULL, "LIMIT");
    stage_go(&s);

    expect_status(&s, "COMPENSATED LIMIT", id);
    expect_history(&s,
                   "STEP prepare COMPLETED, COMMAND bookRisk FAILED, "
                   "COMPENSATION prepare COMPLETED",
                   id);
    expect_state(&s, "prepare undo_prepare", id, "trail");
    stage_close(&s);
}

Test(command_reply, not_final_parks_naming_the_command_and_final_success_resumes) /* RL.3 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");

    cb_uuid command = stage_serve(&s, "risk", CB_PERMANENT, NULL, "BROKEN");
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ COMMAND_IN_TSQ", id);
    expect_value(bus.conn, "t",
                 "SELECT error_message LIKE '%' || $2 || '%risk%BROKEN%' FROM commandbus.process "
                 "WHERE process_id = $1",
                 id.text, command.text);

    stage_tsq("tsq_retry", "risk", command);
    cr_expect_eq(stage_go(&s), 0); /* nothing to do until it has an answer */
    tour_book(&s, "risk");
    stage_go(&s);

    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_commands(&s, "risk/BookRisk COMPLETED, fx/BookFx PENDING", id);
    stage_close(&s);
}

Test(command_reply, a_command_completed_by_hand_resumes) /* RL.3 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    cb_uuid command = stage_serve(&s, "risk", CB_PERMANENT, NULL, "BROKEN");
    stage_go(&s);

    free(test_value(bus.conn,
                    "SELECT commandbus.tsq_complete('risk', $1::uuid, 'olga', 'by phone', "
                    "'{\"id\":70}')",
                    command.text, NULL));
    stage_go(&s);

    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_state(&s, "70", id, "risk_id");
    stage_close(&s);
}

Test(command_reply, a_command_canceled_by_an_operator_compensates) /* RL.3 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    cb_uuid command = stage_serve(&s, "risk", CB_PERMANENT, NULL, "BROKEN");
    stage_go(&s);

    stage_tsq("tsq_cancel", "risk", command);
    stage_go(&s);

    expect_status(&s, "COMPENSATED CANCELED", id);
    expect_state(&s, "prepare undo_prepare", id, "trail");
    stage_close(&s);
}

Test(command_reply, the_final_one_counts_when_both_are_there) /* RL.3, no order is promised */
{
    stage s = tour_open(&tour_type);
    cb_uuid first = tour_at_risk(&s, "{}"), second = tour_at_risk(&s, "{}");
    static const char not_final[] = "{\"outcome\":\"FAILED\",\"error_type\":\"PERMANENT\","
                                    "\"error_code\":\"BROKEN\",\"final\":false}";
    static const char final[] = "{\"outcome\":\"SUCCESS\",\"result\":{\"id\":7},\"final\":true}";

    stage_reply(first, last_command_of(first), not_final);
    stage_reply(first, last_command_of(first), final);
    stage_reply(second, last_command_of(second), final);
    stage_reply(second, last_command_of(second), not_final);
    stage_go(&s);

    expect_process("WAITING_FOR_ASYNC bookFx", first, "status || ' ' || current_wait");
    expect_process("WAITING_FOR_ASYNC bookFx", second, "status || ' ' || current_wait");
    expect_value(bus.conn, "0", "SELECT count(*) FROM commandbus.process_inbox");
    stage_close(&s);
}

Test(command_reply, what_comes_after_the_final_one_is_only_recorded) /* RL.3, PM.5, DESIGN 8.6 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}"), command = last_command_of(id);

    tour_book(&s, "risk");
    stage_go(&s);
    stage_reply(id, command, "{\"outcome\":\"FAILED\",\"error_code\":\"BROKEN\",\"final\":false}");
    stage_reply(id, command, "{\"outcome\":\"SUCCESS\",\"result\":{\"id\":99}}");
    stage_reply(id, command, "{\"outcome\":\"CANCELED\",\"reason\":\"why not\"}");
    stage_go(&s);

    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_state(&s, "7", id, "risk_id");
    expect_told("3", id, "LATE_REPLY");
    expect_value(bus.conn, "0", "SELECT count(*) FROM commandbus.process_inbox");
    stage_close(&s);
}

Test(command_reply, an_id_in_capitals_is_the_same_id) /* CONTRACT wire format */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}"), command = last_command_of(id), capitals = command;

    for (char *c = capitals.text; *c; c++)
        *c = (char)(*c >= 'a' && *c <= 'f' ? *c - 32 : *c);
    cb_claim_free(stage_receive(&s, "risk"));
    stage_wait(&s, 601); /* parked: the stage_reply stays in the inbox for a while */
    stage_go(&s);
    test_exec(bus.conn, "UPDATE commandbus.process SET error_code = 'PERMANENT_FAILURE'");
    stage_reply(id, capitals, "{\"outcome\":\"SUCCESS\",\"result\":{\"id\":7}}");
    stage_go(&s);
    expect_told("0", id, "LATE_REPLY");
    tour_retry(id);
    stage_go(&s);

    expect_state(&s, "7", id, "risk_id");
    stage_close(&s);
}

Test(command_reply, of_an_older_trouble_is_not_believed_after_a_retry) /* RL.3, STP.12 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    cb_uuid command = stage_serve(&s, "risk", CB_PERMANENT, NULL, "BROKEN");
    stage_go(&s);
    stage_tsq("tsq_retry", "risk", command);
    stage_serve(&s, "risk", CB_PERMANENT, NULL, "BROKEN AGAIN");
    stage_go(&s);

    tour_retry(id); /* the second FAILED is still in the inbox */
    stage_go(&s);

    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_commands(&s, "risk/BookRisk PENDING", id);
    tour_book(&s, "risk");
    stage_go(&s);
    expect_process("bookFx", id, "current_wait");
    stage_close(&s);
}

Test(command_reply,
     a_final_failure_other_than_a_rule_parks_and_a_retry_sends_a_new_one) /* RL.3, STP.12 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}"), first = last_command_of(id);

    stage_reply(id, first,
                "{\"outcome\":\"FAILED\",\"error_type\":\"PERMANENT\",\"error_code\":\"BROKEN\"}");
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);
    tour_retry(id);
    stage_go(&s);

    cb_uuid expected = cb_uuid_derived(&id, "command/bookRisk/2");
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_record(expected.text, id, "COMMAND", "bookRisk", "command_id::text");
    stage_reply(id, first, "{\"outcome\":\"SUCCESS\",\"result\":{\"id\":1}}"); /* not that one */
    stage_go(&s);
    expect_told("1", id, "LATE_REPLY");
    expect_process("bookRisk", id, "current_wait");
    stage_close(&s);
}

Test(command_reply, a_result_that_is_not_taken_parks_and_waits_for_better_code) /* process.h */
{
    stage s = tour_open(&tour_type);
    tour_plays.refuse_result = true;
    cb_uuid id = tour_at_risk(&s, "{}");

    tour_book(&s, "risk");
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);
    expect_state(&s, "prepare", id, "trail");

    tour_plays.refuse_result = false;
    tour_retry(id);
    stage_go(&s);
    expect_process("bookFx", id, "current_wait");
    expect_commands(&s, "risk/BookRisk COMPLETED, fx/BookFx PENDING", id);
    stage_close(&s);
}

/* ---- what undoes a command ---- */

static bool can_say_how = true, can_keep = true;

static bool how_to_undo(const void *state, json_object *data)
{
    const tour *t = state;

    json_object_object_add(data, "booking", json_object_new_int64(t->risk_id));
    return can_say_how;
}

static bool take_any(void *state, json_object *result)
{
    tour *t = state;
    json_object *id = NULL;

    json_object_object_get_ex(result, "id", &id);
    t->risk_id = json_object_get_int64(id);
    free(t->trail);
    t->trail = strdup(can_keep ? "taken" : "\xff"); /* no UTF-8: cannot be kept */
    return true;
}

static cb_flow undo_execute(cb_process *p, void *state)
{
    const tour *t = state;

    CB_DO(cb_command_step(p, "book", NULL, take_any, .domain = "risk", .command_type = "Book",
                          .compensate_command = "Unbook", .compensate_request = how_to_undo));
    if (t->decline)
        return cb_business_failure(p, "DECLINED", "no");
    return CB_DONE;
}

static const cb_process_type undo = {
    .name = "Undo", .domain = "payments", .state = &tour_fields, .execute = undo_execute
};

Test(command_reply, what_undoes_it_is_recorded_with_its_data) /* STP.8, DESIGN 4 */
{
    const cb_process_type *types[] = { &undo };
    stage s = stage_open(types, 1, NULL, 0);
    cb_uuid id = stage_start(&s, "Undo", "{\"decline\":true}");

    stage_go(&s);
    tour_book(&s, "risk");
    stage_go(&s);

    expect_record(
        "{\"data\": {\"booking\": 7}, \"domain\": \"risk\", \"command_type\": \"Unbook\"}", id,
        "COMMAND", "book", "owes::text");
    expect_commands(&s, "risk/Book COMPLETED, risk/Unbook PENDING", id);
    stage_close(&s);
}

Test(command_reply, without_knowing_how_to_undo_it_the_reply_is_not_used_up) /* STP.8, DESIGN 8.4 */
{
    const cb_process_type *types[] = { &undo };
    stage s = stage_open(types, 1, NULL, 0);
    cb_uuid id = stage_start(&s, "Undo", "{\"decline\":true}");
    can_say_how = false;

    stage_go(&s);
    tour_book(&s, "risk");
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);
    expect_history(&s, "COMMAND book WAITING", id);

    can_say_how = true;
    tour_retry(id);
    stage_go(&s);
    expect_commands(&s, "risk/Book COMPLETED, risk/Unbook PENDING", id);
    expect_value(bus.conn, "{\"booking\": 7}",
                 "SELECT data FROM commandbus.command_metadata WHERE command_type = 'Unbook'");
    stage_close(&s);
}

Test(command_reply, a_state_that_cannot_be_kept_does_not_use_up_the_reply) /* DESIGN 8.4 */
{
    const cb_process_type *types[] = { &undo };
    stage s = stage_open(types, 1, NULL, 0);
    cb_uuid id = stage_start(&s, "Undo", "{}");
    can_keep = false;

    stage_go(&s);
    tour_book(&s, "risk");
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);
    expect_history(&s, "COMMAND book WAITING", id);

    can_keep = true;
    tour_retry(id);
    stage_go(&s);
    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "7", id, "risk_id");
    stage_close(&s);
}
