/* Processes as people, metrics and doctor see them. */
#include "process_rows.h"

#include <stdio.h>

#include "life.h"
#include "login.h"

TestSuite(process_views, .init = bus_open, .fini = bus_close);

#define RECORD(ordinal, kind, status, name)                                                      \
    "{\"ordinal\":" #ordinal ",\"kind\":\"" kind "\",\"status\":\"" status "\",\"name\":\"" name \
    "\""

/* A process that has had one of each. */
static cb_uuid put_history(void)
{
    cb_uuid id = process_put("deadline_at = '2100-01-01Z', state = '{\"amount\": \"1.00\"}'");

    /* clang-format off */
    static const char settlement[] =
        "\"status\":\"WAITING_FOR_RETRY\",\"retry_at_ms\":4102444800000,\"wake\":\"TIMERS\","
        "\"seen\":0,\"error_code\":\"E\",\"error_message\":\"m\",\"records\":["
        RECORD( 1, "STEP", "COMPLETED", "validate") ",\"attempts\":1,\"patch\":{\"a\":1},"
        "\"took_ms\":2.5,\"finished\":true},"
        RECORD( 2, "COMMAND", "COMPLETED", "bookFx") ",\"attempts\":1,\"domain\":\"fx\","
        "\"command_type\":\"BookFx\",\"command_id\":\"11111111-2222-4333-8444-555555555551\","
        "\"result\":{\"rate\":\"1.1\"},\"finished\":true},"
        RECORD( 3, "WAIT", "WAITING", "awaitL1") ",\"timeout_ms\":7200000},"
        RECORD(4, "RESPONSE", "COMPLETED", "L1") ",\"during\":3,\"result\":{\"ok\":true}},"
        RECORD(5, "SIDE_EFFECT", "COMPLETED", "today") ",\"result\":\"2026-11-16\"},"
        RECORD(6, "COMPENSATION", "COMPLETED", "bookFx") ",\"finished\":true},"
        RECORD(7, "COMPENSATION", "FAILED", "validate") ",\"finished\":true},"
        RECORD(8, "OPERATOR", "COMPLETED", "RETRY") ",\"result\":{\"operator\":\"ann\"}},"
        RECORD(9, "STEP", "RETRY", "submit") ",\"attempts\":2,\"error_code\":\"E\"}],"
        "\"events\":[{\"event\":\"WAIT_TIMEOUT\",\"name\":\"awaitL1\"}]";
    /* clang-format on */
    expect_verdict(CB_SETTLED, process_settle(&id, 0, settlement));
    return id;
}

/* CONTRACT: process_audit */
Test(process_views, process_audit_shows_everything_that_happened)
{
    cb_uuid id = put_history();

    expect_value(bus.conn,
                 "PROCESS_CREATED; STEP_COMPLETED STEP COMPLETED 1; COMMAND_COMPLETED COMMAND "
                 "COMPLETED 1; WAIT_WAITING WAIT STARTED 0; ASYNC_RESPONSE ASYNC_RESPONSE "
                 "COMPLETED 0; SIDE_EFFECT_COMPLETED SIDE_EFFECT COMPLETED 0; "
                 "COMPENSATION_SUCCESS COMPENSATION COMPLETED 0; COMPENSATION_FAILED COMPENSATION "
                 "FAILED 0; OPERATOR_RETRY OPERATOR COMPLETED 0; STEP_RETRY STEP WAITING_RETRY 2; "
                 "WAIT_TIMEOUT",
                 "SELECT string_agg(concat_ws(' ', event, entry_type, step_status, "
                 "attempt_number), '; ' ORDER BY at, ordinal) FROM commandbus.process_audit "
                 "WHERE process_id = $1::uuid AND domain = 'payments' AND process_type = 'Test'",
                 id.text);
    expect_value(bus.conn,
                 "bookFx 11111111-2222-4333-8444-555555555551 BookFx SUCCESS "
                 "{\"rate\": \"1.1\"} t t",
                 "SELECT concat_ws(' ', step_name, command_id, command_type, command_data, "
                 "reply_outcome, reply_data, sent_at = at, received_at >= at) "
                 "FROM commandbus.process_audit WHERE entry_type = 'COMMAND'");
    expect_value(bus.conn, "L1 {\"ok\": true} t",
                 "SELECT concat_ws(' ', step_name, reply_outcome, reply_data, received_at = at) "
                 "FROM commandbus.process_audit WHERE entry_type = 'ASYNC_RESPONSE'");
    expect_value(bus.conn, "ann w w awaitL1",
                 "SELECT string_agg(concat_ws(' ', operator, worker, CASE WHEN worker IS NOT NULL "
                 "AND event = 'WAIT_TIMEOUT' THEN step_name END), ' ' ORDER BY at, ordinal) "
                 "FROM commandbus.process_audit "
                 "WHERE operator IS NOT NULL OR event = 'WAIT_TIMEOUT'");
}

/* The outcome is the command's own, as long as it is there. */
Test(process_views, process_audit_takes_the_outcome_from_the_command)
{
    cb_uuid id = process_put("");
    cb_uuid command = process_put_command(&id);

    expect_value(bus.conn, "",
                 "SELECT concat_ws(' ', reply_outcome, received_at) FROM commandbus.process_audit "
                 "WHERE command_id = $1::uuid",
                 command.text);
    test_exec(bus.conn, "UPDATE commandbus.command_metadata SET status = 'CANCELED';"
                        "UPDATE commandbus.process_history SET status = 'ABANDONED', "
                        "finished_at = now()");
    expect_value(bus.conn, "CANCELED",
                 "SELECT reply_outcome FROM commandbus.process_audit WHERE command_id = $1::uuid",
                 command.text);
}

/* STP.2: S0's state document */
Test(process_views, process_state_document_is_the_state_with_its_histories)
{
    cb_uuid id = put_history();

    expect_value(bus.conn,
                 "1.00 E m 2100-01-01T00:00:00.000000Z validate:COMPLETED:1:{\"a\": 1} "
                 "bookFx:COMPLETED:1:{\"rate\": \"1.1\"} submit:WAITING_RETRY:2:",
                 "SELECT concat_ws(' ', document ->> 'amount', document ->> 'errorCode', "
                 "document ->> 'errorMessage', document ->> 'processDeadline', "
                 "(SELECT string_agg(concat(s ->> 'name', ':', s ->> 'status', ':', s ->> "
                 "'attemptCount', ':', s ->> 'responseJson'), ' ') "
                 "FROM jsonb_array_elements(document -> 'stepHistory') s)) "
                 "FROM commandbus.process_state_document WHERE process_id = $1::uuid",
                 id.text);
    expect_value(bus.conn, "2100-01-01T00:00:00.000000Z",
                 "SELECT document #>> '{stepHistory,2,nextRetryAt}' "
                 "FROM commandbus.process_state_document");
    expect_value(bus.conn, "awaitL1 false PT7200S t today \"2026-11-16\"",
                 "SELECT concat_ws(' ', w ->> 'name', w ->> 'satisfied', w ->> 'timeout', "
                 "w ->> 'timeoutAt' > w ->> 'recordedAt', s ->> 'name', s ->> 'valueJson') "
                 "FROM commandbus.process_state_document, "
                 "jsonb_array_elements(document -> 'waitHistory') w, "
                 "jsonb_array_elements(document -> 'sideEffects') s");
}

Test(process_views, process_state_document_of_a_new_process_has_empty_histories) /* STP.2 */
{
    cb_uuid id = process_put("");

    expect_value(bus.conn, "[] [] []",
                 "SELECT concat_ws(' ', document -> 'stepHistory', document -> 'waitHistory', "
                 "document -> 'sideEffects') FROM commandbus.process_state_document "
                 "WHERE process_id = $1::uuid",
                 id.text);
}

/* BUS.14: monitoring never sees payloads */
Test(process_views, are_read_by_operators_and_without_payloads_by_monitoring)
{
    put_history();
    login monitor = login_open("commandbus_monitor"), operator= login_open("commandbus_operator");

    expect_number(monitor.conn, 11, "SELECT count(event) FROM commandbus.process_audit");
    expect_sqlstate(monitor.conn, "42501", "SELECT reply_data FROM commandbus.process_audit");
    expect_sqlstate(monitor.conn, "42501",
                    "SELECT document FROM commandbus.process_state_document");
    expect_number(operator.conn, 1,
                  "SELECT count(document) FROM commandbus.process_state_document");
    expect_number(monitor.conn, 1, "SELECT count(*) FROM commandbus.process_figures()");

    login_close(&monitor);
    login_close(&operator);
}

/* STP.16 */
Test(process_views, process_figures_count_what_has_not_ended)
{
    process_put("");
    process_put(
        "lease_owner = NULL, lease_until = NULL, wake_at = commandbus.now() - interval '90 s'");
    process_put("status = 'COMPLETED', completed_at = now()");
    process_park("WAIT_TIMEOUT");
    process_park("WAIT_TIMEOUT");

    expect_value(bus.conn, "Test EXECUTING 2 90; Test WAITING_FOR_TSQ WAIT_TIMEOUT 2 0",
                 "SELECT string_agg(concat_ws(' ', process_type, status, error_code, processes, "
                 "floor(oldest_due_seconds)), '; ') FROM commandbus.process_figures()");
}

/* S4, PM.6: every process that waits for a reply, whatever its status, and no other */
Test(process_views, process_figures_say_how_long_replies_and_responses_are_awaited)
{
    process_put("status = 'WAITING_FOR_ASYNC', current_wait = 'bookFx', awaits_reply = true, "
                "updated_at = now() - interval '2 h'");
    process_put("status = 'WAITING_FOR_ASYNC', current_wait = 'bookFx', awaits_reply = true");
    process_put("status = 'WAITING_FOR_ASYNC', current_wait = 'awaitL1', "
                "updated_at = now() - interval '3 h'");

    expect_value(bus.conn, "awaitL1 1 3 0; bookFx 2 2 2",
                 "SELECT string_agg(concat_ws(' ', current_wait, processes, "
                 "floor(oldest_seconds / 3600), floor(oldest_reply_seconds / 3600)), '; ') "
                 "FROM commandbus.process_figures()");
    expect_value(bus.conn, "1",
                 "SELECT processes FROM commandbus.process_problems() "
                 "WHERE problem = 'LONG_REPLY'");
}

/* The settle that suspends a process says what it waits for. */
Test(process_views, a_settle_says_whether_the_wait_is_for_a_reply)
{
    cb_uuid id = process_put("");

    process_settle(&id, 0,
                   "\"checkpoint\":true,\"status\":\"WAITING_FOR_ASYNC\",\"wait\":\"bookFx\","
                   "\"awaits_reply\":true");
    expect_number(bus.conn, 1, "SELECT count(*) FROM commandbus.process WHERE awaits_reply");
    process_settle(&id, 1, "\"checkpoint\":true,\"status\":\"EXECUTING\"");
    expect_number(bus.conn, 0, "SELECT count(*) FROM commandbus.process WHERE awaits_reply");
}

static void expect_doctor(const char *check, const char *status, const char *detail)
{
    cb_rows *rows = NULL;
    cb_error e = { 0 };
    size_t found = 0;

    expect_ok(cb_doctor(bus.db, &rows, &e), e);
    for (size_t row = 0; row < cb_rows_count(rows); row++) {
        const char *text = cb_rows_get(rows, row, "detail");
        if (strcmp(cb_rows_get(rows, row, "check_name"), check) != 0 || !strstr(text, detail))
            continue;
        found++;
        cr_assert_str_eq(cb_rows_get(rows, row, "status"), status, "%s", text);
        cr_assert(strcmp(status, "ok") == 0 || cb_rows_get(rows, row, "advice"));
    }
    cr_assert_eq(found, 1, "%zu lines about %s with '%s'", found, check, detail);
    cb_rows_free(rows);
}

static void register_type(const char *type)
{
    char sql[256];

    snprintf(sql, sizeof sql,
             "INSERT INTO commandbus.process_type (process_type, domain, version, reply_queue) "
             "VALUES ('%s', 'payments', 2, 'payments__replies')",
             type);
    test_exec(bus.conn, sql);
}

Test(process_views, doctor_has_nothing_to_say_about_healthy_processes) /* STP.13 */
{
    static const char *const checks[] = { "parked processes",  "due processes",  "process leases",
                                          "unknown responses", "late successes", "process types",
                                          "process versions",  "awaited replies" };
    register_type("Test");
    process_put("version = 2");

    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        expect_doctor(checks[i], "ok", "none");
}

/* STP.11, STP.13, STP.16, PM.6, DESIGN 4 */
Test(process_views, doctor_names_what_is_wrong_with_processes)
{
    register_type("Test");
    process_park("WAIT_TIMEOUT");
    process_park("WAIT_TIMEOUT");
    process_put(
        "lease_owner = NULL, lease_until = NULL, wake_at = commandbus.now() - interval '2 min'");
    process_put("lease_owner = 'dead', lease_until = now() - interval '2 min'");
    process_put("process_type = 'Unheard'");
    process_put("version = 3");
    process_put("status = 'WAITING_FOR_REPLY', updated_at = now() - interval '2 h'");
    cb_uuid answered = process_put(""),
            late = process_put("status = 'FAILED', completed_at = now()");
    char sql[512];
    snprintf(sql, sizeof sql,
             "INSERT INTO commandbus.process_inbox (process_id, seq, at, kind, name, payload) "
             "VALUES ('%s', 1, now() - interval '2 h', 'RESPONSE', 'L9', '{}');"
             "INSERT INTO commandbus.process_event (process_id, event, step_name, details) "
             "VALUES ('%s', 'LATE_REPLY', 'bookFx', '{\"outcome\": \"SUCCESS\"}'), "
             "('%s', 'LATE_REPLY', 'bookRisk', '{\"outcome\": \"FAILED\"}')",
             answered.text, late.text, late.text);
    test_exec(bus.conn, sql);

    expect_doctor("parked processes", "warn", "2 Test since");
    expect_doctor("parked processes", "warn", "as WAIT_TIMEOUT");
    expect_doctor("due processes", "warn", "1 Test of domain payments are due for 1");
    expect_doctor("process leases", "warn", "1 Test held by dead");
    expect_doctor("unknown responses", "warn", "1 Test got a response L9");
    expect_doctor("late successes", "warn", "bookFx");
    expect_number(bus.conn, 1,
                  "SELECT count(*) FROM commandbus.process_problems() "
                  "WHERE problem = 'LATE_SUCCESS'");
    expect_doctor("process types", "fail", "1 Unheard of domain payments");
    expect_doctor("process versions", "warn", "version 3");
    expect_doctor("awaited replies", "warn", "1 Test of domain payments");
}

/* STP.13: by what live instances say in their heartbeats */
Test(process_views, doctor_names_types_that_no_live_instance_runs)
{
    register_type("Test");
    register_type("Other");
    process_put("version = 2");
    process_put("process_type = 'Other'");
    test_exec(bus.conn, "SELECT commandbus.heartbeat('a', '{\"processes\": {\"Test\": 1}}')");

    expect_doctor("process types", "warn", "1 Other of domain payments");
    expect_doctor("process versions", "warn", "version 2");
    test_exec(bus.conn, "SELECT commandbus.heartbeat('b', '{\"processes\": {\"Test\": 2, "
                        "\"Other\": 1}}')");
    expect_doctor("process types", "ok", "none");
    expect_doctor("process versions", "ok", "none");
}
