/* What somebody would try who wants to show that money is lost, sent twice or stuck. */
#include "embed.h"

#include <stdatomic.h>

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
