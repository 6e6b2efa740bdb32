/* Rows that somebody else has locked: settle and extend leave them for the next time, and never
 * wait. */
#include "claims.h"

TestSuite(busy, .init = bus_open, .fini = bus_close);

enum {
    N = 20,
    BUSY = 7
};

typedef struct {
    cb_db *impatient; /* waiting is an error here */
    cb_uuid ids[N];
    cb_settlement items[N];
} busy_batch;

/* N claimed commands, all with this outcome; what `lock` selects is locked by the observer. */
static busy_batch busy_batch_open(cb_outcome outcome, const char *lock)
{
    busy_batch r;
    r.impatient = test_bus_open_impatient(bus.conninfo);
    test_send(bus.db, N, NULL);
    OWNED(cb_claim) claim = test_claim(r.impatient, "w", N, 30);
    cr_assert_eq(cb_claim_count(claim), N);
    for (size_t i = 0; i < N; i++) {
        r.ids[i] = cb_claim_at(claim, i)->command_id;
        r.items[i] = test_outcome(cb_claim_at(claim, i), outcome);
    }
    test_exec(bus.conn, "BEGIN");
    expect_value(bus.conn, r.ids[BUSY].text, lock, r.ids[BUSY].text);
    return r;
}

static void busy_batch_close(busy_batch *r)
{
    cb_db_free(r->impatient);
}

static const char lock_command[] = "SELECT command_id FROM commandbus.command_metadata "
                                   "WHERE command_id = $1 FOR UPDATE";
static const char lock_message[] = "SELECT message ->> 'command_id' FROM pgmq.q_fx__commands "
                                   "WHERE message ->> 'command_id' = $1 FOR UPDATE";

/* The batch settles but for the locked one, which settles when the lock is gone. */
static void expect_busy_then_settled(cb_outcome outcome, const char *lock, const char *trail,
                                     const char *messages)
{
    busy_batch r = busy_batch_open(outcome, lock);
    cb_error e = { 0 };

    cr_assert(cb_settle(r.impatient, "w", r.items, N, &e), "%s", e.message);

    for (int i = 0; i < N; i++)
        expect_verdict(i == BUSY ? CB_BUSY : CB_SETTLED, r.items[i].verdict);
    expect_trail("SENT RECEIVED", r.ids[BUSY]);
    test_exec(bus.conn, "ROLLBACK");

    cr_assert(cb_settle(r.impatient, "w", r.items, N, &e), "%s", e.message);

    for (int i = 0; i < N; i++)
        expect_verdict(i == BUSY ? CB_SETTLED : CB_ALREADY, r.items[i].verdict);
    for (int i = 0; i < N; i++) {
        expect_trail(trail, r.ids[i]);
        expect_messages(messages, r.ids[i]);
    }
    busy_batch_close(&r);
}

Test(busy, a_locked_command_is_busy_and_the_others_settle) /* WRK.14 */
{
    expect_busy_then_settled(CB_SUCCESS, lock_command, "SENT RECEIVED COMPLETED",
                             "0 queued, 0 archived, 1 replied");
}

Test(busy, a_locked_message_to_be_deleted_is_busy_and_the_others_settle) /* WRK.14 */
{
    expect_busy_then_settled(CB_SUCCESS, lock_message, "SENT RECEIVED COMPLETED",
                             "0 queued, 0 archived, 1 replied");
}

Test(busy, a_locked_message_to_be_archived_is_busy_and_the_others_settle) /* WRK.14 */
{
    expect_busy_then_settled(CB_PERMANENT, lock_message, "SENT RECEIVED MOVED_TO_TSQ",
                             "0 queued, 1 archived, 1 replied");
}

Test(busy, a_locked_message_to_be_put_off_is_busy_and_the_others_settle) /* WRK.14 */
{
    expect_busy_then_settled(CB_TRANSIENT, lock_message, "SENT RECEIVED FAILED RETRY_SCHEDULED",
                             "1 queued, 0 archived, 0 replied");
}

Test(busy, when_all_is_locked_all_is_busy_and_nothing_changes) /* WRK.14 */
{
    busy_batch r = busy_batch_open(CB_SUCCESS, lock_message);
    cb_error e = { 0 };
    test_exec(bus.conn, "SELECT count(*) FROM (SELECT FROM pgmq.q_fx__commands FOR UPDATE) x");

    cr_assert(cb_settle(r.impatient, "w", r.items, N, &e), "%s", e.message);

    for (int i = 0; i < N; i++) {
        expect_verdict(CB_BUSY, r.items[i].verdict);
        expect_trail("SENT RECEIVED", r.ids[i]);
    }
    busy_batch_close(&r);
}

Test(busy, a_late_outcome_does_not_wait_for_the_claim_that_takes_over) /* WRK.14 */
{
    OWNED(cb_db) impatient = test_bus_open_impatient(bus.conninfo);
    cb_uuid id;
    test_send(bus.db, 1, &id);
    OWNED(cb_claim) claim = test_claim(impatient, "w", 1, 0.05);
    cb_settlement item = test_outcome(cb_claim_at(claim, 0), CB_SUCCESS);
    wait_until(bus.conn, "SELECT clock_timestamp() > lease_until FROM commandbus.command_metadata");
    test_exec(bus.conn, "BEGIN; SELECT count(*) FROM commandbus.receive('fx', 'heir', 1, 1)");

    expect_verdict(CB_BUSY, test_settle_one(impatient, "w", item));
    test_exec(bus.conn, "COMMIT");

    expect_verdict(CB_STALE, test_settle_one(impatient, "w", item));
    expect_trail("SENT RECEIVED RECEIVED STALE_OUTCOME", id);
}

Test(busy, extend_skips_a_locked_command_and_moves_the_others) /* DESIGN 2 */
{
    busy_batch r = busy_batch_open(CB_SUCCESS, lock_command);
    cb_lease leases[N];
    cb_error e = { 0 };
    for (int i = 0; i < N; i++)
        leases[i] = (cb_lease){ .domain = "fx", .command_id = r.ids[i], .lease_no = 1 };

    cr_assert(cb_lease_extend(r.impatient, "w", leases, N, 3600, &e), "%s", e.message);

    for (int i = 0; i < N; i++)
        cr_expect_eq(leases[i].state, i == BUSY ? CB_LEASE_BUSY : CB_LEASE_EXTENDED);
    expect_value(
        bus.conn, "19 19",
        "SELECT (SELECT count(*) FROM commandbus.command_metadata "
        "WHERE lease_until > now() + interval '1 minute') || ' ' || "
        "(SELECT count(*) FROM pgmq.q_fx__commands WHERE vt > now() + interval '1 minute')");
    busy_batch_close(&r);
}

Test(busy, extend_does_not_wait_for_a_locked_message_and_the_lease_on_the_row_counts) /* DESIGN 2 */
{
    busy_batch r = busy_batch_open(CB_SUCCESS, lock_message);
    cb_lease leases[N];
    cb_error e = { 0 };
    for (int i = 0; i < N; i++)
        leases[i] = (cb_lease){ .domain = "fx", .command_id = r.ids[i], .lease_no = 1 };

    cr_assert(cb_lease_extend(r.impatient, "w", leases, N, 3600, &e), "%s", e.message);

    for (int i = 0; i < N; i++)
        cr_expect_eq(leases[i].state, CB_LEASE_EXTENDED);
    test_exec(bus.conn, "ROLLBACK");
    expect_value(bus.conn, "20",
                 "SELECT count(*) FROM commandbus.command_metadata "
                 "WHERE lease_until > now() + interval '1 minute'");
    busy_batch_close(&r);
}

Test(busy,
     a_message_that_is_unlocked_while_settle_looks_at_it_does_not_stay_behind) /* section 8.3 */
{
    busy_batch r = busy_batch_open(CB_SUCCESS, lock_message);
    cb_error e = { 0 };
    PGconn *gate = test_pq_open(bus.conninfo);
    /* Between the deletion that skips the locked message and the look at what was skipped, settle
     * lets the message go: the trigger ends the session that has it locked. */
    test_exec(
        gate,
        "CREATE FUNCTION let_go() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN "
        "PERFORM pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND state = 'idle in transaction' AND pid <> pg_backend_pid(); "
        "RETURN NULL; END $$");
    test_exec(gate, "CREATE TRIGGER let_go AFTER DELETE ON pgmq.q_fx__commands "
                    "FOR EACH STATEMENT EXECUTE FUNCTION let_go()");

    cr_assert(cb_settle(r.impatient, "w", r.items, N, &e), "%s", e.message);

    expect_verdict(CB_SETTLED, r.items[BUSY].verdict);
    expect_value(gate, "0", "SELECT count(*) FROM pgmq.q_fx__commands");
    PQfinish(gate);
    busy_batch_close(&r);
}
