/* Shorthand for the tests of the command's life. */
#include "claims.h"

#include <stdio.h>
#include <time.h>

cb_db *test_bus_open_impatient(const char *conninfo)
{
    char *impatient = NULL;

    cr_assert_gt(
        asprintf(&impatient, "%s options='-c lock_timeout=3s -c statement_timeout=100s'", conninfo),
        0);
    cb_db *db = test_bus_open(impatient);
    free(impatient);
    return db;
}

void test_send(cb_db *db, size_t n, cb_uuid *ids)
{
    cb_send *commands = calloc(n, sizeof *commands);
    cb_error e = { 0 };

    for (size_t i = 0; i < n; i++)
        commands[i] =
            (cb_send){ .domain = "fx", .command_type = "Test", .reply_to = "payments__replies" };
    cr_assert(cb_send_many(db, commands, n, NULL, ids, NULL, &e), "%s", e.message);
    free(commands);
}

cb_uuid test_send_with(cb_db *db, const cb_send *command)
{
    cb_send sent = *command;
    cb_uuid id;
    cb_error e = { 0 };

    if (!sent.domain)
        sent.domain = "fx";
    if (!sent.command_type)
        sent.command_type = "Test";
    cr_assert(cb_send_command(db, &sent, &id, &e), "%s", e.message);
    return id;
}

void test_fleet_limit(int limit, size_t commands)
{
    cb_error e = { 0 };

    cr_assert(cb_fleet_limit_set(bus.db, "fx", limit, &e), "%s", e.message);
    if (commands)
        test_send(bus.db, commands, NULL);
}

cb_claim *test_claim(cb_db *db, const char *worker, int quantity, double vt_seconds)
{
    OWNED(cb_receiver) receiver = NULL;
    cb_receive_options options = { .worker = worker, .vt_seconds = vt_seconds };
    cb_claim *claim = NULL;
    cb_error e = { 0 };

    cr_assert(cb_receiver_open("fx", &options, &receiver, &e), "%s", e.message);
    cr_assert(cb_receive(db, receiver, quantity, &claim, &e), "%s", e.message);
    return claim;
}

size_t test_claim_count(cb_db *db, const char *worker, int quantity, double vt_seconds)
{
    OWNED(cb_claim) claim = test_claim(db, worker, quantity, vt_seconds);

    return cb_claim_count(claim);
}

static void pause_between_looks(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
}

/* A short lease finds expired ones on a young server; then it is made as long as was asked for. */
static void lengthen(cb_db *db, const char *worker, const cb_claim *claim, double vt_seconds)
{
    size_t n = cb_claim_count(claim);
    cb_lease *leases = calloc(n + 1, sizeof *leases);
    cb_error e = { 0 };

    for (size_t i = 0; i < n; i++)
        leases[i] = test_lease(cb_claim_at(claim, i));
    cr_assert(cb_lease_extend(db, worker, leases, n, vt_seconds, &e), "%s", e.message);
    for (size_t i = 0; i < n; i++)
        cr_assert_eq(leases[i].state, CB_LEASE_EXTENDED);
    free(leases);
}

cb_claim *test_claim_awaited(cb_db *db, const char *worker, int quantity, double vt_seconds)
{
    double first = vt_seconds < 1 ? vt_seconds : 1;

    for (double end = test_clock() + patience_seconds; test_clock() < end; pause_between_looks()) {
        cb_claim *claim = test_claim(db, worker, quantity, first);
        if (cb_claim_count(claim) + cb_claim_poisoned(claim) + cb_claim_exhausted(claim) > 0) {
            if (vt_seconds > first)
                lengthen(db, worker, claim, vt_seconds);
            return claim;
        }
        cb_claim_free(claim);
    }
    cr_assert_fail("nothing to claim");
    return NULL;
}

cb_settlement test_outcome(const cb_command *command, cb_outcome outcome)
{
    bool success = outcome == CB_SUCCESS;

    return (cb_settlement){ .domain = "fx",
                            .command_id = command->command_id,
                            .lease_no = command->lease_no,
                            .outcome = outcome,
                            .result = success ? "{\"ok\":true}" : NULL,
                            .error_code = success ? NULL : "E",
                            .error_message = success ? NULL : "it broke" };
}

cb_verdict test_settle_one(cb_db *db, const char *worker, cb_settlement item)
{
    cb_error e = { 0 };

    cr_assert(cb_settle(db, worker, &item, 1, &e), "%s", e.message);
    return item.verdict;
}

cb_verdict test_run_one(cb_db *db, const char *worker, cb_outcome outcome)
{
    OWNED(cb_claim) claim = test_claim(db, worker, 1, 30);

    cr_assert_eq(cb_claim_count(claim), 1, "there is no command to run");
    return test_settle_one(db, worker, test_outcome(cb_claim_at(claim, 0), outcome));
}

size_t test_run_all(cb_db *db, const char *worker, int quantity)
{
    OWNED(cb_claim) claim = test_claim_awaited(db, worker, quantity, 60);
    size_t n = cb_claim_count(claim);
    cb_settlement *items = calloc(n + 1, sizeof *items);
    cb_error e = { 0 };

    for (size_t i = 0; i < n; i++)
        items[i] = test_outcome(cb_claim_at(claim, i), CB_SUCCESS);
    cr_assert(cb_settle(db, worker, items, n, &e), "%s", e.message);
    for (size_t i = 0; i < n; i++)
        expect_verdict(CB_SETTLED, items[i].verdict);
    free(items);
    return n;
}

cb_lease test_lease(const cb_command *command)
{
    return (cb_lease){ .domain = "fx",
                       .command_id = command->command_id,
                       .lease_no = command->lease_no };
}

cb_lease_state test_extend_one(cb_db *db, const char *worker, cb_lease lease, double vt_seconds)
{
    cb_error e = { 0 };

    cr_assert(cb_lease_extend(db, worker, &lease, 1, vt_seconds, &e), "%s", e.message);
    return lease.state;
}
