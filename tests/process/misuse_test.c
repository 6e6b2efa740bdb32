/* Calls that are out of order, and code that leaves what cannot be kept: refused with words that
 * say what to do, tale_is_approved half done. */
#include <pthread.h>

#include "tale.h"

static cb_process *kept;
static int inner_ran;
static cb_flow inner_flow = CB_NEXT;

static cb_outcome inner(cb_context *ctx, void *state)
{
    (void)ctx;
    (void)state;
    inner_ran++;
    return CB_SUCCESS;
}

static cb_outcome calls_inside(cb_context *ctx, void *state)
{
    (void)ctx;
    ((tale *)state)->count = 99;
    inner_flow = cb_step(kept, "inner", inner, .local = true);
    return CB_SUCCESS;
}

static bool twisted; /* the process of this run does what it must not */

static cb_flow nested(cb_process *p, void *state)
{
    (void)state;
    kept = p;
    CB_DO(cb_step(p, "outer", twisted ? calls_inside : tale_count, .max_attempts = 3));
    return CB_DONE;
}

static const cb_process_type nested_type = tale_type("Nested", nested, .version = 1);

Test(misuse, a_call_inside_a_step_fails_the_step) /* STP.4 */
{
    stage s = tale_open(&nested_type);
    cb_uuid id = stage_start(&s, "Nested", "{\"count\":0}");

    twisted = true;
    stage_go(&s);

    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);
    expect_message("'inner' was called inside step 'outer': calls belong in execute()", id);
    expect_state(&s, "0", id, "count");
    expect_history(&s, "STEP outer FAILED", id);
    cr_expect(strstr(s.kit.last.misuse, "'inner'"));
    cr_expect_eq(inner_flow, CB_LEAVE);
    cr_expect_eq(inner_ran, 0);

    twisted = false;
    tale_retry(id);
    stage_go(&s);
    expect_status(&s, "COMPLETED", id);
    cr_expect_null(s.kit.last.misuse, "told once: %s", s.kit.last.misuse);
    stage_close(&s);
}

static void *call_from_abroad(void *arg)
{
    inner_flow = cb_step((cb_process *)arg, "abroad", inner, .local = true);
    (void)cb_version(arg, "change", 1, 2);
    return NULL;
}

static cb_flow threaded(cb_process *p, void *state)
{
    pthread_t thread;

    (void)state;
    cr_assert_eq(pthread_create(&thread, NULL, call_from_abroad, p), 0);
    pthread_join(thread, NULL);
    CB_DO(cb_step(p, "own", tale_count, .local = true));
    return CB_DONE;
}

Test(misuse, a_call_from_another_thread_is_refused_and_reported) /* STP.4 */
{
    static const cb_process_type type = tale_type("Threaded", threaded, .version = 1);
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Threaded", "{}");

    stage_go(&s);

    expect_status(&s, "COMPLETED", id);
    expect_history(&s, "STEP own COMPLETED", id);
    cr_expect_eq(inner_flow, CB_LEAVE);
    cr_expect_eq(inner_ran, 0);
    cr_expect(s.kit.last.misuse && strstr(s.kit.last.misuse, "another thread"));
    stage_close(&s);
}

Test(misuse, a_p_that_was_kept_is_recognised) /* STP.4 */
{
    stage s = tale_open(&nested_type);
    char *made = NULL;

    stage_start(&s, "Nested", "{}");
    stage_go(&s);
    cr_expect_null(s.kit.last.misuse);

    cr_expect_eq(cb_step(kept, "later", inner, .local = true), CB_LEAVE);
    cr_expect_eq(cb_wait(kept, "later", NULL, .timeout_ms = 1), CB_LEAVE);
    cr_expect_eq(cb_side_effect_string(kept, "later", NULL, NULL, &made), CB_LEAVE);
    cr_expect_eq(cb_business_failure(kept, "LATER", "later"), CB_LEAVE);
    cr_expect_eq(cb_version(kept, "later", 1, 2), 1);
    cr_expect_str_eq(cb_process_id(kept), "");
    stage_start(&s, "Nested", "{}");
    stage_go(&s);

    cr_expect(s.kit.last.misuse &&
              strstr(s.kit.last.misuse, "'later' was called outside execute()"));
    cr_expect_eq(inner_ran, 0);
    cr_expect_null(made);
    stage_start(&s, "Nested", "{}");
    stage_go(&s);
    cr_expect_null(s.kit.last.misuse, "told once: %s", s.kit.last.misuse);
    stage_close(&s);
}

/* ---- names ---- */

static const char *second_name;

static cb_flow two_names(cb_process *p, void *state)
{
    (void)state;
    CB_DO(cb_step(p, "one", tale_count, .local = true));
    CB_DO(cb_step(p, second_name, tale_count, .local = true));
    return CB_DONE;
}

static const cb_process_type names_type = tale_type("Names", two_names, .version = 1);

static void expect_name_refused(stage *s, const char *name, const char *why)
{
    cb_uuid id = stage_start(s, "Names", "{}");

    second_name = name;
    stage_go(s);
    expect_status(s, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);
    expect_message(why, id);
    expect_history(s, "STEP one COMPLETED", id);
}

Test(misuse, a_name_is_there_once_and_not_too_long) /* STP.4 */
{
    stage s = tale_open(&names_type);
    char longest[201], longer[402];

    memset(longest, 'n', 200);
    longest[200] = 0;
    for (int i = 0; i < 200; i++)
        memcpy(longer + 2 * i, "\xc3\xb6", 3); /* ö: cut at 50 bytes it is half a character */
    memmove(longer + 1, longer, 401);
    longer[0] = 'n';

    expect_name_refused(&s, "one", "'one' was called twice: names are unique");
    expect_name_refused(&s, "", "use 1 to 200 bytes");
    expect_name_refused(&s, NULL, "use 1 to 200 bytes");
    expect_name_refused(&s, longer, "use 1 to 200 bytes");
    second_name = longest;
    cb_uuid id = stage_start(&s, "Names", "{}");
    stage_go(&s);
    expect_status(&s, "COMPLETED", id);
    stage_close(&s);
}

static cb_flow made_names(cb_process *p, void *state)
{
    char name[20];
    int64_t now;

    (void)state;
    for (int i = 1; i <= 3; i++) {
        snprintf(name, sizeof name, "step %d", i);
        CB_DO(cb_step(p, name, tale_count, .max_attempts = 1));
    }
    snprintf(name, sizeof name, "time");
    CB_DO(cb_side_effect_time(p, name, &now));
    snprintf(name, sizeof name, "wait");
    cb_flow flow = cb_wait(p, name, tale_is_approved, .timeout_ms = 1000);
    memset(name, 'x', sizeof name);
    return flow;
}

Test(misuse, a_name_may_be_made_on_the_stack) /* STP.4 */
{
    static const cb_process_type type = tale_type("MadeNames", made_names, .version = 1);
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "MadeNames", "{}");

    stage_go(&s);

    expect_history(&s,
                   "STEP step 1 COMPLETED, STEP step 2 COMPLETED, STEP step 3 COMPLETED, "
                   "SIDE_EFFECT time COMPLETED, WAIT wait WAITING",
                   id);
    expect_process("wait", id, "current_wait");
    stage_close(&s);
}

/* ---- what execute() returns ---- */

static cb_flow careless(cb_process *p, void *state)
{
    tale *t = state;

    (void)cb_step(p, "one", tale_count, .local = true);
    (void)cb_wait(p, "wait", tale_is_approved, .timeout_ms = 0);
    t->count = 50;
    cb_text_set(&t->note, "not yet");
    (void)cb_step(p, "two", tale_count, .local = true);
    return CB_DONE;
}

Test(misuse, code_that_ignores_a_suspension_is_suspended_all_the_same) /* STP.4, STP.6 */
{
    static const cb_process_type type = tale_type("Careless", careless, .version = 1);
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Careless", "{}");

    stage_go(&s);

    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_history(&s, "STEP one COMPLETED, WAIT wait WAITING", id);
    expect_state(&s, "1", id, "count");
    expect_state(&s, "", id, "note");
    stage_close(&s);
}

static int returned;

static cb_flow returns_it(cb_process *p, void *state)
{
    (void)state;
    CB_DO(cb_step(p, "one", tale_count, .local = true));
    return (cb_flow)returned;
}

Test(misuse, an_end_without_a_reason_is_parked) /* STP.4 */
{
    static const cb_process_type type = tale_type("Returns", returns_it, .version = 1);
    stage s = tale_open(&type);

    for (returned = CB_LEAVE; returned < 9; returned += 6) {
        cb_uuid id = stage_start(&s, "Returns", "{}");
        stage_go(&s);
        expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);
        expect_message("without a reason: end with CB_DONE", id);
    }
    stage_close(&s);
}

/* ---- calls in the other functions ---- */

static bool asks_and_calls(const void *state)
{
    (void)state;
    inner_flow = cb_step(kept, "inner", inner, .local = true);
    return true;
}

static cb_flow calling_wait(cb_process *p, void *state)
{
    (void)state;
    kept = p;
    CB_DO(cb_wait(p, "wait", twisted ? asks_and_calls : tale_is_approved, .timeout_ms = 60000));
    return CB_DONE;
}

Test(misuse, a_condition_asks_and_does_nothing_else) /* STP.4, STP.6 */
{
    static const cb_process_type type = tale_type("CallingWait", calling_wait, .version = 1);
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "CallingWait", "{\"approved\":true}");

    twisted = true;
    stage_go(&s);

    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);
    expect_message("'inner' was called inside step 'wait'", id);
    cr_expect_eq(inner_flow, CB_LEAVE);
    twisted = false;
    tale_retry(id);
    stage_go(&s);
    expect_status(&s, "COMPLETED", id);
    stage_close(&s);
}

static char *makes_and_calls(void *arg)
{
    (void)arg;
    inner_flow = cb_step(kept, "inner", inner, .local = true);
    return strdup("made");
}

static char *makes(void *arg)
{
    return strdup(arg);
}

static cb_flow calling_maker(cb_process *p, void *state)
{
    char *value = NULL;

    kept = p;
    CB_DO(cb_side_effect_string(p, "value", twisted ? makes_and_calls : makes, "right", &value));
    cb_text_set(&((tale *)state)->note, value);
    free(value);
    return CB_DONE;
}

Test(misuse, a_side_effect_makes_and_does_nothing_else) /* STP.4, STP.5 */
{
    static const cb_process_type type = tale_type("CallingMaker", calling_maker, .version = 1);
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "CallingMaker", "{}");

    twisted = true;
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);
    twisted = false;
    tale_retry(id);
    stage_go(&s);

    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "right", id, "note");
    stage_close(&s);
}
