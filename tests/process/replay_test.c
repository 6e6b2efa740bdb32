/* Replay: what is recorded is not done again, and execute() sees what it saw then. */
#include "tale.h"

static bool take_word_and_count(void *state, json_object *payload)
{
    json_object *word = NULL, *count = NULL;
    tale *t = state;

    if (json_object_object_get_ex(payload, "word", &word))
        tale_say(t, json_object_get_string(word));
    if (json_object_object_get_ex(payload, "count", &count))
        t->count = json_object_get_int64(count);
    t->approved = true;
    return true;
}

static const cb_response responses[] = { { "word", take_word_and_count } };
#define RESPONSES .responses = responses, .n_responses = 1

static bool is_twice(const void *state)
{
    const tale *t = state;

    return t->approved && t->count >= 2;
}

/* ---- side effects ---- */

static int made;

static char *make_text(void *arg)
{
    char *text = NULL;

    return asprintf(&text, "%s %d \xc3\xa9\"\\", (const char *)arg, ++made) > 0 ? text : NULL;
}

static json_object *make_json(void *arg)
{
    json_object *o = json_object_new_object();

    (void)arg;
    made++;
    json_object_object_add(o, "large", json_object_new_int64(INT64_MAX));
    json_object_object_add(o, "half", json_object_new_double(0.1));
    json_object_object_add(o, "list", json_tokener_parse("[true,null,\"x\",{\"a\":[]}]"));
    return o;
}

static struct {
    char text[64], json[200];
    cb_uuid uuid;
    int64_t time;
} seen[4];
static int runs;

static cb_flow of_every_kind(cb_process *p, void *state)
{
    json_object *json = NULL;
    char *text = NULL;
    int i = runs++;

    (void)state;
    CB_DO(cb_side_effect_string(p, "text", make_text, "made", &text));
    snprintf(seen[i].text, sizeof seen[i].text, "%s", text);
    free(text);
    CB_DO(cb_side_effect_uuid(p, "uuid", &seen[i].uuid));
    CB_DO(cb_side_effect_time(p, "time", &seen[i].time));
    CB_DO(cb_side_effect_json(p, "json", make_json, NULL, &json));
    snprintf(seen[i].json, sizeof seen[i].json, "%s", json_object_to_json_string(json));
    json_object_object_add(json, "mine", json_object_new_int(1)); /* of no effect on the record */
    json_object_put(json);
    CB_DO(cb_wait(p, "wait", tale_is_approved, .timeout_ms = 0));
    return CB_DONE;
}

Test(replay, side_effects_of_every_kind_are_the_same_for_ever) /* STP.5 */
{
    static const cb_process_type type = tale_type("Kinds", of_every_kind, RESPONSES);
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Kinds", "{}");

    stage_go(&s);
    stage_wait(&s, 100);
    test_exec(bus.conn, "UPDATE commandbus.process SET wake_at = commandbus.now()");
    stage_go(&s);
    stage_respond(&s, id, "word", "{}");
    stage_go(&s);

    expect_status(&s, "COMPLETED", id);
    cr_assert_eq(runs, 3);
    cr_expect_eq(made, 2, "each made once");
    cr_expect_str_eq(seen[0].text, "made 1 \xc3\xa9\"\\");
    for (int i = 1; i < 3; i++) {
        cr_expect_str_eq(seen[i].text, seen[0].text);
        cr_expect_str_eq(seen[i].uuid.text, seen[0].uuid.text);
        cr_expect_eq(seen[i].time, seen[0].time);
        OWNED(json_object) first = json_tokener_parse(seen[0].json);
        OWNED(json_object) again = json_tokener_parse(seen[i].json);
        cr_expect(json_object_equal(first, again), "%s, then %s", seen[0].json, seen[i].json);
    }
    char *started = test_value(bus.conn,
                               "SELECT floor(extract(epoch FROM created_at) * 1000)::bigint FROM "
                               "commandbus.process WHERE process_id = $1",
                               id.text, NULL);
    cr_expect(seen[0].time >= strtoll(started, NULL, 10), "by the database's clock");
    cr_expect(seen[0].time < strtoll(started, NULL, 10) + 90000);
    free(started);
    stage_close(&s);
}

/* ---- steps ---- */

static int first_ran, second_ran;

static cb_outcome first(cb_context *ctx, void *state)
{
    tale *t = state;

    (void)ctx;
    first_ran++;
    t->count = 9007199254740993; /* no double holds it */
    t->ratio = 0.1;
    json_object_put(t->extra);
    t->extra = json_tokener_parse("{\"list\":[1,2]}");
    return cb_text_set(&t->note, "\xe2\x82\xac") ? CB_SUCCESS : CB_TRANSIENT;
}

static cb_outcome second(cb_context *ctx, void *state)
{
    tale *t = state;
    json_object *list = NULL;

    (void)ctx;
    second_ran++;
    json_object_object_get_ex(t->extra, "list", &list);
    json_object_array_add(list, json_object_new_int(second_ran + 2)); /* changed in place */
    return CB_SUCCESS;
}

static cb_flow typed(cb_process *p, void *state)
{
    tale *t = state;

    CB_DO(cb_step(p, "first", first, .max_attempts = 1));
    cr_expect_eq(t->count, 9007199254740993);
    cr_expect_eq(t->ratio, 0.1);
    cr_expect_str_eq(t->note, "\xe2\x82\xac");
    cr_expect_str_eq(json_object_to_json_string_ext(t->extra, 0), "{\"list\":[1,2]}");
    CB_DO(cb_step(p, "second", second, .local = true));
    cr_expect_str_eq(json_object_to_json_string_ext(t->extra, 0), "{\"list\":[1,2,3]}");
    CB_DO(cb_wait(p, "one", tale_is_approved, .timeout_ms = 0));
    t->approved = false;
    CB_DO(cb_wait(p, "two", tale_is_approved, .timeout_ms = 0));
    return CB_DONE;
}

Test(replay, completed_steps_do_not_run_again_and_results_keep_their_types) /* STP.5 */
{
    static const cb_process_type type = tale_type("Typed", typed, RESPONSES);
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Typed", "{}");

    stage_go(&s);
    cr_expect_eq(s.kit.last.steps, 2);
    stage_respond(&s, id, "word", "{}");
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    cr_expect_eq(s.kit.last.steps, 0);
    cr_expect_eq(s.kit.last.replayed, 2);
    stage_respond(&s, id, "word", "{}");
    stage_go(&s);

    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "{\"list\": [1, 2, 3]}", id, "extra");
    expect_history(&s,
                   "STEP first COMPLETED, STEP second COMPLETED, WAIT one COMPLETED, RESPONSE word "
                   "COMPLETED, WAIT two COMPLETED, RESPONSE word COMPLETED",
                   id);
    cr_expect_eq(first_ran, 1);
    cr_expect_eq(second_ran, 1);
    stage_close(&s);
}

/* ---- branches on what responses change ---- */

static int retries_left = 1;

/* Writes the field that the response writes too. */
static cb_outcome writes_count(cb_context *ctx, void *state)
{
    tale *t = state;

    if (retries_left-- > 0) {
        t->count = 77;
        return cb_transient(ctx, "E", "later");
    }
    tale_say(t, t->count == 5 ? "saw-5" : "saw-other");
    t->count = 1;
    return CB_SUCCESS;
}

static cb_outcome step_nothing(cb_context *ctx, void *state)
{
    (void)ctx;
    (void)state;
    return CB_SUCCESS;
}

static char branches[200];

static cb_flow branching(cb_process *p, void *state)
{
    tale *t = state;

    strcat(branches, t->approved ? "A" : "-");
    t->count = t->count * 10; /* not the same when done twice */
    CB_DO(cb_step(p, "count", writes_count, .max_attempts = 2, .retry_delay_ms = 60000));
    strcat(branches, t->count == 1 ? "1" : "?");
    if (t->approved) /* by a response that came while the step was open */
        CB_DO(cb_step(p, "approved", step_nothing, .local = true));
    if (t->count == 1)
        CB_DO(cb_step(p, "one", first, .local = true));
    else
        CB_DO(cb_step(p, "other", first, .local = true));
    t->count = 1;
    CB_DO(cb_wait(p, "twice", is_twice, .timeout_ms = 0));
    strcat(branches, t->count == 3 ? "3;" : "?;");
    t->count += 100;
    CB_DO(cb_wait(p, "note", tale_is_approved, .timeout_ms = 0));
    return CB_DONE;
}

Test(replay, a_branch_goes_the_way_it_went_though_responses_changed_its_field) /* STP.5, STP.11 */
{
    static const cb_process_type type = tale_type("Branching", branching, RESPONSES);
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Branching", "{\"count\":2}");

    stage_go(&s);
    expect_status(&s, "WAITING_FOR_RETRY E", id);
    expect_state(&s, "20", id, "count");
    stage_respond(&s, id, "word", "{\"count\":5}"); /* while the step is open */
    stage_wait(&s, 61);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_state(&s, "saw-5", id, "trail");
    expect_state(&s, "1", id, "count");
    stage_respond(&s, id, "word",
                  "{\"count\":0}"); /* turns the branch round, if it were asked now */
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_state(&s, "0", id, "count");
    stage_respond(&s, id, "word", "{\"count\":3}");
    stage_go(&s);

    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "103", id, "count");
    cr_expect_str_eq(branches, "--1-1-13;", "each run the same way");
    cr_expect_eq(first_ran, 1);
    stage_close(&s);
}

Test(replay, what_execute_changes_itself_is_part_of_the_records) /* STP.5, STP.14 */
{
    static const cb_process_type type = tale_type("Branching", branching, RESPONSES);
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Branching", "{\"count\":2}");

    retries_left = 0;
    stage_go(&s);
    expect_value(
        bus.conn,
        "count {\"count\": 20} {\"count\": 1, \"trail\": \"saw-other\"}; twice {\"count\": "
        "1}",
        "SELECT string_agg(concat_ws(' ', name, opening, CASE WHEN name <> 'one' THEN "
        "patch END), '; ' ORDER BY ordinal) FROM commandbus.process_history "
        "WHERE process_id = $1 AND name <> 'one'",
        id.text);
    stage_close(&s);
}

/* ---- checking without running ---- */

Test(replay, a_check_runs_nothing_and_writes_nothing) /* DESIGN 4: --replay */
{
    static const cb_process_type type = tale_type("Typed", typed, RESPONSES);
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Typed", "{}");
    OWNED(cb_process_claim) read = NULL;
    cb_error e;

    stage_go(&s);
    char *before = test_value(bus.conn, "SELECT p::text FROM commandbus.process p", NULL);
    cr_assert(cb_process_read(bus.db, id.text, &read, &e));
    cr_expect(cb_run_replay(s.kit.run, cb_process_claim_at(read, 0), &e), "%s", e.message);

    expect_value(bus.conn, before, "SELECT p::text FROM commandbus.process p");
    cr_expect_eq(first_ran, 1);
    cr_expect_eq(second_ran, 1);
    free(before);
    stage_close(&s);
}
