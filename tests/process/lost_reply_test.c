/* Replies that are gone: the process takes the outcome from the command's row. BUS.13, STP.27.
 * Only those can be lost that went to the queue, because somebody had the process locked. */
#include "tour.h"

/* Somebody empties the reply queue. */
static void empty_replies(const char *replies)
{
    expect_value(bus.conn, replies,
                 "WITH lost AS (DELETE FROM pgmq.q_payments__replies RETURNING 1) "
                 "SELECT count(*) FROM lost");
}

#define expect_restored(s, expected) \
    expect_value(bus.conn, expected, "SELECT count(*) FROM commandbus.restore_replies()")

/* It goes on as it would have with the reply: the result was taken, and the next command sent. */
static void expect_booked(stage *s, cb_uuid id)
{
    expect_status(s, "WAITING_FOR_ASYNC", id);
    expect_process("bookFx", id, "current_wait");
    expect_state(s, "7", id, "risk_id");
    expect_commands(s, "risk/BookRisk COMPLETED, fx/BookFx PENDING", id);
}

/* DESIGN 8.1, 8.9 */
Test(lost_reply, is_taken_from_the_command_when_the_wait_is_over)
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    BUS_UNHEARD(tour_book(&s, "risk"));
    empty_replies("1");

    stage_wait(&s, 599);
    cr_expect_eq(stage_go(&s), 0);
    stage_wait(&s, 2);
    stage_go(&s);

    expect_booked(&s, id);
    expect_events(&s, "PROCESS_CREATED REPLY_RESTORED", id); /* it was not parked on the way */
    stage_close(&s);
}

/* DESIGN 8.1: parked because of the time, then the command succeeds, and nobody hears of it. */
Test(lost_reply, is_taken_from_the_command_at_a_retry)
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    OWNED(cb_claim) claim = stage_receive(&s, "risk");
    stage_wait(&s, 601);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ COMMAND_STEP_TIMEOUT", id);
    cb_settlement late = test_outcome(cb_claim_at(claim, 0), CB_SUCCESS);
    late.domain = "risk";
    late.result = "{\"id\":7}";
    BUS_UNHEARD(expect_verdict(CB_SETTLED, test_settle_one(bus.db, "handlers", late)));
    empty_replies("1");

    tour_retry(id);
    stage_go(&s);

    expect_booked(&s, id);
    stage_close(&s);
}

Test(lost_reply, is_put_back_once_by_whoever_looks_for_it) /* DESIGN 8.6 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    BUS_UNHEARD(tour_book(&s, "risk"));
    expect_restored(&s, "0"); /* on its way */
    empty_replies("1");

    expect_value(bus.conn, "COMPLETED",
                 "SELECT outcome FROM commandbus.restore_replies(dry_run => true)");
    expect_restored(&s, "1");
    expect_restored(&s, "0");
    expect_value(
        bus.conn, "{\"final\": true, \"result\": {\"id\": 7}, \"outcome\": \"SUCCESS\"}",
        "SELECT payload - 'command_id' - 'correlation_id' - 'domain' FROM commandbus.process_inbox");
    stage_go(&s);

    expect_booked(&s, id);
    expect_restored(&s, "0");
    stage_close(&s);
}

/* A settle that asks for a reply finds it in its queue by an index, however deep that is. */
Test(lost_reply, that_is_on_its_way_is_found_without_reading_the_queue)
{
    stage s = tour_open(&tour_type);
    tour_at_risk(&s, "{}");
    BUS_UNHEARD(tour_book(&s, "risk"));
    test_exec(bus.conn, "SELECT pgmq.send('payments__replies', jsonb_build_object('command_id', "
                        "gen_random_uuid())) FROM generate_series(1, 300)");

    test_exec(bus.conn, "BEGIN");
    expect_restored(&s, "0");
    expect_value(
        bus.conn, "t",
        "SELECT pg_stat_get_xact_tuples_returned(q) + pg_stat_get_xact_tuples_fetched(q) < "
        "10 FROM (SELECT 'pgmq.q_payments__replies'::regclass) AS t(q)");
    test_exec(bus.conn, "ROLLBACK");

    test_exec(bus.conn, "UPDATE pgmq.q_payments__replies SET vt = vt + interval '1 second'");
    expect_restored(&s, "0"); /* whoever has moved it, it is there */
    stage_close(&s);
}

/* DESIGN 8.6, 8.4: the one that was lost turns up after all. */
Test(lost_reply, that_turns_up_after_all_changes_nothing)
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    BUS_UNHEARD(tour_book(&s, "risk"));
    test_exec(bus.conn, "CREATE TABLE kept AS SELECT message FROM pgmq.q_payments__replies");
    empty_replies("1");
    expect_restored(&s, "1");
    stage_go(&s);

    test_exec(bus.conn, "SELECT pgmq.send('payments__replies', message) FROM kept");
    stage_go(&s);

    expect_booked(&s, id);
    expect_events(&s, "PROCESS_CREATED REPLY_RESTORED LATE_REPLY", id);
    expect_value(bus.conn, "0",
                 "SELECT count(*) FROM commandbus.process_problems() "
                 "WHERE problem IN ('LATE_SUCCESS', 'LOST_REPLY')");
    stage_close(&s);
}

/* Has bookRisk refused by a business rule, with or without the reply, and tells how it ended. */
static char *story_of_refusal(bool lost)
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");

    if (lost) {
        BUS_UNHEARD(stage_serve(&s, "risk", CB_BUSINESS_RULE, NULL, "LIMIT"));
        empty_replies("1");
        expect_restored(&s, "1");
    } else {
        stage_serve(&s, "risk", CB_BUSINESS_RULE, NULL, "LIMIT");
    }
    stage_go(&s);
    char *story = test_value(bus.conn,
                             "SELECT concat_ws(' ', p.status, p.error_code, p.error_message, "
                             "h.status, h.error_code, h.error_message) FROM commandbus.process p "
                             "JOIN commandbus.process_history h USING (process_id) "
                             "WHERE p.process_id = $1 AND h.name = 'bookRisk'",
                             id.text, NULL);
    stage_close(&s);
    return story;
}

Test(lost_reply, of_a_failure_is_made_again_with_all_it_said) /* DESIGN 8.6 */
{
    char *told = story_of_refusal(false), *lost = story_of_refusal(true);

    cr_expect_str_eq(lost, told);
    cr_expect(strstr(told, "COMPENSATED LIMIT"), "%s", told);
    free(told);
    free(lost);
}

#define IN_TSQ "WAITING_FOR_TSQ COMMAND_IN_TSQ"

Test(lost_reply, that_was_not_final_parks_the_process) /* RL.3 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    BUS_UNHEARD(stage_serve(&s, "risk", CB_PERMANENT, NULL, "BROKEN"));
    empty_replies("1");

    expect_restored(&s, "1");
    stage_go(&s);

    expect_status(&s, IN_TSQ, id);
    expect_restored(&s, "0"); /* it knows */
    stage_close(&s);
}

Test(lost_reply, that_was_not_final_parks_it_when_the_wait_is_over) /* RL.3 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    BUS_UNHEARD(stage_serve(&s, "risk", CB_PERMANENT, NULL, "BROKEN"));
    empty_replies("1");

    stage_wait(&s, 601);
    stage_go(&s);

    expect_status(&s, IN_TSQ, id);
    stage_close(&s);
}

/* The process waits with COMMAND_IN_TSQ; an operator decides about the command, and the reply is
 * lost. */
static cb_uuid decided_in_vain(stage *s, const char *decision)
{
    cb_uuid id = tour_at_risk(s, "{}");

    stage_serve(s, "risk", CB_PERMANENT, NULL, "BROKEN");
    stage_go(s);
    expect_status(s, IN_TSQ, id);
    BUS_UNHEARD(free(test_value(bus.conn, decision, NULL)));
    empty_replies("1");
    return id;
}

Test(lost_reply, of_a_command_completed_by_hand_resumes_the_process) /* BUS.6, DESIGN 8.6 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id =
        decided_in_vain(&s, "SELECT commandbus.tsq_complete('risk', command_id, 'ann', 'seen', "
                            "'{\"id\": 7}') FROM commandbus.command_metadata");

    expect_restored(&s, "1");
    stage_go(&s);

    expect_booked(&s, id);
    stage_close(&s);
}

Test(lost_reply, of_a_command_canceled_by_hand_brings_the_reason) /* BUS.6, DESIGN 8.6 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = decided_in_vain(&s, "SELECT commandbus.tsq_cancel('risk', command_id, 'ann', 'not "
                                     "wanted') FROM commandbus.command_metadata");

    expect_restored(&s, "1");
    stage_go(&s);

    expect_status(&s, "COMPENSATED CANCELED", id);
    expect_process("not wanted", id, "error_message");
    stage_close(&s);
}

Test(lost_reply, of_a_compensation_is_found_though_it_has_no_timer) /* STP.8 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_fx(&s, "{\"decline\":true}");
    tour_book(&s, "fx");
    stage_go(&s);
    expect_status(&s, "COMPENSATING DECLINED", id);
    BUS_UNHEARD(stage_serve(&s, "risk", CB_SUCCESS, "{}", NULL));
    empty_replies("1");

    expect_restored(&s, "1");
    stage_go(&s);

    expect_status(&s, "COMPENSATED DECLINED", id);
    stage_close(&s);
}

/* DESIGN 8.4, 8.9: what was booked is undone, and not asked about. */
Test(lost_reply, is_found_when_the_process_is_canceled)
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    OWNED(cb_claim) claim = stage_receive(&s, "risk");
    stage_wait(&s, 601);
    stage_go(&s);
    cb_settlement late = test_outcome(cb_claim_at(claim, 0), CB_SUCCESS);
    late.domain = "risk";
    late.result = "{\"id\":7}";
    BUS_UNHEARD(expect_verdict(CB_SETTLED, test_settle_one(bus.db, "handlers", late)));
    empty_replies("1");

    tour_cancel(id, true);
    stage_go(&s);
    expect_commands(&s, "risk/BookRisk COMPLETED, risk/ReleaseRisk PENDING", id);
    stage_serve(&s, "risk", CB_SUCCESS, "{}", NULL);
    stage_go(&s);

    expect_status(&s, "CANCELED CANCELED", id);
    stage_close(&s);
}

/* DESIGN 8.9: the deadline has passed, and on the way back the outcome is waited for. */
Test(lost_reply, is_asked_for_on_the_way_back)
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    OWNED(cb_claim) claim = stage_receive(&s, "risk");
    stage_wait(&s, 601);
    stage_go(&s);
    tour_cancel(id, true);
    stage_go(&s); /* it waits for the outcome */
    cb_settlement late = test_outcome(cb_claim_at(claim, 0), CB_SUCCESS);
    late.domain = "risk";
    late.result = "{\"id\":7}";
    BUS_UNHEARD(expect_verdict(CB_SETTLED, test_settle_one(bus.db, "handlers", late)));
    empty_replies("1");

    stage_wait(&s, 121);
    stage_go(&s);

    expect_commands(&s, "risk/BookRisk COMPLETED, risk/ReleaseRisk PENDING", id);
    stage_close(&s);
}

/* DESIGN 8.7: a queue that is gone, and with it what was in it. */
Test(lost_reply, whose_queue_is_gone_is_put_back_too)
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    free(test_value(bus.conn, "SELECT pgmq.drop_queue('payments__replies')", NULL));
    BUS_UNHEARD(tour_book(&s, "risk"));

    expect_restored(&s, "1");
    stage_go(&s);

    expect_booked(&s, id);
    stage_close(&s);
}

/* DESIGN 8.7: hidden for ever is lost; for an hour it is not. */
Test(lost_reply, that_somebody_hid_is_revealed)
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    BUS_UNHEARD(tour_book(&s, "risk"));
    test_exec(bus.conn, "UPDATE pgmq.q_payments__replies SET vt = now() + interval '1 hour'");
    expect_restored(&s, "0");
    test_exec(bus.conn, "UPDATE pgmq.q_payments__replies SET vt = 'infinity'");
    expect_value(bus.conn, "payments__replies 1",
                 "SELECT queue_name || ' ' || messages FROM commandbus.hidden_messages()");

    expect_value(bus.conn, "0", "SELECT count(*) FROM commandbus.keep_replies(0, 0)");
    stage_go(&s);

    expect_booked(&s, id);
    expect_events(&s, "PROCESS_CREATED", id); /* the very reply */
    stage_close(&s);
}

/* DESIGN 8.7: whoever can be told directly needs no queue. */
Test(lost_reply, is_none_when_the_queue_is_gone_and_nobody_has_the_process_locked)
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    free(test_value(bus.conn, "SELECT pgmq.drop_queue('payments__replies')", NULL));
    tour_book(&s, "risk");

    expect_restored(&s, "0");
    stage_go(&s);

    expect_booked(&s, id);
    stage_close(&s);
}

Test(lost_reply, is_named_by_doctor) /* PM.6 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    cb_uuid command;
    BUS_UNHEARD(command = tour_book(&s, "risk"));
    OWNED(cb_rows) rows = NULL;
    cb_error e = { 0 };
    const char *detail = "";
    test_exec(bus.conn, "UPDATE commandbus.command_metadata SET completed_at = completed_at - "
                        "interval '1 minute'");
    empty_replies("1");
    stage_wait(&s, 60);

    cr_assert(cb_doctor(bus.db, &rows, &e), "%s", e.message);
    for (size_t i = 0; i < cb_rows_count(rows); i++) {
        if (strcmp(cb_rows_get(rows, i, "check_name"), "lost replies") == 0) {
            cr_expect_str_eq(cb_rows_get(rows, i, "status"), "warn");
            detail = cb_rows_get(rows, i, "detail");
        }
    }

    cr_expect(strstr(detail, id.text) && strstr(detail, command.text), "it says '%s'", detail);
    stage_close(&s);
}
