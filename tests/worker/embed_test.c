/* The worker as a part of another program: its life, and what it says about itself. */
#include "embed.h"
#include "parallel.h"

#include <pthread.h>
#include <stdatomic.h>

TestSuite(embed, .init = embed_open, .fini = embed_close);

/* Not those of the server itself: autovacuum comes when it likes. */
#define connections                                                             \
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() " \
    "AND backend_type = 'client backend' AND pid <> pg_backend_pid()"

/* A stop on a thread of its own, so that the test can look meanwhile. */
typedef struct {
    cb_worker *worker;
    double seconds;
    pthread_t thread;
    atomic_bool returned;
    bool answer;
} stopper;

static void *stop_it(void *arg)
{
    stopper *s = arg;

    s->answer = cb_worker_stop(s->worker, s->seconds);
    atomic_store(&s->returned, true);
    return NULL;
}

static void stop_beside(stopper *s, cb_worker *w, double seconds)
{
    *s = (stopper){ .worker = w, .seconds = seconds };
    cr_assert_eq(pthread_create(&s->thread, NULL, stop_it, s), 0);
}

static bool stop_result(stopper *s)
{
    pthread_join(s->thread, NULL);
    return s->answer;
}

/* WRK.2 */
Test(embed, starting_twice_warns_and_has_no_effect)
{
    gate_close();
    cb_worker *w = embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.concurrent_messages = 2);
    await(embed_told("listen.ready") == 1);
    test_send(bus.db, 10, NULL);
    await(gate_waiting() == 2);
    long before = test_number(bus.conn, connections, NULL);

    embed_started(w);

    cr_expect_eq(embed_told("worker.already_started"), 1);
    cr_expect_eq(test_number(bus.conn, connections, NULL), before);
    gate_open();
    await_value("10",
                "SELECT count(*) FROM commandbus.command_metadata WHERE status = 'COMPLETED'");
    cr_expect_eq(gate_most(), 2, "twice the slots");
    expect_value(bus.conn, "1", "SELECT count(*) FROM commandbus.worker");
}

/* WRK.2, WRK.11, WK-9 */
Test(embed, stop_waits_for_what_runs_and_begins_no_more)
{
    stopper s;
    gate_close();
    cb_uuid first = test_send_one(bus.db, .reply_to = "payments__replies");
    cb_worker *w = embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.concurrent_messages = 2);
    await(gate_waiting() == 1);

    stop_beside(&s, w, 60);
    await(!cb_worker_is_running(w));
    cb_uuid second = test_send_one(bus.db, .domain = "fx");
    poll(NULL, 0, 300); /* three poll intervals in which it must do nothing */
    cr_expect(!atomic_load(&s.returned), "stop did not wait");
    await(cb_worker_in_flight(w, NULL) == 1);
    gate_open();
    cr_expect(stop_result(&s));

    expect_command("COMPLETED 1", first, "status, attempts");
    expect_messages("0 queued, 0 archived, 1 replied", first);
    /* A claim that was on its way when the stop began may have taken it, and given it back. */
    expect_command("PENDING 0", second, "status, attempts");
    cr_expect_eq(gate_entered(), 1);
    cr_expect_eq(cb_worker_in_flight(w, NULL), 0);
    expect_value(bus.conn, "0", "SELECT count(*) FROM commandbus.worker");
    expect_value(bus.conn, "0", "SELECT count(*) FROM commandbus.sleeper");
    cr_expect(embed_told("worker.draining") == 1 && embed_told("worker.stopped") == 1);
}

/* WRK.11: what is not settled in time goes on, and is settled later. */
Test(embed, stop_says_when_its_time_is_over_and_may_be_repeated)
{
    gate_close();
    cb_uuid id = test_send_one(bus.db, .timeout_seconds = 60);
    cb_worker *w = embed_start(HANDLERS({ "Test", wait_at_gate }));
    await(gate_waiting() == 1);

    double from = test_clock();
    cr_expect(!cb_worker_stop(w, 0.2));
    cr_expect_geq(test_clock() - from, 0.19);
    cr_expect(!cb_worker_stop(w, 0));
    cr_expect_eq(cb_worker_in_flight(w, NULL), 1);
    cr_expect_geq(embed_told("worker.undrained"), 2);
    gate_open();

    cr_expect(cb_worker_stop(w, patience_seconds));
    expect_command("COMPLETED 1", id, "status, lease_no");
}

/* WRK.11: not entered, so nothing is charged; and at once, not after the lease. */
Test(embed, stop_gives_back_what_has_not_begun)
{
    stopper s;
    gate_close();
    test_send(bus.db, 6, NULL);
    cb_worker *w = embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.concurrent_messages = 1,
                               .domain.prefetch = 5, .domain.visibility_timeout_seconds = 600,
                               .domain.handler_timeout_seconds = 300);
    await(gate_waiting() == 1 && cb_worker_in_flight(w, NULL) == 6);

    stop_beside(&s, w, 60);
    await_value("5",
                "SELECT count(*) FROM commandbus.command_metadata c JOIN pgmq.q_fx__commands q "
                "USING (msg_id) WHERE status = 'PENDING' AND attempts = 0 AND lease_no = 1 "
                "AND lease_owner IS NULL AND q.vt <= statement_timestamp()");
    gate_open();
    cr_expect(stop_result(&s));

    cr_expect_eq(gate_entered(), 1);
    expect_value(bus.conn, "5",
                 "SELECT count(*) FROM commandbus.audit WHERE event_type = 'RELEASED'");
}

/* WRK.2: nobody waits; what runs is redelivered when its lease ends. */
Test(embed, stop_now_does_not_wait_for_handlers)
{
    gate_close();
    cb_uuid id = test_send_one(bus.db, .timeout_seconds = 60);
    cb_worker *w = embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.concurrent_messages = 1,
                               .domain.prefetch = 1);
    cb_uuid waiting = test_send_one(bus.db, .domain = "fx");
    await(gate_waiting() == 1 && cb_worker_in_flight(w, NULL) == 2);

    cb_worker_stop_now(w);

    cr_expect_eq(gate_left(), 0);
    cr_expect(!cb_worker_is_running(w));
    await_value("PENDING 0",
                "SELECT status || ' ' || attempts FROM commandbus.command_metadata "
                "WHERE command_id = $1",
                waiting.text);
    expect_command("IN_PROGRESS 1", id, "status, attempts");
    gate_open();
    embed_free(w);
    cr_expect_eq(gate_left(), 1, "free has to wait for the handler's return");
}

/* WRK.2 */
Test(embed, works_again_when_it_is_started_again_after_a_stop)
{
    cb_worker *w = embed_worker(HANDLERS({ "Test", wait_at_gate }));

    for (int i = 0; i < 3; i++) {
        embed_started(w);
        cr_expect(cb_worker_is_running(w));
        cb_uuid id = test_send_one(bus.db, .domain = "fx");
        await_status("COMPLETED", id);
        expect_command("1", id, "lease_no");
        cr_expect(cb_worker_stop(w, 30));
        cr_expect(!cb_worker_is_running(w));
        await_value("1", connections);
    }
    cr_expect_eq(gate_entered(), 3);
}

Test(embed, works_again_when_it_is_started_again_after_a_stop_now)
{
    cb_worker *w = embed_start(HANDLERS({ "Test", wait_at_gate }));
    cb_worker_stop_now(w);
    cr_expect(!cb_worker_is_running(w));

    cr_expect(cb_worker_stop(w, 30));
    embed_started(w);

    cb_uuid id = test_send_one(bus.db, .domain = "fx");
    await_status("COMPLETED", id);
}

Test(embed, stopping_a_worker_that_does_not_run_is_harmless)
{
    cb_worker *w = embed_worker(HANDLERS({ "Test", wait_at_gate }));

    cb_worker_stop_now(w);
    cr_expect(cb_worker_stop(w, 0));
    cr_expect(!cb_worker_is_running(w));
    embed_started(w);
    cr_expect(cb_worker_stop(w, 30));
    cr_expect(cb_worker_stop(w, 30));
    cb_worker_stop_now(w);
    cb_worker_free(NULL);
}

/* WK-10, WRK.2 */
Test(embed, in_flight_counts_what_is_claimed_and_not_settled_by_domain_and_in_all)
{
    const cb_handler for_risk[] = { { "Test", wait_at_gate } };
    const cb_module *set = embed_set("risky", for_risk, 1);
    const cb_worker_domain_options more[] = { { .domain = "risk", .sets = &set, .n_sets = 1 } };
    gate_close();
    cb_worker *w = embed_start(HANDLERS({ "Test", wait_at_gate }), .more = more, .n_more = 1);
    cr_expect_eq(cb_worker_in_flight(w, NULL), 0);

    test_send(bus.db, 3, NULL);
    test_send_one(bus.db, .domain = "risk");
    await(gate_waiting() == 4);

    cr_expect_eq(cb_worker_in_flight(w, "fx"), 3);
    cr_expect_eq(cb_worker_in_flight(w, "risk"), 1);
    cr_expect_eq(cb_worker_in_flight(w, "payments"), 0);
    cr_expect_eq(cb_worker_in_flight(w, NULL), 4);
    gate_let(2);
    await(cb_worker_in_flight(w, NULL) == 2);
    gate_open();
    await(cb_worker_in_flight(w, NULL) == 0);
}

/* WRK.2 */
Test(embed, names_its_domains_and_itself)
{
    const cb_worker_domain_options more[] = { { .domain = "risk" } };
    cb_worker *w = embed_worker(HANDLERS({ "Test", wait_at_gate }), .more = more, .n_more = 1,
                                .worker.name = "till-4");
    cb_worker *twin = embed_worker(HANDLERS({ "Test", wait_at_gate }), .worker.name = "till-4");

    cr_expect_str_eq(cb_worker_domain(w, 0), "fx");
    cr_expect_str_eq(cb_worker_domain(w, 1), "risk");
    cr_expect_null(cb_worker_domain(w, 2));
    cr_expect_eq(strncmp(cb_worker_id(w), "till-4-", 7), 0, "%s", cb_worker_id(w));
    cr_expect_str_neq(cb_worker_id(w), cb_worker_id(twin));
    gate_close();
    cb_uuid id = test_send_one(bus.db, .domain = "fx");
    embed_started(w);
    await(gate_waiting() == 1);
    expect_command(cb_worker_id(w), id, "lease_owner");
    gate_open();
    await_status("COMPLETED", id);
    expect_value(bus.conn, cb_worker_id(w),
                 "SELECT worker FROM commandbus.audit WHERE event_type = 'COMPLETED'");
}

Test(embed, is_ready_while_it_runs_and_says_why_when_it_is_not)
{
    stopper s;
    char reason[64];
    cb_worker *w = embed_worker(HANDLERS({ "Test", wait_at_gate }));

    cr_expect(!cb_worker_is_ready(w, reason, sizeof reason));
    cr_expect_str_eq(reason, "not started");
    embed_started(w);
    cr_expect(cb_worker_is_ready(w, reason, sizeof reason), "%s", reason);
    cr_expect(cb_worker_is_ready(w, NULL, 0));
    gate_close();
    test_send(bus.db, 1, NULL);
    await(gate_waiting() == 1);
    stop_beside(&s, w, 60);
    await(!cb_worker_is_ready(w, reason, sizeof reason));
    cr_expect_str_eq(reason, "draining");
    gate_open();
    cr_expect(stop_result(&s));
    cr_expect(!cb_worker_is_ready(w, reason, sizeof reason));
    cr_expect_str_eq(reason, "not started");
}

/* DESIGN 2: one connection a purpose, whatever the concurrency. */
Test(embed, has_about_six_connections_with_few_slots_and_with_many)
{
    static const int slots[] = { 1, 200 };

    for (size_t i = 0; i < CB_COUNT(slots); i++) {
        cb_worker *w =
            embed_start(HANDLERS({ "Test", wait_at_gate }), .domain.concurrent_messages = slots[i]);
        await(embed_told("listen.ready") == i + 1);
        test_send(bus.db, 400, NULL);
        await_value("0", "SELECT count(*) FROM pgmq.q_fx__commands");
        cr_expect_leq(test_number(bus.conn, connections, NULL), 1 + 6);
        cr_expect(cb_worker_stop(w, 30));
        await_value("1", connections);
    }
}

static void call_everything(size_t i, void *arg)
{
    cb_worker *w = arg;
    char reason[32];
    cb_error e = { 0 };

    for (int k = 0; k < 60; k++) {
        char *text = NULL;
        switch ((i + (size_t)k) % 6) {
        case 0:
            (void)!cb_worker_start(w, &e);
            break;
        case 1:
            (void)cb_worker_stop(w, k % 2 ? 0 : 0.05);
            break;
        case 2:
            if (cb_worker_metrics(w, &text, &e))
                free(text);
            break;
        case 3:
            (void)cb_worker_is_ready(w, reason, sizeof reason);
            (void)cb_worker_is_broken(w);
            break;
        case 4:
            if (k % 5 == 0)
                cb_worker_stop_now(w);
            break;
        default:
            (void)cb_worker_is_running(w);
            (void)cb_worker_in_flight(w, "fx");
            (void)cb_worker_domain(w, 0);
        }
    }
}

/* WRK.2: every call from any thread at any time, and nothing of it loses or doubles a command. */
Test(embed, may_be_called_by_many_threads_at_once)
{
    cb_error e = { 0 };
    test_send(bus.db, 300, NULL);
    cb_worker *w = embed_start(HANDLERS({ "Test", wait_at_gate }));

    parallel_run(6, call_everything, w);
    cr_assert(cb_worker_stop(w, patience_seconds));
    cr_assert(cb_worker_start(w, &e), "%s", e.message);

    await_value("300",
                "SELECT count(*) FROM commandbus.command_metadata WHERE status = 'COMPLETED'");
    expect_value(bus.conn, "300", "SELECT count(*) FROM pgmq.q_payments__replies");
    cr_expect_eq(gate_entered(), 300);
}

static void stop_and_tell(size_t i, void *arg)
{
    stopper *all = arg;

    all[i].answer = cb_worker_stop(all[i].worker, 60);
}

Test(embed, several_may_stop_it_at_once_and_each_hears_that_it_stopped)
{
    stopper all[4] = { 0 };
    test_send(bus.db, 100, NULL);
    cb_worker *w = embed_start(HANDLERS({ "Test", wait_at_gate }));
    for (size_t i = 0; i < CB_COUNT(all); i++)
        all[i].worker = w;

    parallel_run(CB_COUNT(all), stop_and_tell, all);

    for (size_t i = 0; i < CB_COUNT(all); i++)
        cr_expect(all[i].answer);
    cr_expect_eq(cb_worker_in_flight(w, NULL), 0);
    expect_value(bus.conn, "0",
                 "SELECT count(*) FROM commandbus.command_metadata WHERE status = 'IN_PROGRESS'");
}
