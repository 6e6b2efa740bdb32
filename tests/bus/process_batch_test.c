/* Batches of processes: started whole, counted by their rows, closed once. */
#include <stdio.h>

#include "parallel.h"
#include "pay.h"
#include "process_rows.h"

TestSuite(process_batch, .init = pay_open, .fini = bus_close);

enum {
    MOST = 8
};

/* A batch of n processes whose completion message goes to fx__replies. */
static cb_uuid start_batch(size_t n)
{
    static const char *const states[MOST] = { "{\"n\": 1}", "{\"n\": 2}", "{\"n\": 3}",
                                              "{\"n\": 4}", "{\"n\": 5}", "{\"n\": 6}",
                                              "{\"n\": 7}", "{\"n\": 8}" };
    cb_error e = { 0 };
    cb_uuid id;

    expect_ok(cb_start_batch(bus.db,
                             &(cb_start_batch_options){ .process_type = "Pay",
                                                        .name = "salaries",
                                                        .custom_data = "{\"run\": 7}",
                                                        .reply_to = "fx__replies" },
                             states, n, &id, &e),
              e);
    return id;
}

/* Claims n of them as "w", under the lease 1 of process_settle. */
static void claim_members(int n, cb_uuid *ids)
{
    cb_process_claim *claim = pay_claim(bus.db, "w", n, 60);

    cr_assert_eq(cb_process_claim_count(claim), (size_t)n);
    for (int i = 0; ids && i < n; i++)
        ids[i] = cb_process_claim_at(claim, (size_t)i)->process_id;
    cb_process_claim_free(claim);
}

/* Through the library, which closes the batch when this was the last. */
static void end_as(const cb_uuid *id, int settle_no, const char *status)
{
    char members[100];
    cb_error e = { 0 };

    snprintf(members, sizeof members, "\"wake\":\"NEVER\",\"status\":\"%s\"", status);
    cb_process_settlement one = { .item = process_item_new(id, settle_no, members) };
    expect_ok(cb_process_settle(bus.db, "w", &one, 1, &e), e);
    expect_verdict(CB_SETTLED, one.verdict);
    settlements_free(&one, 1);
}

/* status total/completed/failed/canceled, tsq/in progress/pending */
static size_t close_batches(void)
{
    cb_error e = { 0 };
    size_t closed = 99;

    expect_ok(cb_batch_close(bus.db, NULL, 0, &closed, &e), e);
    return closed;
}

Test(process_batch, is_started_whole_and_left_to_the_workers) /* STP.3, BUS.5 */
{
    cb_uuid id = start_batch(3);

    expect_batch("PENDING 3/0/0/0, 0/0/3", id);
    expect_value(bus.conn, "payments PROCESS salaries {\"run\": 7} fx__replies",
                 "SELECT concat_ws(' ', domain, batch_type, name, custom_data, reply_to) "
                 "FROM commandbus.batch WHERE batch_id = $1::uuid",
                 id.text);
    expect_number(bus.conn, 3,
                  "SELECT count(*) FROM commandbus.process WHERE batch_id = $1::uuid "
                  "AND status = 'PENDING' AND wake_at <= commandbus.now() AND lease_owner IS NULL "
                  "AND lease_no = 0 AND initial_state = state AND domain = 'payments' "
                  "AND reply_queue = 'payments__replies' AND deadline_at IS NULL",
                  id.text);
    expect_value(bus.conn, "PROCESS_CREATED 3",
                 "SELECT min(event) || ' ' || count(DISTINCT process_id) "
                 "FROM commandbus.process_event");
}

Test(process_batch, is_taken_up_in_the_order_of_its_states) /* STP.3 */
{
    start_batch(MOST);

    for (int i = 1; i <= MOST; i++) {
        cb_uuid id;
        char n[16];
        claim_members(1, &id);
        snprintf(n, sizeof n, "%d", i);
        expect_process(n, id, "state ->> 'n'");
    }
}

Test(process_batch, lives_from_pending_to_completed_with_one_message_at_the_end) /* BUS.5 */
{
    cb_uuid id = start_batch(2), members[2];

    claim_members(2, members);
    expect_batch("IN_PROGRESS 2/0/0/0, 0/2/0", id);
    end_as(&members[0], 0, "COMPLETED");
    expect_batch("IN_PROGRESS 2/1/0/0, 0/1/0", id);
    expect_batch_told(0, id, "fx__replies");
    end_as(&members[1], 0, "COMPLETED");

    expect_batch("COMPLETED 2/2/0/0, 0/0/0", id);
    expect_batch_told(1, id, "fx__replies");
    expect_value(bus.conn, "t",
                 "SELECT message = jsonb_build_object('batch_id', $1::text, 'domain', 'payments', "
                 "'status', 'COMPLETED', 'total', 2, 'completed', 2, 'failed', 0, 'canceled', 0) "
                 "FROM pgmq.q_fx__replies",
                 id.text);
    expect_value(bus.conn, "BATCH_STARTED BATCH_COMPLETED",
                 "SELECT string_agg(event_type, ' ' ORDER BY at) FROM commandbus.audit "
                 "WHERE details ->> 'batch_id' = $1",
                 id.text);
}

Test(process_batch, counts_what_was_undone_as_failed) /* BUS.5, STP.3 */
{
    cb_uuid id = start_batch(4), members[4];

    claim_members(4, members);
    end_as(&members[0], 0, "COMPENSATED");
    end_as(&members[1], 0, "FAILED");
    end_as(&members[2], 0, "CANCELED");
    expect_batch("IN_PROGRESS 4/0/2/1, 0/1/0", id);
    end_as(&members[3], 0, "COMPLETED");

    expect_batch("COMPLETED_WITH_FAILURES 4/1/2/1, 0/0/0", id);
    expect_batch_told(1, id, "fx__replies");
}

Test(process_batch, is_open_in_every_status_that_is_not_final) /* BUS.5 */
{
    static const struct {
        const char *status, *shown;
    } open[] = {
        { "EXECUTING", "1/0/0/0, 0/1/0" },         { "WAITING_FOR_REPLY", "1/0/0/0, 0/1/0" },
        { "WAITING_FOR_ASYNC", "1/0/0/0, 0/1/0" }, { "WAITING_FOR_RETRY", "1/0/0/0, 0/1/0" },
        { "COMPENSATING", "1/0/0/0, 0/1/0" },      { "WAITING_FOR_TSQ", "1/0/0/0, 1/0/0" },
        { "PENDING", "1/0/0/0, 0/0/1" },
    };
    cb_uuid id = start_batch(1), member;
    char expected[100], members[100];

    claim_members(1, &member);
    for (size_t i = 0; i < sizeof open / sizeof *open; i++) {
        snprintf(members, sizeof members, "\"checkpoint\":true,\"status\":\"%s\"", open[i].status);
        expect_verdict(CB_SETTLED, process_settle(&member, (int)i, members));
        snprintf(expected, sizeof expected, "IN_PROGRESS %s", open[i].shown);
        expect_batch(expected, id);
        cr_assert_eq(close_batches(), 0, "closed with a member %s", open[i].status);
    }
    expect_batch_told(0, id, "fx__replies");
}

Test(process_batch, ends_with_the_decision_of_an_operator) /* BUS.5, STP.9 */
{
    cb_uuid id = start_batch(1), member;
    cb_error e = { 0 };

    claim_members(1, &member);
    end_as(&member, 0, "WAITING_FOR_TSQ");
    expect_batch("IN_PROGRESS 1/0/0/0, 1/0/0", id);
    expect_ok(cb_process_cancel(bus.db, member.text, "ann", "given up", false, &e), e);
    expect_batch_told(0, id, "fx__replies");
    claim_members(1, NULL);
    test_exec(bus.conn,
              "UPDATE commandbus.process SET lease_no = 1"); /* what process_settle says */
    end_as(&member, 1, "CANCELED");

    expect_batch("COMPLETED_WITH_FAILURES 1/0/0/1, 0/0/0", id);
    expect_batch_told(1, id, "fx__replies");
}

Test(process_batch, can_be_added_to_until_it_is_closed) /* BUS.5 */
{
    cb_uuid id = start_batch(1), members[4];
    char sql[200];

    pay_start_with(bus.db, .batch_id = id.text);
    snprintf(sql, sizeof sql,
             "SELECT count(*) FROM commandbus.start_processes('Pay', '[{}, {}]', batch_id => '%s')",
             id.text);
    expect_number(bus.conn, 2, sql);
    claim_members(4, members);
    expect_batch("IN_PROGRESS 4/0/0/0, 0/4/0", id);
    for (int i = 0; i < 4; i++)
        end_as(&members[i], 0, "COMPLETED");

    expect_batch("COMPLETED 4/4/0/0, 0/0/0", id);
    expect_sqlstate(bus.conn, "CB005", sql);
    expect_batch_told(1, id, "fx__replies");
}

Test(process_batch, is_not_closed_while_somebody_adds_to_it) /* BUS.5, DESIGN 3 */
{
    cb_uuid id = start_batch(1), member;
    PGconn *adder = test_pq_open(bus.conninfo);

    claim_members(1, &member);
    test_exec(adder, "BEGIN");
    char *added = test_value(
        adder, "SELECT commandbus.start_process('Pay', '{}', batch_id => $1::uuid)", id.text, NULL);
    end_as(&member, 0, "COMPLETED"); /* the adder is not waited for */
    cr_assert_eq(close_batches(), 0);
    test_exec(adder, "COMMIT");
    cr_assert_eq(close_batches(), 0);
    expect_batch("IN_PROGRESS 2/1/0/0, 0/0/1", id);
    claim_members(1, &member);
    cr_assert_str_eq(member.text, added);
    end_as(&member, 0, "COMPLETED");

    expect_batch("COMPLETED 2/2/0/0, 0/0/0", id);
    expect_batch_told(1, id, "fx__replies");
    free(added);
    PQfinish(adder);
}

Test(process_batch, that_nobody_closed_is_closed_by_housekeeping_once) /* BUS.5 */
{
    cb_uuid id = start_batch(1), member;
    char sql[400];

    claim_members(1, &member);
    snprintf(sql, sizeof sql, "SELECT batch_ids[1] FROM commandbus.settle_processes('w', '[%s]')",
             process_item(&member, 0, "\"wake\":\"NEVER\",\"status\":\"COMPLETED\""));
    expect_value(bus.conn, id.text, sql); /* the worker dies before it closes */
    expect_batch("IN_PROGRESS 1/1/0/0, 0/0/0", id);

    cr_assert_eq(close_batches(), 1);
    cr_assert_eq(close_batches(), 0);
    expect_batch("COMPLETED 1/1/0/0, 0/0/0", id);
    expect_batch_told(1, id, "fx__replies");
}

typedef struct {
    cb_db *db[2];
    cb_process_item *items[2];
    cb_verdict verdicts[2];
} race;

static void settle_item(size_t i, void *arg)
{
    race *r = arg;
    cb_process_settlement one = { .item = r->items[i] };
    cb_error e;

    r->verdicts[i] =
        cb_process_settle(r->db[i], "w", &one, 1, &e) ? one.verdict : (cb_verdict)CB_BUSY;
}

Test(process_batch, whose_last_two_end_at_the_same_moment_completes_exactly_once) /* BUS.5 */
{
    race r = { .db = { test_bus_open(bus.conninfo), test_bus_open(bus.conninfo) } };

    for (int round = 0; round < 50; round++) {
        cb_uuid id = start_batch(2), members[2];
        claim_members(2, members);
        for (int i = 0; i < 2; i++)
            r.items[i] =
                process_item_new(&members[i], 0, "\"wake\":\"NEVER\",\"status\":\"COMPLETED\"");

        parallel_run(2, settle_item, &r);

        for (int i = 0; i < 2; i++) {
            expect_verdict(CB_SETTLED, r.verdicts[i]);
            cb_process_item_free(r.items[i]);
        }
        cr_assert_eq(close_batches(), 0, "round %d was left to housekeeping", round);
        expect_batch("COMPLETED 2/2/0/0, 0/0/0", id);
        expect_batch_told(1, id, "fx__replies");
    }
    for (int i = 0; i < 2; i++)
        cb_db_free(r.db[i]);
}

Test(process_batch, that_could_not_work_is_refused_and_nothing_is_created) /* BUS.5, CONTRACT */
{
    static const struct {
        const char *sqlstate, *arguments;
    } refused[] = {
        { "CB009", "'Pya', '[{}]'" },
        { "CB009", "NULL, '[{}]'" },
        { "CB006", "'Pay', '[]'" },
        { "CB006", "'Pay', NULL" },
        { "CB011", "'Pay', '{}'" },
        { "CB011", "'Pay', '7'" },
        { "CB011", "'Pay', '[{}, [1]]'" },
        { "CB011", "'Pay', '[{}, null]'" },
        { "CB011", "'Pay', '[{}]', deadline => 'infinity'" },
        { "CB011", "'Pay', '[{}, {}]', labels => '{one}'" },
    };
    const char *const good[] = { "{}" }, *const bad[] = { "{}", "{\"n\"}" };
    cb_start_batch_options options = { .process_type = "Pay" };
    cb_uuid taken = start_batch(1);
    char *before = bus_contents(), sql[200];
    cb_error e = { 0 };

    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        snprintf(sql, sizeof sql, "SELECT commandbus.start_batch(%s)", refused[i].arguments);
        expect_sqlstate(bus.conn, refused[i].sqlstate, sql);
    }
    expect_error(CB_BATCH_EMPTY, cb_start_batch(bus.db, &options, NULL, 0, NULL, &e), e);
    expect_error(CB_INVALID_DATA, cb_start_batch(bus.db, &options, bad, 2, NULL, &e), e);
    cr_assert(strstr(e.message, "state 2"), "%s", e.message);
    options.custom_data = "{";
    expect_error(CB_INVALID_DATA, cb_start_batch(bus.db, &options, good, 1, NULL, &e), e);
    options = (cb_start_batch_options){ .process_type = "Pay", .reply_to = "fx__commands" };
    cr_assert_not(cb_start_batch(bus.db, &options, good, 1, NULL, &e));
    options.reply_to = "payments__replies"; /* of Pay: there the message would be a dead letter */
    expect_error(CB_INVALID_OPERATION, cb_start_batch(bus.db, &options, good, 1, NULL, &e), e);
    options = (cb_start_batch_options){ .process_type = "Pay", .batch_id = "x" };
    expect_error(CB_INVALID_DATA, cb_start_batch(bus.db, &options, good, 1, NULL, &e), e);
    options.batch_id = taken.text;
    expect_error(CB_INVALID_OPERATION, cb_start_batch(bus.db, &options, good, 1, NULL, &e), e);
    options = (cb_start_batch_options){ 0 };
    expect_error(CB_MISUSE, cb_start_batch(bus.db, &options, good, 1, NULL, &e), e);

    expect_unchanged(before, bus_contents());
}

static bool stop_behind_the_first(size_t started, size_t total, void *arg)
{
    cr_assert_eq(total, 2500);
    *(size_t *)arg = started;
    return started > 1000;
}

/* BUS.5: more than one statement takes are still one transaction, and a refusal names the
 * culprit */
Test(process_batch, of_thousands_is_started_whole_or_not_at_all)
{
    enum {
        MANY = 2500,
        CULPRIT = 2100
    };
    const char **states = calloc(MANY, sizeof *states);
    size_t *lines = calloc(MANY, sizeof *lines), started = 0;
    char *large = malloc(1500000);
    cb_start_batch_options options = { .process_type = "Pay", .deadline = "2040-01-01" };
    cb_error e = { 0 };
    cb_uuid id;
    memset(large, 'x', 1500000);
    memcpy(large, "{\"x\":\"", 6);
    memcpy(large + 1500000 - 3, "\"}", 3);
    for (size_t i = 0; i < MANY; i++) {
        states[i] = i + 1 == CULPRIT ? large : "{}";
        lines[i] = 10 * (i + 1);
    }
    char *before = bus_contents();

    expect_error(CB_PAYLOAD_TOO_LARGE, cb_start_batch(bus.db, &options, states, MANY, NULL, &e), e);
    cr_assert(strstr(e.message, "state 2100 has"), "%s", e.message);
    options.lines = lines;
    expect_error(CB_PAYLOAD_TOO_LARGE, cb_start_batch(bus.db, &options, states, MANY, NULL, &e), e);
    cr_assert(strstr(e.message, "line 21000 has"), "%s", e.message);
    states[CULPRIT - 1] = "{}";
    options.progress = stop_behind_the_first;
    options.arg = &started;
    expect_error(CB_AGAIN, cb_start_batch(bus.db, &options, states, MANY, NULL, &e), e);
    cr_assert_eq(started, 1000);
    expect_unchanged(before, bus_contents());

    options.progress = NULL;
    expect_ok(cb_start_batch(bus.db, &options, states, MANY, &id, &e), e);
    expect_batch("PENDING 2500/0/0/0, 0/0/2500", id);
    expect_number(bus.conn, MANY,
                  "SELECT count(*) FROM commandbus.process WHERE deadline_at = '2040-01-01'");
    free(states);
    free(lines);
    free(large);
}

Test(process_batch, starts_or_not_with_the_callers_transaction) /* BUS.1 */
{
    cb_error e = { 0 };

    expect_ok(cb_db_begin(bus.db, &e), e);
    cb_uuid id = start_batch(3);
    expect_ok(cb_db_rollback(bus.db, &e), e);
    expect_number(bus.conn, 0, "SELECT count(*) FROM commandbus.process");

    expect_ok(cb_db_begin(bus.db, &e), e);
    id = start_batch(3);
    expect_ok(cb_db_commit(bus.db, &e), e);
    expect_batch("PENDING 3/0/0/0, 0/0/3", id);
}

/* BUS.5: the last settles of a batch of thousands pay no more than the first */
Test(process_batch, is_asked_for_open_members_without_passing_those_that_ended)
{
    PGconn *conn = test_pq_open(bus.conninfo);
    char *id = test_value(bus.conn,
                          "SELECT commandbus.start_batch('Pay', (SELECT jsonb_agg('{}'::jsonb) "
                          "FROM generate_series(1, 10000)))",
                          NULL);
    test_exec(bus.conn, "UPDATE commandbus.process SET status = 'COMPLETED', completed_at = now(), "
                        "wake_at = NULL WHERE process_id <> (SELECT process_id FROM "
                        "commandbus.process ORDER BY process_id OFFSET 5000 LIMIT 1)");
    test_exec(bus.conn, "VACUUM ANALYZE commandbus.process");

    /* By whatever index, or none: of an index scan the index keeps count. */
    expect_value(conn, "t",
                 "SELECT commandbus.batch_has_open($1::uuid) AND (SELECT "
                 "sum(pg_stat_get_xact_tuples_returned(r) + pg_stat_get_xact_tuples_fetched(r)) "
                 "BETWEEN 1 AND 9 FROM (SELECT 'commandbus.process'::regclass::oid UNION ALL "
                 "SELECT indexrelid FROM pg_index "
                 "WHERE indrelid = 'commandbus.process'::regclass) o(r))",
                 id);
    free(id);
    PQfinish(conn);
}

/* STP.3, SIM.6: each with an id and a deadline of its own; all of them or none. */
Test(process_batch, its_processes_may_have_ids_and_deadlines_of_their_own)
{
    static const char *const states[] = { "{}", "{}" };
    const cb_uuid first = cb_uuid_new(), second = cb_uuid_new(), third = cb_uuid_new();
    const char *ids[] = { first.text, second.text }, *again[] = { third.text, second.text };
    const char *deadlines[] = { "2099-01-05T10:00:00Z", NULL };
    cb_start_batch_options options = { .process_type = "Pay",
                                       .deadline = "2099-12-31T00:00:00Z",
                                       .process_ids = ids,
                                       .deadlines = deadlines };
    cb_error e = { 0 };

    expect_ok(cb_start_batch(bus.db, &options, states, 2, NULL, &e), e);

    for (size_t i = 0; i < 2; i++)
        expect_value(bus.conn, i == 0 ? "t" : "f",
                     "SELECT deadline_at = '2099-01-05T10:00:00Z' FROM commandbus.process WHERE "
                     "process_id = $1",
                     ids[i]);

    options.process_ids = again;
    cr_expect_not(cb_start_batch(bus.db, &options, states, 2, NULL, &e));
    cr_expect_eq(e.code, CB_INVALID_OPERATION, "%s", e.message);
    cr_expect(strstr(e.message, second.text), "%s", e.message);
    expect_value(bus.conn, "2", "SELECT count(*) FROM commandbus.process");

    again[1] = third.text; /* twice the same: one of them would never be started */
    cr_expect_not(cb_start_batch(bus.db, &options, states, 2, NULL, &e));
    cr_expect_eq(e.code, CB_INVALID_DATA, "%s", e.message);
    expect_value(bus.conn, "2", "SELECT count(*) FROM commandbus.process");

    again[1] = "no-uuid";
    cr_expect_not(cb_start_batch(bus.db, &options, states, 2, NULL, &e));
    cr_expect_eq(e.code, CB_INVALID_DATA, "%s", e.message);
}
