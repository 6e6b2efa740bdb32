/* Undoing: what was done, in reverse order. STP.8. */
#include "tour.h"

#define DONE                                                                     \
    "STEP prepare COMPLETED, COMMAND bookRisk COMPLETED, STEP quote COMPLETED, " \
    "COMMAND bookFx COMPLETED, STEP finish COMPLETED"

/* Both commands are served: everything is done, and the process says no. */
static cb_uuid decline_tour(stage *s)
{
    cb_uuid id = tour_at_fx(s, "{\"decline\":true}");

    tour_book(s, "fx");
    stage_go(s);
    return id;
}

Test(compensation, everything_is_undone_in_reverse_order_one_at_a_time) /* STP.8 */
{
    stage s = tour_open(&tour_type);

    cb_uuid id = decline_tour(&s);
    expect_status(&s, "COMPENSATING DECLINED", id);
    expect_process("COMPENSATING", id, "phase");
    expect_state(&s, "prepare risk quote fx finish undo_fx undo_quote", id, "trail");
    expect_history(&s,
                   DONE ", COMPENSATION bookFx COMPLETED, COMPENSATION quote COMPLETED, "
                        "COMPENSATION bookRisk WAITING",
                   id);
    stage_serve(&s, "risk", CB_SUCCESS, "{}", NULL);
    stage_go(&s);

    expect_status(&s, "COMPENSATED DECLINED", id);
    expect_history(&s,
                   DONE ", COMPENSATION bookFx COMPLETED, COMPENSATION quote COMPLETED, "
                        "COMPENSATION bookRisk COMPLETED, COMPENSATION prepare COMPLETED",
                   id);
    expect_state(&s, "prepare risk quote fx finish undo_fx undo_quote undo_prepare", id, "trail");
    expect_told("4", id, "COMPENSATION_SUCCESS");
    cr_expect_str_eq(tour_calls, "prepare quote finish undo_fx undo_quote undo_prepare");
    stage_close(&s);
}

Test(compensation, each_record_says_what_undoes_it) /* DESIGN 4 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = decline_tour(&s);

    expect_value(bus.conn,
                 "1 {\"inline\": true}, 2 {\"data\": {\"id\": 7}, \"domain\": \"risk\", "
                 "\"command_type\": \"ReleaseRisk\"}, 3 {\"inline\": true}, 4 {\"inline\": true}",
                 "SELECT string_agg(ordinal || ' ' || owes, ', ' ORDER BY ordinal) "
                 "FROM commandbus.process_history WHERE process_id = $1",
                 id.text);
    expect_value(bus.conn, "{\"id\": 7}",
                 "SELECT data FROM commandbus.command_metadata WHERE command_type = 'ReleaseRisk'");
    cb_uuid expected = cb_uuid_derived(&id, "compensate/bookRisk/1");
    expect_record(expected.text, id, "COMPENSATION", "bookRisk", "command_id::text");
    stage_close(&s);
}

Test(compensation, before_anything_was_done_there_is_nothing_to_undo) /* STP.8 */
{
    stage s = tour_open(&tour_type);
    tour_plays.prepare = CB_BUSINESS_RULE;

    cb_uuid id = tour_at_risk(&s, "{}");

    expect_status(&s, "COMPENSATED E_RULE", id);
    expect_history(&s, "STEP prepare FAILED", id);
    stage_close(&s);
}

Test(compensation, a_compensation_is_retried_like_its_step) /* STP.8, STP.7 */
{
    stage s = tour_open(&tour_type);
    tour_plays.undo_attempts = 3;
    tour_plays.undo_prepare = CB_TRANSIENT;
    cb_uuid id = tour_at_risk(&s, "{}");
    stage_serve(&s, "risk", CB_BUSINESS_RULE, NULL, "LIMIT");
    stage_go(&s);

    expect_status(&s, "COMPENSATING LIMIT", id);
    expect_process("", id, "current_wait");
    expect_record("RETRY 1 E_AGAIN", id, "COMPENSATION", "prepare",
                  "concat_ws(' ', status, attempts, error_code)");
    stage_wait(&s, 9);
    cr_expect_eq(stage_go(&s), 0);
    stage_wait(&s, 2);
    stage_go(&s);
    tour_plays.undo_prepare = CB_SUCCESS;
    stage_wait(&s, 21);
    stage_go(&s);

    expect_status(&s, "COMPENSATED LIMIT", id);
    expect_record("COMPLETED 3", id, "COMPENSATION", "prepare",
                  "concat_ws(' ', status, attempts, error_code)");
    stage_close(&s);
}

Test(compensation, one_that_fails_parks_the_process_and_the_rest_wait) /* STP.8, STP.12 */
{
    stage s = tour_open(&tour_type);
    tour_plays.undo_quote = CB_PERMANENT;

    cb_uuid id = decline_tour(&s);
    expect_status(&s, "WAITING_FOR_TSQ COMPENSATION_FAILED", id);
    expect_process("COMPENSATING quote", id, "phase || ' ' || current_step");
    expect_told("1", id, "COMPENSATION_FAILED");
    cr_expect_str_eq(tour_calls, "prepare quote finish undo_fx undo_quote");

    tour_plays.undo_quote = CB_SUCCESS;
    tour_retry(id);
    stage_go(&s);
    expect_status(&s, "COMPENSATING DECLINED", id);
    stage_serve(&s, "risk", CB_SUCCESS, NULL, NULL);
    stage_go(&s);

    expect_status(&s, "COMPENSATED DECLINED", id);
    cr_expect_str_eq(tour_calls, "prepare quote finish undo_fx undo_quote undo_quote undo_prepare");
    stage_close(&s);
}

Test(compensation,
     a_compensation_that_gives_up_its_turn_is_not_asked_without_a_pause) /* DESIGN 8.7 */
{
    stage s = tour_open(&tour_type);
    tour_plays.undo_quote = CB_INTERRUPTED;

    cb_uuid id = decline_tour(&s); /* comes to rest */
    expect_status(&s, "COMPENSATING DECLINED", id);
    tour_plays.undo_quote = CB_SUCCESS;
    stage_wait(&s, 2);
    stage_go(&s);

    expect_commands(&s, "risk/BookRisk COMPLETED, fx/BookFx COMPLETED, risk/ReleaseRisk PENDING",
                    id);
    expect_record("1", id, "COMPENSATION", "quote", "attempts::text");
    stage_close(&s);
}

/* ---- by a command ---- */

Test(compensation, a_command_in_the_tsq_parks_it_and_its_success_resumes_it) /* STP.8, RL.3 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = decline_tour(&s);

    stage_serve(&s, "risk", CB_PERMANENT, NULL, "BROKEN");
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ COMPENSATION_FAILED", id);
    tour_retry(id); /* and with it the command */
    stage_go(&s);
    expect_status(&s, "COMPENSATING DECLINED", id);
    stage_serve(&s, "risk", CB_SUCCESS, NULL, NULL);
    stage_go(&s);

    expect_status(&s, "COMPENSATED DECLINED", id);
    expect_value(bus.conn, "1",
                 "SELECT count(*) FROM commandbus.command_metadata "
                 "WHERE command_type = 'ReleaseRisk'");
    stage_close(&s);
}

Test(compensation, a_command_that_is_refused_is_sent_again_by_a_retry) /* STP.12, send_no */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = decline_tour(&s);

    stage_serve(&s, "risk", CB_BUSINESS_RULE, NULL, "NOT_THERE");
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ COMPENSATION_FAILED", id);
    tour_retry(id);
    stage_go(&s);
    stage_serve(&s, "risk", CB_SUCCESS, NULL, NULL);
    stage_go(&s);

    expect_status(&s, "COMPENSATED DECLINED", id);
    expect_record("2 COMPLETED", id, "COMPENSATION", "bookRisk", "send_no || ' ' || status");
    stage_close(&s);
}

/* STP.8: a deep queue alone does not call for a person; doctor reports the reply that is awaited.
 * */
Test(compensation, a_command_without_an_answer_is_waited_for_however_long_that_takes)
{
    stage s = tour_open(&tour_type);
    cb_uuid id = decline_tour(&s);

    stage_wait(&s, 30 * 86400);
    stage_go(&s);
    expect_status(&s, "COMPENSATING DECLINED", id);
    expect_value(bus.conn, "PENDING",
                 "SELECT status FROM commandbus.command_metadata "
                 "WHERE command_type = 'ReleaseRisk'");
    stage_serve(&s, "risk", CB_SUCCESS, NULL, NULL);
    stage_go(&s);

    expect_status(&s, "COMPENSATED DECLINED", id);
    stage_close(&s);
}

/* ---- code, state and responses ---- */

Test(compensation,
     code_that_no_longer_undoes_what_is_recorded_is_not_believed) /* STP.8, DESIGN 4 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_fx(&s, "{\"decline\":true}");
    tour_plays.without_undo_of_quote = true;

    tour_book(&s, "fx");
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ NON_DETERMINISTIC", id);
    cr_expect_str_eq(tour_calls, "prepare quote finish"); /* nothing was undone */

    tour_plays.without_undo_of_quote = false;
    tour_retry(id);
    stage_go(&s);
    stage_serve(&s, "risk", CB_SUCCESS, NULL, NULL);
    stage_go(&s);
    expect_status(&s, "COMPENSATED DECLINED", id);
    stage_close(&s);
}

Test(compensation, responses_meanwhile_are_applied_at_the_next_run) /* STP.11 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = decline_tour(&s);

    stage_respond(&s, id, "note", "{\"word\":\"note\"}");
    cr_expect_eq(stage_go(&s), 0);
    stage_serve(&s, "risk", CB_SUCCESS, NULL, NULL);
    stage_go(&s);

    expect_status(&s, "COMPENSATED DECLINED", id);
    expect_state(&s, "prepare risk quote fx finish undo_fx undo_quote note undo_prepare", id,
                 "trail");
    stage_close(&s);
}

Test(compensation, replay_applies_responses_in_the_order_in_which_they_came) /* STP.11, DESIGN 4 */
{
    stage s = tour_open(&tour_type);
    tour_plays.undo_quote = CB_PERMANENT;
    cb_uuid id = decline_tour(&s);

    stage_respond(&s, id, "note", "{\"word\":\"note\"}");
    tour_plays.undo_quote = CB_SUCCESS;
    tour_retry(id); /* the response is recorded after the compensation began, before it ended */
    stage_go(&s);
    expect_state(&s, "prepare risk quote fx finish undo_fx note undo_quote", id, "trail");
    stage_serve(&s, "risk", CB_SUCCESS, NULL, NULL);
    stage_go(&s);

    expect_state(&s, "prepare risk quote fx finish undo_fx note undo_quote undo_prepare", id,
                 "trail");
    stage_close(&s);
}
