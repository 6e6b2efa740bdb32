/* Whatever role, database and server have for the defaults of transactions: each call of the
 * library says what it needs. DESIGN 8.1, 8.2: under REPEATABLE READ nothing would be claimed,
 * batches would stay open and limits would not hold. */
#include "expect.h"
#include "fixture.h"

#include <stdio.h>

static void set_default(const char *setting, const char *value)
{
    char sql[256];

    snprintf(
        sql, sizeof sql,
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I SET %s = ''%s''', current_database()); END $$",
        setting, value);
    test_exec(bus.conn, sql);
}

typedef struct {
    cb_db *db;
    cb_uuid command, other; /* claimed, with lease number 1 */
    cb_uuid process;        /* likewise */
    cb_uuid batch;
} caller;

static const char worker[] = "w-1";
static const char *const reply_queues[] = { "payments__replies" };
static const cb_process_kind kinds[] = {
    { .process_type = "Payment", .domain = "payments", .version = 1 },
};

/* ---- the calls, in the order of a life ---- */

static bool call_check_schema(caller *t, cb_error *e)
{
    return cb_db_check_schema(t->db, e);
}

static bool call_migrate(caller *t, cb_error *e)
{
    return cb_migrate(t->db, NULL, e);
}

static bool register_domain(caller *t, cb_error *e)
{
    return cb_domain_register(t->db, "fresh", NULL, e);
}

static bool call_set_limit(caller *t, cb_error *e)
{
    return cb_fleet_limit_set(t->db, "fx", 7, e);
}

static bool heartbeat(caller *t, cb_error *e)
{
    return cb_heartbeat(t->db, worker, "{\"state\": \"running\"}", e);
}

static bool send_one(caller *t, cb_error *e)
{
    return cb_send_command(t->db, &(cb_send){ .domain = "fx", .command_type = "Test" }, &t->command,
                           e);
}

static bool send_two_in_a_transaction(caller *t, cb_error *e)
{
    return cb_db_begin(t->db, e) &&
           cb_send_command(t->db, &(cb_send){ .domain = "risk", .command_type = "Test" }, NULL,
                           e) &&
           cb_send_command(t->db, &(cb_send){ .domain = "risk", .command_type = "Test" }, NULL,
                           e) &&
           cb_db_commit(t->db, e);
}

static bool call_create_batch(caller *t, cb_error *e)
{
    const cb_send member = { .command_type = "Test" };

    return cb_batch_create(t->db, &(cb_batch_options){ .domain = "fx" }, &member, 1, &t->batch, e);
}

static bool receive(caller *t, cb_error *e)
{
    OWNED(cb_receiver) receiver = NULL;
    OWNED(cb_claim) claim = NULL;

    if (!cb_receiver_open("fx", &(cb_receive_options){ .worker = worker }, &receiver, e) ||
        !cb_receive(t->db, receiver, 2, &claim, e))
        return false;
    cr_assert_eq(cb_claim_count(claim), 2);
    t->command = cb_claim_at(claim, 0)->command_id;
    t->other = cb_claim_at(claim, 1)->command_id;
    return true;
}

static bool call_extend(caller *t, cb_error *e)
{
    cb_lease lease = { .domain = "fx", .command_id = t->command, .lease_no = 1 };

    return cb_lease_extend(t->db, worker, &lease, 1, 30, e) && lease.state == CB_LEASE_EXTENDED;
}

static bool call_settle(caller *t, cb_error *e)
{
    cb_settlement items[] = {
        { .domain = "fx", .command_id = t->command, .lease_no = 1, .outcome = CB_SUCCESS },
        { .domain = "fx", .command_id = t->other, .lease_no = 1, .outcome = CB_SUCCESS },
    };

    return cb_settle(t->db, worker, items, 2, e) && items[0].verdict == CB_SETTLED &&
           items[1].verdict == CB_SETTLED;
}

static bool call_release_unknown(caller *t, cb_error *e)
{
    return cb_lease_release_unknown(t->db, "fx", worker, NULL, 0, NULL, e);
}

static bool announce_and_wake(caller *t, cb_error *e)
{
    const char *queue = "fx__commands";

    return cb_sleep_announce(t->db, worker, &queue, 1, 5, e) &&
           cb_sleep_end(t->db, worker, &queue, 1, e);
}

static bool register_process(caller *t, cb_error *e)
{
    return cb_process_register(t->db, kinds, 1, e);
}

static bool start_process(caller *t, cb_error *e)
{
    return cb_process_request_start(t->db, "Payment", "{}", NULL, &t->process, e);
}

static bool claim_process(caller *t, cb_error *e)
{
    OWNED(cb_process_claim) claim = NULL;
    const cb_process_claim_options options = { .worker = worker,
                                               .kinds = kinds,
                                               .n_kinds = 1,
                                               .reply_queues = reply_queues,
                                               .n_reply_queues = 1 };

    return cb_process_claim_due(t->db, &options, 1, &claim, NULL, e) &&
           cb_process_claim_count(claim) == 1;
}

static bool extend_process(caller *t, cb_error *e)
{
    cb_process_lease lease = { .process_id = t->process, .lease_no = 1 };

    return cb_process_extend(t->db, worker, &lease, 1, 30, e) && lease.held;
}

static bool call_respond(caller *t, cb_error *e)
{
    bool is_new = false;

    return cb_process_respond(t->db, t->process.text, "L1", "{}", NULL, &is_new, e) && is_new;
}

static bool release_process(caller *t, cb_error *e)
{
    return cb_process_release_unknown(t->db, worker, kinds, 1, NULL, 0, NULL, e);
}

static bool doctor(caller *t, cb_error *e)
{
    OWNED(cb_rows) rows = NULL;

    return cb_doctor(t->db, &rows, e);
}

static bool sample(caller *t, cb_error *e)
{
    cb_queue_sample samples[] = { { .domain = "fx" } };

    return cb_queue_sample_many(t->db, samples, 1, e);
}

static bool call_keep_house(caller *t, cb_error *e)
{
    cb_purge_counts counts;

    return cb_batch_close(t->db, NULL, 0, NULL, e) && cb_fleet_tidy(t->db, NULL, e) &&
           cb_messages_restore(t->db, "fx", &(size_t){ 0 }, e) &&
           cb_purge(t->db, &(cb_purge_options){ .commands = "1d" }, &counts, e);
}

static bool call_ask(caller *t, cb_error *e)
{
    PGresult *result = NULL;
    const char *values[] = { "read committed", "off" };
    bool fine = cb_db_ask(t->db,
                          "SELECT current_setting('transaction_isolation') = $1 AND "
                          "current_setting('transaction_read_only') = $2",
                          values, 2, &result, e);

    fine = fine && strcmp(PQgetvalue(result, 0, 0), "t") == 0;
    PQclear(result);
    return fine;
}

static bool retire(caller *t, cb_error *e)
{
    return cb_retire(t->db, worker, e);
}

static const struct {
    const char *name;
    bool (*call)(caller *t, cb_error *e);
} calls[] = {
#define CALL(function)      \
    {                       \
#function, function \
    }
    CALL(call_check_schema),
    CALL(call_migrate),
    CALL(register_domain),
    CALL(call_set_limit),
    CALL(heartbeat),
    CALL(send_one),
    CALL(send_two_in_a_transaction),
    CALL(call_create_batch),
    CALL(receive),
    CALL(call_extend),
    CALL(call_settle),
    CALL(call_release_unknown),
    CALL(announce_and_wake),
    CALL(register_process),
    CALL(start_process),
    CALL(claim_process),
    CALL(extend_process),
    CALL(call_respond),
    CALL(release_process),
    CALL(doctor),
    CALL(sample),
    CALL(call_keep_house),
    CALL(call_ask),
    CALL(retire),
};

static void take_the_tour(const char *setting, const char *value)
{
    cb_error e = { 0 };

    set_default(setting, value);
    caller t = { .db = test_bus_open(bus.conninfo) };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        e = (cb_error){ 0 };
        cr_expect(calls[i].call(&t, &e), "with %s = %s %s fails: %s %s", setting, value,
                  calls[i].name, e.sqlstate, e.message);
    }
    char *status = test_value(bus.conn, "SELECT status FROM commandbus.batch WHERE batch_id = $1",
                              t.batch.text, NULL);
    cr_expect_str_eq(status, "COMPLETED", "with %s = %s the batch is %s", setting, value, status);
    free(status);
    cb_db_free(t.db);
}

TestSuite(defaults, .init = bus_open, .fini = bus_close);

/* BUS.15 */
Test(defaults, of_repeatable_read_change_no_call)
{
    take_the_tour("default_transaction_isolation", "repeatable read");
}

Test(defaults, of_serializable_change_no_call)
{
    take_the_tour("default_transaction_isolation", "serializable");
}

Test(defaults, of_read_only_change_no_call)
{
    take_the_tour("default_transaction_read_only", "on");
}

Test(defaults, of_deferrable_change_no_call)
{
    take_the_tour("default_transaction_deferrable", "on");
}

/* The caller's session keeps its own defaults: we leave nothing behind in it. */
Test(defaults, of_the_session_are_as_before_after_a_call)
{
    cb_error e = { 0 };

    set_default("default_transaction_isolation", "serializable");
    OWNED(cb_db) db = test_bus_open(bus.conninfo);
    expect_ok(cb_send_command(db, &(cb_send){ .domain = "fx", .command_type = "Test" }, NULL, &e),
              e);

    expect_value(cb_db_conn(db), "serializable", "SHOW transaction_isolation");
    cr_expect_eq(PQtransactionStatus(cb_db_conn(db)), PQTRANS_IDLE);
}

/* Nothing is left open by a call that is refused, and the next one works. */
Test(defaults, a_refused_call_leaves_no_transaction)
{
    cb_error e = { 0 };

    expect_error(
        CB_UNKNOWN_DOMAIN,
        cb_send_command(bus.db, &(cb_send){ .domain = "nobody", .command_type = "Test" }, NULL, &e),
        e);

    cr_expect_eq(PQtransactionStatus(cb_db_conn(bus.db)), PQTRANS_IDLE);
    expect_ok(
        cb_send_command(bus.db, &(cb_send){ .domain = "fx", .command_type = "Test" }, NULL, &e), e);
}
