/* What the code leaves behind must fit into the database: if it does not, nothing is half kept. */
#include "tale.h"

static int ran;
static bool broken = true; /* the code leaves what cannot be kept */

static cb_outcome leaves_nan(cb_context *ctx, void *state)
{
    tale *t = state;

    (void)ctx;
    ran++;
    t->count++;
    t->ratio = broken ? NAN : 0.5;
    return CB_SUCCESS;
}

static cb_outcome undo_nothing(cb_context *ctx, void *state)
{
    (void)ctx;
    (void)state;
    return CB_SUCCESS;
}

static cb_flow step_that_leaves(cb_process *p, void *state)
{
    (void)state;
    CB_DO(cb_step(p, "measure", leaves_nan, .compensate = undo_nothing));
    return CB_DONE;
}

Test(keep, a_step_whose_state_cannot_be_kept_has_failed) /* STP.4, STP.14 */
{
    static const cb_process_type type = tale_type("Leaves", step_that_leaves, .version = 1);
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Leaves", "{\"count\":0}");

    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);
    expect_message("ratio", id);
    expect_history(&s, "STEP measure FAILED", id);
    expect_state(&s, "0", id, "count");

    broken = false;
    tale_retry(id);
    stage_go(&s);
    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "1", id, "count");
    expect_state(&s, "0.5", id, "ratio");
    expect_value(
        bus.conn, "{\"inline\": true}",
        "SELECT owes FROM commandbus.process_history WHERE process_id = $1 AND ordinal = 1",
        id.text);
    cr_expect_eq(ran, 2);
    stage_close(&s);
}

static cb_flow ends_with_nan(cb_process *p, void *state)
{
    tale *t = state;

    (void)p;
    t->count = 7;
    t->ratio = broken ? NAN : 0.5;
    return CB_DONE;
}

Test(keep, nor_does_a_process_end_with_such_a_state) /* STP.14 */
{
    static const cb_process_type type = tale_type("EndsWith", ends_with_nan, .version = 1);
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "EndsWith", "{}");

    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);
    expect_message("ratio", id);

    broken = false;
    tale_retry(id);
    stage_go(&s);
    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "7", id, "count");
    stage_close(&s);
}

static void hook(cb_process *p, void *state)
{
    tale *t = state;

    (void)p;
    cb_text_set(&t->note, "hooked");
    if (broken)
        t->ratio = NAN;
}

static cb_flow at_once(cb_process *p, void *state)
{
    (void)p;
    ((tale *)state)->count = 3;
    return CB_DONE;
}

Test(keep, a_hook_that_spoils_the_state_does_not_spoil_the_end) /* STP.1, STP.14 */
{
    static const cb_process_type type = tale_type("Hooked", at_once, .on_completed = hook);
    stage s = tale_open(&type);
    cb_uuid spoiled = stage_start(&s, "Hooked", "{}");

    stage_go(&s);
    expect_status(&s, "COMPLETED", spoiled);
    expect_state(&s, "3", spoiled, "count");
    expect_state(&s, "", spoiled, "note");
    cr_expect(s.kit.last.misuse && strstr(s.kit.last.misuse, "ratio"));

    broken = false;
    cb_uuid id = stage_start(&s, "Hooked", "{}");
    stage_go(&s);
    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "hooked", id, "note");
    stage_close(&s);
}

static cb_flow fails_in_latin1(cb_process *p, void *state)
{
    (void)state;
    return cb_business_failure(p, "NO_\xfc", "Konto f\xfcr Herrn M\xfcller gesperrt");
}

Test(keep, a_message_in_another_encoding_does_not_change_the_outcome) /* STP.8 */
{
    static const cb_process_type type = tale_type("Latin1", fails_in_latin1, .version = 1);
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Latin1", "{}");

    stage_go(&s);

    expect_process("COMPENSATED", id, "status");
    expect_message("ller gesperrt", id);
    stage_close(&s);
}

static json_object *makes_nan(void *arg)
{
    (void)arg;
    return json_object_new_double(broken ? NAN : 2.5);
}

static char *makes_latin1(void *arg)
{
    (void)arg;
    return strdup(broken ? "M\xfcller" : "Muller");
}

static cb_flow strange_values(cb_process *p, void *state)
{
    tale *t = state;

    if (t->approved)
        CB_DO(cb_side_effect_json(p, "json", makes_nan, NULL, &t->extra));
    else
        CB_DO(cb_side_effect_string(p, "text", makes_latin1, NULL, &t->note));
    return CB_DONE;
}

Test(keep, a_side_effect_that_cannot_be_recorded_is_not_taken) /* STP.5 */
{
    static const cb_process_type type = tale_type("Strange", strange_values, .version = 1);
    stage s = tale_open(&type);
    cb_uuid json = stage_start(&s, "Strange", "{\"approved\":true}");
    cb_uuid text = stage_start(&s, "Strange", "{}");

    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", json);
    expect_message("side effect 'json'", json);
    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", text);
    expect_message("side effect 'text'", text);

    broken = false;
    tale_retry(json);
    tale_retry(text);
    stage_go(&s);
    expect_state(&s, "2.5", json, "extra");
    expect_state(&s, "Muller", text, "note");
    stage_close(&s);
}

Test(keep, fields_that_nobody_knows_survive_however_they_look) /* STP.14 */
{
    static const cb_process_type type = tale_type("Hooked", at_once, .version = 1);
    char deep[300] = "", state[400];

    for (int i = 0; i < 30; i++)
        strcat(deep, "[");
    for (int i = 0; i < 30; i++)
        strcat(deep, "]");
    snprintf(state, sizeof state, "{\"deep\":%s,\"price\":1.10,\"none\":null,\"o\":{\"a\":[1]}}",
             deep);
    stage s = tale_open(&type);
    cb_uuid id;
    char *started =
        test_value(bus.conn, "SELECT commandbus.start_process('Hooked', $1::jsonb)", state, NULL);
    cr_assert(cb_uuid_parse(started, &id));
    free(started);

    stage_go(&s);

    expect_status(&s, "COMPLETED", id);
    expect_state(&s, deep, id, "deep");
    expect_state(&s, "1.10", id, "price");
    expect_process("t", id, "state ? 'none' AND state @> '{\"o\":{\"a\":[1]}}'");
    expect_state(&s, "3", id, "count");
    stage_close(&s);
}
