/* Each role can do its job and nothing else, as real logins. */
#include "expect.h"
#include "fixture.h"
#include "life.h"
#include "login.h"

#include <stdio.h>

TestSuite(role, .init = bus_open, .fini = bus_close);

static const cb_send book = { .domain = "fx", .command_type = "BookFx" };

/* None of these statements is allowed, NULL ends them. */
static void expect_denied(login *l, const char *const *statements)
{
    for (size_t i = 0; statements[i]; i++)
        expect_sqlstate(l->conn, "42501", statements[i]);
}

/* What only the owner may do, each as a statement. */
static const char *const nobodys[] = {
    "INSERT INTO commandbus.audit (domain, event_type) VALUES ('fx', 'SENT')",
    "UPDATE commandbus.audit SET event_type = 'SENT'",
    "DELETE FROM commandbus.audit",
    "TRUNCATE commandbus.audit",
    "UPDATE commandbus.command_metadata SET status = 'COMPLETED'",
    "DELETE FROM commandbus.command_metadata",
    "UPDATE commandbus.domain SET payload_limit = 1",
    "UPDATE commandbus.clock SET moved_by = '1 hour'",
    "INSERT INTO commandbus.schema_version VALUES ('commandbus', 999, 999, 'x')",
    "SELECT commandbus.create_queue('mine')",
    "SELECT commandbus.enqueue('fx__replies', '{}')",
    "SELECT commandbus.close_batch(gen_random_uuid())",
    "CREATE TABLE commandbus.mine (id integer)",
    "CREATE FUNCTION commandbus.mine() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
    "SELECT pgmq.send('fx__commands', '{}')",
    "SELECT pgmq.read('fx__commands', 30, 1)",
    "SELECT pgmq.purge_queue('fx__commands')",
    "SELECT pgmq.drop_queue('fx__commands')",
    "SELECT pgmq.create('mine')",
    "SELECT pgmq.archive('fx__commands', 1)",
    "SET ROLE commandbus_owner",
    NULL,
};

/* BUS.14 */
Test(role, sender_sends_and_does_nothing_else)
{
    static const char *const denied[] = {
        "SELECT commandbus.register_domain('mine')",
        "SELECT commandbus.receive('fx', 'w', 1)",
        "SELECT commandbus.settle('fx', 'w', '{}', '{}', '{}')",
        "SELECT commandbus.close_batches()",
        "SELECT commandbus.purge('0 s')",
        "SELECT commandbus.tsq_retry('fx', gen_random_uuid(), 'ann')",
        "SELECT commandbus.tsq_cancel('fx', gen_random_uuid(), 'ann', 'x')",
        "SELECT domain FROM commandbus.command_metadata",
        "SELECT domain FROM commandbus.audit",
        "SELECT domain FROM commandbus.domain",
        "SELECT * FROM commandbus.batch_status",
        "SELECT msg_id FROM pgmq.q_fx__commands",
        NULL,
    };
    login l = login_open("commandbus_sender");
    cb_error e = { 0 };

    expect_ok(cb_db_check_schema(l.db, &e), e);
    expect_ok(cb_send_command(l.db, &book, NULL, &e), e);
    expect_ok(cb_send_many(l.db, &book, 1, NULL, NULL, NULL, &e), e);
    expect_ok(cb_batch_create(l.db, &(cb_batch_options){ .domain = "fx" }, &book, 1, NULL, &e), e);
    test_exec(l.conn, "SELECT commandbus.now()");

    expect_denied(&l, denied);
    expect_denied(&l, nobodys);
    expect_value(bus.conn, l.name,
                 "SELECT string_agg(DISTINCT db_user, ' ') FROM commandbus.audit");
    expect_number(bus.conn, 3, "SELECT count(*) FROM commandbus.command_metadata");
    login_close(&l);
}

/* BUS.14 */
Test(role, worker_receives_settles_and_keeps_house)
{
    static const char *const denied[] = {
        "SELECT commandbus.tsq_retry('fx', gen_random_uuid(), 'ann')",
        "SELECT commandbus.tsq_cancel('fx', gen_random_uuid(), 'ann', 'x')",
        "SELECT commandbus.tsq_complete('fx', gen_random_uuid(), 'ann')",
        "SELECT domain FROM commandbus.command_metadata",
        "SELECT domain FROM commandbus.audit",
        "SELECT worker FROM commandbus.worker",
        "SELECT msg_id FROM pgmq.q_fx__commands",
        NULL,
    };
    static const char *const queues[] = { "fx__commands" };
    login l = login_open("commandbus_worker");
    OWNED(cb_receiver) receiver = NULL;
    OWNED(cb_claim) claim = NULL;
    cb_purge_counts purged;
    cb_error e = { 0 };

    expect_ok(cb_db_check_schema(l.db, &e), e);
    expect_ok(cb_domain_register(l.db, "ledger", "ledger_answers", &e), e);
    expect_ok(cb_send_command(l.db, &book, NULL, &e), e);
    expect_ok(cb_receiver_open("fx", &(cb_receive_options){ .worker = "w" }, &receiver, &e), e);
    expect_ok(cb_receive(l.db, receiver, 10, &claim, &e), e);
    cr_assert_eq(cb_claim_count(claim), 1);
    const cb_command *c = cb_claim_at(claim, 0);
    cb_lease lease = { .domain = "fx", .command_id = c->command_id, .lease_no = c->lease_no };
    expect_ok(cb_lease_extend(l.db, "w", &lease, 1, 30, &e), e);
    expect_ok(cb_lease_release_unknown(l.db, "fx", "w", &lease, 1, NULL, &e), e);
    cb_settlement outcome = { .domain = "fx",
                              .command_id = c->command_id,
                              .lease_no = c->lease_no };
    expect_ok(cb_settle(l.db, "w", &outcome, 1, &e), e);
    cr_assert_eq(outcome.verdict, CB_SETTLED);
    expect_ok(cb_sleep_announce(l.db, "w", queues, 1, 1, &e), e);
    expect_ok(cb_sleep_end(l.db, "w", NULL, 0, &e), e);
    expect_ok(cb_batch_close(l.db, NULL, 0, NULL, &e), e);
    expect_ok(cb_purge(l.db, &(cb_purge_options){ .commands = "30 days" }, &purged, &e), e);
    expect_ok(cb_heartbeat(l.db, "w", "{}", &e), e);
    expect_ok(cb_fleet_limit_set(l.db, "fx", 3, &e), e);
    expect_ok(cb_queue_sample_many(l.db, &(cb_queue_sample){ .domain = "fx" }, 1, &e), e);
    expect_ok(cb_fleet_tidy(l.db, NULL, &e), e);
    expect_ok(cb_messages_restore(l.db, "fx", NULL, &e), e);
    expect_ok(cb_retire(l.db, "w", &e), e);
    test_exec(l.conn, "SELECT commandbus.now(); LISTEN commandbus_fx__commands");

    expect_denied(&l, denied);
    expect_denied(&l, nobodys);
    login_close(&l);
}

/* BUS.14 */
Test(role, operator_sees_everything_and_decides)
{
    static const char *const denied[] = {
        "SELECT commandbus.send('fx', 'BookFx')",
        "SELECT commandbus.send_many('[]')",
        "SELECT commandbus.send_arrays('{}', '{}')",
        "SELECT commandbus.create_batch('fx')",
        "SELECT commandbus.create_batch_arrays('fx', NULL, NULL, NULL, NULL, '{}')",
        "SELECT commandbus.receive('fx', 'w', 1)",
        "SELECT commandbus.settle('fx', 'w', '{}', '{}', '{}')",
        "SELECT commandbus.extend('fx', 'w', '{}', '{}', 1)",
        "SELECT commandbus.release_unknown('fx', 'w', '{}', '{}')",
        "SELECT commandbus.heartbeat('w')",
        "SELECT commandbus.retire('w')",
        "SELECT commandbus.set_fleet_limit('fx', 1)",
        NULL,
    };
    cb_uuid ids[] = { life_into_tsq(""), life_into_tsq(""), life_into_tsq("") };
    login l = login_open("commandbus_operator");
    cb_purge_counts purged;
    cb_error e = { 0 };
    cb_tsq_action action = { .domain = "fx", .operator_name = "ann", .reason = "because" };
    static bool (*const lists[])(cb_db *, const cb_command_filter *, cb_rows **,
                                 cb_error *) = { cb_command_list, cb_tsq_list, cb_tsq_counts };

    expect_ok(cb_db_check_schema(l.db, &e), e);
    for (size_t i = 0; i < 3; i++) {
        OWNED(cb_rows) rows = NULL;
        expect_ok(lists[i](l.db, &(cb_command_filter){ .domain = "fx" }, &rows, &e), e);
        cr_assert_gt(cb_rows_count(rows), 0);
    }
    OWNED(cb_rows) show = NULL;
    OWNED(cb_rows) trail = NULL;
    OWNED(cb_rows) queues = NULL;
    OWNED(cb_rows) health = NULL;
    OWNED(cb_rows) batches = NULL;
    OWNED(cb_rows) batch = NULL;
    expect_ok(cb_command_show(l.db, "fx", ids[0].text, &show, &e), e);
    expect_ok(cb_command_trail(l.db, "fx", ids[0].text, &trail, &e), e);
    expect_ok(cb_queue_list(l.db, &queues, &e), e);
    expect_ok(cb_batch_list(l.db, NULL, NULL, 0, 0, &batches, &e), e);
    expect_ok(cb_batch_show(l.db, ids[0].text, &batch, &e), e);
    expect_ok(cb_doctor(l.db, &health, &e), e);
    test_exec(l.conn, "SELECT * FROM pgmq.q_fx__commands; SELECT * FROM pgmq.a_fx__commands;"
                      "SELECT * FROM pgmq.metrics('fx__commands')");
    action.command_id = ids[0].text;
    expect_ok(cb_tsq_retry(l.db, &action, &e), e);
    action.command_id = ids[1].text;
    expect_ok(cb_tsq_cancel(l.db, &action, &e), e);
    action.command_id = ids[2].text;
    expect_ok(cb_tsq_complete(l.db, &action, &e), e);
    expect_ok(cb_domain_register(l.db, "ledger", NULL, &e), e);
    expect_ok(cb_purge(l.db, &(cb_purge_options){ .commands = "30 days" }, &purged, &e), e);

    expect_denied(&l, denied);
    expect_denied(&l, nobodys);
    expect_number(bus.conn, 3,
                  "SELECT count(*) FROM commandbus.audit WHERE operator = 'ann' AND db_user = $1",
                  l.name);
    login_close(&l);
}

/* BUS.14: payloads stay out of sight of monitoring */
Test(role, monitor_sees_all_but_payloads_and_changes_nothing)
{
    static const char *const denied[] = {
        "SELECT data FROM commandbus.command_metadata",
        "SELECT result FROM commandbus.command_metadata",
        "SELECT headers FROM commandbus.command_metadata",
        "SELECT error_message FROM commandbus.command_metadata",
        "SELECT * FROM commandbus.command_metadata",
        "SELECT c FROM commandbus.command_metadata c",
        "SELECT details FROM commandbus.audit",
        "SELECT custom_data FROM commandbus.batch",
        "SELECT custom_data FROM commandbus.batch_status",
        "SELECT message FROM pgmq.q_fx__commands",
        "SELECT message FROM pgmq.q_fx__replies",
        "SELECT message FROM pgmq.a_fx__commands",
        "SELECT commandbus.send('fx', 'BookFx')",
        "SELECT commandbus.receive('fx', 'w', 1)",
        "SELECT commandbus.tsq_retry('fx', gen_random_uuid(), 'ann')",
        "SELECT commandbus.purge('0 s')",
        "SELECT commandbus.register_domain('mine')",
        "SELECT commandbus.close_batches()",
        "SELECT commandbus.set_fleet_limit('fx', 1)",
        "SELECT commandbus.tidy_fleet()",
        NULL,
    };
    login l = login_open("commandbus_monitor");
    OWNED(cb_rows) workers = NULL;
    OWNED(cb_rows) load = NULL;
    OWNED(cb_rows) domains = NULL;
    OWNED(cb_rows) commands = NULL;
    OWNED(cb_rows) counts = NULL;
    OWNED(cb_rows) queues = NULL;
    OWNED(cb_rows) batches = NULL;
    OWNED(cb_rows) health = NULL;
    cb_error e = { 0 };

    expect_ok(cb_db_check_schema(l.db, &e), e);
    expect_ok(cb_command_list(l.db, NULL, &commands, &e), e);
    expect_ok(cb_tsq_counts(l.db, NULL, &counts, &e), e);
    expect_ok(cb_queue_list(l.db, &queues, &e), e);
    expect_ok(cb_batch_list(l.db, NULL, NULL, 0, 0, &batches, &e), e);
    expect_ok(cb_doctor(l.db, &health, &e), e);
    test_exec(bus.conn, "SELECT commandbus.heartbeat('w', '{\"uptime_seconds\": 5, \"domains\": "
                        "{\"fx\": {\"slots\": 2}}}')");
    expect_ok(cb_fleet_workers(l.db, &workers, &e), e);
    expect_ok(cb_fleet_domains(l.db, &domains, &e), e);
    expect_ok(cb_domain_load(l.db, "fx", "1 hour", &load, &e), e);
    test_exec(l.conn, "SELECT * FROM commandbus.fleet");
    test_exec(l.conn, "SELECT * FROM commandbus.worker; SELECT * FROM commandbus.sleeper;"
                      "SELECT event_type, at FROM commandbus.audit;"
                      "SELECT count(*), max(vt) FROM pgmq.q_fx__commands");

    expect_denied(&l, denied);
    expect_denied(&l, nobodys);
    login_close(&l);
}

/* BUS.14 */
Test(role, of_none_of_these_may_do_nothing_at_all)
{
    static const char *const denied[] = {
        "SELECT commandbus.now()",
        "SELECT commandbus.send('fx', 'BookFx')",
        "SELECT * FROM commandbus.schema_version",
        NULL,
    };
    login l = login_open("pg_read_all_settings");
    cb_error e = { 0 };

    expect_error(CB_DENIED, cb_db_check_schema(l.db, &e), e);
    cr_assert(strstr(e.hint, "commandbus_sender"), "%s", e.hint);
    expect_denied(&l, denied);
    login_close(&l);
}
