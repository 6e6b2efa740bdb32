/* WK-11: very many handlers that block, in one process. */
#include "embed.h"

#include <time.h>

TestSuite(many_slots, .init = embed_open, .fini = embed_close, .timeout = 200);

/* As a slow downstream would. */
static cb_outcome block_for_a_second(cb_context *ctx, const cb_command *command,
                                     json_object **result)
{
    (void)ctx, (void)command, (void)result;
    nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
    gate_pass();
    return CB_SUCCESS;
}

/* Ten rounds of a second each, if the slots are never empty. */
static double most_seconds(void)
{
    const char *instrumented = getenv("COMMANDBUS_INSTRUMENT");

    return (instrumented && *instrumented ? 60 : 13) * test_slowness();
}

/* WK-11, WRK.12 */
Test(many_slots, a_thousand_blocking_handlers_do_ten_thousand_commands_in_13_seconds)
{
    enum {
        COMMANDS = 10000
    };
    test_send(bus.db, COMMANDS, NULL);
    test_exec(bus.conn, "ANALYZE commandbus.command_metadata");

    double from = test_clock();
    cb_worker *w =
        embed_start(HANDLERS({ "Test", block_for_a_second }), .domain.concurrent_messages = 1000,
                    .domain.visibility_timeout_seconds = 30);
    await(gate_left() == COMMANDS);
    cr_expect(cb_worker_stop(w, patience_seconds));
    double took = test_clock() - from;

    cr_log_info("%d commands took %.2f s", COMMANDS, took);
    cr_expect_lt(took, most_seconds(), "it took %.2f s", took);
    expect_value(bus.conn, "10000",
                 "SELECT count(*) FROM commandbus.command_metadata WHERE status = 'COMPLETED' AND "
                 "lease_no = 1");
    expect_value(bus.conn, "10000", "SELECT count(*) FROM pgmq.q_payments__replies");
}
