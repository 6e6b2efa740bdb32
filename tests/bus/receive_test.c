/* Claiming: which commands, how many, what a claim writes, and that nobody gets one twice. */
#include <pthread.h>
#include <stdatomic.h>

#include "claims.h"

TestSuite(receive, .init = bus_open, .fini = bus_close);

Test(receive, takes_at_most_the_quantity_asked_for) /* WRK.3 */
{
    test_send(bus.db, 5, NULL);

    OWNED(cb_claim) first = test_claim(bus.db, "w", 3, 30);
    OWNED(cb_claim) second = test_claim(bus.db, "w", 3, 30);
    OWNED(cb_claim) third = test_claim(bus.db, "w", 3, 30);

    cr_expect_eq(cb_claim_count(first), 3);
    cr_expect_eq(cb_claim_count(second), 2);
    cr_expect_eq(cb_claim_count(third), 0);
}

/* BUS.17, section 8.10: what a claim reads is bounded, and what it had no room for keeps its
 * place. */
Test(receive, takes_no_more_than_it_has_room_for_and_leaves_the_rest_in_its_order)
{
    enum {
        SENT = 5
    };
    cb_receive_options options = { .worker = "w", .claim_bytes = 1000000 };
    OWNED(cb_receiver) receiver = NULL;
    cb_uuid ids[SENT];
    cb_error e = { 0 };
    char data[400100];
    snprintf(data, sizeof data, "{\"text\": \"%0400000d\"}", 7);
    for (int i = 0; i < SENT; i++)
        ids[i] = test_send_one(bus.db, .data = data);
    cr_assert(cb_receiver_open("fx", &options, &receiver, &e), "%s", e.message);

    for (size_t seen = 0; seen < SENT;) {
        OWNED(cb_claim) claim = NULL;
        cr_assert(cb_receive(bus.db, receiver, 10, &claim, &e), "%s", e.message);
        size_t n = seen == 0 ? 3 : 2;

        cr_assert_eq(cb_claim_count(claim), n);
        cr_expect_eq(cb_claim_more(claim), seen == 0);
        cr_expect_gt(cb_claim_bytes(claim), n * 400000);
        for (size_t i = 0; i < n; i++) {
            bool known = false;
            for (size_t k = seen; k < seen + n; k++)
                known |= strcmp(cb_claim_at(claim, i)->command_id.text, ids[k].text) == 0;
            cr_expect(known, "a later one came first");
        }
        expect_value(bus.conn, seen == 0 ? "2" : "0",
                     "SELECT count(*) FROM pgmq.q_fx__commands WHERE read_ct = 0 "
                     "AND vt <= now()");
        seen += n;
    }
}

/* Section 8.7: a command whose worker died is due since its lease ran out, and what is in the way
 * of it now is only memory: those that are due later do not overtake it. */
Test(receive, leaves_a_command_whose_lease_ran_out_in_its_place_when_it_has_no_room)
{
    enum {
        EXPIRED = 5,
        SENT = 7
    };
    cb_receive_options options = { .worker = "w", .claim_bytes = 1000000, .vt_seconds = 1 };
    OWNED(cb_receiver) receiver = NULL;
    OWNED(cb_claim) first = NULL;
    OWNED(cb_claim) second = NULL;
    cb_error e = { 0 };
    char data[400100];
    snprintf(data, sizeof data, "{\"text\": \"%0400000d\"}", 7);
    for (int i = 0; i < EXPIRED; i++)
        test_send_one(bus.db, .data = data);
    cb_claim_free(test_claim(bus.db, "dies", EXPIRED, 60));
    test_exec(bus.conn,
              "UPDATE commandbus.command_metadata SET lease_until = now() - interval '1 minute' "
              "+ msg_id * interval '1 second'");
    test_exec(bus.conn, "UPDATE pgmq.q_fx__commands q SET vt = lease_until FROM "
                        "commandbus.command_metadata c WHERE c.msg_id = q.msg_id");
    for (int i = EXPIRED; i < SENT; i++)
        test_send_one(bus.db, .data = data);
    cr_assert(cb_receiver_open("fx", &options, &receiver, &e), "%s", e.message);

    cr_assert(cb_receive(bus.db, receiver, EXPIRED, &first, &e), "%s", e.message);

    cr_assert_eq(cb_claim_count(first), 3);
    cr_expect(cb_claim_more(first));
    expect_value(bus.conn, "4 IN_PROGRESS 1 dies 1 t, 5 IN_PROGRESS 1 dies 1 t",
                 "SELECT string_agg(concat_ws(' ', c.msg_id, c.status, c.lease_no, c.lease_owner, "
                 "q.read_ct, q.vt = c.lease_until), ', ' ORDER BY c.msg_id) FROM "
                 "commandbus.command_metadata c JOIN pgmq.q_fx__commands q USING (msg_id) WHERE "
                 "c.lease_owner = 'dies'");

    for (size_t i = 0; i < 3; i++)
        expect_verdict(
            CB_SETTLED,
            test_settle_one(bus.db, "w", test_outcome(cb_claim_at(first, i), CB_SUCCESS)));
    cr_assert(cb_receive(bus.db, receiver, EXPIRED, &second, &e), "%s", e.message);
    cr_assert_eq(cb_claim_count(second), 3);
    expect_value(bus.conn, "4 5 6",
                 "SELECT string_agg(msg_id::text, ' ' ORDER BY msg_id) FROM "
                 "commandbus.command_metadata WHERE lease_owner = 'w' AND status = 'IN_PROGRESS'");
}

/* What is stored small may be long to read: seven numbers of 131,000 digits take two hundred
 * bytes. */
Test(receive, counts_what_a_command_is_to_read_and_not_what_it_is_stored_in)
{
    cb_receive_options options = { .worker = "w", .claim_bytes = 1000000 };
    OWNED(cb_receiver) receiver = NULL;
    OWNED(cb_claim) claim = NULL;
    cb_error e = { 0 };
    for (int i = 0; i < 5; i++)
        test_send_one(bus.db,
                      .data = "{\"a\": [1e130000, 1e130000, 1e130000, 1e130000, 1e130000]}");
    cr_assert(cb_receiver_open("fx", &options, &receiver, &e), "%s", e.message);

    cr_assert(cb_receive(bus.db, receiver, 10, &claim, &e), "%s", e.message);

    cr_expect_eq(cb_claim_count(claim), 2);
    cr_expect(cb_claim_more(claim));
}

Test(receive, takes_the_longest_visible_first) /* BUS.1 */
{
    cb_uuid ids[6];
    for (int i = 0; i < 6; i++)
        test_send(bus.db, 1, &ids[i]);
    /* Visible in the opposite order of sending. */
    test_exec(bus.conn, "UPDATE pgmq.q_fx__commands SET vt = now() - msg_id * interval '1 second'");

    for (int i = 5; i >= 0; i--) {
        OWNED(cb_claim) claim = test_claim(bus.db, "w", 1, 30);

        cr_assert_eq(cb_claim_count(claim), 1);
        cr_expect_str_eq(cb_claim_at(claim, 0)->command_id.text, ids[i].text);
    }
}

Test(receive, writes_lease_fence_and_audit_and_hands_over_the_command) /* BUS.7, WRK.3 */
{
    cb_uuid id =
        test_send_one(bus.db, .data = "{\"amount\": \"1.50\"}", .headers = "{\"trace\": \"t1\"}",
                      .reply_to = "payments__replies", .max_attempts = 7,
                      .correlation_id = "11111111-2222-4333-8444-555555555555");

    OWNED(cb_claim) claim = test_claim(bus.db, "worker-1", 10, 60);

    cr_assert_eq(cb_claim_count(claim), 1);
    const cb_command *c = cb_claim_at(claim, 0);
    cr_expect_str_eq(c->command_id.text, id.text);
    cr_expect_str_eq(c->correlation_id.text, "11111111-2222-4333-8444-555555555555");
    cr_expect_str_eq(c->domain, "fx");
    cr_expect_str_eq(c->command_type, "Test");
    cr_expect_str_eq(c->data, "{\"amount\": \"1.50\"}");
    cr_expect_str_eq(c->headers, "{\"trace\": \"t1\"}");
    cr_expect_str_eq(c->reply_to, "payments__replies");
    cr_expect_null(c->batch_id);
    cr_expect_eq(c->attempt, 1);
    cr_expect_eq(c->lease_no, 1);
    cr_expect_eq(c->max_attempts, 7);
    cr_expect(c->waited_us >= 0 && c->waited_us < 1000000 * (int64_t)patience_seconds,
              "waited %ld us", (long)c->waited_us);
    expect_value(
        bus.conn, "IN_PROGRESS 1 1 worker-1 t",
        "SELECT concat_ws(' ', status, attempts, lease_no, lease_owner, "
        "lease_until - updated_at = interval '60 seconds') FROM commandbus.command_metadata");
    expect_value(bus.conn, "1 t t",
                 "SELECT concat_ws(' ', q.read_ct, q.vt = c.lease_until, q.msg_id = c.msg_id) "
                 "FROM pgmq.q_fx__commands q, commandbus.command_metadata c");
    expect_value(bus.conn, "RECEIVED 1 1 worker-1 fx",
                 "SELECT concat_ws(' ', event_type, attempt, lease_no, worker, domain) "
                 "FROM commandbus.audit WHERE command_id = $1 AND event_type <> 'SENT'",
                 id.text);
}

Test(receive, the_commands_own_limits_decide_else_the_workers) /* WRK.1 */
{
    cb_uuid own = test_send_one(bus.db, .max_attempts = 9, .timeout_seconds = 77);
    cb_uuid none;
    OWNED(cb_receiver) receiver = NULL;
    OWNED(cb_claim) claim = NULL;
    cb_error e = { 0 };
    test_send(bus.db, 1, &none);
    cb_receive_options options = { .worker = "w",
                                   .default_max_attempts = 4,
                                   .default_timeout_seconds = 55 };

    cr_assert(cb_receiver_open("fx", &options, &receiver, &e), "%s", e.message);
    cr_assert(cb_receive(bus.db, receiver, 10, &claim, &e), "%s", e.message);

    cr_assert_eq(cb_claim_count(claim), 2);
    for (size_t i = 0; i < 2; i++) {
        const cb_command *c = cb_claim_at(claim, i);
        bool is_own = strcmp(c->command_id.text, own.text) == 0;
        cr_expect_eq(c->max_attempts, is_own ? 9 : 4);
        cr_expect_eq(c->timeout_seconds, is_own ? 77 : 55);
    }
    /* And they stay what the first claim made of them, whoever claims next. */
    expect_value(bus.conn, "4 55",
                 "SELECT concat_ws(' ', max_attempts, timeout_seconds) "
                 "FROM commandbus.command_metadata WHERE command_id = $1",
                 none.text);
}

Test(receive, a_delayed_command_is_not_claimed_before_it_is_due) /* BUS.3 */
{
    cb_uuid id = test_send_one(bus.db, .delay_seconds = 0.5);

    OWNED(cb_claim) early = test_claim(bus.db, "w", 1, 30);
    OWNED(cb_claim) due = test_claim_awaited(bus.db, "w", 1, 30);

    cr_expect_eq(cb_claim_count(early), 0);
    cr_assert_eq(cb_claim_count(due), 1);
    expect_value(bus.conn, "t",
                 "SELECT updated_at >= created_at + interval '0.5 seconds' "
                 "FROM commandbus.command_metadata WHERE command_id = $1",
                 id.text);
}

Test(receive, refuses_what_makes_no_sense_and_claims_nothing) /* BUS.2 */
{
    test_send(bus.db, 1, NULL);
    OWNED(cb_receiver) nowhere = NULL;
    OWNED(cb_claim) claim = NULL;
    cb_error e = { 0 };
    cb_receive_options options = { .worker = "w" };

    cr_assert(cb_receiver_open("fxx", &options, &nowhere, &e), "%s", e.message);
    cr_expect_not(cb_receive(bus.db, nowhere, 1, &claim, &e));
    cr_expect_eq(e.code, CB_UNKNOWN_DOMAIN, "%s", e.message);
    cr_expect_not(cb_receive(bus.db, nowhere, 0, &claim, &e));
    cr_expect_eq(e.code, CB_MISUSE, "%s", e.message);

    cr_expect_str_eq(test_sqlstate(bus.conn, "SELECT commandbus.receive('fx', 'w', 0)"), "CB011");
    cr_expect_str_eq(test_sqlstate(bus.conn, "SELECT commandbus.receive('fx', '', 1)"), "CB011");
    cr_expect_str_eq(test_sqlstate(bus.conn, "SELECT commandbus.receive('fx', 'w', 1, -1)"),
                     "CB011");
    cr_expect_str_neq(test_sqlstate(bus.conn, "SELECT commandbus.receive('fx', 'w', 1, 'NaN')"),
                      "00000");
    expect_value(bus.conn, "PENDING 0",
                 "SELECT concat_ws(' ', status, attempts) "
                 "FROM commandbus.command_metadata");
}

enum {
    RECEIVERS = 8,
    COMMANDS = 2000
};

typedef struct {
    const char *conninfo;
    int number;
    atomic_int *claimed;
    cb_error error;
} receiver_thread;

/* Claims seven at a time until all commands are claimed by somebody. */
static void *receive_all(void *arg)
{
    receiver_thread *t = arg;
    char worker[16];
    OWNED(cb_db) db = NULL;
    OWNED(cb_receiver) receiver = NULL;

    snprintf(worker, sizeof worker, "w%d", t->number);
    cb_receive_options options = { .worker = worker, .vt_seconds = 60 };
    if (!cb_db_open(t->conninfo, &db, &t->error) ||
        !cb_receiver_open("fx", &options, &receiver, &t->error))
        return NULL;
    for (double end = test_clock() + patience_seconds;
         *t->claimed < COMMANDS && test_clock() < end;) {
        OWNED(cb_claim) claim = NULL;
        if (!cb_receive(db, receiver, 7, &claim, &t->error))
            return NULL;
        *t->claimed += (int)cb_claim_count(claim);
    }
    return NULL;
}

Test(receive, eight_receivers_at_once_claim_each_command_once) /* DESIGN 2, section 8.4 */
{
    receiver_thread threads[RECEIVERS];
    pthread_t ids[RECEIVERS];
    atomic_int claimed = 0;
    test_send(bus.db, COMMANDS, NULL);

    for (int i = 0; i < RECEIVERS; i++) {
        threads[i] =
            (receiver_thread){ .conninfo = bus.conninfo, .number = i, .claimed = &claimed };
        cr_assert_eq(pthread_create(&ids[i], NULL, receive_all, &threads[i]), 0);
    }
    for (int i = 0; i < RECEIVERS; i++)
        pthread_join(ids[i], NULL);

    for (int i = 0; i < RECEIVERS; i++)
        cr_expect_eq(threads[i].error.code, CB_OK, "%s", threads[i].error.message);
    cr_expect_eq(claimed, COMMANDS);
    expect_value(
        bus.conn, "2000 2000 1 1",
        "SELECT concat_ws(' ', count(*), count(DISTINCT command_id), max(attempt), max(lease_no)) "
        "FROM commandbus.audit WHERE event_type = 'RECEIVED'");
    expect_value(bus.conn, "2000",
                 "SELECT count(*) FROM commandbus.command_metadata "
                 "WHERE status = 'IN_PROGRESS' AND attempts = 1");
    cr_expect_gt(test_number(bus.conn, "SELECT count(DISTINCT worker) FROM commandbus.audit", NULL),
                 1, "only one receiver got anything: nothing was proven");
}

/* How many entries of the index on vt a claim walked over: read by another session, so the worker's
 * connection is closed first. */
static long vt_entries_read(void)
{
    cb_db_free(bus.db);
    test_exec(bus.conn, "SELECT pg_stat_clear_snapshot()");
    long read = test_number(bus.conn,
                            "SELECT i.idx_tup_read FROM pg_stat_user_indexes i "
                            "JOIN pg_indexes d ON d.indexname = i.indexrelname "
                            "WHERE i.relname = 'q_fx__commands' AND d.indexdef LIKE '%(vt%'",
                            NULL);
    bus.db = test_bus_open(bus.conninfo);
    return read;
}

Test(receive, finds_what_is_due_by_the_index_on_vt_whatever_lies_invisible) /* DESIGN 2 */
{
    test_exec(bus.conn, "ALTER TABLE pgmq.q_fx__commands SET (autovacuum_enabled = off)");
    test_exec(bus.conn,
              "SELECT count(*) FROM commandbus.send_many((SELECT jsonb_agg(jsonb_build_object("
              "'domain', 'fx', 'command_type', 'Later', 'delay_seconds', 3600)) "
              "FROM generate_series(1, 10000)))");
    test_send(bus.db, 20, NULL);
    long before = vt_entries_read();

    OWNED(cb_claim) claim = test_claim(bus.db, "w", 20, 30);

    cr_expect_eq(cb_claim_count(claim), 20);
    long walked = vt_entries_read() - before;
    cr_expect(walked >= 20 && walked <= 60, "%ld index entries for 20 messages", walked);
    expect_value(bus.conn, "0",
                 "SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'q_fx__commands'");
}

Test(receive, what_became_visible_late_is_claimed_within_a_second_of_full_claims) /* DESIGN 2 */
{
    OWNED(cb_receiver) receiver = NULL;
    cb_receive_options options = { .worker = "w", .vt_seconds = 60 };
    cb_error e = { 0 };
    bool found = false;
    cr_assert(cb_receiver_open("fx", &options, &receiver, &e), "%s", e.message);
    /* Sent before the backlog, committed after the receiver has gone past its place. */
    test_exec(bus.conn, "BEGIN; SELECT commandbus.send('fx', 'Late')");
    test_send(bus.db, 12000, NULL);
    OWNED(cb_claim) first = NULL;
    cr_assert(cb_receive(bus.db, receiver, 2, &first, &e), "%s", e.message);
    test_exec(bus.conn, "COMMIT");

    double committed = test_clock();
    while (!found && test_clock() < committed + 5 * test_slowness()) {
        OWNED(cb_claim) claim = NULL;
        cr_assert(cb_receive(bus.db, receiver, 2, &claim, &e), "%s", e.message);
        cr_assert_eq(cb_claim_count(claim), 2, "the backlog ended too soon to prove anything");
        for (size_t i = 0; i < 2; i++)
            found |= strcmp(cb_claim_at(claim, i)->command_type, "Late") == 0;
    }

    double took = test_clock() - committed;
    cr_expect(found && took < 2 * test_slowness(), "%s after %.2f s", found ? "found" : "not found",
              took);
}
