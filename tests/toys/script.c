/* The interpreter. */
#include "script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const actions[] = { "TSQ", "COMPENSATE", "FAIL", NULL };

CB_FIELDS(fields, script, CB_FIELD(script, process_id, CB_TEXT), CB_FIELD(script, log, CB_TEXT),
          CB_FIELD(script, ops, CB_JSON), CB_FIELD_ENUM(script, on_deadline, actions),
          CB_FIELD(script, current, CB_INT), CB_FIELD(script, chance, CB_INT),
          CB_FIELD(script, go, CB_INT), CB_FIELD(script, trace, CB_TEXT),
          CB_FIELD(script, heard, CB_TEXT), CB_FIELD(script, tail, CB_BOOL),
          CB_FIELD(script, ended, CB_BOOL));

/* ---- operations ---- */

static json_object *member(const script *s, int i, const char *key)
{
    json_object *value = NULL;

    json_object_object_get_ex(json_object_array_get_idx(s->ops, (size_t)i), key, &value);
    return value;
}

static const char *text(const script *s, int i, const char *key)
{
    json_object *value = member(s, i, key);

    return value ? json_object_get_string(value) : "";
}

static int number(const script *s, int i, const char *key)
{
    return json_object_get_int(member(s, i, key));
}

static bool is(const script *s, int i, const char *key, const char *value)
{
    return strcmp(text(s, i, key), value) == 0;
}

static bool append(char **to, const char *word)
{
    char *longer = NULL;

    if (asprintf(&longer, "%s%s ", *to ? *to : "", word) < 0)
        return false;
    free(*to);
    *to = longer;
    return true;
}

/* ---- steps ---- */

static cb_outcome end(cb_context *ctx, char letter)
{
    switch (letter) {
    case 'S':
        return CB_SUCCESS;
    case 'T':
        return cb_transient(ctx, "TRIED", "told to fail");
    case 'B':
        return cb_business_rule(ctx, "DECLINED", "told to decline");
    case 'I':
        return cb_interrupted(ctx);
    default:
        return cb_permanent(ctx, "BROKEN", "told to break");
    }
}

static cb_outcome act(cb_context *ctx, script *s, int i, char direction)
{
    char name[20];
    const char *plan = text(s, i, direction == 's' ? "plan" : "undoPlan");

    snprintf(name, sizeof name, "%c%d", direction, i);
    append(&s->trace, name); /* taken back unless it succeeds */
    if (is(s, i, "k", "local"))
        return CB_SUCCESS;
    return end(ctx, script_effect(s->log, s->process_id, name, plan, cb_context_attempt(ctx),
                                  cb_context_key(ctx)));
}

/* ---- commands ---- */

static void fill(const script *s, int i, char direction, json_object *data)
{
    char name[20];

    snprintf(name, sizeof name, "%c%d", direction, i);
    json_object_object_add(data, "log", json_object_new_string(s->log));
    json_object_object_add(data, "process_id", json_object_new_string(s->process_id));
    json_object_object_add(data, "name", json_object_new_string(name));
    json_object_object_add(
        data, "plan", json_object_new_string(text(s, i, direction == 's' ? "plan" : "undoPlan")));
}

static bool ask(const script *s, int i, json_object *data)
{
    json_object *undo = json_object_new_object();

    fill(s, i, 's', data);
    if (!is(s, i, "undo", ""))
        fill(s, i, 'u', undo);
    json_object_object_add(data, "undo", undo);
    return true;
}

static bool ask_back(const script *s, int i, json_object *data)
{
    fill(s, i, 'u', data);
    return true;
}

static bool take(script *s, int i, json_object *result)
{
    char name[20];

    snprintf(name, sizeof name, "s%d", i);
    return append(&s->trace, name) && json_object_is_type(result, json_type_object) &&
           !json_object_get_boolean(member(s, i, "refuse"));
}

/* Functions do not know for which call they are called: each operation has its own. */
#define OF(i)                                                \
    static cb_outcome do_##i(cb_context *ctx, void *s)       \
    {                                                        \
        return act(ctx, s, i, 's');                          \
    }                                                        \
    static cb_outcome undo_##i(cb_context *ctx, void *s)     \
    {                                                        \
        return act(ctx, s, i, 'u');                          \
    }                                                        \
    static bool ask_##i(const void *s, json_object *data)    \
    {                                                        \
        return ask(s, i, data);                              \
    }                                                        \
    static bool back_##i(const void *s, json_object *data)   \
    {                                                        \
        return ask_back(s, i, data);                         \
    }                                                        \
    static bool take_##i(void *s, json_object *result)       \
    {                                                        \
        return take(s, i, result);                           \
    }                                                        \
    static bool may_##i(const void *s)                       \
    {                                                        \
        return ((const script *)s)->go >= number(s, i, "n"); \
    }                                                        \
    _Static_assert(i < SCRIPT_MOST, "operations")

OF(0);
OF(1);
OF(2);
OF(3);
OF(4);
OF(5);
OF(6);
OF(7);
OF(8);
OF(9);

static const struct {
    cb_step_fn *run, *undo;
    cb_request_fn *ask, *back;
    cb_take_fn *take;
    cb_condition_fn *may;
} of[SCRIPT_MOST] = {
#define ROW(i)                                                 \
    {                                                          \
        do_##i, undo_##i, ask_##i, back_##i, take_##i, may_##i \
    }
    ROW(0), ROW(1), ROW(2), ROW(3), ROW(4), ROW(5), ROW(6), ROW(7), ROW(8), ROW(9)
};

/* ---- execute ---- */

static cb_flow step(cb_process *p, script *s, int i, const char *name)
{
    return cb_step(p, name, of[i].run, .max_attempts = number(s, i, "m"),
                   .retry_delay_ms = number(s, i, "ms"), .timeout_ms = 3000,
                   .local = is(s, i, "k", "local"),
                   .compensate = is(s, i, "undo", "inline") ? of[i].undo : NULL);
}

static cb_flow command(cb_process *p, script *s, int i, const char *name)
{
    bool by_request = is(s, i, "undo", "cmd");

    return cb_command_step(
        p, name, of[i].ask, of[i].take, .domain = text(s, i, "dom"), .command_type = "Do",
        .max_attempts = number(s, i, "m"), .wait_timeout_ms = number(s, i, "ms"),
        .compensate = is(s, i, "undo", "inline") ? of[i].undo : NULL,
        .compensate_command = by_request || is(s, i, "undo", "result") ? "Undo" : NULL,
        .compensate_request = by_request ? of[i].back : NULL);
}

static json_object *make_chance(void *arg)
{
    (void)arg;
    return json_object_new_int(rand() % 1000);
}

static cb_flow side(cb_process *p, script *s, const char *name)
{
    OWNED(json_object) value = NULL;

    CB_DO(cb_side_effect_json(p, name, make_chance, NULL, &value));
    s->chance = json_object_get_int64(value);
    return CB_NEXT;
}

static cb_flow operation(cb_process *p, script *s, int i)
{
    char name[20];

    snprintf(name, sizeof name, "%s%d", text(s, i, "k"), i);
    if (is(s, i, "k", "step") || is(s, i, "k", "local"))
        return step(p, s, i, name);
    if (is(s, i, "k", "cmd"))
        return command(p, s, i, name);
    if (is(s, i, "k", "wait"))
        return cb_wait(p, name, of[i].may, .timeout_ms = number(s, i, "ms"));
    if (is(s, i, "k", "side"))
        return side(p, s, name);
    if (is(s, i, "k", "version"))
        s->chance += cb_version(p, name, 1, 2);
    if (is(s, i, "k", "decline"))
        return cb_business_failure(p, "DECLINED", "the script says so");
    return CB_NEXT;
}

static cb_flow execute(cb_process *p, void *state)
{
    script *s = state;
    int n = (int)json_object_array_length(s->ops);

    if (!s->process_id)
        cb_text_set(&s->process_id, cb_process_id(p));
    for (int i = 0; i < n; i++) {
        s->current = i;
        CB_DO(operation(p, s, i));
        i += is(s, i, "k", "skip") && s->chance % 2;
    }
    s->tail = true;
    return CB_DONE;
}

/* ---- the type ---- */

static bool hear(script *s, json_object *payload)
{
    json_object *no = NULL;

    return json_object_object_get_ex(payload, "no", &no) &&
           append(&s->heard, json_object_get_string(no));
}

static bool script_take_go(void *state, json_object *payload)
{
    script *s = state;

    s->go++; /* taken back when it is refused */
    return hear(s, payload);
}

static bool script_take_word(void *state, json_object *payload)
{
    return hear(state, payload);
}

static void has_ended(cb_process *p, void *state)
{
    (void)p;
    ((script *)state)->ended = true;
}

static cb_deadline_action on_deadline(const void *state)
{
    return (cb_deadline_action)((const script *)state)->on_deadline;
}

static const cb_response responses[] = { { "go", script_take_go }, { "word", script_take_word } };

const cb_process_type script_type = { .name = "Script",
                                      .domain = "payments",
                                      .state = &fields,
                                      .execute = execute,
                                      .responses = responses,
                                      .n_responses = CB_COUNT(responses),
                                      .deadline_action_of = on_deadline,
                                      .on_completed = has_ended,
                                      .on_canceled = has_ended };
