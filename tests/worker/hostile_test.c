/* What somebody would try who wants to show that money is lost, sent twice or stuck. */
#include "embed.h"

#include <stdatomic.h>

#include "engine.h"

TestSuite(hostile, .init = embed_open, .fini = embed_close);

static cb_outcome at_gate(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)ctx, (void)command, (void)result;
    gate_pass();
    return CB_SUCCESS;
}

/* Section 8.7: the longest timeout that send takes makes the longest lease that extend takes. */
Test(hostile, a_command_with_the_longest_timeout_keeps_nobody_from_its_lease)
{
    cb_uuid longest = test_send_one(here.db, .timeout_seconds = 86400);
    embed_start(HANDLERS({ "Test", at_gate }), .domain.concurrent_messages = 1);

    await_status(longest, "COMPLETED");
}

/* Section 8.7: renewals go out together, and a domain that somebody deletes must not take the leases of
 * the others with it. */
Test(hostile, a_domain_that_is_gone_does_not_cost_another_one_its_leases)
{
    const cb_handler handlers[] = { { "Test", at_gate } };
    const cb_module *set = embed_set("other", handlers, 1);
    const cb_worker_domain_options other = { .domain = "doomed", .sets = &set, .n_sets = 1 };

    gate_close();
    embed_start(HANDLERS({ "Test", at_gate }), .more = &other, .n_more = 1);
    cb_uuid id = test_send_one(here.db, .timeout_seconds = 9, .max_attempts = 1);
    test_send_one(here.db, .domain = "doomed", .timeout_seconds = 9);
    await(gate_waiting() == 2);
    test_exec(here.sql, "DELETE FROM commandbus.reply_queue WHERE domain = 'doomed'; "
                        "DELETE FROM commandbus.domain WHERE domain = 'doomed'");
    await(embed_told("database.refused") > 0);
    test_exec(here.sql, "CREATE TABLE before AS SELECT * FROM commandbus.command_metadata");

    await_value("t",
                "SELECT c.lease_until > b.lease_until FROM commandbus.command_metadata c JOIN "
                "before b USING (command_id) WHERE command_id = $1",
                id.text);
    gate_open();
    await_status(id, "COMPLETED");
    cr_expect_eq(embed_told("lease.lost"), 0);
}

/* Every connection but the one that looks. */
static void cut_connections(void)
{
    cb_error e = { 0 };

    test_exec(here.sql, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                        "WHERE datname = current_database() AND pid <> pg_backend_pid()");
    cr_assert(cb_db_reconnect(here.db, &e), "%s", e.message);
}

/* Section 8.7: after a reconnect the worker asks for leases that it does not know of. Where that cannot
 * be answered, the others are claimed as before: these are more than one a second would get done. */
Test(hostile, a_domain_whose_queue_is_gone_does_not_slow_down_another_one)
{
    const cb_handler handlers[] = { { "Test", at_gate } };
    const cb_module *set = embed_set("other", handlers, 1);
    const cb_worker_domain_options other = { .domain = "doomed", .sets = &set, .n_sets = 1 };

    embed_start(HANDLERS({ "Test", at_gate }), .more = &other, .n_more = 1,
                .domain.concurrent_messages = 1);
    free(test_value(here.sql, "SELECT pgmq.drop_queue('doomed__commands')", NULL));
    cut_connections();
    await(embed_told("connection.lost") > 0);

    test_send(here.db, 100, NULL);
    await_value("100", "SELECT count(*) FROM commandbus.command_metadata WHERE status = "
                       "'COMPLETED'");
}

/* Section 8.1: messages are put back for every domain that has a queue. */
Test(hostile, a_domain_whose_queue_is_gone_does_not_keep_another_one_from_its_messages)
{
    const cb_handler handlers[] = { { "Test", at_gate } };
    const cb_module *set = embed_set("other", handlers, 1);
    const cb_worker_domain_options other = { .domain = "fx", .sets = &set, .n_sets = 1 };
    cb_worker *w = embed_worker(HANDLERS({ "Test", at_gate }), .domain.domain = "doomed",
                                .more = &other, .n_more = 1);

    w->chore_seconds[CHORE_RESTORE] = 0.5;
    embed_started(w);
    free(test_value(here.sql, "SELECT pgmq.drop_queue('doomed__commands')", NULL));
    cb_uuid id = test_send_one(here.db, .delay_seconds = 3600);
    test_exec(here.sql, "DELETE FROM pgmq.q_fx__commands");

    await_status(id, "COMPLETED");
}
