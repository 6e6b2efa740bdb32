/* Five: S4's shape; and Second: another desk when the first one fails. */
#include "flow.h"

static cb_outcome validate(cb_context *ctx, void *state)
{
    return flow_local(ctx, state, "validate");
}

static cb_outcome enrich(cb_context *ctx, void *state)
{
    return flow_local(ctx, state, "enrich");
}

static cb_outcome execute(cb_context *ctx, void *state)
{
    flow *f = state;
    deed d = flow_deed(f, "execute");

    f->done++;
    f->executed = true;
    return deed_do(ctx, &d);
}

static cb_outcome undo_execute(cb_context *ctx, void *state)
{
    flow *f = state;
    deed d = flow_deed(f, "undoExecute");

    f->undone = true;
    return deed_do(ctx, &d);
}

/* ---- commands ---- */

static void put_text(json_object *data, const char *key, const char *value)
{
    if (value)
        json_object_object_add(data, key, json_object_new_string(value));
}

/* Its handler is told what to do, see ../books. */
static bool request(const flow *f, const char *command_type, json_object *data)
{
    deed d = flow_deed(f, command_type);

    put_text(data, "processId", d.process_id);
    put_text(data, "log", d.log);
    put_text(data, "marks", d.marks);
    put_text(data, "dieAt", d.die_at);
    put_text(data, "fail", d.fail);
    put_text(data, "gate", d.gate);
    json_object_object_add(data, "sleepMs", json_object_new_int64(d.sleep_ms));
    return true;
}

static bool fx_request(const void *state, json_object *data)
{
    return request(state, "BookFx", data);
}

static bool fx_release(const void *state, json_object *data)
{
    const flow *f = state;

    put_text(data, "reference", f->fx_reference);
    return request(state, "ReleaseFx", data);
}

static bool risk_request(const void *state, json_object *data)
{
    return request(state, "BookRisk", data);
}

static bool risk_release(const void *state, json_object *data)
{
    const flow *f = state;

    put_text(data, "reference", f->risk_reference);
    return request(state, "ReleaseRisk", data);
}

static bool take_reference(char **to, json_object *result)
{
    json_object *value = NULL;

    return json_object_object_get_ex(result, "reference", &value) &&
           json_object_is_type(value, json_type_string) &&
           cb_text_set(to, json_object_get_string(value));
}

static bool take_fx(void *state, json_object *result)
{
    flow *f = state;

    f->done++;
    return take_reference(&f->fx_reference, result);
}

static bool take_risk(void *state, json_object *result)
{
    flow *f = state;

    f->done++;
    return take_reference(&f->risk_reference, result);
}

/* ---- in order ---- */

static cb_flow book_fx(cb_process *p, flow *f)
{
    flow_die(f, "before", "bookFx");
    CB_DO(cb_command_step(p, "bookFx", fx_request, take_fx, .domain = "fx",
                          .command_type = "BookFx", .wait_timeout_ms = f->wait_ms,
                          .compensate_command = "ReleaseFx", .compensate_request = fx_release));
    flow_die(f, "after", "bookFx");
    return CB_NEXT;
}

static cb_flow book_risk(cb_process *p, flow *f)
{
    flow_die(f, "before", "bookRisk");
    CB_DO(cb_command_step(p, "bookRisk", risk_request, take_risk, .domain = "risk",
                          .command_type = "BookRisk", .wait_timeout_ms = f->wait_ms,
                          .compensate_command = "ReleaseRisk", .compensate_request = risk_release));
    flow_die(f, "after", "bookRisk");
    return CB_NEXT;
}

static bool may_go(const void *state)
{
    return ((const flow *)state)->went;
}

static cb_flow finish(cb_process *p, flow *f)
{
    if (f->wait_for)
        CB_DO(cb_wait(p, "awaitGo", may_go, .timeout_ms = f->wait_ms));
    flow_die(f, "before", "execute");
    CB_DO(cb_step(p, "execute", execute, .max_attempts = f->max_attempts,
                  .retry_delay_ms = f->retry_ms, .timeout_ms = f->step_ms,
                  .compensate = undo_execute));
    flow_die(f, "after", "execute");
    return f->decline ? cb_business_failure(p, "DECLINED", "the state says so") : CB_DONE;
}

cb_flow five_execute(cb_process *p, void *state)
{
    flow *f = state;

    flow_begin(p, f);
    flow_die(f, "before", "validate");
    CB_DO(cb_step(p, "validate", validate, .local = true));
    flow_die(f, "after", "validate");
    if (FLOWS_BROKEN)
        CB_DO(cb_step(p, "enrich", enrich, .local = true));
    CB_DO(book_fx(p, f));
    CB_DO(flow_screen(p, f));
    if (!FLOWS_BROKEN)
        CB_DO(cb_step(p, "enrich", enrich, .local = true));
    CB_DO(book_risk(p, f));
    return finish(p, f);
}

/* The failure is one that the code takes, in each of its kinds. */
cb_flow second_execute(cb_process *p, void *state)
{
    flow *f = state;

    flow_begin(p, f);
    flow_die(f, "before", "askFx");
    CB_DO(cb_command_step(p, "askFx", fx_request, take_fx, .domain = "fx", .command_type = "BookFx",
                          .wait_timeout_ms = f->wait_ms, .compensate_command = "ReleaseFx",
                          .compensate_request = fx_release, .catch = true));
    if (!cb_failure(p))
        return CB_DONE;
    cb_text_set(&f->arrived, cb_failure(p)->code);
    flow_die(f, "after", "askFx");
    CB_DO(cb_command_step(p, "askRisk", risk_request, take_risk, .domain = "risk",
                          .command_type = "BookRisk", .compensate_command = "ReleaseRisk",
                          .compensate_request = risk_release));
    flow_die(f, "after", "askRisk");
    return CB_DONE;
}
