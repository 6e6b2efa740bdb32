/* How much a worker takes, from where, and what its handlers are given. */
#include "embed.h"

#include <json-c/json.h>
#include <stdatomic.h>

TestSuite(claim, .init = embed_open, .fini = embed_close);

#define in_progress "SELECT count(*) FROM commandbus.command_metadata WHERE status = 'IN_PROGRESS'"
#define completed   "SELECT count(*) FROM commandbus.command_metadata WHERE status = 'COMPLETED'"

/* WK-1 */
Test(claim, takes_the_commands_of_its_own_domain_and_leaves_the_others_alone)
{
    test_send(bus.db, 3, NULL);
    cb_uuid other = test_send_one(bus.db, .domain = "risk");

    cb_worker *w = embed_start(HANDLERS({ "Test", wait_at_gate }));
    await_value("3", completed);
    cr_assert(cb_worker_stop(w, 30));

    expect_command("PENDING 0", other, "status, attempts");
    expect_value(bus.conn, "0", "SELECT read_ct FROM pgmq.q_risk__commands");
    cr_expect_eq(gate_entered(), 3);
}

static struct {
    cb_command command;
    char type[32], domain[32], reply_to[32], data[128], headers[64];
    int attempt, max_attempts;
    bool last, lost, stopping, no_result_yet;
    int64_t remaining_ms;
    char field[32];
} seen;

static cb_outcome look_around(cb_context *ctx, const cb_command *command, json_object **result)
{
    seen.command = *command;
    snprintf(seen.type, sizeof seen.type, "%s", command->command_type);
    snprintf(seen.domain, sizeof seen.domain, "%s", command->domain);
    snprintf(seen.reply_to, sizeof seen.reply_to, "%s", command->reply_to);
    snprintf(seen.data, sizeof seen.data, "%s", command->data);
    snprintf(seen.headers, sizeof seen.headers, "%s", command->headers);
    seen.attempt = cb_context_attempt(ctx);
    seen.max_attempts = cb_context_max_attempts(ctx);
    seen.last = cb_context_is_last_attempt(ctx);
    seen.lost = cb_context_lost(ctx);
    seen.stopping = cb_context_stopping(ctx);
    seen.remaining_ms = cb_context_remaining_ms(ctx);
    seen.no_result_yet = !*result;
    json_object *field = NULL;
    json_object_object_get_ex(cb_context_data(ctx), "amount", &field);
    snprintf(seen.field, sizeof seen.field, "%s", json_object_get_string(field));
    return CB_SUCCESS;
}

/* WK-3 */
Test(claim, gives_the_handler_its_command_and_a_context_that_fits)
{
    static const char id[] = "6f1d2a34-0b1c-4d5e-8f90-a1b2c3d4e5f6";
    static const char correlation[] = "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d";
    embed_start(HANDLERS({ "BookFx", look_around }), .domain.visibility_timeout_seconds = 20,
                .domain.handler_timeout_seconds = 10);

    cb_uuid sent = test_send_one(bus.db, .command_type = "BookFx", .command_id = id,
                                 .correlation_id = correlation, .reply_to = "payments__replies",
                                 .data = "{\"amount\":\"12.50\"}", .headers = "{\"trace\":\"7\"}",
                                 .max_attempts = 2);
    await_status("COMPLETED", sent);

    cr_expect_str_eq(seen.command.command_id.text, id);
    cr_expect_str_eq(seen.command.correlation_id.text, correlation);
    cr_expect_str_eq(seen.domain, "fx");
    cr_expect_str_eq(seen.type, "BookFx");
    cr_expect_str_eq(seen.reply_to, "payments__replies");
    cr_expect(strstr(seen.data, "12.50"), "%s", seen.data);
    cr_expect(strstr(seen.headers, "trace"), "%s", seen.headers);
    cr_expect_str_eq(seen.field, "12.50");
    cr_expect_eq(seen.attempt, 1);
    cr_expect_eq(seen.command.attempt, 1);
    cr_expect_eq(seen.max_attempts, 2);
    cr_expect_eq(seen.command.lease_no, 1);
    cr_expect_eq(seen.command.timeout_seconds, 10);
    cr_expect(!seen.last && !seen.lost && !seen.stopping && seen.no_result_yet);
    cr_expect(seen.remaining_ms > 0 && seen.remaining_ms <= 10000, "%ld", (long)seen.remaining_ms);
}

/* WK-2, WRK.3: seen from inside the handlers and from the tables. */
Test(claim, never_takes_more_than_its_slots)
{
    gate_close();
    test_send(bus.db, 40, NULL);
    cb_worker *w = embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.concurrent_messages = 3);

    await(gate_waiting() == 3);
    expect_value(bus.conn, "3", in_progress);
    expect_value(bus.conn, "37", "SELECT count(*) FROM pgmq.q_fx__commands WHERE read_ct = 0");
    cr_expect_eq(cb_worker_in_flight(w, "fx"), 3);

    for (size_t n = 1; n <= 10; n++) {
        gate_let(1);
        await(gate_entered() == 3 + n);
        expect_value(bus.conn, "3", in_progress);
    }
    gate_open();
    await_value("40", completed);
    cr_expect_eq(gate_most(), 3);
}

/* WRK.3: the slots alone decide, also when there are many of them and far more commands. */
Test(claim, keeps_to_its_slots_when_everything_is_quick)
{
    test_send(bus.db, 1500, NULL);
    embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.concurrent_messages = 16);

    await_value("1500", completed);

    cr_expect_leq(gate_most(), 16);
    cr_expect_eq(gate_entered(), 1500);
}

/* WRK.3 */
Test(claim, takes_as_many_more_as_prefetch_says_but_runs_no_more)
{
    gate_close();
    test_send(bus.db, 20, NULL);
    cb_worker *w = embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.concurrent_messages = 2,
                               .domain.prefetch = 3);

    await(gate_waiting() == 2);
    await_value("5", in_progress);
    await(cb_worker_in_flight(w, NULL) == 5);

    gate_let(4);
    await(gate_entered() == 6);
    await_value("5 of 16",
                "SELECT count(*) FILTER (WHERE status = 'IN_PROGRESS') || ' of ' || count(*) "
                "FROM commandbus.command_metadata WHERE status <> 'COMPLETED'");
    gate_open();
    await_value("20", completed);
    cr_expect_eq(gate_most(), 2);
}

/* WRK.3: the handler has returned, but somebody holds the row: no place is free before it is
 * written. */
Test(claim, a_slot_is_free_only_when_its_outcome_is_durable)
{
    gate_close();
    cb_uuid first = test_send_one(bus.db, .domain = "fx");
    cb_worker *w = embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.concurrent_messages = 1);
    await(gate_waiting() == 1);
    PGconn *holder = test_pq_open(bus.conninfo);
    test_exec(holder, "BEGIN; SELECT FROM commandbus.command_metadata FOR UPDATE");
    cb_uuid second = test_send_one(bus.db, .domain = "fx");

    gate_open();
    await(gate_left() == 1);
    for (int i = 0; i < 50; i++) { /* as long as it is held */
        expect_command("PENDING 0", second, "status, lease_no");
        cr_assert_eq(cb_worker_in_flight(w, NULL), 1);
        poll(NULL, 0, 5);
    }
    cr_expect_eq(gate_entered(), 1);
    test_exec(holder, "COMMIT");
    PQfinish(holder);

    await_status("COMPLETED", second);
    expect_command("COMPLETED 1", first, "status, lease_no");
}

static atomic_int risky;

static cb_outcome count_risk(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)ctx, (void)result;
    atomic_fetch_add(&risky, strcmp(command->domain, "risk") == 0 ? 1 : 1000);
    return CB_SUCCESS;
}

/* WRK.1: each domain has settings and handlers of its own; one that is full holds up no other. */
Test(claim, each_domain_has_its_own_slots_handlers_and_settings)
{
    const cb_handler for_risk[] = { { "Test", count_risk } };
    const cb_module *set = embed_set("risky", for_risk, 1);
    const cb_worker_domain_options more[] = { { .domain = "risk",
                                                .sets = &set,
                                                .n_sets = 1,
                                                .concurrent_messages = 1,
                                                .max_attempts = 7,
                                                .visibility_timeout_seconds = 20,
                                                .handler_timeout_seconds = 11 } };
    gate_close();
    test_send(bus.db, 10, NULL);
    cb_uuid one = test_send_one(bus.db, .domain = "risk");
    cb_worker *w = embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.concurrent_messages = 2,
                               .domain.max_attempts = 4, .more = more, .n_more = 1);

    await(gate_waiting() == 2);
    await_status("COMPLETED", one);
    for (int i = 0; i < 20; i++)
        test_send_one(bus.db, .domain = "risk");
    await(atomic_load(&risky) == 21);

    expect_command("7 11", one, "max_attempts, timeout_seconds");
    expect_value(bus.conn, "4 2",
                 "SELECT DISTINCT concat_ws(' ', max_attempts, timeout_seconds) "
                 "FROM commandbus.command_metadata WHERE domain = 'fx' AND lease_no > 0");
    cr_expect_eq(cb_worker_in_flight(w, "fx"), 2);
    await(cb_worker_in_flight(w, "risk") == 0);
    cr_expect_eq(cb_worker_in_flight(w, NULL), 2);
    cr_expect_eq(gate_most(), 2);
}

/* A domain that cannot be claimed keeps nobody from the others. */
Test(claim, a_domain_whose_queue_is_gone_does_not_hold_up_the_others)
{
    const cb_handler for_risk[] = { { "Test", count_risk } };
    const cb_module *set = embed_set("risky", for_risk, 1);
    const cb_worker_domain_options more[] = { { .domain = "risk", .sets = &set, .n_sets = 1 } };
    embed_start(HANDLERS({ "Test", wait_at_gate }), .more = more, .n_more = 1);
    test_exec(bus.conn, "SELECT pgmq.drop_queue('fx__commands')");
    await(embed_told("claim.refused") > 0);

    test_send_one(bus.db, .domain = "risk");

    await(atomic_load(&risky) == 1);
}

/* DESIGN "The limit, exactly": the configuration of who starts is what the fleet keeps to. */
Test(claim, the_fleet_limit_is_set_at_start_and_bounds_all_workers_together)
{
    const int limit = 3;
    gate_close();
    test_send(bus.db, 30, NULL);
    for (int i = 0; i < 2; i++)
        embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.concurrent_messages = 5,
                    .domain.fleet_limit = &limit);

    expect_value(bus.conn, "3", "SELECT fleet_limit FROM commandbus.domain WHERE domain = 'fx'");
    await(gate_waiting() == 3);
    for (size_t n = 1; n <= 5; n++) {
        gate_let(1);
        await(gate_entered() == 3 + n);
        expect_value(bus.conn, "3", in_progress);
    }
    gate_open();
    await_value("30", completed);
    cr_expect_eq(gate_most(), 3);
    await_value("0", "SELECT count(*) FROM commandbus.fleet_lease");
}

Test(claim, a_fleet_limit_that_nobody_mentions_stays_and_zero_takes_it_away)
{
    const int none = 0;
    test_exec(bus.conn, "SELECT commandbus.set_fleet_limit('fx', 9)");

    cb_worker *silent = embed_start(HANDLERS({ "Test", wait_at_gate }));
    expect_value(bus.conn, "9", "SELECT fleet_limit FROM commandbus.domain WHERE domain = 'fx'");
    cr_assert(cb_worker_stop(silent, 30));
    embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.fleet_limit = &none);

    expect_value(bus.conn, "0", "SELECT fleet_limit FROM commandbus.domain WHERE domain = 'fx'");
}

#define in_progress_of(domain) in_progress " AND domain = '" domain "'"

/* Section 8.7 and 8.10: what an instance holds is bounded, and no domain starves for what another
 * one holds. */
Test(claim, of_large_commands_is_bounded_over_all_domains_and_none_of_them_starves)
{
    static const cb_handler handlers[] = { { "Test", wait_at_gate } };
    const cb_module *set = embed_set("risk_set", handlers, 1);
    cb_worker_domain_options risk = { .domain = "risk",
                                      .sets = &set,
                                      .n_sets = 1,
                                      .concurrent_messages = 2,
                                      .poll_interval_seconds = 0.1 };
    test_exec(bus.conn,
              "WITH large AS MATERIALIZED (SELECT jsonb_build_object('x', "
              "    string_agg(md5(i::text), '')) AS data FROM generate_series(1, 31000) i) "
              "SELECT commandbus.send('fx', 'Test', large.data) "
              "FROM large, generate_series(1, 80)");
    gate_close();
    embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.concurrent_messages = 80,
                .domain.visibility_timeout_seconds = 300, .domain.handler_timeout_seconds = 300,
                .more = &risk, .n_more = 1);
    await(test_number(bus.conn, in_progress_of("fx"), NULL) >= 20);
    await(gate_waiting() >= 20);

    test_send_one(bus.db, .domain = "risk");
    test_send_one(bus.db, .domain = "risk");
    await(test_number(bus.conn, in_progress_of("risk"), NULL) >= 1);

    cr_expect_leq(test_number(bus.conn, in_progress_of("fx"), NULL), 70);
    gate_open();
    await_value("82", completed);
}
