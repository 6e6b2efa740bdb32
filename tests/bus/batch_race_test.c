/* Batches when things happen at the same moment. */
#include "expect.h"
#include "fixture.h"
#include "life.h"
#include "parallel.h"

#include <stdio.h>

TestSuite(batch_race, .init = bus_open, .fini = bus_close);

enum {
    ROUNDS = 50
};

typedef struct {
    cb_db *db[2];
    bool fine[2];
    cb_error e[2];
    cb_uuid batch;
    cb_uuid members[2];
    bool is_operator[2]; /* ends its member by a TSQ action instead of an outcome */
} race;

static void race_open(race *r)
{
    *r = (race){ 0 };
    for (int i = 0; i < 2; i++)
        r->db[i] = test_bus_open(bus.conninfo);
}

static void race_close(race *r)
{
    for (int i = 0; i < 2; i++)
        cb_db_free(r->db[i]);
}

static void end_member(size_t i, void *arg)
{
    race *r = arg;

    if (r->is_operator[i]) {
        const cb_tsq_action action = { .domain = "fx",
                                       .command_id = r->members[i].text,
                                       .operator_name = "ann",
                                       .reason = "enough" };
        r->fine[i] = cb_tsq_cancel(r->db[i], &action, &r->e[i]);
        return;
    }
    cb_settlement item = {
        .domain = "fx", .command_id = r->members[i], .lease_no = 1, .outcome = CB_SUCCESS
    };
    r->fine[i] = cb_settle(r->db[i], "test", &item, 1, &r->e[i]);
    r->fine[i] = r->fine[i] && item.verdict == CB_SETTLED;
}

static void create_batch_of_two(race *r)
{
    cb_error e = { 0 };
    const cb_send commands[] = { { .command_type = "BookFx", .command_id = r->members[0].text },
                                 { .command_type = "BookFx", .command_id = r->members[1].text } };

    expect_ok(cb_batch_create(
                  bus.db, &(cb_batch_options){ .domain = "fx", .reply_to = "payments__replies" },
                  commands, 2, &r->batch, &e),
              e);
    cr_assert_eq(life_receive(), 2);
    for (int i = 0; i < 2; i++) {
        if (r->is_operator[i])
            life_settle(&r->members[i], "PERMANENT");
    }
}

/* Both members end together; then the batch is closed, once, whoever did it. */
static void end_both_in_many_rounds(race *r, int *closed_by_housekeeping)
{
    for (int round = 0; round < ROUNDS; round++) {
        cb_error e = { 0 };
        size_t closed = 0;
        r->members[0] = cb_uuid_new();
        r->members[1] = cb_uuid_new();
        create_batch_of_two(r);

        parallel_run(2, end_member, r);

        for (int i = 0; i < 2; i++)
            expect_ok(r->fine[i], r->e[i]);
        expect_ok(cb_batch_close(bus.db, NULL, 0, &closed, &e), e);
        *closed_by_housekeeping += (int)closed;
        expect_number(bus.conn, 1,
                      "SELECT count(*) FROM commandbus.batch WHERE batch_id = $1::uuid AND "
                      "completed_at IS NOT NULL AND total = 2 AND completed + canceled = 2",
                      r->batch.text);
        expect_number(bus.conn, 1,
                      "SELECT count(*) FROM pgmq.q_payments__replies "
                      "WHERE message ->> 'batch_id' = $1",
                      r->batch.text);
        expect_number(bus.conn, 1,
                      "SELECT count(*) FROM commandbus.audit WHERE event_type = 'BATCH_COMPLETED' "
                      "AND details ->> 'batch_id' = $1",
                      r->batch.text);
    }
}

/* BUS.5 */
Test(batch_race, the_last_two_outcomes_at_the_same_moment_complete_it_exactly_once)
{
    race r;
    int closed_by_housekeeping = 0;
    race_open(&r);

    end_both_in_many_rounds(&r, &closed_by_housekeeping);

    cr_assert_eq(closed_by_housekeeping, 0, "%d batches were left to housekeeping",
                 closed_by_housekeeping);
    race_close(&r);
}

/* BUS.5: an operator's decision and an outcome */
Test(batch_race, an_outcome_and_an_operator_at_the_same_moment_complete_it_exactly_once)
{
    race r;
    int closed_by_housekeeping = 0;
    race_open(&r);
    r.is_operator[1] = true;

    end_both_in_many_rounds(&r, &closed_by_housekeeping);

    cr_assert_eq(closed_by_housekeeping, 0, "%d batches were left to housekeeping",
                 closed_by_housekeeping);
    race_close(&r);
}

/* BUS.5: two operators */
Test(batch_race, two_operators_at_the_same_moment_complete_it_exactly_once)
{
    race r;
    int closed_by_housekeeping = 0;
    race_open(&r);
    r.is_operator[0] = r.is_operator[1] = true;

    end_both_in_many_rounds(&r, &closed_by_housekeeping);

    cr_assert_eq(closed_by_housekeeping, 0, "%d batches were left to housekeeping",
                 closed_by_housekeeping);
    race_close(&r);
}

typedef struct {
    race *r;
    size_t closed;
    bool added;
} add_and_close;

static void add_or_close(size_t i, void *arg)
{
    add_and_close *a = arg;

    if (i == 0) {
        a->r->fine[0] = cb_batch_close(a->r->db[0], &a->r->batch, 1, &a->closed, &a->r->e[0]);
        return;
    }
    const cb_send command = { .domain = "fx",
                              .command_type = "BookFx",
                              .delay_seconds = 3600,
                              .batch_id = a->r->batch.text };
    a->added = cb_send_command(a->r->db[1], &command, NULL, &a->r->e[1]);
}

/* BUS.5: what was accepted counts, what was refused left nothing */
Test(batch_race, an_add_that_was_accepted_is_never_left_outside_a_closed_batch)
{
    race r;
    race_open(&r);

    for (int round = 0; round < ROUNDS; round++) {
        add_and_close a = { .r = &r };
        r.members[0] = cb_uuid_new();
        r.members[1] = cb_uuid_new();
        create_batch_of_two(&r);
        life_settle(&r.members[0], "SUCCESS");
        life_settle(&r.members[1], "SUCCESS");

        parallel_run(2, add_or_close, &a);

        expect_ok(r.fine[0], r.e[0]);
        if (!a.added)
            cr_assert_eq(r.e[1].code, CB_BATCH_CLOSED, "%s", r.e[1].message);
        cr_assert_eq(a.closed, a.added ? 0 : 1);
        expect_value(bus.conn, a.added ? "f 3 1" : "t 2 0",
                     "SELECT format('%s %s %s', completed_at IS NOT NULL, total, pending) "
                     "FROM commandbus.batch_status WHERE batch_id = $1::uuid",
                     r.batch.text);
        expect_number(bus.conn, a.added ? 3 : 2,
                      "SELECT count(*) FROM commandbus.command_metadata WHERE batch_id = $1::uuid",
                      r.batch.text);
    }
    race_close(&r);
}

/* BUS.5: the same, with the add in a transaction that is still open when the close comes */
Test(batch_race, a_close_leaves_a_batch_that_somebody_is_adding_to_and_never_waits)
{
    race r;
    add_and_close a = { .r = &r };
    PGconn *adder = test_pq_open(bus.conninfo);
    char sql[256];
    race_open(&r);
    r.members[0] = cb_uuid_new();
    r.members[1] = cb_uuid_new();
    create_batch_of_two(&r);
    life_settle(&r.members[0], "SUCCESS");
    life_settle(&r.members[1], "SUCCESS");
    snprintf(sql, sizeof sql, "BEGIN; SELECT commandbus.send('fx', 'BookFx', batch_id => '%s')",
             r.batch.text);
    test_exec(adder, sql);

    test_exec(bus.conn, "SET lock_timeout = '50ms'");
    cr_assert_eq(test_number(bus.conn, "SELECT count(*) FROM commandbus.close_batches()", NULL), 0);
    test_exec(adder, "COMMIT");

    add_or_close(0, &a);
    expect_ok(r.fine[0], r.e[0]);
    cr_assert_eq(a.closed, 0, "closed although a member is pending");
    PQfinish(adder);
    race_close(&r);
}

/* BUS.5: then nobody is left to close it but housekeeping */
Test(batch_race, a_close_that_passed_by_an_add_which_rolled_back_is_made_up_for)
{
    PGconn *adder = test_pq_open(bus.conninfo);
    char sql[256];
    char *batch = test_value(bus.conn,
                             "SELECT commandbus.create_batch('fx', commands => "
                             "'[{\"command_type\": \"BookFx\"}]')",
                             NULL);
    test_exec(bus.conn, "SELECT commandbus.settle('fx', 'w', ARRAY[command_id], ARRAY[lease_no], "
                        "'{SUCCESS}') FROM commandbus.receive('fx', 'w', 1)");
    snprintf(sql, sizeof sql, "BEGIN; SELECT commandbus.send('fx', 'BookFx', batch_id => '%s')",
             batch);
    test_exec(adder, sql);
    expect_number(bus.conn, 0, "SELECT count(*) FROM commandbus.close_batches()");

    test_exec(adder, "ROLLBACK");

    expect_value(bus.conn, batch, "SELECT commandbus.close_batches()");
    PQfinish(adder);
    free(batch);
}

typedef struct {
    cb_db *db[8];
    size_t closed[8];
    bool fine[8];
    cb_error e[8];
} housekeepers;

static void close_at_once(size_t i, void *arg)
{
    housekeepers *h = arg;

    h->fine[i] = cb_batch_close(h->db[i], NULL, 0, &h->closed[i], &h->e[i]);
}

/* BUS.5: every worker keeps house */
Test(batch_race, eight_housekeepers_at_once_close_each_batch_once)
{
    housekeepers h = { 0 };
    size_t closed = 0;
    test_exec(bus.conn, "SELECT commandbus.create_batch('fx', commands => "
                        "'[{\"command_type\": \"BookFx\"}]', reply_to => 'payments__replies') "
                        "FROM generate_series(1, 20)");
    test_exec(bus.conn,
              "WITH claimed AS (SELECT array_agg(command_id) AS ids, array_agg(lease_no) "
              "AS fences FROM commandbus.receive('fx', 'w', 100)) "
              "SELECT commandbus.settle('fx', 'w', ids, fences, array_fill('SUCCESS'::text, "
              "ARRAY[20])) FROM claimed");
    for (int i = 0; i < 8; i++)
        h.db[i] = test_bus_open(bus.conninfo);

    parallel_run(8, close_at_once, &h);

    for (int i = 0; i < 8; i++) {
        expect_ok(h.fine[i], h.e[i]);
        closed += h.closed[i];
        cb_db_free(h.db[i]);
    }
    cr_assert_eq(closed, 20);
    expect_number(bus.conn, 20, "SELECT count(*) FROM pgmq.q_payments__replies");
}
