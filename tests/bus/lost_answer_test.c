/* Connections cut in the middle of a call: nobody knows whether it committed, and it does not
 * matter. */
#include "claims.h"
#include "proxy.h"

TestSuite(lost_answer, .init = bus_open, .fini = bus_close);

enum {
    N = 200
};

typedef struct {
    test_proxy *proxy;
    cb_db *db; /* through it */
} cut_line;

static cut_line cut_line_open(void)
{
    cut_line r;

    r.proxy = test_proxy_start(bus.conninfo);
    r.db = test_bus_open(test_proxy_conninfo(r.proxy));
    return r;
}

static void cut_line_close(cut_line *r)
{
    cb_db_free(r->db);
    test_proxy_stop(r->proxy);
}

/* The call that was cut says so, and nothing works until the connection is reopened. */
static void expect_lost(cut_line *r, bool answered, cb_error *e)
{
    cr_expect_not(answered);
    cr_expect_eq(e->code, CB_LOST, "%s %s", cb_code_name(e->code), e->message);
    cr_expect(cb_db_is_lost(r->db));
    cr_assert_eq(test_proxy_cuts(r->proxy), 1, "the connection was not cut");
    cr_assert(cb_db_reconnect(r->db, e), "%s", e->message);
}

/* The same items again until none is busy. */
static void resend(cut_line *r, cb_settlement *items, size_t n, cb_verdict expected)
{
    bool busy = true;

    for (double end = test_clock() + patience_seconds; busy && test_clock() < end;) {
        cb_error e = { 0 };
        cr_assert(cb_settle(r->db, "w", items, n, &e), "%s", e.message);
        busy = false;
        for (size_t i = 0; i < n; i++)
            busy |= items[i].verdict == CB_BUSY;
    }
    for (size_t i = 0; i < n; i++) {
        if (expected == CB_BUSY) /* Either: it raced with the cut. */
            cr_expect(items[i].verdict == CB_SETTLED || items[i].verdict == CB_ALREADY);
        else
            expect_verdict(expected, items[i].verdict);
    }
}

static void settle_batch_through_a_cut(proxy_moment moment, cb_verdict expected)
{
    cut_line r = cut_line_open();
    cb_settlement items[N];
    cb_error e = { 0 };
    test_send(bus.db, N, NULL);
    OWNED(cb_claim) claim = test_claim(r.db, "w", N, 60);
    cr_assert_eq(cb_claim_count(claim), N);
    for (size_t i = 0; i < N; i++)
        items[i] = test_outcome(cb_claim_at(claim, i), i % 4 == 3 ? CB_PERMANENT : CB_SUCCESS);

    test_proxy_cut(r.proxy, moment);
    expect_lost(&r, cb_settle(r.db, "w", items, N, &e), &e);
    resend(&r, items, N, expected);

    expect_value(bus.conn, "150 completed, 50 parked, 0 stale",
                 "SELECT count(*) FILTER (WHERE event_type = 'COMPLETED') || ' completed, ' || "
                 "count(*) FILTER (WHERE event_type = 'MOVED_TO_TSQ') || ' parked, ' || "
                 "count(*) FILTER (WHERE event_type = 'STALE_OUTCOME') || ' stale' "
                 "FROM commandbus.audit");
    expect_value(bus.conn, "150 final, 50 not, to 200",
                 "SELECT count(*) FILTER (WHERE message @> '{\"final\": true}') || ' final, ' || "
                 "count(*) FILTER (WHERE message @> '{\"final\": false}') || ' not, to ' || "
                 "count(DISTINCT message ->> 'command_id') FROM pgmq.q_payments__replies");
    expect_value(bus.conn, "0", "SELECT count(*) FROM pgmq.q_fx__commands");
    cut_line_close(&r);
}

Test(lost_answer, a_settle_whose_answer_was_lost_is_already_there_when_resent) /* WRK.14 */
{
    settle_batch_through_a_cut(PROXY_CUT_ANSWER, CB_ALREADY);
}

Test(lost_answer, a_settle_that_never_arrived_settles_when_resent) /* WRK.14 */
{
    settle_batch_through_a_cut(PROXY_CUT_REQUEST, CB_SETTLED);
}

Test(lost_answer, a_settle_cut_while_it_runs_ends_once_when_resent) /* WRK.14 */
{
    settle_batch_through_a_cut(PROXY_CUT_RUNNING, CB_BUSY);
}

Test(lost_answer, a_settle_of_several_domains_is_resent_the_same_way) /* WRK.14 */
{
    cut_line r = cut_line_open();
    const char *const domains[] = { "fx", "payments", "risk" };
    cb_settlement items[6];
    cb_error e = { 0 };
    for (size_t d = 0; d < 3; d++) {
        OWNED(cb_receiver) receiver = NULL;
        OWNED(cb_claim) claim = NULL;
        for (int i = 0; i < 2; i++)
            test_send_one(bus.db, .domain = domains[d], .reply_to = "payments__replies");
        cr_assert(
            cb_receiver_open(domains[d], &(cb_receive_options){ .worker = "w" }, &receiver, &e));
        cr_assert(cb_receive(r.db, receiver, 2, &claim, &e), "%s", e.message);
        cr_assert_eq(cb_claim_count(claim), 2);
        for (size_t i = 0; i < 2; i++) {
            items[d * 2 + i] = test_outcome(cb_claim_at(claim, i), CB_SUCCESS);
            items[d * 2 + i].domain = domains[d];
        }
    }

    test_proxy_cut(r.proxy, PROXY_CUT_ANSWER);
    expect_lost(&r, cb_settle(r.db, "w", items, 6, &e), &e);
    resend(&r, items, 6, CB_ALREADY);

    expect_value(bus.conn, "6", "SELECT count(*) FROM pgmq.q_payments__replies");
    cut_line_close(&r);
}

/* Sends N commands with ids of their own through the cut, and the same again. */
static void send_through_a_cut(proxy_moment moment, cb_code expected)
{
    cut_line r = cut_line_open();
    cb_uuid ids[N];
    cb_send commands[N];
    cb_error e = { 0 };
    size_t sent = 99;
    for (size_t i = 0; i < N; i++) {
        ids[i] = cb_uuid_new();
        commands[i] =
            (cb_send){ .domain = "fx", .command_type = "Test", .command_id = ids[i].text };
    }

    test_proxy_cut(r.proxy, moment);
    bool answered = cb_send_many(r.db, commands, N, NULL, NULL, &sent, &e);
    cr_expect_eq(sent, 0);
    expect_lost(&r, answered, &e);

    cb_error again = { 0 };
    bool done = cb_send_many(r.db, commands, N, NULL, NULL, &sent, &again);
    cr_expect_eq(done ? CB_OK : again.code, expected, "%s", again.message);

    expect_value(bus.conn, "200 rows, 200 messages, 200 sent",
                 "SELECT (SELECT count(*) FROM commandbus.command_metadata) || ' rows, ' || "
                 "(SELECT count(*) FROM pgmq.q_fx__commands) || ' messages, ' || "
                 "(SELECT count(*) FROM commandbus.audit WHERE event_type = 'SENT') || ' sent'");
    cut_line_close(&r);
}

Test(lost_answer, a_send_whose_answer_was_lost_is_a_duplicate_when_repeated) /* BUS.4 */
{
    send_through_a_cut(PROXY_CUT_ANSWER, CB_DUPLICATE_COMMAND);
}

Test(lost_answer, a_send_that_never_arrived_is_sent_when_repeated) /* BUS.4 */
{
    send_through_a_cut(PROXY_CUT_REQUEST, CB_OK);
}

Test(lost_answer, a_claim_whose_answer_was_lost_is_released_uncharged_and_fenced_off) /* DESIGN 2 */
{
    cut_line r = cut_line_open();
    OWNED(cb_receiver) receiver = NULL;
    cb_claim *none = NULL;
    cb_error e = { 0 };
    size_t released = 0;
    test_send(bus.db, 15, NULL);
    OWNED(cb_claim) known = test_claim(r.db, "w", 5, 60);
    cb_lease held[5];
    for (size_t i = 0; i < 5; i++)
        held[i] = test_lease(cb_claim_at(known, i));
    cr_assert(cb_receiver_open("fx", &(cb_receive_options){ .worker = "w" }, &receiver, &e));

    test_proxy_cut(r.proxy, PROXY_CUT_ANSWER);
    expect_lost(&r, cb_receive(r.db, receiver, 10, &none, &e), &e);
    expect_value(bus.conn, "15",
                 "SELECT count(*) FROM commandbus.command_metadata "
                 "WHERE status = 'IN_PROGRESS' AND lease_owner = 'w'");
    cr_assert(cb_lease_release_unknown(r.db, "fx", "w", held, 5, &released, &e), "%s", e.message);

    cr_expect_eq(released, 10);
    OWNED(cb_claim) again = NULL;
    cr_assert(cb_receive(r.db, receiver, 15, &again, &e), "%s", e.message);
    cr_assert_eq(cb_claim_count(again), 10);
    for (size_t i = 0; i < 10; i++) {
        const cb_command *c = cb_claim_at(again, i);
        cb_settlement lost = test_outcome(c, CB_SUCCESS);
        cr_expect_eq(c->attempt, 1, "the lost claim was charged");
        cr_expect_gt(c->lease_no, 2, "the fence of the lost claim was given out again");
        lost.lease_no = 1;
        expect_verdict(CB_STALE, test_settle_one(r.db, "w", lost));
    }
    cut_line_close(&r);
}
