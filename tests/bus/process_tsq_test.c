/* Decisions about processes that wait for an operator. */
#include "process_rows.h"

#include <stdio.h>

#include "life.h"
#include "parallel.h"
#include "wait.h"

TestSuite(process_tsq, .init = bus_open, .fini = bus_close);

static bool retry(cb_db *db, const cb_uuid *id, cb_error *e)
{
    return cb_process_retry(db, id->text, "ann", "fixed", NULL, e);
}

static bool cancel(cb_db *db, const cb_uuid *id, cb_error *e)
{
    return cb_process_cancel(db, id->text, "ann", "called the bank", true, e);
}

static bool complete(cb_db *db, const cb_uuid *id, cb_error *e)
{
    return cb_process_complete(db, id->text, "ann", NULL, "{\"a\": null}", e);
}

typedef bool decision(cb_db *db, const cb_uuid *id, cb_error *e);
static decision *const decisions[] = { retry, cancel, complete };

static void expect_inbox(const cb_uuid *id, const char *expected)
{
    expect_value(bus.conn, expected,
                 "SELECT string_agg(concat_ws(' ', seq, kind, name, payload), '; ' ORDER BY seq) "
                 "FROM commandbus.process_inbox WHERE process_id = $1::uuid",
                 id->text);
}

/* STP.12 */
Test(process_tsq, retry_makes_it_pending_and_asks_a_worker)
{
    cb_error e = { 0 };
    cb_uuid id = process_park("RETRIES_EXHAUSTED");
    test_exec(bus.conn, "UPDATE commandbus.process SET inbox_seq = 4, phase = 'COMPENSATING', "
                        "deadline_at = '2100-01-01Z'");

    expect_ok(retry(bus.db, &id, &e), e);

    expect_process("PENDING COMPENSATING 5 t t f", id,
                   "status, phase, error_code, error_message, tsq_at, inbox_seq, "
                   "wake_at <= commandbus.now(), deadline_at = '2100-01-01Z', deadline_spent");
    expect_inbox(&id, "5 OPERATOR RETRY {\"reason\": \"fixed\", \"operator\": \"ann\", "
                      "\"error_code\": \"RETRIES_EXHAUSTED\", \"new_deadline\": false}");
    expect_value(bus.conn, "TSQ_RETRY ann t fixed RETRIES_EXHAUSTED",
                 "SELECT concat_ws(' ', event, operator, db_user = session_user, details ->> "
                 "'reason', details ->> 'error_code') FROM commandbus.process_event");
}

/* STP.12: both wait for a worker to act, as what they are */
Test(process_tsq, cancel_and_complete_leave_it_parked_until_a_worker_acts)
{
    cb_error e = { 0 };
    cb_uuid canceled = process_park("PERMANENT_FAILURE"), kept = process_park("E"),
            completed = process_park("PERMANENT_FAILURE");
    const cb_uuid *const all[] = { &canceled, &kept, &completed };

    expect_ok(cancel(bus.db, &canceled, &e), e);
    expect_ok(cb_process_cancel(bus.db, kept.text, "ann", "r", false, &e), e);
    expect_ok(complete(bus.db, &completed, &e), e);

    for (size_t i = 0; i < 3; i++)
        expect_process("WAITING_FOR_TSQ t t it broke 1", *(all[i]),
                       "status, tsq_at IS NOT NULL, wake_at <= commandbus.now(), "
                       "error_message, inbox_seq");
    expect_inbox(&canceled, "1 OPERATOR CANCEL {\"reason\": \"called the bank\", \"operator\": "
                            "\"ann\", \"error_code\": \"PERMANENT_FAILURE\", "
                            "\"run_compensations\": true}");
    expect_inbox(&kept, "1 OPERATOR CANCEL {\"reason\": \"r\", \"operator\": \"ann\", "
                        "\"error_code\": \"E\", \"run_compensations\": false}");
    expect_inbox(&completed, "1 OPERATOR COMPLETE {\"reason\": null, \"operator\": \"ann\", "
                             "\"overrides\": {\"a\": null}, \"error_code\": "
                             "\"PERMANENT_FAILURE\"}");
    expect_process_events("TSQ_CANCEL", canceled);
    expect_process_events("TSQ_COMPLETE_OVERRIDE", completed);
}

/* STP.12: what a run goes on with now, a reply or a response, may take it out of the TSQ and undo
 * it. A decision that was made before would be acted on afterwards. */
Test(process_tsq, nobody_decides_during_a_run)
{
    for (size_t i = 0; i < CB_COUNT(decisions); i++) {
        cb_error e = { 0 };
        cb_uuid id = process_park("COMMAND_IN_TSQ");
        test_exec(bus.conn, "UPDATE commandbus.process SET lease_owner = 'w', "
                            "lease_until = clock_timestamp() + interval '1 minute'");

        expect_error(CB_INVALID_OPERATION, decisions[i](bus.db, &id, &e), e);

        expect_process("WAITING_FOR_TSQ 0", id, "status, inbox_seq");
        expect_process_events("", id);
        test_exec(bus.conn, "UPDATE commandbus.process SET lease_until = clock_timestamp()");
        expect_ok(decisions[i](bus.db, &id, &e), e); /* whoever had it has lost it */
    }
}

/* STP.12: the deadline is spent or replaced */
Test(process_tsq, retry_sets_an_exceeded_deadline_aside_or_replaces_it)
{
    cb_error e = { 0 };
    cb_uuid spent = process_park("DEADLINE_EXCEEDED"), replaced = process_park("DEADLINE_EXCEEDED");
    test_exec(bus.conn, "UPDATE commandbus.process SET deadline_at = '2020-01-01Z'");

    expect_ok(retry(bus.db, &spent, &e), e);
    expect_ok(cb_process_retry(bus.db, replaced.text, "ann", NULL, "2100-01-01T00:00:00Z", &e), e);

    expect_process("t t", spent, "deadline_spent, deadline_at = '2020-01-01Z'");
    expect_process("f t", replaced, "deadline_spent, deadline_at = '2100-01-01Z'");
    expect_value(bus.conn, "true",
                 "SELECT payload ->> 'new_deadline' FROM commandbus.process_inbox "
                 "WHERE process_id = $1::uuid",
                 replaced.text);
}

/* A process that waits for a command which is in the TSQ itself. */
static cb_uuid park_with_command(const char *error_code, cb_uuid *command)
{
    cb_uuid id = process_park(error_code);

    *command = process_put_command(&id);
    cr_assert_eq(life_receive(), 1);
    life_settle(command, "PERMANENT");
    return id;
}

/* STP.12: COMMAND_IN_TSQ → also tsq_retry of that command */
Test(process_tsq, retry_sends_the_command_again_that_it_waits_for)
{
    static const char *const codes[] = { "COMMAND_IN_TSQ", "COMPENSATION_FAILED",
                                         "OUTCOME_UNKNOWN" };
    cb_error e = { 0 };
    cb_uuid command;

    for (size_t i = 0; i < 3; i++) {
        cb_uuid id = park_with_command(codes[i], &command);

        expect_ok(retry(bus.db, &id, &e), e);

        expect_command("PENDING", command, "status");
        expect_trail("SENT RECEIVED MOVED_TO_TSQ OPERATOR_RETRY", command);
        test_exec(bus.conn, "TRUNCATE pgmq.q_fx__commands");
    }
    cb_uuid id = park_with_command("WAIT_TIMEOUT", &command);
    expect_ok(retry(bus.db, &id, &e), e);
    expect_command("IN_TROUBLESHOOTING_QUEUE", command, "status");
}

/* STP.12: both also cancel the command in the TSQ */
Test(process_tsq, cancel_and_complete_cancel_the_command_that_it_waits_for)
{
    cb_error e = { 0 };
    cb_uuid command;

    for (size_t i = 1; i < 3; i++) {
        cb_uuid id = park_with_command("COMMAND_IN_TSQ", &command);

        expect_ok(decisions[i](bus.db, &id, &e), e);

        expect_command("CANCELED", command, "status");
        expect_number(bus.conn, 1,
                      "SELECT count(*) FROM commandbus.process_inbox WHERE kind = 'REPLY' "
                      "AND payload ->> 'command_id' = $1 AND name = 'CANCELED'",
                      command.text);
    }
}

/* A command that is elsewhere has its own outcome. */
Test(process_tsq, decisions_leave_a_command_alone_that_is_not_in_its_tsq)
{
    cb_error e = { 0 };

    for (size_t i = 0; i < 3; i++) {
        cb_uuid id = process_park("OUTCOME_UNKNOWN");
        cb_uuid command = process_put_command(&id);

        expect_ok(decisions[i](bus.db, &id, &e), e);

        expect_command("PENDING", command, "status");
        expect_trail("SENT", command);
    }
}

/* STP.12: only from WAITING_FOR_TSQ, one unconsumed request per process */
Test(process_tsq, decisions_about_what_is_not_parked_are_refused)
{
    cb_error e = { 0 };
    cb_uuid running = process_put(""), done = process_put("status = 'COMPLETED'"),
            unknown = cb_uuid_new(), asked = process_park("E");
    expect_ok(cancel(bus.db, &asked, &e), e);
    char *before = bus_contents();

    for (size_t i = 0; i < 3; i++) {
        expect_error(CB_INVALID_OPERATION, decisions[i](bus.db, &running, &e), e);
        expect_error(CB_INVALID_OPERATION, decisions[i](bus.db, &done, &e), e);
        expect_error(CB_INVALID_OPERATION, decisions[i](bus.db, &asked, &e), e);
        cr_assert(*e.hint);
        expect_error(CB_PROCESS_NOT_FOUND, decisions[i](bus.db, &unknown, &e), e);
    }

    expect_unchanged(before, bus_contents());
}

/* STP.12 */
Test(process_tsq, decisions_without_what_they_need_are_refused)
{
    cb_error e = { 0 };
    cb_uuid id = process_park("E");
    test_exec(bus.conn, "UPDATE commandbus.domain SET payload_limit = 30");
    char *before = bus_contents();

    expect_error(CB_INVALID_DATA, cb_process_retry(bus.db, id.text, " ", NULL, NULL, &e), e);
    expect_error(CB_INVALID_DATA, cb_process_cancel(bus.db, id.text, "", "r", true, &e), e);
    expect_error(CB_INVALID_DATA, cb_process_complete(bus.db, id.text, "", "r", NULL, &e), e);
    expect_error(CB_MISUSE, cb_process_retry(bus.db, id.text, NULL, NULL, NULL, &e), e);
    expect_error(CB_INVALID_DATA, cb_process_retry(bus.db, "x", "ann", NULL, NULL, &e), e);
    expect_error(CB_DATA, cb_process_retry(bus.db, id.text, "ann", NULL, "soon", &e), e);
    expect_error(CB_INVALID_DATA, cb_process_cancel(bus.db, id.text, "ann", NULL, true, &e), e);
    expect_error(CB_INVALID_DATA, cb_process_cancel(bus.db, id.text, "ann", "  ", true, &e), e);
    expect_error(CB_INVALID_DATA, cb_process_complete(bus.db, id.text, "ann", NULL, "[]", &e), e);
    expect_error(CB_PAYLOAD_TOO_LARGE,
                 cb_process_complete(bus.db, id.text, "ann", NULL,
                                     "{\"a\": \"longer than thirty bytes\"}", &e),
                 e);
    expect_sqlstate(bus.conn, "CB011",
                    "SELECT commandbus.process_complete(gen_random_uuid(), 'ann', NULL, '[]')");

    expect_unchanged(before, bus_contents());
}

/* DESIGN 2 */
Test(process_tsq, a_decision_wakes_a_sleeper)
{
    cb_error e = { 0 };
    cb_uuid id = process_park("E");
    PGconn *sleeper = test_pq_open(bus.conninfo);
    test_exec(sleeper, "LISTEN commandbus_payments__processes");
    test_exec(sleeper, "INSERT INTO commandbus.sleeper VALUES ('payments__processes', 's', "
                       "now() + interval '1 min')");

    expect_ok(retry(bus.db, &id, &e), e);

    char *channel = wait_for_notify(sleeper);
    cr_assert_str_eq(channel, "commandbus_payments__processes");
    free(channel);
    PQfinish(sleeper);
}

typedef struct {
    cb_db *db[2];
    cb_uuid id;
    bool fine[2];
    cb_error e[2];
} double_click;

static void click_process(size_t i, void *arg)
{
    double_click *c = arg;

    c->fine[i] = decisions[i](c->db[i], &c->id, &c->e[i]);
}

/* STP.12: whoever was second is told so, and the command moves once */
Test(process_tsq, two_decisions_at_the_same_moment_are_one)
{
    double_click c;
    cb_uuid command;

    for (int i = 0; i < 2; i++)
        c.db[i] = test_bus_open(bus.conninfo);
    for (int round = 0; round < 15; round++) {
        c.id = park_with_command("COMMAND_IN_TSQ", &command);

        parallel_run(2, click_process, &c);

        cr_assert(c.fine[0] != c.fine[1], "%d and %d: %s", c.fine[0], c.fine[1], c.e[0].message);
        cr_assert_eq(c.e[c.fine[0] ? 1 : 0].code, CB_INVALID_OPERATION, "%s",
                     c.e[c.fine[0] ? 1 : 0].message);
        expect_number(bus.conn, 1,
                      "SELECT count(*) FROM commandbus.audit WHERE command_id = $1::uuid "
                      "AND event_type LIKE 'OPERATOR%'",
                      command.text);
        expect_command(c.fine[0] ? "PENDING" : "CANCELED", command, "status");
        test_exec(bus.conn, "TRUNCATE pgmq.q_fx__commands");
    }
    for (int i = 0; i < 2; i++)
        cb_db_free(c.db[i]);
}
