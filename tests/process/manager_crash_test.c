/* A manager's worker dies after, or just before, each durable point in turn: the end is the same,
 * each command is sent once, each reply and response taken once, each compensation made once.
 * DESIGN 8.1, 8.4; PM.3, PM.4. */
#include "dying.h"
#include "order.h"

/* The handlers of all domains, and the one who approves; the same answer again does no harm. */
static void serve_order(stage *s, cb_uuid id, bool decline)
{
    static const char *const domains[] = { "risk", "fx", "payments" };
    bool accepted;
    cb_error e;

    for (size_t i = 0; i < CB_COUNT(domains); i++) {
        if (!stage_is_queued(domains[i]))
            continue;
        if (decline && i == 2)
            stage_serve(s, "payments", CB_BUSINESS_RULE, NULL, "NO_STOCK");
        else
            order_book(s, domains[i], 7);
    }
    cb_uuid response = cb_uuid_from_name(&id, "the one approval");
    if (!stage_is_over(id))
        cr_assert(cb_process_respond(bus.db, id.text, "approval", "{\"ok\":true}", response.text,
                                     &accepted, &e));
}

static void expect_order_end(stage *s, cb_uuid id, bool decline)
{
    static const char forward[] =
        "COMMAND reserve COMPLETED, WAIT approve COMPLETED, COMMAND charge COMPLETED, COMMAND ship "
        "COMPLETED";
    static const char back[] =
        "COMMAND reserve COMPLETED, WAIT approve COMPLETED, COMMAND charge COMPLETED, COMMAND ship "
        "FAILED, COMPENSATION charge COMPLETED, COMPENSATION reserve COMPLETED";

    expect_status(s, decline ? "COMPENSATED NO_STOCK" : "COMPLETED", id);
    expect_value(bus.conn, decline ? back : forward,
                 "SELECT string_agg(concat_ws(' ', kind, name, status), ', ' ORDER BY ordinal) "
                 "FROM commandbus.process_history WHERE process_id = $1 AND kind NOT IN "
                 "('RESPONSE', 'STEP')",
                 id.text);
    expect_value(bus.conn, "1 1",
                 "SELECT concat_ws(' ', count(*) FILTER (WHERE kind = 'RESPONSE'), count(*) FILTER "
                 "(WHERE kind = 'STEP')) FROM commandbus.process_history WHERE process_id = $1",
                 id.text);
    expect_state(s,
                 decline ? "reserve approve charge refund release" : "reserve approve charge ship",
                 id, "trail");
    expect_value(bus.conn, decline ? "5 5" : "3 3",
                 "SELECT concat_ws(' ', count(*), count(DISTINCT (domain, command_type))) FROM "
                 "commandbus.command_metadata WHERE correlation_id = $1",
                 id.text);
    expect_told("0", id, "LATE_REPLY");
}

/* Dies after durable point `at` of one process; false when it has none such. */
static bool dies_after(stage *s, int at, bool decline)
{
    cb_uuid id = stage_start(s, "Order", "{}");
    bool crashed = false;

    s->kit.durable = 0;
    s->kit.crash_after = at;
    for (int i = 0; i < 30 && !stage_is_over(id); i++) {
        stage_go(s);
        if (s->kit.crashed) {
            crashed = true;
            stage_restart(s);
        } else {
            serve_order(s, id, decline);
        }
    }
    expect_order_end(s, id, decline);
    return crashed;
}

Test(manager_crash, after_every_durable_point_the_end_is_the_same)
{
    stage s = order_open(&order_type);
    int forward = 0, back = 0;

    while (dies_after(&s, forward + 1, false))
        forward++;
    cr_expect_eq(forward, 4, "%d durable points: three commands and the end", forward);
    while (dies_after(&s, back + 1, true))
        back++;
    cr_expect_eq(back, 6, "%d durable points: five commands and the end", back);
    stage_close(&s);
}

static void deliver(void)
{
    test_exec(bus.conn, "SELECT commandbus.deliver_replies('payments__replies', 'stage')");
}

static bool dies_before(stage *s, int at, bool decline)
{
    cb_uuid id = stage_start(s, "Order", "{}");
    dying d = { .stage = s, .die_at = at };

    for (int i = 0; i < 40 && !stage_is_over(id); i++) {
        if (dying_step(&d) || d.dead)
            continue;
        serve_order(s, id, decline);
        deliver();
    }
    expect_order_end(s, id, decline);
    return d.settles >= at;
}

Test(manager_crash, before_every_durable_point_the_end_is_the_same)
{
    stage s = order_open(&order_type);
    int forward = 1, back = 1;

    while (dies_before(&s, forward, false))
        forward++;
    while (dies_before(&s, back, true))
        back++;
    cr_expect(forward > 4 && back > 6, "%d and %d settles", forward - 1, back - 1);
    stage_close(&s);
}

static stage *served;

static void reply_arrives_again(const char *function)
{
    (void)function;
    test_exec(bus.conn,
              "SELECT pgmq.send('payments__replies', jsonb_build_object('command_id', command_id, "
              "'correlation_id', correlation_id, 'outcome', 'SUCCESS', 'result', '{\"id\": "
              "99}'::jsonb)) FROM commandbus.command_metadata WHERE status = 'COMPLETED'");
    test_exec(bus.conn, "SELECT commandbus.deliver_replies('payments__replies', 'other')");
}

Test(manager_crash, replies_that_arrive_again_while_one_is_taken_advance_once) /* PM.3 */
{
    stage s = order_open(&order_type);
    cb_uuid id = stage_start(&s, "Order", "{\"skip_approval\":true}");

    served = &s;
    order_plays.during = reply_arrives_again;
    for (int i = 0; i < 3; i++) {
        static const char *const domains[] = { "risk", "fx", "payments" };
        stage_go(&s);
        order_book(&s, domains[i], 7);
    }
    stage_go(&s);

    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "reserve charge ship", id, "trail");
    cr_expect(test_number(bus.conn,
                          "SELECT count(*) FROM commandbus.process_event WHERE process_id = $1 AND "
                          "event = 'LATE_REPLY'",
                          id.text, NULL) >= 3,
              "they did arrive again");
    expect_state(&s, "7", id, "risk_id");
    expect_state(&s, "7", id, "fx_id");
    expect_value(bus.conn, "3",
                 "SELECT count(*) FROM commandbus.command_metadata WHERE correlation_id = $1",
                 id.text);
    stage_close(&s);
}
