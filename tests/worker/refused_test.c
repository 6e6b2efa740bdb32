/* What the database refuses, for another reason than being away: the instance is not ready and says
 * why, once; it asks again at intervals, and goes on by itself when it may. WRK.10, WRK.15,
 * DESIGN 8.7. */
#include "embed.h"

#include "engine.h"
#include "trip.h"

TestSuite(refused, .init = embed_open, .fini = embed_close);

static cb_flow walk_at_gate(cb_process *p, void *state)
{
    (void)state;
    CB_DO(cb_step(p, "walk", trip_step_at_gate, .timeout_ms = 60000));
    return CB_DONE;
}
TRIP_TYPE(Walk, walk_at_gate, .version = 1);

static void rename_function(const char *function)
{
    char sql[128];

    snprintf(sql, sizeof sql, "ALTER FUNCTION commandbus.%s RENAME TO %s_away", function, function);
    test_exec(bus.conn, sql);
}

static void bring_back(const char *function)
{
    char sql[128];

    snprintf(sql, sizeof sql, "ALTER FUNCTION commandbus.%s_away RENAME TO %s", function, function);
    test_exec(bus.conn, sql);
}

/* Not ready, and the reason says what is refused. */
static bool is_unready_for(const cb_worker *w, const char *what)
{
    char reason[256];

    return !cb_worker_is_ready(w, reason, sizeof reason) && strstr(reason, what) &&
           strstr(reason, "42883");
}

static bool is_ready(const cb_worker *w)
{
    return cb_worker_is_ready(w, NULL, 0);
}

static int64_t refusals(cb_worker *w, trouble *t)
{
    pthread_mutex_lock(&w->troubled);
    int64_t count = atomic_load(&t->there) ? t->count : 0;
    pthread_mutex_unlock(&w->troubled);
    return count;
}

Test(refused, claims_make_the_instance_unready_and_are_logged_once)
{
    cb_worker *w = embed_start(HANDLERS({ "Test", wait_at_gate }));
    await(is_ready(w));

    rename_function("receive");
    await(is_unready_for(w, "claim in domain fx"));
    test_send(bus.db, 30, NULL); /* notifications, which do not make it ask more often */
    await(refusals(w, &w->claims[COMMANDS].lanes[0]->claiming.refused) >= 3);

    cr_expect_eq(embed_told("claim.refused"), 1);
    cr_expect_leq(refusals(w, &w->claims[COMMANDS].lanes[0]->claiming.refused), 4);
    bring_back("receive");
    await_value("30",
                "SELECT count(*) FROM commandbus.command_metadata WHERE status = 'COMPLETED'");
    await(is_ready(w));
    cr_expect_eq(embed_told("database.accepts"), 1);
}

Test(refused, claims_of_one_domain_do_not_hold_up_another)
{
    const cb_handler handlers[] = { { "Test", wait_at_gate } };
    const cb_module *set = embed_set("other", handlers, 1);
    const cb_worker_domain_options other = { .domain = "doomed", .sets = &set, .n_sets = 1 };
    cb_worker *w = embed_start(HANDLERS({ "Test", wait_at_gate }), .more = &other, .n_more = 1);

    test_exec(bus.conn, "SELECT pgmq.drop_queue('doomed__commands')");
    await(!is_ready(w));
    test_send(bus.db, 30, NULL);

    await_value("30",
                "SELECT count(*) FROM commandbus.command_metadata WHERE status = 'COMPLETED'");
    cr_expect_eq(embed_told("claim.refused"), 1);
    cr_expect_not(is_ready(w));
}

Test(refused, claims_of_processes_make_the_instance_unready_and_are_logged_once)
{
    cb_worker *w = embed_start(PROCESSES(&Walk));
    await(is_ready(w));

    rename_function("claim_processes");
    await(is_unready_for(w, "claim in domain fx"));
    cb_uuid id = trip_start("Walk");
    await(refusals(w, &w->claims[PROCESSES].lanes[0]->claiming.refused) >= 3);

    cr_expect_eq(embed_told("claim.refused"), 1);
    bring_back("claim_processes");
    await_process("COMPLETED", id);
    await(is_ready(w));
}

Test(refused, outcomes_make_the_instance_unready_until_they_are_taken)
{
    gate_close();
    cb_uuid id = test_send_one(bus.db, .max_attempts = 1);
    cb_worker *w = embed_start(HANDLERS({ "Test", wait_at_gate }));
    await(gate_waiting() == 1);

    rename_function("settle");
    gate_open();
    await(is_unready_for(w, "settle"));
    await(refusals(w, &w->settling[COMMANDS].trouble) >= 2);

    cr_expect_eq(embed_told("settle.refused"), 1);
    bring_back("settle");
    await_status("COMPLETED", id);
    await(is_ready(w));
    expect_command("1 1", id, "attempts, lease_no");
}

Test(refused, renewals_make_the_instance_unready_and_are_logged_once)
{
    gate_close();
    cb_uuid id = test_send_one(bus.db, .timeout_seconds = 60);
    cb_worker *w = embed_start(HANDLERS({ "Test", wait_at_gate }));
    await(gate_waiting() == 1);

    rename_function("extend");
    await(is_unready_for(w, "renew"));
    await(refusals(w, &w->renewals.refused[COMMANDS]) >= 3);

    cr_expect_eq(embed_told("database.refused"), 1);
    bring_back("extend");
    await(is_ready(w));
    gate_open();
    await_status("COMPLETED", id);
}

/* What it can work without does not make it unready, but is logged, once. */
Test(refused, announcements_and_heartbeats_leave_the_instance_at_work)
{
    cb_worker *w = embed_worker(HANDLERS({ "Test", wait_at_gate }));
    w->chore_seconds[CHORE_HEARTBEAT] = 0.2;
    embed_started(w);
    await(is_ready(w));

    rename_function("heartbeat");
    rename_function("sleep_announce");
    await(refusals(w, &w->chore_refused[CHORE_HEARTBEAT]) >= 5);
    await(refusals(w, &w->claims[COMMANDS].lanes[0]->claiming.sleep.refused) >= 2);

    cr_expect(is_ready(w));
    /* One of each: the heartbeat, the domain's commands, its processes. */
    size_t told = embed_told("database.refused");
    cr_expect_leq(told, 3, "told %zu times", told);
    cb_uuid id = test_send_one(bus.db, .max_attempts = 1);
    await_status("COMPLETED", id);
    bring_back("heartbeat");
    bring_back("sleep_announce");
    await(embed_told("database.accepts") == told);
}
