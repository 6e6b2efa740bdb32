/* Processes of a type "Pay". */
#include "pay.h"

#include "claims.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const cb_process_kind pay = { .process_type = "Pay", .domain = "payments", .version = 1 };

void pay_register(cb_db *db)
{
    cb_error e = { 0 };

    cr_assert(cb_process_register(db, &pay, 1, &e), "%s", e.message);
}

void pay_open(void)
{
    bus_open();
    pay_register(bus.db);
}

cb_uuid pay_start_options(cb_db *db, const cb_process_request_options *options)
{
    cb_error e = { 0 };
    cb_uuid id;

    cr_assert(cb_process_request_start(db, "Pay", "{\"n\": 1}", options, &id, &e), "%s", e.message);
    return id;
}

cb_uuid pay_start(cb_db *db)
{
    return pay_start_options(db, NULL);
}

cb_process_claim *pay_claim(cb_db *db, const char *worker, int quantity, double vt_seconds)
{
    cb_process_claim_options options = {
        .worker = worker, .kinds = &pay, .n_kinds = 1, .vt_seconds = vt_seconds
    };
    cb_process_claim *claim = NULL;
    cb_error e = { 0 };

    cr_assert(cb_process_claim_due(db, &options, quantity, &claim, NULL, &e), "%s", e.message);
    return claim;
}

cb_process_claim *pay_claim_awaited(cb_db *db, const char *worker, int quantity, double vt_seconds)
{
    for (double end = test_clock() + patience_seconds; test_clock() < end;) {
        cb_process_claim *claim = pay_claim(db, worker, quantity, vt_seconds);
        if (cb_process_claim_count(claim) > 0)
            return claim;
        cb_process_claim_free(claim);
        nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
    }
    cr_assert_fail("nothing to claim");
    return NULL;
}

void pay_set(PGconn *conn, cb_uuid id, const char *what)
{
    char sql[1024];

    snprintf(sql, sizeof sql, "UPDATE commandbus.process SET %s WHERE process_id = '%s'", what,
             id.text);
    test_exec(conn, sql);
}

void pay_suspend(PGconn *conn, cb_uuid id, const char *status)
{
    char what[256];

    snprintf(what, sizeof what,
             "status = '%s', lease_owner = NULL, lease_until = NULL, wake_at = NULL", status);
    pay_set(conn, id, what);
}

cb_uuid pay_command(PGconn *conn, cb_uuid process_id)
{
    return test_send_of_process(conn, &process_id, "fx", "BookFx", "{}");
}

long pay_reply(PGconn *conn, cb_uuid command_id, cb_uuid process_id, const char *outcome)
{
    return test_number(conn,
                       "SELECT pgmq.send('payments__replies', commandbus.reply_message($1::uuid, "
                       "$2::uuid, $3, '{\"rate\": \"1.5\"}', NULL, 'E', NULL, NULL, true))",
                       command_id.text, process_id.text, outcome, NULL);
}

cb_process_look pay_deliver(cb_db *db, double grace_seconds)
{
    static const char *const queues[] = { "payments__replies" };
    cb_process_claim_options options = { .worker = "deliverer",
                                         .kinds = &pay,
                                         .n_kinds = 1,
                                         .reply_queues = queues,
                                         .n_reply_queues = 1,
                                         .reply_grace_seconds = grace_seconds };
    cb_process_claim *claim = NULL;
    cb_process_look look;
    cb_error e = { 0 };

    cr_assert(cb_process_claim_due(db, &options, 0, &claim, &look, &e), "%s", e.message);
    cr_assert_eq(cb_process_claim_count(claim), 0);
    cb_process_claim_free(claim);
    return look;
}
