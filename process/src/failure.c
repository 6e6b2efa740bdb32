/* Failures that the code takes. A call that catches one gets its end by it, as CAUGHT: the
 * record keeps what the failure was, and a replay gives the code the same again.
 *
 * Only what is known to have failed is a failure. A command in the troubleshooting queue is
 * ended before its failure is taken (command_step.c), and one whose outcome nobody knows is
 * never taken. */
#include <string.h>

#include "json_build.h"
#include "process_run.h"

static const struct {
    cb_failure_kind kind;
    const char *name;
} kinds[] = {
    { CB_FAILURE_BUSINESS_RULE, "BUSINESS_RULE" },
    { CB_FAILURE_PERMANENT, "PERMANENT" },
    { CB_FAILURE_EXHAUSTED, "EXHAUSTED" },
    { CB_FAILURE_CANCELED, "CANCELED" },
    { CB_FAILURE_TIMEOUT, "TIMEOUT" },
};

static const char *kind_name(cb_failure_kind kind)
{
    for (size_t i = 0; i < CB_COUNT(kinds); i++) {
        if (kinds[i].kind == kind)
            return kinds[i].name;
    }
    return "";
}

/* 0: not one of ours. */
static cb_failure_kind kind_named(const char *name)
{
    for (size_t i = 0; name && i < CB_COUNT(kinds); i++) {
        if (strcmp(kinds[i].name, name) == 0)
            return kinds[i].kind;
    }
    return 0;
}

bool failure_is_known(const char *code)
{
    static const char *const unknown[] = {
        "LEASE_EXHAUSTED", /* it was entered, and its worker died */
        "HANDLER_TIMEOUT", /* it was entered, and what it came to was not waited for */
        "INTERNAL_ERROR",  /* it ended with no outcome of ours */
        /* The handler has succeeded, and what it said could not be kept: */
        "RESULT_INVALID", "EFFECT_FAILED", "SETTLE_REFUSED",
        "OUTCOME_UNKNOWN", /* for handlers and steps that do not know it themselves */
    };

    for (size_t i = 0; code && i < CB_COUNT(unknown); i++) {
        if (strcmp(unknown[i], code) == 0)
            return false;
    }
    return code != NULL;
}

cb_failure_kind failure_of_permanent(const cb_process *p, const char *code)
{
    cb_outcome as = run_type(p)->classify ? run_type(p)->classify(code ? code : "") : CB_PERMANENT;

    return as == CB_BUSINESS_RULE ? CB_FAILURE_BUSINESS_RULE
           : as == CB_TRANSIENT   ? CB_FAILURE_EXHAUSTED
                                  : CB_FAILURE_PERMANENT;
}

json_object *failure_new(cb_failure_kind kind, const char *code, const char *message,
                         json_object *reply)
{
    json_object *o = json_object_new_object();

    if (!o)
        return NULL;
    put_text(o, "kind", kind_name(kind));
    put_text(o, "code", code ? code : "");
    put_text(o, "message", message ? message : "");
    put_shared(o, "reply", reply);
    return o;
}

const char *failure_text(json_object *failure, const char *key)
{
    json_object *value = NULL;

    return json_object_object_get_ex(failure, key, &value) ? json_object_get_string(value) : NULL;
}

cb_caught failure_view(json_object *failure)
{
    const char *code = failure_text(failure, "code"), *message = failure_text(failure, "message");
    json_object *reply = NULL;

    json_object_object_get_ex(failure, "reply", &reply);
    return (cb_caught){ .kind = kind_named(failure_text(failure, "kind")),
                        .code = code ? code : "",
                        .message = message ? message : "",
                        .reply = reply };
}

void failure_forget(cb_process *p)
{
    json_object_put(p->replay.failure);
    p->replay.failure = NULL;
}

/* From now on it is what became of the last call. */
static void failure_show(cb_process *p, json_object *failure)
{
    failure_forget(p);
    p->replay.failure = json_object_get(failure);
    p->replay.caught = failure_view(p->replay.failure);
}

static bool has_kind(unsigned caught, cb_failure_kind kind)
{
    return kind && (caught & (CB_FAILURE_ANY | (unsigned)kind));
}

verdict failure_ask(cb_process *p, const catcher *by, json_object *failure)
{
    if (run_type(p)->manager)
        return manager_judges(p, by->step, failure);
    return has_kind(by->kinds, failure_view(failure).kind) ? TAKE_IT : LEAVE_IT;
}

bool failure_may_be_taken(const cb_process *p, const catcher *by)
{
    const cb_process_type *type = run_type(p);

    return by->kinds != 0 || (type->manager && type->manager->on_failure);
}

cb_flow failure_take(cb_process *p, record *r, const catcher *by, json_object *failure)
{
    if (run_type(p)->manager && !manager_takes(p, by->step, failure))
        return CB_LEAVE;
    if (!size_add_value(p, failure))
        return CB_LEAVE;
    json_object *patch = state_take_changes(p);
    if (p->replay.left) {
        json_object_put(patch);
        return CB_LEAVE;
    }
    json_object_put(r->patch);
    r->patch = patch;
    json_object_put(r->result);
    r->result = json_object_get(failure);
    r->status = RECORD_CAUGHT;
    r->dirty = true;
    record_set_text(&r->error_code, failure_text(failure, "code"));
    record_set_text(&r->error_message, failure_text(failure, "message"));
    failure_show(p, failure);
    return CB_NEXT;
}

/* Code that does not catch it any more would take it for a success. */
cb_flow failure_pass(cb_process *p, const record *r, const catcher *by)
{
    if (r->status != RECORD_CAUGHT)
        return CB_NEXT;
    cb_failure_kind kind = failure_view(r->result).kind;
    bool caught = run_type(p)->manager ? failure_may_be_taken(p, by) : has_kind(by->kinds, kind);
    if (!caught)
        return run_park(p, PARKED_NON_DETERMINISTIC,
                        "record %d, %s '%s', is a failure (%s) that the code caught and does "
                        "not catch any more: revert the change",
                        r->ordinal, record_kind_names[r->kind], r->name, kind_name(kind));
    failure_show(p, r->result);
    return CB_NEXT;
}

const cb_caught *cb_failure(const cb_process *p)
{
    return p->replay.failure ? &p->replay.caught : NULL;
}
