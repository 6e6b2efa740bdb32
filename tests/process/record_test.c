/* The record of a process is whole: every command, every reply, every parking is in the audit, and
 * is found by the command's id. Attempts of steps: attempt_test.c. STP.20. */
#include <stdio.h>

#include "tour.h"

#define expect_audit(s, expected, id, columns, condition)                                    \
    expect_value(bus.conn, expected,                                                         \
                 "SELECT string_agg(concat_ws(' ', " columns "), '; ' ORDER BY at, ordinal)" \
                 " FROM commandbus.process_audit WHERE process_id = $1 AND " condition,      \
                 (id).text)

Test(record, begins_with_the_start_and_who_started_it) /* S0 PROCESS_CREATED */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");

    expect_told("1", id, "PROCESS_CREATED");
    expect_audit(&s, "t", id, "db_user = session_user", "event = 'PROCESS_CREATED'");
    stage_close(&s);
}

Test(record, keeps_a_command_that_was_sent_again_with_its_outcome) /* PM: every command */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    stage_wait(&s, 601);
    stage_go(&s);
    tour_retry(id);
    stage_go(&s);
    tour_book(&s, "risk");
    stage_go(&s);

    cb_uuid first = cb_uuid_derived(&id, "command/bookRisk/1"),
            second = cb_uuid_derived(&id, "command/bookRisk/2");
    char expected[400];
    snprintf(expected, sizeof expected, "%s FAILED CANCELED t; %s COMPLETED SUCCESS {\"id\": 7} t",
             first.text, second.text);
    expect_audit(&s, expected, id,
                 "command_id, step_status, reply_outcome, reply_data, "
                 "sent_at < received_at AND command_data IS NOT NULL",
                 "step_name = 'bookRisk' AND entry_type = 'COMMAND'");
    expect_value(bus.conn, "t",
                 "SELECT min(received_at) <= max(sent_at) FROM commandbus.process_audit WHERE "
                 "process_id = $1 AND step_name = 'bookRisk'",
                 id.text);
    stage_close(&s);
}

Test(record, keeps_a_command_that_failed_when_an_operator_has_it_sent_again) /* STP.12 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_fx(&s, "{\"decline\":true}");
    tour_book(&s, "fx");
    stage_go(&s);
    stage_serve(&s, "risk", CB_BUSINESS_RULE, NULL, "NOT_NOW"); /* ReleaseRisk */
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ COMPENSATION_FAILED", id);

    tour_retry(id);
    stage_go(&s);
    tour_book(&s, "risk");
    stage_go(&s);

    expect_status(&s, "COMPENSATED DECLINED", id);
    expect_audit(&s,
                 "COMPENSATION_FAILED ReleaseRisk FAILED NOT_NOW; COMPENSATION_SUCCESS ReleaseRisk "
                 "SUCCESS",
                 id, "event, command_type, reply_outcome, details ->> 'error_code'",
                 "command_type = 'ReleaseRisk'");
    stage_close(&s);
}

Test(record, has_replies_that_were_not_final_and_every_parking) /* RL.3, S2 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    cb_uuid command = stage_serve(&s, "risk", CB_PERMANENT, NULL, "BROKEN");
    stage_go(&s);

    expect_status(&s, "WAITING_FOR_TSQ COMMAND_IN_TSQ", id);
    expect_events(&s, "PROCESS_CREATED REPLY_NOT_FINAL PARKED", id);
    expect_value(bus.conn, "bookRisk COMMAND FAILED BROKEN t",
                 "SELECT concat_ws(' ', step_name, entry_type, reply_outcome, "
                 "details ->> 'error_code', received_at = at) FROM commandbus.process_audit "
                 "WHERE command_id = $1 AND event = 'REPLY_NOT_FINAL'",
                 command.text);
    expect_audit(&s, "bookRisk COMMAND_IN_TSQ stage t", id,
                 "step_name, details ->> 'error_code', worker, "
                 "details ->> 'error_message' LIKE '%BROKEN'",
                 "event = 'PARKED'");

    /* Again, for the same reason. */
    tour_retry(id);
    stage_go(&s);
    stage_serve(&s, "risk", CB_PERMANENT, NULL, "BROKEN");
    stage_go(&s);
    expect_told("2", id, "REPLY_NOT_FINAL");
    expect_told("2", id, "PARKED");
    stage_close(&s);
}

Test(record, does_not_have_a_parking_twice_when_something_arrives_meanwhile)
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    stage_serve(&s, "risk", CB_PERMANENT, NULL, "BROKEN");
    stage_go(&s);

    stage_respond(&s, id, "go", "{}");
    stage_go(&s);

    expect_status(&s, "WAITING_FOR_TSQ COMMAND_IN_TSQ", id);
    expect_told("1", id, "PARKED");
    stage_close(&s);
}

Test(record, keeps_all_that_a_late_reply_said) /* DESIGN 8.6 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    cb_uuid command;
    BUS_UNHEARD(command = stage_serve(&s, "risk", CB_SUCCESS, "{\"id\":7,\"rate\":1.10}", NULL));
    test_exec(bus.conn, "CREATE TEMP TABLE lost AS SELECT * FROM pgmq.q_payments__replies");
    stage_go(&s);
    test_exec(bus.conn, "SELECT pgmq.send('payments__replies', message) FROM lost");
    stage_go(&s);

    expect_value(bus.conn, "COMMAND SUCCESS {\"id\": 7, \"rate\": 1.10}",
                 "SELECT concat_ws(' ', entry_type, reply_outcome, reply_data) FROM "
                 "commandbus.process_audit WHERE command_id = $1 AND event = 'LATE_REPLY'",
                 command.text);
    expect_told("1", id, "LATE_REPLY");
    stage_close(&s);
}

Test(record, says_which_attempt_of_how_many_a_command_is_in) /* S0 "Attempt 2 of 3" */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    test_exec(bus.conn, "UPDATE commandbus.command_metadata SET max_attempts = 3");
    stage_serve(&s, "risk", CB_TRANSIENT, NULL, "BUSY");
    test_exec(bus.conn, "UPDATE pgmq.q_risk__commands SET vt = now()");
    cb_claim *running = stage_receive(&s, "risk");

    expect_audit(&s, "2 3", id, "attempt_number, max_attempts", "step_name = 'bookRisk'");
    expect_value(bus.conn, "STARTED 2 3 t",
                 "SELECT concat_ws(' ', d ->> 'status', d ->> 'attemptCount', d ->> 'maxRetries', "
                 "jsonb_typeof((d ->> 'requestJson')::jsonb) = 'object') "
                 "FROM commandbus.process_state_document v, LATERAL "
                 "jsonb_array_elements(v.document -> 'stepHistory') d "
                 "WHERE process_id = $1 AND d ->> 'name' = 'bookRisk'",
                 id.text);
    cb_claim_free(running);
    stage_close(&s);
}

Test(record,
     is_found_by_the_id_of_a_command_without_reading_it_all) /* S2 idx_process_audit_command */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}"), command = cb_uuid_derived(&id, "command/bookRisk/1");
    char sql[400];

    test_exec(bus.conn,
              "INSERT INTO commandbus.process_history (process_id, command_id, at, ordinal, kind, "
              "status, name) SELECT gen_random_uuid(), gen_random_uuid(), now(), 1, 'COMMAND', "
              "'COMPLETED', 'x' FROM generate_series(1, 5000);"
              "INSERT INTO commandbus.process_event (process_id, command_id, event) SELECT "
              "process_id, command_id, 'LATE_REPLY' FROM commandbus.process_history;"
              "INSERT INTO commandbus.process_attempt (process_id, command_id, at, ordinal, "
              "attempts, kind, status, name) SELECT process_id, command_id, now(), 1, 1, kind, "
              "status, name FROM commandbus.process_history;"
              "INSERT INTO commandbus.process (process_id, created_at, updated_at, completed_at, "
              "status, execution_model, domain, process_type, reply_queue, initial_state, state) "
              "SELECT process_id, now(), now(), now(), 'COMPLETED', 'PROCESS_STEP', 'payments', "
              "'Test', 'payments__replies', '{}', '{}' FROM commandbus.process_history "
              "WHERE name = 'x'; ANALYZE");
    snprintf(sql, sizeof sql,
             "EXPLAIN SELECT * FROM commandbus.process_audit WHERE command_id = '%s'",
             command.text);
    PGresult *plan = PQexec(bus.conn, sql);
    cr_assert_eq(PQresultStatus(plan), PGRES_TUPLES_OK, "%s", PQerrorMessage(bus.conn));
    for (int i = 0; i < PQntuples(plan); i++)
        cr_expect_null(strstr(PQgetvalue(plan, i, 0), "Seq Scan on process_"), "%s",
                       PQgetvalue(plan, i, 0));
    PQclear(plan);
    stage_close(&s);
}
