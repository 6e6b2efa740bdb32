/* A worker that dies at every possible moment: the process ends as if none had died, and what has
 * an outside effect is begun at most as often as it may be. */
#include "dying.h"
#include "tale.h"

enum {
    STEPS = 6
};
static int begun[STEPS]; /* how often each function was really entered */
static int made;

static cb_outcome work_step(tale *t, int i)
{
    char word[20];

    begun[i]++;
    t->count += 1 << i;
    snprintf(word, sizeof word, "s%d", i);
    tale_say(t, word);
    return CB_SUCCESS;
}

#define STEP(i)                                          \
    static cb_outcome s##i(cb_context *ctx, void *state) \
    {                                                    \
        (void)ctx;                                       \
        return work_step(state, i);                      \
    }
STEP(0)
STEP(1)
STEP(2)
STEP(3)
STEP(4)
STEP(5)

static char *make(void *arg)
{
    char *text = NULL;

    (void)arg;
    return asprintf(&text, "made %d", ++made) > 0 ? text : NULL;
}

static bool approve_and_say_go(void *state, json_object *payload)
{
    (void)payload;
    ((tale *)state)->approved = true;
    tale_say(state, "go");
    return true;
}

static const cb_response responses[] = { { "go", approve_and_say_go } };

static int max_attempts;

static cb_flow everything(cb_process *p, void *state)
{
    tale *t = state;
    char *text = NULL;
    cb_uuid uuid;

    CB_DO(cb_step(p, "local", s0, .local = true));
    t->count += 1000; /* by execute() itself */
    CB_DO(cb_step(p, "first", s1, .max_attempts = max_attempts));
    CB_DO(cb_side_effect_string(p, "text", make, NULL, &text));
    cb_text_set(&t->note, text);
    free(text);
    CB_DO(cb_step(p, "second", s2, .max_attempts = max_attempts));
    CB_DO(cb_wait(p, "go", tale_is_approved, .timeout_ms = 0));
    CB_DO(cb_side_effect_uuid(p, "uuid", &uuid));
    if (t->count % 2)
        CB_DO(cb_step(p, "third", s3, .max_attempts = max_attempts));
    (void)cb_version(p, "change", 1, 2);
    CB_DO(cb_step(p, "local too", s4, .local = true));
    CB_DO(cb_step(p, "last", s5, .max_attempts = max_attempts));
    t->count += 10000;
    return CB_DONE;
}

static const cb_process_type type =
    tale_type("Everything", everything, .responses = responses, .n_responses = 1);

/* The only response, however often it is sent. */
static void respond_go(cb_uuid id)
{
    bool accepted;
    cb_error e;

    cr_assert(cb_process_respond(bus.db, id.text, "go", "{}",
                                 "6f1ab1c4-9f3d-4f5e-8a37-0c8f4f1d2a11", &accepted, &e));
}

static void expect_ended(stage *s, cb_uuid id, int at)
{
    static const char history[] =
        "STEP local COMPLETED, STEP first COMPLETED, SIDE_EFFECT text COMPLETED, STEP second "
        "COMPLETED, WAIT go COMPLETED, RESPONSE go COMPLETED, SIDE_EFFECT uuid COMPLETED, STEP "
        "third COMPLETED, VERSION change COMPLETED, STEP local too COMPLETED, STEP last COMPLETED";

    expect_status(s, "COMPLETED", id);
    expect_state(s, "s0 s1 s2 go s3 s4 s5", id, "trail");
    expect_state(s, "11063", id, "count");
    if (max_attempts > 1)
        expect_history(s, history, id);
    expect_value(bus.conn, "t",
                 "SELECT state ->> 'note' = result #>> '{}' FROM commandbus.process JOIN "
                 "commandbus.process_history USING (process_id) WHERE process_id = $1 AND name = "
                 "'text'",
                 id.text);
    for (int i = 0; i < STEPS; i++)
        cr_expect(begun[i] >= 1 && begun[i] <= 2, "step %d was begun %d times, crash %d", i,
                  begun[i], at);
}

Test(crash, after_every_durable_point_the_end_is_the_same) /* STP.5, STP.9, DESIGN 8.4 */
{
    stage s = tale_open(&type);
    bool crashed = true;
    int at;

    max_attempts = 2;
    for (at = 1; crashed; at++) {
        memset(begun, 0, sizeof begun);
        cb_uuid id = stage_start(&s, "Everything", "{}");
        s.kit.durable = 0;
        s.kit.crash_after = at;
        crashed = false;
        for (int i = 0; i < 4; i++) {
            stage_go(&s);
            if (s.kit.crashed) {
                crashed = true;
                stage_restart(&s);
                stage_go(&s);
            }
            respond_go(id);
        }
        expect_ended(&s, id, at);
        for (int i = 1; i < STEPS; i++)
            cr_expect(i == 4 || begun[i] == 1, "after a durable point nothing is repeated: %d", i);
    }
    cr_expect_eq(at - 2, 6, "durable points: four STARTED, one suspension, the end");
    stage_close(&s);
}

Test(crash, before_every_durable_point_the_end_is_the_same) /* STP.5, STP.9, DESIGN 8.4 */
{
    stage s = tale_open(&type);
    int at = 0;
    dying d;

    max_attempts = 2;
    do {
        memset(begun, 0, sizeof begun);
        cb_uuid id = stage_start(&s, "Everything", "{}");
        d = (dying){ .stage = &s, .die_at = ++at };
        for (int i = 0; i < 8; i++) {
            if (!dying_step(&d) && i >= 2)
                respond_go(id);
        }
        expect_ended(&s, id, at);
    } while (d.settles >= at);
    cr_expect(at > 6);
    stage_close(&s);
}

Test(crash, a_step_that_may_begin_once_is_never_begun_again_by_itself) /* STP.9 */
{
    stage s = tale_open(&type);
    int at = 0, asked = 0;
    dying d;

    max_attempts = 1;
    do {
        memset(begun, 0, sizeof begun);
        cb_uuid id = stage_start(&s, "Everything", "{}");
        d = (dying){ .stage = &s, .die_at = ++at };
        for (int i = 0; i < 8; i++) {
            if (!dying_step(&d) && i >= 2)
                respond_go(id);
            char *code = test_value(bus.conn,
                                    "SELECT error_code FROM commandbus.process WHERE process_id = "
                                    "$1 AND status = 'WAITING_FOR_TSQ'",
                                    id.text, NULL);
            if (*code) {
                cr_expect_str_eq(code, "RETRIES_EXHAUSTED_CRASH_RECOVERY");
                cr_expect(begun[1] <= 1 && begun[2] <= 1 && begun[3] <= 1 && begun[5] <= 1);
                asked++;
                tale_retry(id);
            }
            free(code);
        }
        expect_ended(&s, id, at);
    } while (d.settles >= at);
    cr_expect_eq(asked, 4, "asked %d times: once for each step that was in the middle", asked);
    stage_close(&s);
}

Test(crash, a_lost_answer_to_a_settle_is_recognised) /* DESIGN 2: ALREADY */
{
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Everything", "{\"approved\":true}");

    max_attempts = 2;
    stage_go(&s);
    expect_status(&s, "COMPLETED", id);
    cb_process_settlement again = s.kit.last.settlement;
    cb_error e;
    cr_assert(cb_process_settle(bus.db, s.kit.worker, &again, 1, &e), "%s", e.message);
    expect_verdict(CB_ALREADY, again.verdict);
    stage_close(&s);
}
