/* Claiming processes: what is due, for whom, in which order, and what a row looks like. */
#include "claims.h"
#include "parallel.h"
#include "pay.h"

#include <stdio.h>

TestSuite(process_claim, .init = pay_open, .fini = bus_close);

static size_t claim_kinds(const cb_process_kind *kinds, size_t n, int quantity,
                          cb_process_look *look)
{
    cb_process_claim_options options = { .worker = "w", .kinds = kinds, .n_kinds = n };
    OWNED(cb_process_claim) claim = NULL;
    cb_error e = { 0 };

    cr_assert(cb_process_claim_due(bus.db, &options, quantity, &claim, look, &e), "%s", e.message);
    return cb_process_claim_count(claim);
}

static void move_clock(const char *by)
{
    free(test_value(bus.conn, "UPDATE commandbus.clock SET moved_by = $1::interval RETURNING ''",
                    by, NULL));
}

Test(process_claim, gives_the_row_as_it_was_under_a_lease_and_a_new_fence) /* DESIGN 2, 4 */
{
    cb_uuid id = pay_start_with(bus.db, .deadline = "2100-01-01T00:00:00.123Z");

    OWNED(cb_process_claim) claim = pay_claim(bus.db, "w", 10, 30);

    cr_assert_eq(cb_process_claim_count(claim), 1);
    const cb_process_row *row = cb_process_claim_at(claim, 0);
    cr_expect_str_eq(row->process_id.text, id.text);
    cr_expect_str_eq(row->domain, "payments");
    cr_expect_str_eq(row->process_type, "Pay");
    cr_expect_str_eq(row->reply_queue, "payments__replies");
    cr_expect_str_eq(row->status, "PENDING");
    cr_expect_str_eq(row->phase, "FORWARD");
    cr_expect_null(row->error_code);
    cr_expect_null(row->current_wait);
    cr_expect_null(row->leaving);
    cr_expect_eq(row->version, 0);
    cr_expect_eq(row->lease_no, 1);
    cr_expect_eq(row->settle_no, 0);
    cr_expect_eq(row->inbox_seq, 0);
    cr_expect_eq(row->deadline_ms, 4102444800123);
    cr_expect_eq(row->retry_ms, 0);
    cr_expect(row->created_ms > 0 && row->created_ms <= row->now_ms);
    cr_expect_not(row->deadline_spent);
    cr_expect_str_eq(row->initial_state, "{\"n\": 1}");
    cr_expect_str_eq(row->state, "{\"n\": 1}");
    cr_expect_str_eq(row->history, "[]");
    cr_expect_str_eq(row->inbox, "[]");
    cr_expect_geq(row->waited_us, 0);
    expect_value(bus.conn, "EXECUTING 1 w t t",
                 "SELECT concat_ws(' ', status, lease_no, lease_owner, "
                 "lease_until - now() BETWEEN '20 s' AND '30 s', "
                 "wake_at - commandbus.now() BETWEEN '20 s' AND '30 s') FROM commandbus.process");
}

Test(process_claim, runs_what_waits_and_leaves_other_statuses_alone) /* DESIGN 4 */
{
    static const struct {
        const char *before, *after;
    } cases[] = {
        { "WAITING_FOR_ASYNC", "EXECUTING" },
        { "WAITING_FOR_REPLY", "EXECUTING" },
        { "WAITING_FOR_RETRY", "EXECUTING" },
        { "EXECUTING", "EXECUTING" },
        { "WAITING_FOR_TSQ", "WAITING_FOR_TSQ" },
        { "COMPENSATING", "COMPENSATING" },
        { "COMPLETED", "COMPLETED" },
        { "FAILED", "FAILED" },
    };
    cb_uuid id = pay_start(bus.db);

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pay_suspend(bus.conn, id, cases[i].before);
        pay_set(bus.conn, id, "wake_at = commandbus.now()");
        OWNED(cb_process_claim) claim = pay_claim(bus.db, "w", 10, 30);
        cr_assert_eq(cb_process_claim_count(claim), 1);
        cr_expect_str_eq(cb_process_claim_at(claim, 0)->status, cases[i].before);
        cr_expect_eq(cb_process_claim_at(claim, 0)->lease_no, (int64_t)i + 1);
        expect_value(bus.conn, cases[i].after, "SELECT status FROM commandbus.process");
    }
}

Test(process_claim, brings_history_and_inbox_as_arrays_in_order) /* DESIGN 4, cb_record_column */
{
    cb_uuid id = pay_start(bus.db), command = pay_command(bus.conn, id);
    char expected[1000];
    cb_error e = { 0 };

    free(test_value(
        bus.conn,
        "INSERT INTO commandbus.process_history (process_id, ordinal, at, kind, status, name, "
        "attempts, send_no, during, command_id, domain, command_type, timeout_at, error_code, "
        "error_message, result, opening, patch, owes) SELECT $1::uuid, v.* FROM (VALUES "
        "(2, to_timestamp(1000000000), 'COMMAND'::commandbus.record_kind, "
        "'WAITING'::commandbus.record_status, 'bookFx', 0, 1, NULL::integer, $2::uuid, 'fx', 'BookFx', "
        "timestamptz '2100-01-01T00:00:00Z', NULL, NULL, NULL::jsonb, '{\"a\": 1}'::jsonb, "
        "NULL::jsonb, '{\"inline\": true}'::jsonb), "
        "(1, now(), 'COMMAND', 'COMPLETED', 'x', 2, NULL, 7, $2::uuid, 'fx', 'T', NULL, 'E', 'm', "
        "'\"r\"', NULL, '{\"b\": 2}', NULL)) v RETURNING ''",
        id.text, command.text, NULL));
    cr_assert(cb_process_respond(bus.db, id.text, "L\"1", "[1]", command.text, NULL, &e));
    cr_assert(cb_process_respond(bus.db, id.text, "L2", NULL, NULL, NULL, &e));

    OWNED(cb_process_claim) claim = pay_claim(bus.db, "w", 1, 30);
    cr_assert_eq(cb_process_claim_count(claim), 1);
    snprintf(expected, sizeof expected,
             "[[1,\"COMMAND\",\"COMPLETED\",\"x\",2,0,7,\"%s\",\"fx\",\"T\",0,\"E\","
             "\"m\",\"r\",null,{\"b\": 2},null,null,0,false],"
             "[2,\"COMMAND\",\"WAITING\",\"bookFx\",0,1,0,\"%s\",\"fx\",\"BookFx\","
             "4102444800000,null,null,null,{\"a\": 1},null,{\"inline\": true},\"PENDING\","
             "1000000000000,false]]",
             command.text, command.text);
    cr_expect_str_eq(cb_process_claim_at(claim, 0)->history, expected);
    snprintf(expected, sizeof expected,
             "[[1,\"RESPONSE\",\"L\\\"1\",\"%s\",[1]],[2,\"RESPONSE\",\"L2\",null,{}]]",
             command.text);
    cr_expect_str_eq(cb_process_claim_at(claim, 0)->inbox, expected);
    cr_expect_eq(cb_process_claim_at(claim, 0)->inbox_seq, 2);
}

Test(process_claim, takes_the_longest_due_first_and_no_more_than_asked) /* DESIGN 2 */
{
    cb_uuid ids[3];

    for (int i = 0; i < 3; i++)
        ids[i] = pay_start(bus.db);
    pay_set(bus.conn, ids[0], "wake_at = wake_at - interval '1 s'");
    pay_set(bus.conn, ids[2], "wake_at = wake_at - interval '2 s'");

    for (int i = 2; i >= 0; i--) {
        static const int order[] = { 1, 0, 2 };
        OWNED(cb_process_claim) claim = pay_claim(bus.db, "w", 1, 30);
        cr_assert_eq(cb_process_claim_count(claim), 1);
        cr_expect_str_eq(cb_process_claim_at(claim, 0)->process_id.text, ids[order[i]].text);
    }
}

Test(process_claim, of_several_types_starves_none_and_keeps_to_the_quantity) /* DESIGN 8.7 */
{
    static const cb_process_kind kinds[] = { { "Pay", "payments", 1, false, NULL, NULL, NULL },
                                             { "Rare", "payments", 1, false, NULL, NULL, NULL } };
    cb_error e = { 0 };
    size_t rounds = 0, n = 0;

    cr_assert(cb_process_register(bus.db, kinds, 2, &e), "%s", e.message);
    for (int i = 0; i < 400; i++)
        pay_start(bus.db);
    test_exec(bus.conn, "SELECT commandbus.start_process('Rare', '{}')");

    /* Each round has it with a chance of one half. */
    while (test_number(bus.conn,
                       "SELECT lease_no FROM commandbus.process WHERE process_type = 'Rare'",
                       NULL) == 0) {
        n = claim_kinds(kinds, 2, 3, NULL);
        cr_assert_eq(n, 3);
        cr_assert_lt(++rounds, 100);
    }
}

Test(process_claim, leaves_types_and_versions_that_the_caller_has_not) /* STP.13, DESIGN 4 skew */
{
    static const cb_process_kind other = { "Other", "payments", 9, false, NULL, NULL, NULL };
    static const cb_process_kind old = { "Pay", "payments", 1, false, NULL, NULL, NULL };
    static const cb_process_kind new = { "Pay", "payments", 2, false, NULL, NULL, NULL };
    cb_process_look look;
    cb_uuid id = pay_start(bus.db);
    pay_set(bus.conn, id, "version = 2");

    cr_expect_eq(claim_kinds(&other, 1, 5, &look), 0);
    cr_expect_lt(look.next_seconds, 0);
    cr_expect_eq(claim_kinds(&old, 1, 5, &look), 0);
    cr_expect_lt(look.next_seconds, 0, "who cannot run it must not come again at once: %f",
                 look.next_seconds);
    cr_expect_eq(claim_kinds(NULL, 0, 5, &look), 0);
    cr_expect_eq(claim_kinds(&new, 1, 0, &look), 0);
    cr_expect_eq(look.next_seconds, 0);
    cr_expect_eq(claim_kinds(&new, 1, 5, &look), 1);
}

Test(process_claim, waits_for_timers_on_the_clock_that_tests_move) /* STP.15 */
{
    static const cb_process_kind pay = { "Pay", "payments", 1, false, NULL, NULL, NULL };
    cb_process_look look;
    cb_uuid id = pay_start(bus.db), idle = pay_start(bus.db);

    pay_suspend(bus.conn, idle, "WAITING_FOR_ASYNC");
    pay_suspend(bus.conn, id, "WAITING_FOR_RETRY");
    cr_expect_eq(claim_kinds(&pay, 1, 5, &look), 0);
    cr_expect_lt(look.next_seconds, 0, "no timer");
    pay_set(bus.conn, id, "wake_at = commandbus.now() + interval '1 hour'");
    cr_expect_eq(claim_kinds(&pay, 1, 5, &look), 0);
    cr_expect(look.next_seconds > 3600 - patience_seconds && look.next_seconds <= 3600, "%f",
              look.next_seconds);
    move_clock("61 minutes");
    cr_expect_eq(claim_kinds(&pay, 1, 0, &look), 0);
    cr_expect_eq(look.next_seconds, 0);

    OWNED(cb_process_claim) claim = pay_claim(bus.db, "w", 5, 30);
    cr_assert_eq(cb_process_claim_count(claim), 1);
    cr_expect_geq(cb_process_claim_at(claim, 0)->waited_us, 59 * 1000000);
}

Test(process_claim, of_a_moved_clock_takes_no_lease_that_is_alive) /* DESIGN 2 clock */
{
    static const cb_process_kind pay = { "Pay", "payments", 1, false, NULL, NULL, NULL };
    cb_process_look look;

    pay_start(bus.db);
    cb_process_claim_free(pay_claim(bus.db, "holder", 1, 20));
    move_clock("2 hours");

    cr_expect_eq(claim_kinds(&pay, 1, 5, &look), 0);
    cr_expect(look.next_seconds > 0 && look.next_seconds <= 20, "%f", look.next_seconds);
}

Test(process_claim, takes_over_an_expired_lease_under_a_new_fence) /* DESIGN 2 leases */
{
    cb_uuid id = pay_start(bus.db);
    cb_process_claim_free(pay_claim(bus.db, "dies", 1, 0.05));

    OWNED(cb_process_claim) claim = pay_claim_awaited(bus.db, "heir", 1, 0.5);

    cr_expect_str_eq(cb_process_claim_at(claim, 0)->process_id.text, id.text);
    cr_expect_str_eq(cb_process_claim_at(claim, 0)->status, "EXECUTING");
    cr_expect_eq(cb_process_claim_at(claim, 0)->lease_no, 2);
    expect_value(bus.conn, "heir", "SELECT lease_owner FROM commandbus.process");
}

Test(process_claim, gives_holders_one_vt_after_the_servers_start) /* DESIGN 2 leases */
{
    static const cb_process_kind pay = { "Pay", "payments", 1, false, NULL, NULL, NULL };
    cb_process_look look;
    cb_error e = { 0 };
    OWNED(cb_process_claim) early = NULL;
    /* A VT that reaches back beyond the start of the server stands for a server that has just
     * started. */
    char *age = test_value(
        bus.conn, "SELECT extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()) + 60",
        NULL);
    cb_process_claim_options options = {
        .worker = "heir", .kinds = &pay, .n_kinds = 1, .vt_seconds = strtod(age, NULL)
    };
    cb_uuid id = pay_start(bus.db);
    cb_process_claim_free(pay_claim(bus.db, "away", 1, 30));
    pay_set(bus.conn, id, "lease_until = now() - interval '1 s', wake_at = commandbus.now()");

    cr_assert(cb_process_claim_due(bus.db, &options, 5, &early, &look, &e), "%s", e.message);
    cr_expect_eq(cb_process_claim_count(early), 0);
    cr_expect(look.next_seconds > 0 && look.next_seconds <= 60, "%f", look.next_seconds);
    OWNED(cb_process_claim) claim = pay_claim(bus.db, "heir", 5, 0.5);
    cr_expect_eq(cb_process_claim_count(claim), 1);
    free(age);
}

Test(process_claim, skips_what_is_locked) /* DESIGN 2: never waits */
{
    cb_uuid locked = pay_start(bus.db), other = pay_start(bus.db);

    test_exec(bus.conn, "BEGIN");
    pay_set(bus.conn, locked, "inbox_seq = 0");
    OWNED(cb_process_claim) claim = pay_claim(bus.db, "w", 5, 30);
    test_exec(bus.conn, "ROLLBACK");

    cr_assert_eq(cb_process_claim_count(claim), 1);
    cr_expect_str_eq(cb_process_claim_at(claim, 0)->process_id.text, other.text);
}

typedef struct {
    const char *conninfo;
    cb_uuid id;
    int claimed[4];
    int unseen; /* claims whose inbox does not have what its inbox_seq says */
    int failed;
} race;

static size_t items_of_inbox(const char *inbox)
{
    size_t n = 0;

    while ((inbox = strstr(inbox, "\"RESPONSE\""))) {
        n++;
        inbox++;
    }
    return n;
}

static void respond_often(cb_db *db, race *t)
{
    cb_error e = { 0 };

    for (int i = 0; i < 150; i++) {
        if (!cb_process_respond(db, t->id.text, "L1", NULL, NULL, NULL, &e))
            __atomic_add_fetch(&t->failed, 1, __ATOMIC_RELAXED);
    }
}

/* What a settle does when the run has consumed nothing and waits on. */
static void settle_by_hand(PGconn *sql, const cb_process_row *row)
{
    char seen[24];
    const char *params[] = { row->process_id.text, seen };

    snprintf(seen, sizeof seen, "%lld", (long long)row->inbox_seq);
    PQclear(
        PQexecParams(sql,
                     "UPDATE commandbus.process SET lease_owner = NULL, lease_until = NULL, "
                     "status = 'WAITING_FOR_ASYNC', wake_at = CASE WHEN inbox_seq > $2::integer "
                     "THEN commandbus.now() END WHERE process_id = $1::uuid",
                     2, NULL, params, NULL, NULL, 0));
}

static void claim_often(cb_db *db, race *t, size_t i)
{
    static const cb_process_kind pay = { "Pay", "payments", 1, false, NULL, NULL, NULL };
    cb_process_claim_options options = { .worker = i == 2 ? "a" : "b",
                                         .kinds = &pay,
                                         .n_kinds = 1 };
    PGconn *sql = PQconnectdb(t->conninfo);
    cb_error e = { 0 };

    for (int round = 0; round < 150; round++) {
        OWNED(cb_process_claim) claim = NULL;
        if (!cb_process_claim_due(db, &options, 1, &claim, NULL, &e)) {
            __atomic_add_fetch(&t->failed, 1, __ATOMIC_RELAXED);
            break;
        }
        if (cb_process_claim_count(claim) == 0)
            continue;
        const cb_process_row *row = cb_process_claim_at(claim, 0);
        t->claimed[i]++;
        if (items_of_inbox(row->inbox) != (size_t)row->inbox_seq)
            __atomic_add_fetch(&t->unseen, 1, __ATOMIC_RELAXED);
        settle_by_hand(sql, row);
    }
    PQfinish(sql);
}

static void race_one(size_t i, void *arg)
{
    race *t = arg;
    cb_db *db = NULL;
    cb_error e = { 0 };

    if (!cb_db_open(t->conninfo, &db, &e)) {
        __atomic_add_fetch(&t->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    if (i < 2)
        respond_often(db, t);
    else
        claim_often(db, t, i);
    cb_db_free(db);
}

Test(process_claim,
     that_races_responses_sees_all_that_its_number_says) /* DESIGN 4: nothing is slept through */
{
    race t = { .conninfo = bus.conninfo, .id = pay_start(bus.db) };

    pay_suspend(bus.conn, t.id, "WAITING_FOR_ASYNC");
    parallel_run(4, race_one, &t);

    cr_expect_eq(t.failed, 0);
    cr_expect_eq(t.unseen, 0);
    cr_expect_gt(t.claimed[2] + t.claimed[3], 0);
    expect_value(bus.conn, "300 300",
                 "SELECT inbox_seq || ' ' || (SELECT count(*) FROM commandbus.process_inbox) "
                 "FROM commandbus.process");
    /* Either somebody saw the last one or it is due. */
    OWNED(cb_process_claim) last = pay_claim(bus.db, "w", 1, 30);
    if (cb_process_claim_count(last) == 1)
        cr_expect_eq(cb_process_claim_at(last, 0)->inbox_seq, 300);
}

typedef struct {
    const char *conninfo;
    size_t claimed[4];
} crowd;

static void claim_all(size_t i, void *arg)
{
    static const cb_process_kind pay = { "Pay", "payments", 1, false, NULL, NULL, NULL };
    cb_process_claim_options options = { .worker = "w", .kinds = &pay, .n_kinds = 1 };
    crowd *c = arg;
    cb_db *db = NULL;
    cb_error e = { 0 };

    if (!cb_db_open(c->conninfo, &db, &e))
        return;
    for (int round = 0; round < 40; round++) {
        OWNED(cb_process_claim) claim = NULL;
        if (cb_process_claim_due(db, &options, 5, &claim, NULL, &e))
            c->claimed[i] += cb_process_claim_count(claim);
    }
    cb_db_free(db);
}

Test(process_claim, by_several_workers_gives_each_process_to_one) /* DESIGN 8.4 */
{
    crowd c = { .conninfo = bus.conninfo };

    test_exec(bus.conn,
              "SELECT commandbus.start_process('Pay', '{}') FROM generate_series(1, 200)");
    parallel_run(4, claim_all, &c);

    cr_expect_eq(c.claimed[0] + c.claimed[1] + c.claimed[2] + c.claimed[3], 200);
    expect_value(bus.conn, "200", "SELECT sum(lease_no) FROM commandbus.process");
}

Test(process_claim, survives_infinite_moments) /* DESIGN 8.7 */
{
    cb_uuid id = pay_start(bus.db);

    pay_set(bus.conn, id,
            "wake_at = '-infinity', deadline_at = 'infinity', next_retry_at = '-infinity'");
    OWNED(cb_process_claim) claim = pay_claim(bus.db, "w", 5, 30);
    cr_assert_eq(cb_process_claim_count(claim), 1);
    cr_expect_eq(cb_process_claim_at(claim, 0)->deadline_ms, 0);
}

Test(process_claim, is_refused_without_sense) /* CONTRACT refusals */
{
    static const char *const calls[] = {
        "SELECT commandbus.claim_processes('', '{Pay}', '{1}', 1)",
        "SELECT commandbus.claim_processes('w', '{Pay}', '{}', 1)",
        "SELECT commandbus.claim_processes('w', '{Pay}', '{1}', 0)",
        "SELECT commandbus.claim_processes('w', '{Pay}', '{1}', 1, 0)",
        "SELECT commandbus.claim_processes('w', '{Pay}', '{1}', 1, 'NaN')",
        "SELECT commandbus.claim_processes(NULL, '{Pay}', '{1}', 1)",
    };

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        cr_expect_str_eq(test_sqlstate(bus.conn, calls[i]), "CB011", "%s", calls[i]);
    test_exec(bus.conn, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    cr_expect_str_eq(
        test_sqlstate(bus.conn, "SELECT commandbus.claim_processes('w', '{Pay}', '{1}', 1)"),
        "CB007");
    test_exec(bus.conn, "ROLLBACK");
}
