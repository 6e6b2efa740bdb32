/* The state of a flow, and what every flow does with it. */
#include "flow.h"

#include <stdio.h>
#include <string.h>

static const char *const deadline_actions[] = { "TSQ", "COMPENSATE", "FAIL", NULL };

static const cb_field list[] = {
    CB_FIELD_AS(flow, process_id, CB_TEXT, "processId"),
    CB_FIELD(flow, log, CB_TEXT),
    CB_FIELD(flow, marks, CB_TEXT),
    CB_FIELD_AS(flow, die_at, CB_TEXT, "dieAt"),
    CB_FIELD(flow, fails, CB_JSON),
    CB_FIELD(flow, sleeps, CB_JSON),
    CB_FIELD(flow, gates, CB_JSON),
    CB_FIELD_AS(flow, max_attempts, CB_INT32, "maxAttempts"),
    CB_FIELD_AS(flow, retry_ms, CB_INT, "retryMs"),
    CB_FIELD_AS(flow, step_ms, CB_INT, "stepMs"),
    CB_FIELD_AS(flow, wait_ms, CB_INT, "waitMs"),
    CB_FIELD_ENUM_AS(flow, on_deadline, deadline_actions, "onDeadline"),
    CB_FIELD_AS(flow, wait_for, CB_BOOL, "waitFor"),
    CB_FIELD(flow, decline, CB_BOOL),
    CB_FIELD(flow, n, CB_INT),
    CB_FIELD(flow, current, CB_INT),
    CB_FIELD(flow, done, CB_INT),
    CB_FIELD_AS(flow, fx_reference, CB_TEXT, "fxReference"),
    CB_FIELD_AS(flow, risk_reference, CB_TEXT, "riskReference"),
    CB_FIELD(flow, went, CB_BOOL),
    CB_FIELD(flow, screened, CB_BOOL),
    CB_FIELD(flow, executed, CB_BOOL),
    CB_FIELD(flow, undone, CB_BOOL),
    CB_FIELD_AS(flow, letters[0], CB_TEXT, "l1"),
    CB_FIELD_AS(flow, letters[1], CB_TEXT, "l2"),
    CB_FIELD_AS(flow, letters[2], CB_TEXT, "l3"),
    CB_FIELD_AS(flow, letters[3], CB_TEXT, "l4"),
    CB_FIELD(flow, arrived, CB_TEXT),
};

const cb_fields flow_fields = { "flow", sizeof(flow), list, CB_COUNT(list) };

void flow_begin(cb_process *p, flow *f)
{
    cb_text_set(&f->process_id, cb_process_id(p));
}

static json_object *told(json_object *all, const char *name)
{
    json_object *value = NULL;

    return json_object_is_type(all, json_type_object) &&
                   json_object_object_get_ex(all, name, &value)
               ? value
               : NULL;
}

deed flow_deed(const flow *f, const char *name)
{
    json_object *fail = told(f->fails, name), *gate = told(f->gates, name);

    return (deed){
        .name = name,
        .process_id = f->process_id,
        .log = f->log,
        .marks = f->marks,
        .die_at = f->die_at,
        .fail = fail ? json_object_get_string(fail) : NULL,
        .sleep_ms = json_object_get_int64(told(f->sleeps, name)),
        .gate = gate ? json_object_get_string(gate) : NULL,
    };
}

void flow_die(const flow *f, const char *when, const char *name)
{
    deed d = flow_deed(f, name);

    deed_die(&d, when);
}

cb_outcome flow_local(cb_context *ctx, flow *f, const char *name)
{
    deed d = flow_deed(f, name);

    d.log = NULL;
    f->done++;
    return deed_do(ctx, &d);
}

static cb_outcome screen(cb_context *ctx, void *state)
{
    flow *f = state;

    f->screened = true;
    return flow_local(ctx, f, "screen");
}

cb_flow flow_screen(cb_process *p, flow *f)
{
    (void)f;
    if (FLOWS_VERSION == 1 || FLOWS_BROKEN || cb_version(p, "screening", 1, 2) < 2)
        return CB_NEXT;
    return cb_step(p, "screen", screen, .local = true);
}
