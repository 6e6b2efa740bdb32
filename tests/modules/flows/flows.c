/* The set: its process types and the responses they take. */
#include <commandbus/module.h>
#include <stdio.h>
#include <stdlib.h>

#include "flow.h"

/* Payload {"reference": "…"}. A letter that came twice under different ids is taken twice:
 * "arrived" tells. */
static bool take_letter(flow *f, int i, json_object *payload)
{
    json_object *reference = NULL;
    char *arrived = NULL;

    if (!json_object_object_get_ex(payload, "reference", &reference) ||
        !cb_text_set(&f->letters[i], json_object_get_string(reference)) ||
        asprintf(&arrived, "%s%sL%d", f->arrived ? f->arrived : "", f->arrived ? " " : "", i + 1) <
            0)
        return false;
    free(f->arrived);
    f->arrived = arrived;
    return true;
}

static bool take_l1(void *state, json_object *payload)
{
    return take_letter(state, 0, payload);
}

static bool take_l2(void *state, json_object *payload)
{
    return take_letter(state, 1, payload);
}

static bool take_l3(void *state, json_object *payload)
{
    return take_letter(state, 2, payload);
}

static bool take_l4(void *state, json_object *payload)
{
    return take_letter(state, 3, payload);
}

static bool take_go(void *state, json_object *payload)
{
    (void)payload;
    ((flow *)state)->went = true;
    return true;
}

static const cb_response letters[] = {
    { "L1", take_l1 }, { "L2", take_l2 }, { "L3", take_l3 }, { "L4", take_l4 }
};
static const cb_response go[] = { { "go", take_go } };

static cb_deadline_action deadline_action(const void *state)
{
    return (cb_deadline_action)((const flow *)state)->on_deadline;
}

#define FLOW(type, run, ...)                                                                 \
    {                                                                                        \
        .name = type, .domain = "payments", .version = FLOWS_VERSION, .state = &flow_fields, \
        .execute = run, .deadline_action_of = deadline_action, __VA_ARGS__                   \
    }

static const cb_process_type five =
    FLOW("Five", five_execute, .responses = go, .n_responses = CB_COUNT(go));
static const cb_process_type second = FLOW("Second", second_execute, .responses = NULL);
static const cb_process_type locals = FLOW("Locals", locals_execute, .responses = NULL);
static const cb_process_type long_ = FLOW("Long", long_execute, .responses = NULL);
static const cb_process_type letters_ =
    FLOW("Letters", letters_execute, .responses = letters, .n_responses = CB_COUNT(letters));

static const cb_process_type machine = FLOW("Machine", NULL, .manager = &machine_manager);

static const cb_process_type *const types[] = {
    &five, &second, &locals, &long_, &letters_, &machine
};

#define MODULE(name, ...) CB_MODULE(name, __VA_ARGS__) /* of the value of name */
MODULE(FLOWS_NAME, .processes = types, .n_processes = CB_COUNT(types));
