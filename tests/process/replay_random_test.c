/* Random processes, answered and killed at random moments: in every run execute() sees what it saw
 * in the runs before, and in the end each step and each response has had its effect once, in
 * order. */
#include "dying.h"
#include "seed.h"
#include "tale.h"

enum {
    MOST_CALLS = 14,
    RESPONSES = 6,
    LONGEST = 60000
};

typedef enum {
    LOCAL,
    STEP,
    FLAKY, /* fails at its first attempt */
    EFFECT,
    WAIT, /* for one more response than it has seen */
    CHOICE,
    BROKEN,    /* fails, and the code takes that */
    IMPATIENT, /* waits for one more response, for a minute */
    CALLS
} call_kind;

/* What the process of this round does. */
static call_kind plan[MOST_CALLS];
static int n_calls, step_at;
static int entered[MOST_CALLS];
static int wanted;

/* What execute() saw: in the run that goes on, and in the last one that was settled. */
static char seen[LONGEST], settled[LONGEST];

static void see(const tale *t, int at)
{
    size_t n = strlen(seen);

    cr_assert(n + 1000 < sizeof seen);
    snprintf(seen + n, sizeof seen - n, "[%d: %d %d %s %s]", at, (int)t->count, t->approved,
             t->trail ? t->trail : "-", t->note ? t->note : "-");
}

/* A response, and a step, change the same fields as execute() itself. */
static bool take_random(void *state, json_object *payload)
{
    tale *t = state;

    tale_say(t, json_object_get_string(payload));
    t->count = t->count * 7 + 3;
    t->approved = !t->approved;
    cb_text_set(&t->note, t->count % 2 ? NULL : "even");
    return true;
}

static const cb_response responses[] = { { "word", take_random } };

static cb_outcome random_work(cb_context *ctx, void *state)
{
    tale *t = state;
    char word[20];

    entered[step_at]++;
    t->approved = !t->approved;
    t->count = t->approved ? 0 : t->count / 2;
    snprintf(word, sizeof word, "s%d", step_at);
    tale_say(t, word);
    if (plan[step_at] == FLAKY && entered[step_at] == 1)
        return cb_transient(ctx, "E", "the first time");
    return CB_SUCCESS;
}

static cb_outcome break_down(cb_context *ctx, void *state)
{
    tale_say(state, "never seen");
    return entered[step_at]++ % 2
               ? cb_business_rule(ctx, "ODD", "for the %d. time", entered[step_at])
               : cb_permanent(ctx, "EVEN", "for the %d. time", entered[step_at]);
}

/* Into the state, so that a replay that gave the code another one would be seen. */
static void take_failure(cb_process *p, tale *t)
{
    const cb_caught *failure = cb_failure(p);

    t->count += failure ? failure->kind : 1;
    cb_text_set(&t->note, failure ? failure->message : "no failure");
}

static int words_of_responses(const tale *t)
{
    int n = 0;

    for (const char *c = t->trail; c && *c; c++)
        n += *c == 'r';
    return n;
}

static bool has_wanted(const void *state)
{
    return words_of_responses(state) >= wanted;
}

static cb_flow random_call(cb_process *p, tale *t, int i)
{
    char name[40];
    int64_t now;

    step_at = i;
    snprintf(name, sizeof name, "%s %d", t->count % 2 ? "odd" : "even", i);
    switch (plan[i]) {
    case LOCAL:
        return cb_step(p, name, random_work, .local = true, .max_attempts = 2);
    case STEP:
    case FLAKY:
        return cb_step(p, name, random_work, .max_attempts = 50, .retry_delay_ms = 60000);
    case EFFECT:
        CB_DO(cb_side_effect_time(p, name, &now));
        t->count += now % 10;
        return CB_NEXT;
    case WAIT:
        wanted = words_of_responses(t) + 1;
        return wanted > RESPONSES ? CB_NEXT : cb_wait(p, name, has_wanted, .timeout_ms = 0);
    case CHOICE:
        t->count += cb_version(p, name, 1, 2);
        return CB_NEXT;
    case BROKEN:
        CB_DO(cb_step(p, name, break_down, .max_attempts = 50, .local = i % 2, .catch = true));
        take_failure(p, t);
        return CB_NEXT;
    case IMPATIENT:
        wanted = words_of_responses(t) + 1;
        CB_DO(cb_wait(p, name, has_wanted, .timeout_ms = 60000, .catch = CB_FAILURE_TIMEOUT));
        take_failure(p, t);
        return CB_NEXT;
    case CALLS:
        break;
    }
    return CB_LEAVE;
}

static cb_flow random_way(cb_process *p, void *state)
{
    tale *t = state;

    seen[0] = 0;
    for (int i = 0; i < n_calls; i++) {
        see(t, i);
        t->count += t->approved ? 5 : 11;
        if (i % 3 == 1)
            cb_text_set(&t->note, t->approved ? "yes" : "no");
        CB_DO(random_call(p, t, i));
    }
    see(t, n_calls);
    return CB_DONE;
}

static const cb_process_type type =
    tale_type("Random", random_way, .responses = responses, .n_responses = 1);

/* After a run that was settled. */
static void expect_seen_again(void)
{
    cr_assert(strncmp(seen, settled, strlen(settled)) == 0, "saw %s\nthen %s", settled, seen);
    strcpy(settled, seen);
}

static void respond_word(stage *s, cb_uuid id, int number)
{
    char word[20];

    snprintf(word, sizeof word, "\"r%d\"", number);
    stage_respond(s, id, "word", word);
}

static bool is_completed(cb_uuid id)
{
    char *status = test_value(
        bus.conn, "SELECT status FROM commandbus.process WHERE process_id = $1", id.text, NULL);
    bool over = strcmp(status, "COMPLETED") == 0;

    cr_assert_str_neq(status, "WAITING_FOR_TSQ");
    free(status);
    return over;
}

/* Each word of a kind once, and in its order. */
static void expect_words(const char *trail, char kind, int n, bool (*counts)(int))
{
    const char *at = trail;
    char word[20];

    for (int i = 0; i < n; i++) {
        if (counts && !counts(i))
            continue;
        snprintf(word, sizeof word, "%c%d", kind, i);
        const char *found = strstr(at, word);
        cr_assert(found, "%s is not in its place in '%s'", word, trail);
        cr_assert_null(strstr(found + 1, word), "%s is there twice in '%s'", word, trail);
        at = found;
    }
}

static bool is_step(int i)
{
    return plan[i] <= FLAKY;
}

static void one_process(stage *s, unsigned *seed)
{
    int answers = 0, deaths = 0; /* in a row: five, and it is parked */

    memset(entered, 0, sizeof entered);
    settled[0] = 0;
    n_calls = 3 + (int)test_random(seed, MOST_CALLS - 9); /* one digit: words are found by strstr */
    for (int i = 0; i < n_calls; i++)
        plan[i] = test_random(seed, CALLS);
    cb_uuid id = stage_start(s, "Random", "{\"count\":4}");

    for (int turn = 0; !is_completed(id); turn++) {
        cr_assert(turn < 500, "it never ends");
        if (answers < RESPONSES && test_random(seed, 3) == 0)
            respond_word(s, id, answers++);
        bool dies = deaths < 3 && test_random(seed, 3) == 0;
        dying d = { .stage = s, .die_at = dies ? 1 + (int)test_random(seed, 3) : 0 };
        if (dying_step(&d))
            expect_seen_again();
        else if (!d.dead)
            stage_wait(s, 61);
        deaths = d.dead ? deaths + 1 : 0;
    }
    while (answers < RESPONSES)
        respond_word(s, id, answers++);
    stage_go(s);

    char *trail = test_value(
        bus.conn, "SELECT state ->> 'trail' FROM commandbus.process WHERE process_id = $1", id.text,
        NULL);
    expect_words(trail, 'r', RESPONSES, NULL);
    expect_words(trail, 's', n_calls, is_step);
    free(trail);
}

Test(replay_random, every_run_sees_what_the_runs_before_it_saw) /* STP.5, STP.11, DESIGN 4 */
{
    unsigned seed = test_seed();
    stage s = tale_open(&type);

    for (int i = 0; i < 25; i++)
        one_process(&s, &seed);
    stage_close(&s);
}
