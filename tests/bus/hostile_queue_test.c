/* Queues that somebody emptied, dropped or filled by hand: commands are not lost, and neither other
 * commands nor other domains suffer. BUS.13. */
#include "claims.h"
#include "fixture.h"
#include "parallel.h"

TestSuite(hostile_queue, .init = bus_open, .fini = bus_close);

static void expect_doctor_status(const char *check, const char *status)
{
    OWNED(cb_rows) rows = NULL;
    cb_error e = { 0 };
    const char *is = "not there", *detail = "";

    cr_assert(cb_doctor(bus.db, &rows, &e), "%s", e.message);
    for (size_t i = 0; i < cb_rows_count(rows); i++) {
        if (strcmp(cb_rows_get(rows, i, "check_name"), check) == 0) {
            is = cb_rows_get(rows, i, "status");
            detail = cb_rows_get(rows, i, "detail");
        }
    }
    cr_expect_str_eq(is, status, "%s is '%s': %s", check, is, detail);
}

static size_t restore(const char *domain)
{
    return (size_t)test_number(bus.conn, "SELECT count(*) FROM commandbus.restore_messages($1)",
                               domain, NULL);
}

static void put_back_from_archive(void)
{
    test_exec(bus.conn,
              "INSERT INTO pgmq.q_fx__commands (msg_id, read_ct, enqueued_at, vt, message) "
              "OVERRIDING SYSTEM VALUE SELECT msg_id, 0, now(), now(), message "
              "FROM pgmq.a_fx__commands");
}

/* WRK.9 */
Test(hostile_queue, a_message_put_back_from_the_archive_is_archived_again_and_others_are_served)
{
    cb_uuid id = test_send_one(bus.db, .reply_to = "payments__replies"), other;
    cb_error e = { 0 };
    expect_verdict(CB_SETTLED, test_run_one(bus.db, "w", CB_PERMANENT));
    put_back_from_archive();
    test_send(bus.db, 1, &other);

    OWNED(cb_claim) claim = test_claim(bus.db, "w", 10, 30);

    cr_expect_eq(cb_claim_poisoned(claim), 1);
    cr_assert_eq(cb_claim_count(claim), 1);
    cr_expect_str_eq(cb_claim_at(claim, 0)->command_id.text, other.text);
    expect_trail("SENT RECEIVED MOVED_TO_TSQ POISON_ARCHIVED", id);
    expect_messages("0 queued, 1 archived, 1 replied", id);
    const cb_tsq_action again = { .domain = "fx", .command_id = id.text, .operator_name = "ann" };
    cr_assert(cb_tsq_retry(bus.db, &again, &e), "%s", e.message);
    expect_verdict(CB_SETTLED, test_run_one(bus.db, "w", CB_SUCCESS));
}

/* section 8.3: the archive may hold a copy of a message whose command still runs */
Test(hostile_queue, an_outcome_finds_its_message_in_the_archive_already_and_settles)
{
    cb_uuid id = test_send_one(bus.db, .max_attempts = 1);
    OWNED(cb_claim) claim = test_claim(bus.db, "w", 1, 30);
    test_exec(bus.conn,
              "INSERT INTO pgmq.a_fx__commands (msg_id, read_ct, enqueued_at, vt, message) "
              "SELECT msg_id, read_ct, enqueued_at, vt, message FROM pgmq.q_fx__commands");

    expect_verdict(CB_SETTLED,
                   test_settle_one(bus.db, "w", test_outcome(cb_claim_at(claim, 0), CB_PERMANENT)));

    expect_messages("0 queued, 1 archived, 0 replied", id);
}

/* section 8.7 */
Test(hostile_queue, an_emptied_queue_is_restored_once_and_uncharged)
{
    test_send(bus.db, 5, NULL);
    OWNED(cb_claim) claim = test_claim(bus.db, "w", 2, 60);
    cr_assert_eq(cb_claim_count(claim), 2);
    expect_doctor_status("lost messages", "ok");
    test_exec(bus.conn, "SELECT pgmq.purge_queue('fx__commands')");
    expect_doctor_status("lost messages", "fail");
    expect_value(bus.conn, "fx 5",
                 "SELECT domain || ' ' || commands FROM commandbus.lost_messages()");

    expect_verdict(CB_SETTLED,
                   test_settle_one(bus.db, "w", test_outcome(cb_claim_at(claim, 0), CB_TRANSIENT)));
    expect_messages("1 queued, 0 archived, 0 replied", cb_claim_at(claim, 0)->command_id);
    cr_expect_eq(restore("fx"), 4);
    cr_expect_eq(restore("fx"), 0);

    expect_doctor_status("lost messages", "ok");
    expect_value(bus.conn, "0 0 0 1 1",
                 "SELECT string_agg(attempts::text, ' ' ORDER BY attempts) "
                 "FROM commandbus.command_metadata");
    cr_expect_eq(test_run_all(bus.db, "w", 10), 4, "the running one is its holder's");
    expect_verdict(CB_SETTLED,
                   test_settle_one(bus.db, "w", test_outcome(cb_claim_at(claim, 1), CB_SUCCESS)));
    expect_value(bus.conn, "5 0 0",
                 "SELECT concat_ws(' ', (SELECT count(*) FROM commandbus.command_metadata WHERE "
                 "status = 'COMPLETED'), (SELECT count(*) FROM pgmq.q_fx__commands), (SELECT "
                 "count(*) FROM commandbus.audit WHERE event_type = 'POISON_ARCHIVED'))");
}

enum {
    RESTORERS = 8,
    LOST = 300
};

typedef struct {
    PGconn *conn[RESTORERS];
    int restored[RESTORERS]; /* -1 after an error */
} restorers;

/* A few at a time, so that everybody's looks fall into everybody else's commits. */
static void restore_on(size_t i, void *arg)
{
    restorers *r = arg;

    for (int more = 1; more > 0;) {
        PGresult *result = PQexec(r->conn[i], "SELECT commandbus.restore_messages('fx', 5)");
        bool fine = PQresultStatus(result) == PGRES_TUPLES_OK;
        more = fine ? PQntuples(result) : 0;
        r->restored[i] = fine ? r->restored[i] + more : -1;
        PQclear(result);
    }
}

Test(hostile_queue, eight_that_restore_at_once_give_each_command_one_message) /* section 8.7 */
{
    restorers r = { 0 };
    int restored = 0;
    test_send(bus.db, LOST, NULL);
    test_exec(bus.conn, "SELECT pgmq.purge_queue('fx__commands')");
    for (int i = 0; i < RESTORERS; i++)
        r.conn[i] = test_pq_open(bus.conninfo);

    parallel_run(RESTORERS, restore_on, &r);

    for (int i = 0; i < RESTORERS; i++) {
        cr_expect_geq(r.restored[i], 0, "%s", PQerrorMessage(r.conn[i]));
        restored += r.restored[i];
        PQfinish(r.conn[i]);
    }
    restored += (int)restore("fx"); /* what everybody skipped */
    cr_expect_eq(restored, LOST);
    expect_value(bus.conn, "300 300",
                 "SELECT count(*) || ' ' || count(DISTINCT message ->> 'command_id') "
                 "FROM pgmq.q_fx__commands");
    cr_expect_eq(test_run_all(bus.db, "w", LOST), LOST);
}

/* One command of fx and one of risk, both running; then the queue of risk is dropped. */
static void claim_both(cb_claim *claims[2])
{
    cb_error e = { 0 };
    OWNED(cb_receiver) risk = NULL;

    test_send_one(bus.db, .domain = "fx");
    test_send_one(bus.db, .domain = "risk");
    claims[0] = test_claim(bus.db, "w", 1, 60);
    cr_assert(cb_receiver_open("risk", &(cb_receive_options){ .worker = "w" }, &risk, &e));
    cr_assert(cb_receive(bus.db, risk, 1, &claims[1], &e), "%s", e.message);
    cr_assert_eq(cb_claim_count(claims[0]) + cb_claim_count(claims[1]), 2);
    test_exec(bus.conn, "DROP TABLE pgmq.q_risk__commands");
}

Test(hostile_queue, a_dropped_queue_stops_no_other_domain_and_comes_again) /* section 8.7 */
{
    cb_claim *claims[2];
    cb_lease leases[2];
    cb_settlement items[2];
    cb_error e = { 0 };
    OWNED(cb_rows) queues = NULL;
    cb_purge_counts purged;
    test_exec(bus.conn, "SELECT setval('pgmq.q_risk__commands_msg_id_seq', 1000)");
    claim_both(claims);
    for (int i = 0; i < 2; i++) {
        leases[i] = test_lease(cb_claim_at(claims[i], 0));
        items[i] = test_outcome(cb_claim_at(claims[i], 0), i ? CB_TRANSIENT : CB_SUCCESS);
        leases[i].domain = items[i].domain = i ? "risk" : "fx";
    }

    cr_expect(cb_lease_extend(bus.db, "w", leases, 2, 60, &e), "%s", e.message);
    cr_expect(cb_settle(bus.db, "w", items, 2, &e), "%s", e.message);
    cr_expect(
        cb_purge(bus.db,
                 &(cb_purge_options){
                     .commands = "1 day", .audit = "1 day", .archives = "0 s", .batch_size = 10 },
                 &purged, &e));
    cr_expect(cb_queue_list(bus.db, &queues, &e), "%s", e.message);

    for (int i = 0; i < 2; i++) {
        cr_expect_eq(leases[i].state, CB_LEASE_EXTENDED);
        expect_verdict(CB_SETTLED, items[i].verdict);
    }
    cr_expect_eq(cb_rows_count(queues), 6);
    expect_doctor_status("queue risk__commands", "fail");
    expect_doctor_status("queue fx__commands", "ok");

    cr_assert(cb_domain_register(bus.db, "risk", NULL, &e), "%s", e.message);
    expect_doctor_status("lost messages", "fail");
    cr_expect_eq(restore("risk"), 1);
    expect_value(bus.conn, "t", "SELECT msg_id > 1001 FROM pgmq.q_risk__commands");
    expect_value(bus.conn, "2", "SELECT attempt FROM commandbus.receive('risk', 'w', 10)");
    cb_claim_free(claims[0]);
    cb_claim_free(claims[1]);
}

/* section 8.7: commandbus_owner may not read it, which must not hide anything else */
Test(hostile_queue, a_queue_made_again_by_somebody_else_does_not_blind_doctor)
{
    test_send(bus.db, 1, NULL);
    expect_verdict(CB_SETTLED, test_run_one(bus.db, "w", CB_PERMANENT));
    test_exec(bus.conn, "DROP TABLE pgmq.q_risk__commands");
    test_exec(bus.conn, "SELECT pgmq.create('risk__commands')");

    expect_doctor_status("queue risk__commands", "fail");
    expect_doctor_status("troubleshooting queue", "warn");
    expect_doctor_status("lost messages", "ok");
}

/* section 8.7 */
Test(hostile_queue, a_reply_queue_made_again_by_somebody_else_does_not_stop_a_settle)
{
    cb_uuid id;
    test_send(bus.db, 1, &id);
    test_exec(bus.conn, "DROP TABLE pgmq.q_payments__replies");
    test_exec(bus.conn, "SELECT pgmq.create('payments__replies')");

    expect_verdict(CB_SETTLED, test_run_one(bus.db, "w", CB_SUCCESS));

    expect_trail("SENT RECEIVED COMPLETED REPLY_UNDELIVERABLE", id);
    expect_messages("0 queued, 0 archived, 0 replied", id);
    expect_doctor_status("undeliverable replies", "warn");
    expect_doctor_status("queue payments__replies", "fail");
}

/* ---- what somebody who may write into a queue can put there ---- */

/* Every value of a column that PGMQ lets anybody write, as `SET` wants it. */
static const char *const hostile_columns[] = {
    "read_ct = 2147483647",
    "read_ct = -2147483648",
    "vt = '-infinity'",
    "vt = '4713-01-01 00:00:00 BC'",
    "enqueued_at = 'infinity'",
    "enqueued_at = '-infinity'",
    "enqueued_at = '294276-12-31'",
    "last_read_at = 'infinity'",
    "headers = '[]'",
    "headers = '\"x\"'",
    "message = NULL",
    "message = '[]'",
};

static void deface(const char *queue, const char *sets)
{
    char sql[300];

    snprintf(sql, sizeof sql, "UPDATE pgmq.q_%s SET %s", queue, sets);
    test_exec(bus.conn, sql);
}

/* DESIGN 8.5, 8.7: what counts is the command's row; nothing a message says stops a claim. */
Test(hostile_queue, a_message_with_any_values_is_claimed_and_released_and_settled)
{
    for (size_t i = 0; i < CB_COUNT(hostile_columns); i++) {
        cb_uuid id = test_send_one(bus.db, .domain = "fx");
        deface("fx__commands", hostile_columns[i]);
        OWNED(cb_claim) first = test_claim(bus.db, "w", 10, 30);
        cr_assert_eq(cb_claim_count(first), 1, "with %s", hostile_columns[i]);
        expect_value(bus.conn, "1",
                     "SELECT count(*) FROM commandbus.release_unknown('fx', 'w', '{}', '{}')");

        expect_verdict(CB_SETTLED, test_run_one(bus.db, "w", CB_SUCCESS));

        expect_messages("0 queued, 0 archived, 0 replied", id);
    }
}

/* A second message for a command, under the id of its first. */
static void put_back(cb_uuid id)
{
    free(test_value(bus.conn,
                    "INSERT INTO pgmq.q_fx__commands (msg_id, vt, message) OVERRIDING SYSTEM VALUE "
                    "SELECT msg_id, now(), '{}' FROM commandbus.command_metadata "
                    "WHERE command_id = $1 RETURNING 1",
                    id.text, NULL));
}

/* DESIGN 8.7: the same for those that a claim must put off or archive. */
Test(hostile_queue, a_message_with_any_values_is_put_off_and_archived)
{
    for (size_t i = 0; i < CB_COUNT(hostile_columns); i++) {
        cb_uuid id = test_send_one(bus.db, .domain = "fx");
        OWNED(cb_claim) claim = test_claim(bus.db, "w", 1, 60);
        deface("fx__commands", hostile_columns[i]);
        test_exec(bus.conn, "UPDATE pgmq.q_fx__commands SET vt = least(vt, now())");

        OWNED(cb_claim) other = test_claim(bus.db, "thief", 10, 30); /* the lease runs: put off */
        cr_expect_eq(cb_claim_count(other), 0, "with %s", hostile_columns[i]);
        expect_verdict(
            CB_SETTLED,
            test_settle_one(bus.db, "w", test_outcome(cb_claim_at(claim, 0), CB_SUCCESS)));
        put_back(id);
        deface("fx__commands", hostile_columns[i]);
        OWNED(cb_claim) poison = test_claim(bus.db, "w", 10, 30);
        cr_expect_eq(cb_claim_poisoned(poison), 1, "with %s", hostile_columns[i]);
    }
}

/* ---- messages that nobody would see ---- */

#define expect_hidden(expected)      \
    expect_value(bus.conn, expected, \
                 "SELECT coalesce(sum(messages), 0) FROM commandbus.hidden_messages()")

/* DESIGN 8.1 */
Test(hostile_queue, a_message_hidden_for_ever_is_named_and_revealed)
{
    static const char *const never[] = { "vt = 'infinity'", "vt = now() + interval '10 years'" };

    for (size_t i = 0; i < CB_COUNT(never); i++) {
        test_send_one(bus.db, .domain = "fx");
        deface("fx__commands", never[i]);
        expect_hidden("1");

        test_exec(bus.conn, "SELECT commandbus.keep_messages('fx')");

        expect_hidden("0");
        expect_verdict(CB_SETTLED, test_run_one(bus.db, "w", CB_SUCCESS));
    }
    test_send_one(bus.db, .domain = "fx");
    deface("fx__commands", never[0]);
    expect_doctor_status("hidden messages", "warn");
}

/* DESIGN 8.1: what a sender may ask for is not a mistake. */
Test(hostile_queue, a_command_put_off_for_a_year_stays_put_off)
{
    test_send_one(bus.db, .domain = "fx", .delay_seconds = 31536000);

    test_exec(bus.conn, "SELECT commandbus.restore_messages('fx')");

    expect_hidden("0");
    expect_value(bus.conn, "t", "SELECT vt > now() + interval '364 days' FROM pgmq.q_fx__commands");
}

/* DESIGN 8.1: its worker dies, and nobody would see that its lease is over. */
Test(hostile_queue, a_running_command_whose_message_is_hidden_past_its_lease_is_taken_over)
{
    test_send_one(bus.db, .domain = "fx");
    cb_claim_free(test_claim(bus.db, "dies", 1, 30));
    deface("fx__commands", "vt = now() + interval '30 days'");
    expect_hidden("1");

    test_exec(bus.conn, "SELECT commandbus.keep_messages('fx')");
    OWNED(cb_claim) early = test_claim(bus.db, "w", 1, 30);
    cr_expect_eq(cb_claim_count(early), 0, "its lease runs");

    expect_hidden("0");
    expect_value(bus.conn, "t",
                 "SELECT q.vt = c.lease_until FROM pgmq.q_fx__commands q "
                 "JOIN commandbus.command_metadata c USING (msg_id)");
}

/* ---- looking for lost messages only when there is a reason ---- */

#define kept "SELECT count(*) FROM commandbus.keep_messages('fx')"

/* DESIGN 8.1: all commands are looked through once an hour, and after a DELETE by hand. */
Test(hostile_queue, messages_taken_out_by_hand_are_put_back_at_the_next_look)
{
    static const char *const hands[] = { "DELETE FROM pgmq.q_fx__commands",
                                         "SELECT pgmq.purge_queue('fx__commands')",
                                         "SELECT pgmq.archive('fx__commands', msg_id) FROM "
                                         "pgmq.q_fx__commands",
                                         "SELECT pgmq.drop_queue('fx__commands'); "
                                         "SELECT commandbus.register_domain('fx')" };
    expect_value(bus.conn, "0", kept);
    test_send(bus.db, 3, NULL);

    for (size_t i = 0; i < CB_COUNT(hands); i++) {
        expect_value(bus.conn, "0", kept);
        test_exec(bus.conn, hands[i]);
        expect_value(bus.conn, "3", kept);
        expect_value(bus.conn, "0", kept);
    }

    cr_expect_eq(test_run_all(bus.db, "w", 10), 3);
}

/* DESIGN 8.1: whoever held it a moment must not make it wait for an hour. */
Test(hostile_queue, a_lost_message_whose_command_was_locked_is_put_back_at_the_look_after)
{
    PGconn *holder = test_pq_open(bus.conninfo);
    expect_value(bus.conn, "0", kept);
    expect_value(bus.conn, "0", kept); /* the look of this hour */
    test_send(bus.db, 2, NULL);
    test_exec(bus.conn, "DELETE FROM pgmq.q_fx__commands");
    test_exec(holder, "BEGIN; SELECT FROM commandbus.command_metadata LIMIT 1 FOR UPDATE");

    expect_value(bus.conn, "1", kept);
    test_exec(holder, "COMMIT");

    expect_value(bus.conn, "1", kept);
    PQfinish(holder);
}

/* What our own functions do to a queue does not trigger a search. */
Test(hostile_queue, normal_work_never_searches_all_commands)
{
    expect_value(bus.conn, "0", kept);
    test_send(bus.db, 20, NULL);
    expect_verdict(CB_SETTLED, test_run_one(bus.db, "w", CB_TRANSIENT));
    expect_verdict(CB_SETTLED, test_run_one(bus.db, "w", CB_PERMANENT));
    cr_expect_eq(test_run_all(bus.db, "w", 20), 19);

    expect_value(bus.conn, "0",
                 "SELECT count(*) FROM commandbus.touched_queue WHERE queue_name = 'fx__commands'");
}

/* A thousand at a time; what is left is the next look's. */
Test(hostile_queue, more_lost_messages_than_one_look_restores_are_restored_by_the_next)
{
    test_send(bus.db, 1500, NULL);
    test_exec(bus.conn, "TRUNCATE pgmq.q_fx__commands");

    expect_value(bus.conn, "1000", kept);
    expect_value(bus.conn, "500", kept);
    expect_value(bus.conn, "0", kept);
}
