/* Long processes: n steps cost n, in settles and in what is written. */
#include "tale.h"

enum {
    MANY = 1000
};
static bool local;
static int n_steps = MANY;

static cb_flow long_way(cb_process *p, void *state)
{
    char name[20];

    (void)state;
    for (int i = 0; i < n_steps; i++) {
        snprintf(name, sizeof name, "step %d", i);
        CB_DO(cb_step(p, name, tale_count, .local = local));
    }
    CB_DO(cb_wait(p, "end", tale_is_approved, .timeout_ms = 0));
    return CB_DONE;
}

static const cb_response responses[] = { { "end", tale_approve } };
static const cb_process_type type =
    tale_type("Long", long_way, .responses = responses, .n_responses = 1);

static void go_long_way(stage *s, int expected_settles)
{
    cb_uuid id = stage_start(s, "Long", "{}");

    cr_expect_eq(stage_go(s), 1);
    cr_expect_eq(s->kit.durable, expected_settles, "%d settles", s->kit.durable);
    stage_respond(s, id, "end", "{}");
    cr_expect_eq(stage_go(s), 1);

    char expected[20];
    snprintf(expected, sizeof expected, "%d", n_steps);
    cr_expect_eq(s->kit.durable, expected_settles + 1);
    cr_expect_eq(s->kit.last.replayed, n_steps);
    cr_expect_eq(tale_counted, n_steps, "each once");
    expect_status(s, "COMPLETED", id);
    expect_state(s, expected, id, "count");
    expect_value(bus.conn, expected,
                 "SELECT count(*) FROM commandbus.process_history WHERE process_id = $1 AND kind = "
                 "'STEP' AND status = 'COMPLETED'",
                 id.text);
}

Test(many, a_thousand_local_steps_are_one_settle) /* STP.2, DESIGN 4 */
{
    stage s = tale_open(&type);

    local = true;
    go_long_way(&s, 1);
    stage_close(&s);
}

Test(many, more_of_them_are_made_durable_a_thousand_at_a_time) /* DESIGN 4 */
{
    stage s = tale_open(&type);

    local = true;
    n_steps = 2500;
    go_long_way(&s, 3);
    stage_close(&s);
}

Test(many, a_thousand_steps_with_outside_effects_are_a_thousand_settles) /* DESIGN 4 */
{
    stage s = tale_open(&type);

    go_long_way(&s, MANY + 1);
    expect_value(bus.conn, "t",
                 "SELECT max(length(patch::text)) < 40 FROM commandbus.process_history");
    stage_close(&s);
}

Test(many, responses_by_the_thousand_are_each_taken_once) /* STP.11 */
{
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Long", "{}");

    local = true;
    n_steps = 1;
    stage_go(&s);
    test_exec(bus.conn, "UPDATE commandbus.process_type SET responses = NULL"); /* any is kept */
    test_exec(bus.conn, "SELECT count(commandbus.respond(process_id, 'unknown')) FROM "
                        "commandbus.process, generate_series(1, 3000)");
    stage_respond(&s, id, "end", "{}");
    cr_expect_eq(stage_go(&s), 1);

    expect_status(&s, "COMPLETED", id);
    expect_value(bus.conn, "3001",
                 "SELECT count(*) FROM commandbus.process_history WHERE kind = 'RESPONSE'");
    expect_value(bus.conn, "0", "SELECT count(*) FROM commandbus.process_inbox");
    stage_close(&s);
}
