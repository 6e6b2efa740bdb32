/* The state on the way back is what the records say, and nothing else. */
#include "stage.h"

typedef struct {
    int64_t ahead; /* changed by execute() on its way to what it never did */
    int64_t heard;
} trip;

CB_FIELDS(trip_fields, trip, CB_FIELD(trip, ahead, CB_INT), CB_FIELD(trip, heard, CB_INT));

static cb_outcome step_go(cb_context *ctx, void *state)
{
    (void)ctx;
    (void)state;
    return CB_SUCCESS;
}

static cb_flow rebuild_execute(cb_process *p, void *state)
{
    ((trip *)state)->ahead++;
    CB_DO(cb_step(p, "go", step_go));
    return CB_DONE;
}

static bool take_heard(void *state, json_object *payload)
{
    (void)payload;
    ((trip *)state)->heard++;
    return true;
}

static const cb_response responses[] = { { "word", take_heard } };
static const cb_process_type type = { .name = "Trip",
                                      .domain = "payments",
                                      .state = &trip_fields,
                                      .execute = rebuild_execute,
                                      .responses = responses,
                                      .n_responses = 1,
                                      .deadline_action = CB_DEADLINE_COMPENSATE };
static const cb_process_type *const types[] = { &type };

/* DESIGN 4: state = initial state and the patches of the records */
Test(rebuild, what_execute_changed_on_its_way_to_a_step_that_never_began_is_not_in_the_state)
{
    stage s = stage_open(types, 1, NULL, 0);
    cb_uuid id = stage_start_due(&s, "Trip", "{}", 10);

    stage_respond(&s, id, "word", "{}");
    stage_wait(&s, 20);
    stage_go(&s);

    expect_status(&s, "COMPENSATED DEADLINE_EXCEEDED", id);
    expect_history(&s, "RESPONSE word COMPLETED", id);
    expect_state(&s, "1", id, "heard");
    expect_state(&s, "0", id, "ahead");
    stage_close(&s);
}
