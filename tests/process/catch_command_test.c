/* Failures of commands that the code takes: the next provider is asked. A command in the
 * troubleshooting queue is ended before its failure counts, and an operator who was faster wins;
 * one that may have been executed is never taken for failed. RL.3, DESIGN 8.4, 8.9, STP.17. */
#include "dying.h"
#include "tale.h"

static unsigned caught;
static bool undone;

static bool request(const void *state, json_object *data)
{
    (void)state;
    json_object_object_add(data, "pair", json_object_new_string("EURUSD"));
    return true;
}

static bool take_quote(void *state, json_object *result)
{
    (void)result;
    tale_say(state, "quoted");
    return true;
}

static cb_flow rates(cb_process *p, void *state)
{
    tale *t = state;
    const cb_caught *failure;

    CB_DO(cb_command_step(p, "first", request, take_quote, .domain = "fx", .command_type = "Quote",
                          .wait_timeout_ms = CB_MINUTES(10), .compensate_command = "Return",
                          .catch = caught));
    failure = cb_failure(p);
    if (failure) {
        json_object *reply = NULL;
        cb_text_set(&t->note, failure->code);
        t->count = failure->kind;
        json_object_object_get_ex(failure->reply, "error_message", &reply);
        tale_say(t, reply ? json_object_get_string(reply) : "-");
        CB_DO(cb_command_step(p, "second", request, take_quote, .domain = "risk",
                              .command_type = "Quote", .compensate_command = "Return"));
    }
    return undone ? cb_business_failure(p, "NO", "undo it") : CB_DONE;
}

static const cb_process_type type = tale_type("Rates", rates, .version = 1);

static cb_uuid at_first(stage *s, unsigned catches)
{
    caught = catches;
    cb_uuid id = stage_start(s, "Rates", "{}");
    stage_go(s);
    expect_commands(s, "fx/Quote PENDING", id);
    return id;
}

/* It has gone on to the second provider, which answers. */
static void expect_second(stage *s, cb_uuid id, const char *first, const char *code, int kind)
{
    char commands[100], number[12];

    snprintf(commands, sizeof commands, "fx/Quote %s, risk/Quote PENDING", first);
    snprintf(number, sizeof number, "%d", kind);
    expect_commands(s, commands, id);
    stage_serve(s, "risk", CB_SUCCESS, "{}", NULL);
    stage_go(s);
    expect_status(s, "COMPLETED", id);
    expect_history(s, "COMMAND first CAUGHT, COMMAND second COMPLETED", id);
    expect_state(s, code, id, "note");
    expect_state(s, number, id, "count");
    expect_value(bus.conn, "0",
                 "SELECT count(*) FROM commandbus.process_event WHERE process_id = $1 AND event = "
                 "'LATE_REPLY'",
                 id.text);
}

Test(catch_command, a_business_rule_is_a_value)
{
    stage s = tale_open(&type);
    cb_uuid id = at_first(&s, true);

    stage_serve(&s, "fx", CB_BUSINESS_RULE, NULL, "NO_MARKET");
    stage_go(&s);
    expect_second(&s, id, "FAILED", "NO_MARKET", CB_FAILURE_BUSINESS_RULE);
    stage_close(&s);
}

Test(catch_command, one_in_the_troubleshooting_queue_is_ended_before_its_failure_counts)
{
    stage s = tale_open(&type);
    cb_uuid id = at_first(&s, true);

    stage_serve(&s, "fx", CB_PERMANENT, NULL, "NO_RATE");
    cr_expect(stage_step(&s)); /* it asks for the end, and waits */
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_commands(&s, "fx/Quote CANCELED", id);
    stage_go(&s);
    expect_second(&s, id, "CANCELED", "NO_RATE", CB_FAILURE_PERMANENT);
    expect_value(bus.conn, "commandbus: its process goes on with its failure NO_RATE",
                 "SELECT concat_ws(' ', details ->> 'reason', details ->> 'error_code') FROM "
                 "commandbus.audit WHERE event_type = 'OPERATOR_CANCEL' AND domain = 'fx'");
    stage_close(&s);
}

Test(catch_command, attempts_that_are_used_up_are_a_value)
{
    stage s = tale_open(&type);
    cb_uuid id = at_first(&s, CB_FAILURE_EXHAUSTED);

    test_exec(bus.conn, "UPDATE commandbus.command_metadata SET max_attempts = 1");
    stage_serve(&s, "fx", CB_TRANSIENT, NULL, "BUSY");
    stage_go(&s);
    expect_second(&s, id, "CANCELED", "BUSY", CB_FAILURE_EXHAUSTED);
    stage_close(&s);
}

Test(catch_command, an_operators_cancel_is_a_value)
{
    stage s = tale_open(&type);
    cb_uuid id = at_first(&s, CB_FAILURE_CANCELED);

    stage_serve(&s, "fx", CB_PERMANENT, NULL, "NO_RATE");
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ COMMAND_IN_TSQ", id); /* not a kind that is caught */
    test_exec(bus.conn, "SELECT commandbus.tsq_cancel('fx', command_id, 'ann', 'withdrawn') FROM "
                        "commandbus.command_metadata");
    stage_go(&s);
    expect_second(&s, id, "CANCELED", "CANCELED", CB_FAILURE_CANCELED);
    stage_close(&s);
}

/* An operator decides while the process has claimed its reply, and has not settled yet. */
static void decide_first(stage *s, const char *sql)
{
    dying d = { .stage = s, .die_at = 1 };

    test_exec(bus.conn, "SELECT commandbus.deliver_replies('payments__replies', 'stage')");
    cr_expect_not(dying_step(&d));
    cr_expect(d.dead);
    test_exec(bus.conn, sql);
}

Test(catch_command, an_operator_who_completes_it_first_wins)
{
    stage s = tale_open(&type);
    cb_uuid id = at_first(&s, true);

    stage_serve(&s, "fx", CB_PERMANENT, NULL, "NO_RATE");
    decide_first(&s, "SELECT commandbus.tsq_complete('fx', command_id, 'ann', 'by phone', '{}') "
                     "FROM commandbus.command_metadata");
    stage_go(&s);

    expect_status(&s, "COMPLETED", id);
    expect_history(&s, "COMMAND first COMPLETED", id);
    expect_state(&s, "quoted", id, "trail");
    stage_close(&s);
}

Test(catch_command, an_operator_who_retries_it_first_wins)
{
    stage s = tale_open(&type);
    cb_uuid id = at_first(&s, true);

    stage_serve(&s, "fx", CB_PERMANENT, NULL, "NO_RATE");
    decide_first(&s, "SELECT commandbus.tsq_retry('fx', command_id, 'ann', 'again') FROM "
                     "commandbus.command_metadata");
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_commands(&s, "fx/Quote PENDING", id);

    stage_serve(&s, "fx", CB_SUCCESS, "{}", NULL);
    stage_go(&s);
    expect_status(&s, "COMPLETED", id);
    expect_history(&s, "COMMAND first COMPLETED", id);
    stage_close(&s);
}

Test(catch_command, one_that_an_operator_holds_is_asked_for_again)
{
    stage s = tale_open(&type);
    cb_uuid id = at_first(&s, true);
    PGconn *other = test_pq_open(bus.conninfo);

    stage_serve(&s, "fx", CB_PERMANENT, NULL, "NO_RATE");
    test_exec(other, "BEGIN");
    test_exec(other, "SELECT FROM commandbus.command_metadata FOR UPDATE");
    cr_expect(stage_step(&s));
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_commands(&s, "fx/Quote IN_TROUBLESHOOTING_QUEUE", id);
    test_exec(other, "ROLLBACK");

    stage_go(&s);
    stage_wait(&s, 61);
    stage_go(&s);
    stage_wait(&s, 61);
    stage_go(&s);
    expect_second(&s, id, "CANCELED", "NO_RATE", CB_FAILURE_PERMANENT);
    PQfinish(other);
    stage_close(&s);
}

Test(catch_command, one_that_may_have_been_executed_waits_for_a_person) /* DESIGN 8.9 */
{
    static const char *const codes[] = { "LEASE_EXHAUSTED", "HANDLER_TIMEOUT", "RESULT_INVALID",
                                         "EFFECT_FAILED",   "SETTLE_REFUSED",  "INTERNAL_ERROR",
                                         "OUTCOME_UNKNOWN" };
    stage s = tale_open(&type);

    for (size_t i = 0; i < CB_COUNT(codes); i++) {
        cb_uuid id = at_first(&s, true);
        stage_serve(&s, "fx", CB_PERMANENT, NULL, codes[i]);
        stage_go(&s);
        expect_status(&s, "WAITING_FOR_TSQ COMMAND_IN_TSQ", id);
        expect_commands(&s, "fx/Quote IN_TROUBLESHOOTING_QUEUE", id);
    }
    stage_close(&s);
}

Test(catch_command, a_reply_that_was_lost_is_asked_for)
{
    stage s = tale_open(&type);
    cb_uuid id = at_first(&s, true);

    BUS_UNHEARD(stage_serve(&s, "fx", CB_PERMANENT, NULL, "NO_RATE"));
    test_exec(bus.conn, "DELETE FROM pgmq.q_payments__replies");
    stage_wait(&s, 601);
    stage_go(&s);
    expect_second(&s, id, "CANCELED", "NO_RATE", CB_FAILURE_PERMANENT);
    stage_close(&s);
}

Test(catch_command, the_end_that_it_asked_for_is_found_again_when_its_reply_was_lost)
{
    stage s = tale_open(&type);
    cb_uuid id = at_first(&s, true);

    stage_serve(&s, "fx", CB_PERMANENT, NULL, "NO_RATE");
    cr_expect(stage_step(&s));
    test_exec(bus.conn, "DELETE FROM commandbus.process_inbox");
    stage_wait(&s, 601);
    stage_go(&s);
    stage_wait(&s, 61);
    stage_go(&s);
    expect_second(&s, id, "CANCELED", "NO_RATE", CB_FAILURE_PERMANENT);
    stage_close(&s);
}

/* ---- timeouts ---- */

/* What was received before has an outcome. */
static void settle_quote(const cb_claim *claim, cb_outcome outcome, const char *code)
{
    cb_settlement item = test_outcome(cb_claim_at(claim, 0), outcome);

    item.error_code = code;
    expect_verdict(CB_SETTLED, test_settle_one(bus.db, "handlers", item));
}

Test(catch_command, that_nobody_has_received_in_time_is_canceled_and_timed_out)
{
    stage s = tale_open(&type);
    cb_uuid id = at_first(&s, CB_FAILURE_TIMEOUT);

    stage_wait(&s, 601);
    cr_expect(stage_step(&s));
    expect_commands(&s, "fx/Quote CANCELED", id);
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    stage_go(&s);
    expect_second(&s, id, "CANCELED", "COMMAND_STEP_TIMEOUT", CB_FAILURE_TIMEOUT);
    stage_close(&s);
}

Test(catch_command, that_runs_when_its_time_is_over_is_waited_for_and_its_success_counts)
{
    stage s = tale_open(&type);
    cb_uuid id = at_first(&s, true);
    OWNED(cb_claim) claim = stage_receive(&s, "fx");

    stage_wait(&s, 601);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_commands(&s, "fx/Quote IN_PROGRESS", id);

    settle_quote(claim, CB_SUCCESS, NULL);
    stage_go(&s);
    expect_status(&s, "COMPLETED", id);
    expect_history(&s, "COMMAND first COMPLETED", id);
    stage_close(&s);
}

Test(catch_command, that_never_replies_is_an_unknown_outcome_and_not_a_failure) /* DESIGN 8.9 */
{
    stage s = tale_open(&type);
    cb_uuid id = at_first(&s, true);
    OWNED(cb_claim) claim = stage_receive(&s, "fx");

    stage_wait(&s, 601);
    stage_go(&s);
    stage_wait(&s, 121);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ OUTCOME_UNKNOWN", id);
    expect_commands(&s, "fx/Quote IN_PROGRESS", id);

    settle_quote(claim, CB_BUSINESS_RULE, "NO_MARKET"); /* it tells after all */
    stage_go(&s);
    expect_second(&s, id, "FAILED", "NO_MARKET", CB_FAILURE_BUSINESS_RULE);
    stage_close(&s);
}

Test(catch_command, with_an_unknown_outcome_gets_its_whole_time_again_by_a_retry)
{
    stage s = tale_open(&type);
    cb_uuid id = at_first(&s, true);
    OWNED(cb_claim) claim = stage_receive(&s, "fx");

    stage_wait(&s, 601);
    stage_go(&s);
    stage_wait(&s, 121);
    stage_go(&s);
    tale_retry(id);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    stage_wait(&s, 590);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    settle_quote(claim, CB_SUCCESS, NULL);
    stage_go(&s);
    expect_status(&s, "COMPLETED", id);
    stage_close(&s);
}

/* ---- classify ---- */

static cb_outcome knows_markets(const char *code)
{
    return strcmp(code, "NO_MARKET") == 0 ? CB_BUSINESS_RULE
           : strcmp(code, "BUSY") == 0    ? CB_TRANSIENT
                                          : CB_PERMANENT;
}

static const cb_process_type wiser = tale_type("Rates", rates, .classify = knows_markets);

Test(catch_command, what_the_type_calls_a_business_rule_undoes_the_process)
{
    stage s = tale_open(&wiser);
    cb_uuid id = at_first(&s, 0);

    stage_serve(&s, "fx", CB_PERMANENT, NULL, "NO_MARKET");
    stage_go(&s);
    expect_status(&s, "COMPENSATED NO_MARKET", id);
    expect_commands(&s, "fx/Quote CANCELED", id);

    id = at_first(&s, 0);
    stage_serve(&s, "fx", CB_PERMANENT, NULL, "OTHER");
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ COMMAND_IN_TSQ", id);
    stage_close(&s);
}

Test(catch_command, what_the_type_calls_transient_is_taken_as_used_up)
{
    stage s = tale_open(&wiser);
    cb_uuid id = at_first(&s, CB_FAILURE_EXHAUSTED);

    stage_serve(&s, "fx", CB_PERMANENT, NULL, "BUSY");
    stage_go(&s);
    expect_second(&s, id, "CANCELED", "BUSY", CB_FAILURE_EXHAUSTED);
    stage_close(&s);
}

/* ---- undoing, and what was recorded before ---- */

Test(catch_command, one_that_failed_is_not_undone_and_the_next_one_is)
{
    stage s = tale_open(&type);
    cb_uuid id = at_first(&s, true);

    undone = true;
    stage_serve(&s, "fx", CB_BUSINESS_RULE, NULL, "NO_MARKET");
    stage_go(&s);
    stage_serve(&s, "risk", CB_SUCCESS, "{}", NULL);
    stage_go(&s);
    stage_serve(&s, "risk", CB_SUCCESS, "{}", NULL);
    stage_go(&s);

    expect_status(&s, "COMPENSATED NO", id);
    expect_commands(&s, "fx/Quote FAILED, risk/Quote COMPLETED, risk/Return COMPLETED", id);
    stage_close(&s);
}

Test(catch_command, a_process_that_was_parked_before_the_code_caught_goes_on_with_new_code)
{
    stage s = tale_open(&type);
    cb_uuid id = at_first(&s, 0);

    stage_serve(&s, "fx", CB_PERMANENT, NULL, "NO_RATE");
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ COMMAND_IN_TSQ", id);
    caught = true;
    tale_retry(id);
    stage_go(&s);
    stage_serve(&s, "fx", CB_PERMANENT, NULL, "NO_RATE");
    stage_go(&s);
    stage_serve(&s, "risk", CB_SUCCESS, "{}", NULL);
    stage_go(&s);
    expect_status(&s, "COMPLETED", id);
    expect_history(&s, "COMMAND first CAUGHT, OPERATOR RETRY COMPLETED, COMMAND second COMPLETED",
                   id);
    stage_close(&s);
}

/* ---- crashes ---- */

/* How the first command ends in this round. */
typedef enum {
    BY_RULE,
    IN_TSQ,
    BY_TIME,
    WAYS
} way;

static void serve_rates(stage *s, way how)
{
    if (stage_is_queued("risk"))
        stage_serve(s, "risk", CB_SUCCESS, "{}", NULL);
    else if (stage_is_queued("fx") && how == BY_TIME)
        stage_wait(s, 601);
    else if (stage_is_queued("fx"))
        stage_serve(s, "fx", how == BY_RULE ? CB_BUSINESS_RULE : CB_PERMANENT, NULL, "NO_RATE");
    test_exec(bus.conn, "SELECT commandbus.deliver_replies('payments__replies', 'stage')");
}

static void expect_rates_end(stage *s, cb_uuid id, way how)
{
    expect_status(s, "COMPLETED", id);
    expect_history(s, "COMMAND first CAUGHT, COMMAND second COMPLETED", id);
    expect_commands(s,
                    how == BY_RULE ? "fx/Quote FAILED, risk/Quote COMPLETED"
                                   : "fx/Quote CANCELED, risk/Quote COMPLETED",
                    id);
    expect_state(s, how == BY_TIME ? "COMMAND_STEP_TIMEOUT" : "NO_RATE", id, "note");
}

static bool dies_after(stage *s, int at, way how)
{
    cb_uuid id = stage_start(s, "Rates", "{}");
    bool crashed = false;

    s->kit.durable = 0;
    s->kit.crash_after = at;
    for (int i = 0; i < 30 && !stage_is_over(id); i++) {
        stage_go(s);
        crashed = crashed || s->kit.crashed;
        if (s->kit.crashed)
            stage_restart(s);
        else
            serve_rates(s, how);
    }
    expect_rates_end(s, id, how);
    return crashed;
}

static bool dies_before(stage *s, int at, way how)
{
    cb_uuid id = stage_start(s, "Rates", "{}");
    dying d = { .stage = s, .die_at = at };

    for (int i = 0; i < 40 && !stage_is_over(id); i++) {
        if (!dying_step(&d) && !d.dead)
            serve_rates(s, how);
    }
    expect_rates_end(s, id, how);
    return d.settles >= at;
}

Test(catch_command, after_and_before_every_durable_point_the_end_is_the_same) /* DESIGN 8.1, 8.4 */
{
    static const int points[WAYS] = { [BY_RULE] = 3, [IN_TSQ] = 4, [BY_TIME] = 4 };
    stage s = tale_open(&type);

    caught = true;
    for (way how = 0; how < WAYS; how++) {
        int after = 0, before = 1;
        while (dies_after(&s, after + 1, how))
            after++;
        cr_expect_eq(after, points[how], "%d durable points, way %d", after, (int)how);
        while (dies_before(&s, before, how))
            before++;
        cr_expect_eq(before - 1, points[how], "%d settles, way %d", before - 1, (int)how);
    }
    stage_close(&s);
}
