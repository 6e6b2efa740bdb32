/* An operator ends a process: cancel and complete. STP.12. */
#include "tour.h"

/* Parked with its deadline passed while bookFx is queued: prepare, bookRisk and quote are done. */
static cb_uuid park_at_fx(stage *s)
{
    cb_uuid id = stage_start_due(s, "Tour", "{}", 60);

    stage_go(s);
    tour_book(s, "risk");
    stage_go(s);
    stage_wait(s, 61);
    stage_go(s);
    expect_status(s, "WAITING_FOR_TSQ DEADLINE_EXCEEDED", id);
    return id;
}

Test(operator_end, a_cancel_undoes_what_was_done) /* STP.12, command queued */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = park_at_fx(&s);

    tour_cancel(id, true);
    expect_status(&s, "WAITING_FOR_TSQ DEADLINE_EXCEEDED", id); /* until a worker acts */
    stage_go(&s);
    stage_serve(&s, "risk", CB_SUCCESS, NULL, NULL);
    stage_go(&s);

    expect_status(&s, "CANCELED CANCELED", id);
    expect_process("enough", id, "error_message");
    expect_commands(&s, "risk/BookRisk COMPLETED, fx/BookFx CANCELED, risk/ReleaseRisk COMPLETED",
                    id);
    expect_state(&s, "prepare risk quote undo_quote undo_prepare canceled", id, "trail");
    expect_told("1", id, "TSQ_CANCEL");
    stage_close(&s);
}

Test(operator_end, a_cancel_without_compensations_only_ends_it) /* STP.12 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = park_at_fx(&s);

    tour_cancel(id, false);
    stage_go(&s);

    expect_status(&s, "CANCELED CANCELED", id);
    expect_commands(&s, "risk/BookRisk COMPLETED, fx/BookFx CANCELED", id);
    expect_state(&s, "prepare risk quote canceled", id, "trail");
    stage_close(&s);
}

Test(operator_end, a_cancel_waits_for_a_command_that_runs) /* STP.12, DESIGN 8.4 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = park_at_fx(&s);
    OWNED(cb_claim) claim = stage_receive(&s, "fx");
    cb_settlement booked = test_outcome(cb_claim_at(claim, 0), CB_SUCCESS);
    booked.result = "{\"id\":8}";

    tour_cancel(id, true);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_ASYNC CANCELED", id);
    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "handlers", booked));
    stage_go(&s);
    stage_serve(&s, "risk", CB_SUCCESS, NULL, NULL);
    stage_go(&s);

    expect_status(&s, "CANCELED CANCELED", id);
    expect_state(&s, "prepare risk quote fx undo_fx undo_quote undo_prepare canceled", id, "trail");
    stage_close(&s);
}

Test(operator_end, a_cancel_also_cancels_the_command_in_the_tsq) /* STP.12 */
{
    stage s = tour_open(&tour_type);
    cb_uuid undone = tour_at_risk(&s, "{}");
    stage_serve(&s, "risk", CB_PERMANENT, NULL, "BROKEN");
    cb_uuid left = tour_at_risk(&s, "{}");
    stage_serve(&s, "risk", CB_PERMANENT, NULL, "BROKEN");
    stage_go(&s);

    tour_cancel(undone, true);
    tour_cancel(left, false);
    stage_go(&s);

    expect_status(&s, "CANCELED CANCELED", undone);
    expect_status(&s, "CANCELED CANCELED", left);
    expect_commands(&s, "risk/BookRisk CANCELED", undone);
    expect_commands(&s, "risk/BookRisk CANCELED", left);
    expect_state(&s, "prepare undo_prepare canceled", undone, "trail");
    expect_state(&s, "prepare canceled", left, "trail");
    expect_value(bus.conn, "0", "SELECT count(*) FROM commandbus.process_inbox");
    stage_close(&s);
}

/* Undoing what was done is parked at quote, or at the command of bookRisk. */
static cb_uuid park_undoing(stage *s)
{
    cb_uuid id = tour_at_fx(s, "{\"decline\":true}");

    tour_book(s, "fx");
    stage_go(s);
    return id;
}

Test(operator_end,
     a_cancel_of_a_failed_compensation_tries_it_again) /* STP.12 COMPENSATION_FAILED */
{
    stage s = tour_open(&tour_type);
    tour_plays.undo_quote = CB_PERMANENT;
    cb_uuid id = park_undoing(&s);
    expect_status(&s, "WAITING_FOR_TSQ COMPENSATION_FAILED", id);

    tour_plays.undo_quote = CB_SUCCESS;
    tour_cancel(id, true);
    stage_go(&s);
    stage_serve(&s, "risk", CB_SUCCESS, NULL, NULL);
    stage_go(&s);

    expect_status(&s, "CANCELED CANCELED", id);
    expect_state(&s, "prepare risk quote fx finish undo_fx undo_quote undo_prepare canceled", id,
                 "trail");
    stage_close(&s);
}

Test(operator_end, a_cancel_of_a_failed_compensation_without_compensations_ends_it) /* STP.12 */
{
    stage s = tour_open(&tour_type);
    tour_plays.undo_quote = CB_PERMANENT;
    cb_uuid id = park_undoing(&s);

    tour_cancel(id, false);
    stage_go(&s);

    expect_status(&s, "CANCELED CANCELED", id);
    expect_state(&s, "prepare risk quote fx finish undo_fx canceled", id, "trail");
    stage_close(&s);
}

Test(operator_end, a_cancel_sends_a_compensation_again_that_it_canceled_in_the_tsq) /* STP.12 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = park_undoing(&s);
    stage_serve(&s, "risk", CB_PERMANENT, NULL, "BROKEN");
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ COMPENSATION_FAILED", id);

    tour_cancel(id, true);
    stage_go(&s);
    expect_status(&s, "COMPENSATING CANCELED", id);
    stage_serve(&s, "risk", CB_SUCCESS, NULL, NULL);
    stage_go(&s);

    expect_status(&s, "CANCELED CANCELED", id);
    expect_record("2 COMPLETED", id, "COMPENSATION", "bookRisk", "send_no || ' ' || status");
    stage_close(&s);
}

Test(operator_end,
     a_cancel_needs_no_code_that_agrees_unless_it_undoes) /* STP.12 NON_DETERMINISTIC */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_fx(&s, "{\"decline\":true}");
    tour_plays.without_undo_of_quote = true;
    tour_book(&s, "fx");
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ NON_DETERMINISTIC", id);

    tour_cancel(id, true);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ NON_DETERMINISTIC", id);
    tour_cancel(id, false);
    stage_go(&s);

    expect_status(&s, "CANCELED CANCELED", id);
    stage_close(&s);
}

Test(operator_end,
     a_reply_that_has_come_is_recorded_though_the_code_has_changed) /* STP.12, DESIGN 8.4 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = park_at_fx(&s);
    tour_book(&s, "fx");
    stage_go(&s);

    tour_plays.renamed = true;
    tour_cancel(id, false);
    stage_go(&s);

    expect_status(&s, "CANCELED CANCELED", id);
    expect_record("COMPLETED {\"id\": 8}", id, "COMMAND", "bookFx", "status || ' ' || result");
    expect_state(&s, "prepare risk quote canceled", id, "trail");
    stage_close(&s);
}

/* ---- complete ---- */

Test(operator_end, complete_sets_fields_and_ends_it) /* STP.12 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = stage_start_due(&s, "Tour", "{\"strange\":1}", -1);
    stage_go(&s);

    tour_complete(id, "{\"risk_id\":71,\"strange\":{\"a\":2}}");
    stage_go(&s);

    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "71", id, "risk_id");
    expect_state(&s, "{\"a\": 2}", id, "strange"); /* STP.14: a field that the code does not know */
    expect_state(&s, "completed", id, "trail");
    expect_told("1", id, "TSQ_COMPLETE_OVERRIDE");
    stage_close(&s);
}

Test(operator_end, complete_without_overrides_cancels_the_command_too) /* STP.12 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    stage_serve(&s, "risk", CB_PERMANENT, NULL, "BROKEN");
    stage_go(&s);

    tour_complete(id, NULL);
    stage_go(&s);

    expect_status(&s, "COMPLETED", id);
    expect_commands(&s, "risk/BookRisk CANCELED", id);
    expect_state(&s, "prepare completed", id, "trail");
    stage_close(&s);
}

Test(operator_end, overrides_win_over_what_a_command_left_behind_brings) /* STP.12 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = park_at_fx(&s);
    OWNED(cb_claim) claim = stage_receive(&s, "fx");
    cb_settlement booked = test_outcome(cb_claim_at(claim, 0), CB_SUCCESS);
    booked.result = "{\"id\":8}";

    tour_complete(id, "{\"fx_id\":80}");
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "handlers", booked));
    stage_go(&s);

    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "80", id, "fx_id");
    expect_record("COMPLETED {\"id\": 8}", id, "COMMAND", "bookFx", "status || ' ' || result");
    stage_close(&s);
}

Test(operator_end, overrides_of_the_wrong_type_change_nothing) /* STP.12 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = stage_start_due(&s, "Tour", "{}", -1);
    stage_go(&s);

    tour_complete(id, "{\"fx_id\":5,\"risk_id\":\"seven\"}");
    stage_go(&s);

    expect_status(&s, "WAITING_FOR_TSQ DEADLINE_EXCEEDED", id);
    expect_process("t", id, "(error_message LIKE '%risk_id%')");
    expect_process("{}", id, "state");
    tour_complete(id, "{\"fx_id\":5,\"risk_id\":7}");
    stage_go(&s);
    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "5", id, "fx_id");
    stage_close(&s);
}

Test(operator_end, overrides_of_a_field_that_does_not_exist_change_nothing) /* STP.12 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = stage_start_due(&s, "Tour", "{}", -1);
    stage_go(&s);

    tour_complete(id, "{\"risk_idd\":7}");
    stage_go(&s);

    expect_status(&s, "WAITING_FOR_TSQ DEADLINE_EXCEEDED", id);
    expect_process("t", id, "(error_message LIKE '%risk_idd%')");
    stage_close(&s);
}

Test(operator_end, overrides_that_are_refused_do_not_undo_the_process) /* STP.12 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    stage_serve(&s, "risk", CB_PERMANENT, NULL, "BROKEN");
    stage_go(&s);

    tour_complete(id, "{\"risk_id\":\"seven\"}"); /* has canceled the command all the same */
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);
    cr_expect_str_eq(tour_calls, "prepare");

    tour_retry(id); /* the operator has thought better of it */
    stage_go(&s);
    tour_book(&s, "risk");
    stage_go(&s);
    expect_process("bookFx", id, "current_wait");
    stage_close(&s);
}

Test(operator_end, one_decision_at_a_time) /* STP.12 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = stage_start_due(&s, "Tour", "{}", -1);
    stage_go(&s);
    cb_error e = { 0 };

    tour_complete(id, NULL);
    cr_expect(!cb_process_complete(bus.db, id.text, "olaf", NULL, NULL, &e));
    cr_expect_eq(e.code, CB_INVALID_OPERATION);
    cr_expect(!cb_process_cancel(bus.db, id.text, "olaf", "no", true, &e));
    cr_expect_eq(e.code, CB_INVALID_OPERATION);
    stage_go(&s);
    cr_expect(!cb_process_cancel(bus.db, id.text, "olaf", "no", true, &e)); /* it has ended */
    cr_expect_eq(e.code, CB_INVALID_OPERATION);

    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "completed", id, "trail");
    stage_close(&s);
}
