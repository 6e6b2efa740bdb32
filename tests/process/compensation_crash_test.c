/* A worker that dies after each durable point in turn, with replies that arrive at every moment:
 * the end is the same, each command is sent once, each function called and each compensation
 * recorded once. DESIGN 8.1, 8.3, 8.4, 8.6; STP.8, STP.9; RL.2. */
#include "tour.h"

/* When a reply arrives. */
typedef enum {
    BEFORE, /* the process is claimed: between two runs */
    DURING, /* a run that was for something else */
    DYING,  /* the same, and the worker dies in it */
    TWICE,  /* between two runs, and then once more */
} moment;

static stage s;
static const char *served_meanwhile; /* the domain to serve in the next response function */
static bool dies;

static void book_meanwhile(const char *function)
{
    if (strcmp(function, "note") != 0 || !served_meanwhile)
        return;
    tour_book(&s, served_meanwhile);
    served_meanwhile = NULL;
    test_exec(bus.conn, "SELECT commandbus.deliver_replies('payments__replies', 'other')");
    s.kit.crashed = dies;
}

static void serve_at(cb_uuid id, const char *domain, moment when)
{
    if (when == DURING || when == DYING) {
        served_meanwhile = domain;
        stage_respond(&s, id, "note", "{\"word\":\"note\"}");
        stage_go(&s);
        served_meanwhile = NULL;
        if (s.kit.crashed)
            stage_restart(&s);
    }
    if (stage_is_queued(domain))
        tour_book(&s, domain);
    if (when == TWICE)
        test_exec(bus.conn, "SELECT pgmq.send('payments__replies', message) "
                            "FROM pgmq.q_payments__replies");
}

static bool has_status(cb_uuid id, const char *like)
{
    return test_number(bus.conn,
                       "SELECT count(*) FROM commandbus.process WHERE process_id = $1 "
                       "AND status::text ~ $2",
                       id.text, like, NULL) > 0;
}

/* Plays handlers, operators and new workers until the process has ended. */
static void drive(cb_uuid id, moment when)
{
    for (int i = 0; i < 50; i++) {
        stage_go(&s);
        if (s.kit.crashed)
            stage_restart(&s);
        else if (has_status(id, "^(COMPLETED|COMPENSATED)$"))
            return;
        else if (has_status(id, "^WAITING_FOR_TSQ$"))
            tour_retry(id);
        else if (stage_is_queued("risk"))
            serve_at(id, "risk", when);
        else if (stage_is_queued("fx"))
            serve_at(id, "fx", when);
    }
    cr_assert_fail("it does not end");
}

#define FORWARD                                                                  \
    "STEP prepare COMPLETED, COMMAND bookRisk COMPLETED, STEP quote COMPLETED, " \
    "COMMAND bookFx COMPLETED, STEP finish COMPLETED"
#define BACK                                                          \
    ", COMPENSATION bookFx COMPLETED, COMPENSATION quote COMPLETED, " \
    "COMPENSATION bookRisk COMPLETED, COMPENSATION prepare COMPLETED"

static void expect_tour_end(cb_uuid id, bool undone)
{
    expect_status(&s, undone ? "COMPENSATED DECLINED" : "COMPLETED", id);
    expect_value(bus.conn,
                 undone ? "prepare risk quote fx finish undo_fx undo_quote undo_prepare"
                        : "prepare risk quote fx finish completed",
                 "SELECT replace(state ->> 'trail', ' note', '') FROM commandbus.process "
                 "WHERE process_id = $1",
                 id.text);
    cr_expect_str_eq(tour_calls, undone ? "prepare quote finish undo_fx undo_quote undo_prepare"
                                        : "prepare quote finish");
    expect_value(bus.conn, undone ? FORWARD BACK : FORWARD,
                 "SELECT string_agg(concat_ws(' ', kind, name, status), ', ' ORDER BY ordinal) "
                 "FROM commandbus.process_history WHERE process_id = $1 "
                 "AND kind NOT IN ('OPERATOR', 'RESPONSE')",
                 id.text);
    expect_value(bus.conn,
                 undone ? "BookRisk COMPLETED, BookFx COMPLETED, ReleaseRisk COMPLETED"
                        : "BookRisk COMPLETED, BookFx COMPLETED",
                 "SELECT string_agg(command_type || ' ' || status, ', ' ORDER BY created_at) "
                 "FROM commandbus.command_metadata WHERE correlation_id = $1",
                 id.text);
}

/* Nothing is left anywhere; each command was sent once. */
static void expect_nothing_left(void)
{
    stage_go(&s);
    expect_value(bus.conn, "0 0 0 0",
                 "SELECT (SELECT count(*) FROM commandbus.process_inbox) || ' ' || "
                 "(SELECT count(*) FROM pgmq.q_payments__replies) || ' ' || "
                 "(SELECT count(*) FROM pgmq.q_risk__commands) || ' ' || "
                 "(SELECT count(*) FROM pgmq.q_fx__commands)");
    expect_value(bus.conn, "t",
                 "SELECT (SELECT count(*) FROM commandbus.audit WHERE event_type = 'SENT') = "
                 "(SELECT count(*) FROM commandbus.command_metadata)");
}

static void play_crashes(moment when, bool undone)
{
    const char *state = undone ? "{\"decline\":true}" : "{}";
    int last = 1;

    s = tour_open(&tour_type);
    tour_plays.during = book_meanwhile;
    dies = when == DYING;
    for (int k = 0; k <= last;
         k++) { /* the first one dies not at all, and tells how many there are */
        s.kit.durable = 0;
        s.kit.crash_after = k;
        tour_calls[0] = 0;
        cb_uuid id = stage_start(&s, "Tour", state);
        drive(id, when);
        expect_tour_end(id, undone);
        last = k == 0 ? s.kit.durable : last;
    }
    cr_expect_geq(last, undone ? 9 : 5);
    expect_nothing_left();
    stage_close(&s);
}

Test(compensation_crash, anywhere_on_the_way_to_the_end)
{
    play_crashes(BEFORE, false);
}

Test(compensation_crash, anywhere_on_the_way_there_and_back)
{
    play_crashes(BEFORE, true);
}

Test(compensation_crash, with_replies_that_arrive_during_a_run)
{
    play_crashes(DURING, false);
}

Test(compensation_crash, with_replies_that_arrive_during_a_run_and_back)
{
    play_crashes(DURING, true);
}

Test(compensation_crash, of_a_worker_in_whose_run_the_reply_arrives)
{
    play_crashes(DYING, true);
}

Test(compensation_crash, with_every_reply_twice)
{
    play_crashes(TWICE, true);
}
