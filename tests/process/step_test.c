/* Steps: run once and for all. */
#include "stage.h"

typedef struct {
    int64_t count;
    char *trail;
} tale;

CB_FIELDS(tale_fields, tale, CB_FIELD(tale, count, CB_INT), CB_FIELD(tale, trail, CB_TEXT));

static bool add_word(tale *t, const char *word)
{
    char *longer = NULL;

    if (asprintf(&longer, "%s%s%s", t->trail ? t->trail : "", t->trail ? " " : "", word) < 0)
        return false;
    free(t->trail);
    t->trail = longer;
    return true;
}

static cb_outcome count_up(cb_context *ctx, void *state)
{
    tale *t = state;

    (void)ctx;
    t->count++;
    return add_word(t, "counted") ? CB_SUCCESS : CB_TRANSIENT;
}

static cb_flow three_locals(cb_process *p, void *state)
{
    (void)state;
    CB_DO(cb_step(p, "one", count_up, .local = true));
    CB_DO(cb_step(p, "two", count_up, .local = true));
    CB_DO(cb_step(p, "three", count_up, .local = true));
    return CB_DONE;
}

static const cb_process_type locals = {
    .name = "Locals", .domain = "payments", .state = &tale_fields, .execute = three_locals
};

Test(step, local_steps_of_one_run_are_settled_together) /* STP.4, STP.14 */
{
    const cb_process_type *types[] = { &locals };
    stage s = stage_open(types, 1, NULL, 0);
    cb_uuid id = stage_start(&s, "Locals", "{\"count\":4,\"other\":[1]}");

    cr_expect_eq(stage_go(&s), 1);

    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "7", id, "count");
    expect_state(&s, "[1]", id, "other");
    expect_history(&s, "STEP one COMPLETED, STEP two COMPLETED, STEP three COMPLETED", id);
    cr_expect_eq(s.kit.durable, 1);
    stage_close(&s);
}

static int effects;

static cb_outcome have_effect(cb_context *ctx, void *state)
{
    (void)ctx, (void)state;
    effects++;
    return CB_SUCCESS;
}

static cb_flow one_effect(cb_process *p, void *state)
{
    (void)state;
    CB_DO(cb_step(p, "effect", have_effect));
    return CB_DONE;
}

static const cb_process_type outside = {
    .name = "Outside", .domain = "payments", .state = &tale_fields, .execute = one_effect
};

/* A worker that is paused while STARTED becomes durable: somebody else may run the process by
 * now. */
Test(step, does_not_begin_once_the_lease_is_lost) /* DESIGN 8.4 */
{
    const cb_process_type *types[] = { &outside };
    stage s = stage_open(types, 1, NULL, 0);
    cb_uuid id = stage_start(&s, "Outside", "{}");

    s.kit.lost_after = 1;
    stage_go(&s);

    cr_expect_eq(effects, 0);
    expect_history(&s, "STEP effect STARTED", id);
    stage_close(&s);
}
