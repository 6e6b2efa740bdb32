/* The reply-driven manager: execute() for a type that is a machine of steps. It makes the calls
 * that any execute() makes, so that claim, records, replay, commands, compensation and settle are
 * the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "json_build.h"
#include "process_run.h"

enum {
    LONGEST_NAME = 128, /* of a step, with the number of its visit */
    LONGEST_REASON = 1000
};

static const cb_process_manager *manager_of(const cb_process *p)
{
    return run_type(p)->manager;
}

static const cb_manager_step *step_at(const cb_process *p, int step)
{
    return &manager_of(p)->steps[step];
}

/* ---- typed data ---- */

static json_object *build(cb_process *p, int step, cb_error *e)
{
    const cb_fields *fields = step_at(p, step)->request;
    json_object *data = NULL;

    if (!fields)
        return json_object_new_object();
    void *request = cb_fields_new(fields);
    if (!request)
        fail_memory(e);
    else if (manager_of(p)->build_command(step, p->state.now, request) &&
             cb_fields_valid(fields, request, e))
        data = cb_fields_write(fields, request);
    cb_fields_free(fields, request);
    return data;
}

/* The struct of a reply or response; NULL with the reason. JSON null has no field, as {} has
 * none. */
static void *read_reply(const cb_fields *fields, json_object *from, cb_error *e)
{
    void *reply;

    if (from && !json_object_is_type(from, json_type_object)) {
        cb_fail(e, CB_INVALID_DATA, "not a JSON object");
        return NULL;
    }
    reply = cb_fields_new(fields);
    if (!reply) {
        fail_memory(e);
        return NULL;
    }
    if (!from || cb_fields_read(fields, reply, from, NULL, e))
        return reply;
    cb_fields_free(fields, reply);
    return NULL;
}

/* False: the state may have been touched. */
static bool update(cb_process *p, int step, json_object *from, cb_error *e)
{
    const cb_process_manager *m = manager_of(p);
    const cb_fields *fields = m->steps[step].reply;
    void *reply = NULL;

    if (!m->update_state)
        return true;
    if (fields && !(reply = read_reply(fields, from, e)))
        return false;
    bool taken = m->update_state(step, p->state.now, reply);
    if (fields)
        cb_fields_free(fields, reply);
    return taken && cb_fields_valid(run_type(p)->state, p->state.now, e);
}

/* ---- steps that send a command ---- */

static json_object *request(cb_process *p, const command_call *c, cb_error *e)
{
    return build(p, c->step, e);
}

static bool take(cb_process *p, const command_call *c, json_object *result, cb_error *e)
{
    return update(p, c->step, result, e);
}

static command_call call_of(const cb_process *p, int step, const char *name);

/* Built from the state as it is now that the step is done; with all that its command needs, so that
 * nothing has to be asked when it is undone. */
static json_object *undo(cb_process *p, const command_call *c, const record *r, cb_error *e)
{
    int by = step_at(p, c->step)->compensation;
    command_call u = call_of(p, by, step_at(p, by)->name);
    json_object *data = build(p, by, e), *compensation = data ? json_object_new_object() : NULL;

    (void)r;
    command_route(p, &u);
    if (!compensation) {
        json_object_put(data);
        return NULL;
    }
    put_text(compensation, "step", u.name);
    put_text(compensation, "domain", u.options.domain);
    put_text(compensation, "command_type", u.options.command_type);
    put(compensation, "data", data);
    if (u.options.max_attempts > 0)
        put_int(compensation, "max_attempts", u.options.max_attempts);
    if (u.options.timeout_seconds > 0)
        put_int(compensation, "timeout_seconds", u.options.timeout_seconds);
    if (u.options.wait_timeout_ms > 0)
        put_int(compensation, "wait_timeout_ms", u.options.wait_timeout_ms);
    return compensation;
}

static command_call call_of(const cb_process *p, int step, const char *name)
{
    static const command_form by_table = { request, take, undo };
    const cb_manager_step *s = step_at(p, step);

    return (command_call){
        .name = name,
        .route = s->name,
        .form = &by_table,
        .step = step,
        .options = {
            .domain = s->domain ? s->domain : run_type(p)->domain,
            .command_type = s->command_type,
            .timeout_seconds = s->timeout_seconds,
            .max_attempts = s->max_attempts,
            .wait_timeout_ms = s->timeout_ms,
            .compensate_command =
                s->compensation ? step_at(p, s->compensation)->command_type : NULL,
        },
    };
}

/* The step of this name; 0: none. */
static int step_named(const cb_process *p, const char *name)
{
    const cb_process_manager *m = manager_of(p);

    for (size_t i = 1; name && i < m->n_steps; i++) {
        if (strcmp(m->steps[i].name, name) == 0)
            return (int)i;
    }
    return 0;
}

/* Undone is undone: what the reply says cannot change that. */
void manager_take_undone(cb_process *p, json_object *compensation, json_object *result)
{
    json_object *name = NULL;
    cb_error e;

    json_object_object_get_ex(compensation, "step", &name);
    int step = step_named(p, json_object_get_string(name));
    if (step && !update(p, step, result, &e))
        state_restore(p);
}

/* ---- steps that wait for a response ---- */

/* A step that waits for it; NULL: none does. */
static const cb_manager_step *awaits(const cb_process *p, const char *response)
{
    const cb_process_manager *m = manager_of(p);

    for (size_t i = 1; i < m->n_steps; i++) {
        if (m->steps[i].response && strcmp(m->steps[i].response, response) == 0)
            return &m->steps[i];
    }
    return NULL;
}

static void refuse(record *r, const char *code, const char *why)
{
    r->status = RECORD_FAILED;
    r->dirty = true;
    record_set_text(&r->error_code, code);
    record_set_text(&r->error_message, why);
}

bool manager_accepts(cb_process *p, const inbox_item *item, record *r)
{
    const cb_manager_step *step = awaits(p, item->name);
    cb_error e = { 0 };

    if (!step) {
        refuse(r, "UNKNOWN_RESPONSE", "no step of the process type waits for this response");
        return false;
    }
    if (!step->reply)
        return true;
    void *reply = read_reply(step->reply, item->payload, &e);
    if (!reply)
        refuse(r, "RESPONSE_REFUSED", e.message);
    cb_fields_free(step->reply, reply);
    return reply != NULL;
}

/* A response is taken by one wait, whose record says which. */
static bool is_taken(const cb_process *p, int response)
{
    for (size_t i = 0; i < p->history.n; i++) {
        const record *r = &p->history.records[i];
        if (r->kind == KIND_WAIT && r->status == RECORD_COMPLETED && r->during == response)
            return true;
    }
    return false;
}

/* Takes the first response of this name that no step has taken: it may have come before its step.
 * One that the step refuses is recorded as refused, and the next one is looked at. */
static bool response_has_come(cb_process *p, const wait_call *c, record *wait)
{
    const char *name = step_at(p, c->step)->response;

    for (size_t i = 0; i < p->history.n; i++) {
        record *r = &p->history.records[i];
        cb_error e = { .message = "update_state() refused it" };
        if (r->kind != KIND_RESPONSE || r->status != RECORD_COMPLETED ||
            strcmp(r->name, name) != 0 || is_taken(p, r->ordinal))
            continue;
        if (update(p, c->step, r->result, &e)) {
            wait->during = r->ordinal;
            return true;
        }
        state_restore(p);
        refuse(r, "RESPONSE_REFUSED", e.message);
    }
    return false;
}

/* ---- failures ---- */

/* How a decision that is not a step is recorded; '#' is in no step's own name. */
static const struct {
    int next;
    const char *name;
} decisions[] = { { CB_STEP_NONE, "#complete" }, { CB_STEP_UNDO, "#undo" } };

static const char *decision_name(const cb_process *p, int next)
{
    for (size_t i = 0; i < CB_COUNT(decisions); i++) {
        if (decisions[i].next == next)
            return decisions[i].name;
    }
    return next > 0 && (size_t)next < manager_of(p)->n_steps ? step_at(p, next)->name : NULL;
}

/* False: the state may have been touched. */
static bool ask_manager(cb_process *p, int step, json_object *failure, int *next)
{
    cb_caught view = failure_view(failure);
    cb_error e;

    if (!manager_of(p)->on_failure) {
        *next = CB_STEP_DEFAULT;
        return true;
    }
    whereabouts was = function_enter(p, step_at(p, step)->name);
    *next = manager_of(p)->on_failure(step, p->state.now, &view);
    return !function_return(p, was) && cb_fields_valid(run_type(p)->state, p->state.now, &e);
}

verdict manager_judges(cb_process *p, int step, json_object *failure)
{
    int next = CB_STEP_PARK;
    bool said = ask_manager(p, step, failure, &next);

    state_restore(p);
    if (!said || next == CB_STEP_PARK)
        return PARK_IT;
    return next == CB_STEP_DEFAULT ? LEAVE_IT : TAKE_IT;
}

bool manager_takes(cb_process *p, int step, json_object *failure)
{
    int next = CB_STEP_PARK;
    const char *name = NULL;

    if (ask_manager(p, step, failure, &next))
        name = decision_name(p, next);
    if (name) {
        put_text(failure, "next", name);
        return true;
    }
    state_restore(p);
    run_park(p, PARKED_PERMANENT_FAILURE,
             "on_failure() returned %d for step '%s', which is not a step", next,
             step_at(p, step)->name);
    return false;
}

/* Where the manager goes from the failure it has taken, as it is recorded. False: parked. */
static bool decided(cb_process *p, int *next)
{
    const char *name = failure_text(p->replay.failure, "next");

    for (size_t i = 0; name && i < CB_COUNT(decisions); i++) {
        if (strcmp(decisions[i].name, name) == 0) {
            *next = decisions[i].next;
            return true;
        }
    }
    *next = step_named(p, name);
    if (*next)
        return true;
    run_park(p, PARKED_NON_DETERMINISTIC, "it went to step '%s', which the code does not have: %s",
             name ? name : "", "revert the change");
    return false;
}

/* ---- the machine ---- */

/* Once, recorded as a step without outside effects. */
static cb_flow create(cb_process *p)
{
    record *r = NULL;
    call_entry at;

    if (!manager_of(p)->create_state)
        return CB_NEXT;
    at = call_enter(p, KIND_STEP, manager_creation, &r);
    if (at == PASSED || at == REFUSED)
        return at == PASSED ? CB_NEXT : CB_LEAVE;
    if (p->replay.purpose != FORWARD)
        return call_leave(p, LEFT_FRONTIER);
    r = call_open(p, r, KIND_STEP, manager_creation);
    if (!r)
        return CB_LEAVE;
    r->attempts++;
    p->figures.steps++;
    if (manager_of(p)->create_state(p->state.now) && call_complete(p, r))
        return CB_NEXT;
    state_restore(p);
    record_set_text(&p->outcome.step, r->name);
    if (!p->replay.left)
        run_park(p, PARKED_PERMANENT_FAILURE,
                 "create_state() refused the state that the process was started with");
    refuse(r, parking_code_names[PARKED_PERMANENT_FAILURE], p->outcome.error_message);
    return CB_LEAVE;
}

/* "query", then "query#2", "query#3": a name of its own for each visit, and '#' is in no step's own
 * name. */
static void name_visit(const char *step, int visit, char name[LONGEST_NAME])
{
    if (visit == 1)
        snprintf(name, LONGEST_NAME, "%s", step);
    else
        snprintf(name, LONGEST_NAME, "%s#%d", step, visit);
}

static cb_flow visit(cb_process *p, int step, int times)
{
    const cb_manager_step *s = step_at(p, step);
    char name[LONGEST_NAME];

    name_visit(s->name, times, name);
    if (s->response)
        return wait_step(p, &(wait_call){ .name = name,
                                          .holds = response_has_come,
                                          .timeout_ms = s->timeout_ms,
                                          .step = step });
    command_call c = call_of(p, step, name);
    return command_step(p, &c);
}

/* The business says no, in the manager's words if it has some. */
static cb_flow fail(cb_process *p, int before)
{
    const cb_process_manager *m = manager_of(p);
    const char *code = "BUSINESS_FAILURE";
    char message[LONGEST_REASON];

    snprintf(message, sizeof message, "the process is to be undone%s%s",
             before ? " after step " : "", before ? m->steps[before].name : "");
    if (p->replay.failure)
        return cb_business_failure(p, p->replay.caught.code, "%s", p->replay.caught.message);
    if (m->undo_code)
        code = m->undo_code(before, p->state.now, message, sizeof message);
    return cb_business_failure(p, code, "%s", message);
}

/* What the visit got: its own result, or that of the response it took. */
static json_object *answer_to(cb_process *p, int step, int times)
{
    char name[LONGEST_NAME];

    name_visit(step_at(p, step)->name, times, name);
    for (size_t i = p->history.n; i > 0; i--) {
        const record *r = &p->history.records[i - 1];
        if ((r->kind == KIND_COMMAND || r->kind == KIND_WAIT) && strcmp(r->name, name) == 0)
            return r->kind == KIND_WAIT && r->during > 0 ? run_at(p, r->during)->result : r->result;
    }
    return NULL;
}

/* False: parked. */
static bool next_by_answer(cb_process *p, int step, int times, int *next)
{
    const cb_process_manager *m = manager_of(p);
    const cb_fields *fields = m->steps[step].reply;
    void *reply = NULL;
    cb_error e;

    if (fields && !(reply = read_reply(fields, answer_to(p, step, times), &e))) {
        if (p->replay.purpose ==
            REBUILD) { /* a success that came late and did not fit: it is undone all the same */
            call_leave(p, LEFT_FRONTIER);
            return false;
        }
        run_park(p, PARKED_NON_DETERMINISTIC, "the reply to step '%s' no longer fits: %s",
                 m->steps[step].name, e.message);
        return false;
    }
    *next = m->next_step_by(step, p->state.now, reply);
    if (fields)
        cb_fields_free(fields, reply);
    return true;
}

/* Where to go behind a step. False: parked. */
static bool find_next(cb_process *p, int step, int times, int *next)
{
    if (p->replay.failure)
        return decided(p, next);
    if (manager_of(p)->next_step_by)
        return next_by_answer(p, step, times, next);
    *next = manager_of(p)->next_step(step, p->state.now);
    return true;
}

static cb_flow walk(cb_process *p, int *visits)
{
    const cb_process_manager *m = manager_of(p);
    int step, before = 0;

    CB_DO(create(p));
    for (step = m->first_step(p->state.now); step != CB_STEP_NONE;) {
        if (step == CB_STEP_UNDO)
            return fail(p, before);
        if (step < 0 || (size_t)step >= m->n_steps)
            return run_park(p, PARKED_PERMANENT_FAILURE,
                            "step '%s' leads to step %d, which does not exist",
                            before ? m->steps[before].name : "", step);
        CB_DO(visit(p, step, ++visits[step]));
        before = step;
        if (!find_next(p, before, visits[before], &step))
            return CB_LEAVE;
    }
    return CB_DONE;
}

cb_flow manager_execute(cb_process *p)
{
    int *visits = calloc(manager_of(p)->n_steps, sizeof *visits);

    if (!visits)
        return run_park(p, PARKED_PERMANENT_FAILURE, "out of memory for its steps");
    cb_flow flow = walk(p, visits);
    free(visits);
    return flow;
}
