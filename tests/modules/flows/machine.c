/* Machine: the same bookings as Five, as a manager of steps. */
#include "flow.h"

enum {
    BOOK_FX = 1,
    AWAIT_GO,
    BOOK_RISK,
    RELEASE_FX,
    RELEASE_RISK,
    STEPS
};

/* What the handlers of ../books are told. */
typedef struct {
    char *process_id, *log, *marks, *die_at, *fail, *gate, *reference;
    int64_t sleep_ms;
} request;
CB_FIELDS(request_fields, request, CB_FIELD_AS(request, process_id, CB_TEXT, "processId"),
          CB_FIELD(request, log, CB_TEXT), CB_FIELD(request, marks, CB_TEXT),
          CB_FIELD_AS(request, die_at, CB_TEXT, "dieAt"), CB_FIELD(request, fail, CB_TEXT),
          CB_FIELD(request, gate, CB_TEXT), CB_FIELD(request, reference, CB_TEXT),
          CB_FIELD_AS(request, sleep_ms, CB_INT, "sleepMs"));

typedef struct {
    char *reference;
} reply;
CB_FIELDS(reply_fields, reply, CB_FIELD(reply, reference, CB_TEXT));

static const cb_manager_step steps[STEPS] = {
    [BOOK_FX] = { "bookFx", .command_type = "BookFx", .domain = "fx", .request = &request_fields,
                  .reply = &reply_fields, .compensation = RELEASE_FX },
    [AWAIT_GO] = { "awaitGo", .response = "go" },
    [BOOK_RISK] = { "bookRisk", .command_type = "BookRisk", .domain = "risk",
                    .request = &request_fields, .reply = &reply_fields,
                    .compensation = RELEASE_RISK },
    [RELEASE_FX] = { "releaseFx", .command_type = "ReleaseFx", .domain = "fx",
                     .request = &request_fields },
    [RELEASE_RISK] = { "releaseRisk", .command_type = "ReleaseRisk", .domain = "risk",
                       .request = &request_fields },
};

/* A manager is not told its process's id: whoever starts one puts it into the state. */
static bool create(void *state)
{
    flow *f = state;

    flow_die(f, "in", "create");
    return f->process_id && cb_text_set(&f->arrived, "created");
}

static int first(const void *state)
{
    (void)state;
    return FLOWS_BROKEN ? BOOK_RISK : BOOK_FX;
}

static bool build(int step, const void *state, void *data)
{
    const flow *f = state;
    request *r = data;
    deed d = flow_deed(f, steps[step].command_type);
    const char *reference = step == RELEASE_FX     ? f->fx_reference
                            : step == RELEASE_RISK ? f->risk_reference
                                                   : NULL;

    flow_die(f, "before", steps[step].name);
    r->sleep_ms = d.sleep_ms;
    return cb_text_set(&r->process_id, d.process_id) && cb_text_set(&r->log, d.log) &&
           cb_text_set(&r->marks, d.marks) && cb_text_set(&r->die_at, d.die_at) &&
           cb_text_set(&r->fail, d.fail) && cb_text_set(&r->gate, d.gate) &&
           cb_text_set(&r->reference, reference);
}

static bool update(int step, void *state, const void *data)
{
    flow *f = state;
    const reply *r = data;

    flow_die(f, "after", steps[step].name);
    f->done++;
    f->went = f->went || step == AWAIT_GO;
    if (step == BOOK_FX)
        return cb_text_set(&f->fx_reference, r->reference);
    return step != BOOK_RISK || cb_text_set(&f->risk_reference, r->reference);
}

static int next(int step, const void *state)
{
    const flow *f = state;

    if (step == (FLOWS_BROKEN ? BOOK_FX : BOOK_RISK))
        return f->decline ? CB_STEP_UNDO : CB_STEP_NONE;
    if (step == BOOK_FX && f->wait_for)
        return AWAIT_GO;
    return FLOWS_BROKEN ? BOOK_FX : BOOK_RISK;
}

const cb_process_manager machine_manager = { .create_state = create,
                                             .first_step = first,
                                             .build_command = build,
                                             .update_state = update,
                                             .next_step = next,
                                             .steps = steps,
                                             .n_steps = STEPS };
