/* The troubleshooting queue: what an operator decides, happens once. */
#include "expect.h"
#include "fixture.h"
#include "life.h"
#include "parallel.h"

TestSuite(tsq, .init = bus_open, .fini = bus_close);

#define REPLIED "reply_to => 'payments__replies'"

typedef bool decision(cb_db *db, const cb_tsq_action *action, cb_error *e);

static cb_tsq_action by_ann(const cb_uuid *id)
{
    return (cb_tsq_action){
        .domain = "fx", .command_id = id->text, .operator_name = "ann", .reason = "called the bank"
    };
}

/* outcome, final and what is particular to it, oldest first */
static void expect_replies(const cb_uuid *id, const char *expected)
{
    expect_value(bus.conn, expected,
                 "SELECT string_agg(message - '{command_id,correlation_id}'::text[] #>> "
                 "'{}', ' ' ORDER BY msg_id) FROM pgmq.q_payments__replies "
                 "WHERE message ->> 'command_id' = $1",
                 id->text);
}

static void expect_last_audit(const cb_uuid *id, const char *event)
{
    expect_value(bus.conn, "t",
                 "SELECT (event_type, operator, db_user, domain, lease_no, details) = ($2, 'ann', "
                 "session_user::text, 'fx', 1, "
                 "'{\"reason\": \"called the bank\", \"error_code\": \"E_TEST\"}'::jsonb) "
                 "FROM commandbus.audit WHERE command_id = $1::uuid ORDER BY at DESC, id DESC "
                 "LIMIT 1",
                 id->text, event);
}

#define NOT_FINAL                                                              \
    "{\"final\": false, \"outcome\": \"FAILED\", \"error_code\": \"E_TEST\", " \
    "\"error_type\": \"PERMANENT\", \"error_message\": \"it did not work\"}"

/* BUS.6 */
Test(tsq, retry_makes_it_pending_again_with_a_new_message_and_no_reply)
{
    cb_error e = { 0 };
    cb_uuid id = life_into_tsq(REPLIED ", data => '{\"amount\": \"1\"}', headers => '{\"t\": 1}'");
    const cb_tsq_action action = by_ann(&id);
    char *old_message = life_column(&id, "msg_id");

    expect_ok(cb_tsq_retry(bus.db, &action, &e), e);

    expect_value(bus.conn, "t",
                 "SELECT (status, attempts, lease_no) = ('PENDING', 0, 1) AND tsq_at IS NULL AND "
                 "error_type IS NULL AND error_code IS NULL AND error_message IS NULL AND "
                 "completed_at IS NULL AND lease_owner IS NULL AND msg_id > $2::bigint "
                 "FROM commandbus.command_metadata WHERE command_id = $1::uuid",
                 id.text, old_message);
    expect_value(bus.conn, "t",
                 "SELECT q.vt <= now() AND q.read_ct = 0 AND q.headers = c.headers AND q.message = "
                 "jsonb_build_object('domain', 'fx', 'command_type', 'BookFx', 'command_id', "
                 "c.command_id, 'correlation_id', c.correlation_id, 'data', c.data, 'reply_to', "
                 "c.reply_to) FROM pgmq.q_fx__commands q JOIN commandbus.command_metadata c "
                 "USING (msg_id)");
    expect_number(bus.conn, 1, "SELECT count(*) FROM pgmq.q_fx__commands");
    expect_replies(&id, NOT_FINAL);
    expect_trail("SENT RECEIVED MOVED_TO_TSQ OPERATOR_RETRY", id);
    expect_last_audit(&id, "OPERATOR_RETRY");
    free(old_message);
}

/* BUS.6, DESIGN: the fence is never reset, the budget is */
Test(tsq, retry_gives_all_attempts_again_under_a_new_fence)
{
    cb_error e = { 0 };
    cb_uuid id = life_into_tsq("max_attempts => 2");
    const cb_tsq_action action = by_ann(&id);
    expect_ok(cb_tsq_retry(bus.db, &action, &e), e);

    cr_assert_eq(life_receive(), 1);
    life_settle(&id, "TRANSIENT");
    expect_command("PENDING", id, "status");
    cr_assert_eq(life_receive(), 1);
    life_settle(&id, "SUCCESS");

    expect_command("COMPLETED", id, "status");
    expect_command("3", id, "lease_no");
}

/* BUS.6 */
Test(tsq, cancel_ends_it_with_a_final_reply_that_gives_the_reason)
{
    cb_error e = { 0 };
    cb_uuid id = life_into_tsq(REPLIED);
    const cb_tsq_action action = by_ann(&id);

    expect_ok(cb_tsq_cancel(bus.db, &action, &e), e);

    expect_value(bus.conn, "t",
                 "SELECT status = 'CANCELED' AND tsq_at IS NULL AND completed_at IS NOT NULL AND "
                 "completed_at = updated_at AND result IS NULL AND error_code = 'E_TEST' "
                 "FROM commandbus.command_metadata");
    expect_number(bus.conn, 0, "SELECT count(*) FROM pgmq.q_fx__commands");
    expect_replies(&id, NOT_FINAL " {\"final\": true, \"reason\": \"called the bank\", "
                                  "\"outcome\": \"CANCELED\"}");
    expect_trail("SENT RECEIVED MOVED_TO_TSQ OPERATOR_CANCEL", id);
    expect_last_audit(&id, "OPERATOR_CANCEL");
}

/* BUS.6 */
Test(tsq, complete_ends_it_with_a_final_success_and_the_operators_result)
{
    cb_error e = { 0 };
    cb_uuid id = life_into_tsq(REPLIED);
    cb_tsq_action action = by_ann(&id);
    action.result = "{\"contractId\": \"C-1\"}";

    expect_ok(cb_tsq_complete(bus.db, &action, &e), e);

    expect_value(bus.conn, "t",
                 "SELECT status = 'COMPLETED' AND tsq_at IS NULL AND completed_at IS NOT NULL AND "
                 "result = '{\"contractId\": \"C-1\"}' AND error_type IS NULL AND error_code IS "
                 "NULL AND error_message IS NULL FROM commandbus.command_metadata");
    expect_number(bus.conn, 0, "SELECT count(*) FROM pgmq.q_fx__commands");
    expect_replies(&id, NOT_FINAL " {\"final\": true, \"result\": {\"contractId\": \"C-1\"}, "
                                  "\"outcome\": \"SUCCESS\"}");
    expect_trail("SENT RECEIVED MOVED_TO_TSQ OPERATOR_COMPLETE", id);
    expect_last_audit(&id, "OPERATOR_COMPLETE");
}

/* BUS.6: reason and result are optional there */
Test(tsq, complete_needs_neither_reason_nor_result_and_retry_no_reason)
{
    cb_error e = { 0 };
    cb_uuid first = life_into_tsq(REPLIED), second = life_into_tsq("");

    expect_ok(
        cb_tsq_complete(
            bus.db,
            &(cb_tsq_action){ .domain = "fx", .command_id = first.text, .operator_name = "ann" },
            &e),
        e);
    expect_ok(cb_tsq_retry(bus.db,
                           &(cb_tsq_action){
                               .domain = "fx", .command_id = second.text, .operator_name = "ann" },
                           &e),
              e);

    expect_replies(&first,
                   NOT_FINAL " {\"final\": true, \"result\": null, \"outcome\": \"SUCCESS\"}");
    expect_command("PENDING", second, "status");
}

/* BUS.6: a life with two visits keeps the record of both; one final reply in the end */
Test(tsq, history_is_never_overwritten_and_the_final_reply_comes_once)
{
    cb_error e = { 0 };
    cb_uuid id = life_into_tsq(REPLIED ", max_attempts => 1");
    const cb_tsq_action action = by_ann(&id);

    expect_ok(cb_tsq_retry(bus.db, &action, &e), e);
    cr_assert_eq(life_receive(), 1);
    life_settle(&id, "TRANSIENT");
    expect_ok(cb_tsq_retry(bus.db, &action, &e), e);
    cr_assert_eq(life_receive(), 1);
    life_settle(&id, "SUCCESS");

    expect_trail("SENT RECEIVED MOVED_TO_TSQ OPERATOR_RETRY RECEIVED MOVED_TO_TSQ "
                 "OPERATOR_RETRY RECEIVED COMPLETED",
                 id);
    expect_value(bus.conn, "false false true",
                 "SELECT string_agg(message ->> 'final', ' ' ORDER BY msg_id) "
                 "FROM pgmq.q_payments__replies");
    expect_number(bus.conn, 2,
                  "SELECT count(*) FROM commandbus.audit WHERE event_type = 'OPERATOR_RETRY' "
                  "AND details ->> 'error_code' = 'E_TEST'");
    expect_number(bus.conn, 2, "SELECT count(*) FROM pgmq.a_fx__commands");
}

static decision *const decisions[] = { cb_tsq_retry, cb_tsq_cancel, cb_tsq_complete };

/* BUS.6 */
Test(tsq, decisions_about_a_command_that_is_not_there_are_refused)
{
    cb_error e = { 0 };
    cb_uuid waiting = life_send("delay_seconds => 60"), done = life_run("", "SUCCESS"),
            failed = life_run("", "BUSINESS_RULE"), stuck = life_into_tsq(""),
            running = life_send(""), unknown = cb_uuid_new();
    const cb_uuid *const elsewhere[] = { &waiting, &done, &failed, &running };
    cr_assert_eq(life_receive(), 1);
    char *before = bus_contents();

    for (size_t d = 0; d < 3; d++) {
        for (size_t i = 0; i < 4; i++) {
            const cb_tsq_action action = by_ann(elsewhere[i]);
            expect_error(CB_INVALID_OPERATION, decisions[d](bus.db, &action, &e), e);
            cr_assert(*e.hint);
        }
        cb_tsq_action action = by_ann(&unknown);
        expect_error(CB_COMMAND_NOT_FOUND, decisions[d](bus.db, &action, &e), e);
        action = by_ann(&stuck);
        action.domain = "risk";
        expect_error(CB_COMMAND_NOT_FOUND, decisions[d](bus.db, &action, &e), e);
    }

    expect_unchanged(before, bus_contents());
}

/* BUS.6 */
Test(tsq, decisions_without_what_they_need_are_refused)
{
    static const char *const empty[] = { NULL, "", "   " };
    cb_error e = { 0 };
    cb_uuid id = life_into_tsq("");
    test_exec(bus.conn, "UPDATE commandbus.domain SET payload_limit = 30");
    char *before = bus_contents();

    for (size_t d = 0; d < 3; d++) {
        cb_tsq_action action = by_ann(&id);
        action.operator_name = "";
        expect_error(CB_INVALID_DATA, decisions[d](bus.db, &action, &e), e);
        action.operator_name = NULL;
        cr_assert_not(decisions[d](bus.db, &action, &e));
        action = by_ann(&id);
        action.command_id = "not an id";
        expect_error(CB_INVALID_DATA, decisions[d](bus.db, &action, &e), e);
    }
    for (size_t i = 0; i < 3; i++) {
        cb_tsq_action action = by_ann(&id);
        action.reason = empty[i];
        expect_error(CB_INVALID_DATA, cb_tsq_cancel(bus.db, &action, &e), e);
    }
    cb_tsq_action action = by_ann(&id);
    action.result = "{\"a\": \"\\u0000\"}";
    expect_error(CB_INVALID_DATA, cb_tsq_complete(bus.db, &action, &e), e);
    action.result = "{\"contractId\": \"longer than thirty bytes\"}";
    expect_error(CB_PAYLOAD_TOO_LARGE, cb_tsq_complete(bus.db, &action, &e), e);
    expect_sqlstate(bus.conn, "CB011",
                    "SELECT commandbus.tsq_retry('fx', gen_random_uuid(), NULL)");

    expect_unchanged(before, bus_contents());
}

typedef struct {
    cb_db *db[2];
    decision *decide[2];
    cb_uuid id;
    bool fine[2];
    cb_error e[2];
} double_click;

static void click(size_t i, void *arg)
{
    double_click *c = arg;
    const cb_tsq_action action = by_ann(&c->id);

    c->fine[i] = c->decide[i](c->db[i], &action, &c->e[i]);
}

/* BUS.6: whoever was second is told so, and only the first one's decision is on record */
static void expect_one_of_two(decision *first, decision *second, int rounds)
{
    double_click c = { .decide = { first, second } };

    for (int i = 0; i < 2; i++)
        c.db[i] = test_bus_open(bus.conninfo);
    for (int round = 0; round < rounds; round++) {
        c.id = life_into_tsq(REPLIED);

        parallel_run(2, click, &c);

        cr_assert(c.fine[0] != c.fine[1], "%d and %d", c.fine[0], c.fine[1]);
        cr_assert_eq(c.e[c.fine[0] ? 1 : 0].code, CB_INVALID_OPERATION);
        expect_number(bus.conn, 1,
                      "SELECT count(*) FROM commandbus.audit WHERE command_id = $1::uuid "
                      "AND event_type LIKE 'OPERATOR%'",
                      c.id.text);
        expect_value(bus.conn, "t",
                     "SELECT (SELECT count(*) FROM pgmq.q_fx__commands) = CASE status "
                     "WHEN 'PENDING' THEN 1 ELSE 0 END AND (SELECT count(*) FROM "
                     "pgmq.q_payments__replies WHERE (message ->> 'final')::boolean) = CASE status "
                     "WHEN 'PENDING' THEN 0 ELSE 1 END FROM commandbus.command_metadata "
                     "WHERE command_id = $1::uuid",
                     c.id.text);
        test_exec(bus.conn, "TRUNCATE pgmq.q_fx__commands, pgmq.q_payments__replies");
    }
    for (int i = 0; i < 2; i++)
        cb_db_free(c.db[i]);
}

/* BUS.6 */
Test(tsq, a_double_retry_at_the_same_moment_acts_once)
{
    expect_one_of_two(cb_tsq_retry, cb_tsq_retry, 25);
}

/* BUS.6 */
Test(tsq, two_different_decisions_at_the_same_moment_are_one)
{
    expect_one_of_two(cb_tsq_retry, cb_tsq_cancel, 10);
    expect_one_of_two(cb_tsq_complete, cb_tsq_cancel, 10);
    expect_one_of_two(cb_tsq_complete, cb_tsq_complete, 10);
}
