/* Managers: what is wrong with one is found when a program starts. PM.2 */
#include "order.h"

static cb_manager_step steps[ORDER_STEPS];
static cb_process_manager manager;
static cb_process_type type;

/* Starts over with a valid type. */
static void begin_valid(void)
{
    memcpy(steps, order_steps, sizeof steps);
    manager = order_manager;
    manager.steps = steps;
    type = order_type;
    type.manager = &manager;
}

TestSuite(manager_types, .init = begin_valid);

static void expect_manager_refused(const char *why)
{
    const cb_process_type *one = &type;
    OWNED(cb_process_types) all = NULL;
    cb_error e = { 0 };

    cr_expect_not(cb_process_types_open(&one, 1, NULL, 0, NULL, 0, &all, &e), "not refused: %s",
                  why);
    cr_expect(e.code == CB_MISUSE || e.code == CB_OK);
    cr_expect(strstr(e.message, why), "'%s' is not in '%s'", why, e.message);
    begin_valid();
}

static bool take_anything(void *state, json_object *payload)
{
    (void)state;
    (void)payload;
    return true;
}

Test(manager_types, a_sound_one_is_step_based)
{
    const cb_process_type *one = &type;
    OWNED(cb_process_types) all = NULL;
    cb_error e;

    cr_assert(cb_process_types_open(&one, 1, NULL, 0, NULL, 0, &all, &e), "%s", e.message);
    cr_expect(cb_process_types_kinds(all)->step_based);
    cr_expect_str_eq(cb_process_types_kinds(all)->redact[0], "card");
}

Test(manager_types, a_type_has_execute_or_a_manager)
{
    static const cb_response responses[] = { { "other", take_anything } };

    type.execute = stage_nothing;
    expect_manager_refused("both an execute function and a manager");
    type.manager = NULL;
    expect_manager_refused("lacks its execute function or manager");
    type.responses = responses;
    type.n_responses = 1;
    expect_manager_refused("its responses are those that steps wait for");
}

Test(manager_types, a_manager_lacks_nothing)
{
    manager.first_step = NULL;
    expect_manager_refused("the manager of process type 'Order' lacks its first_step");
    manager.next_step = NULL;
    expect_manager_refused("lacks its next_step");
    manager.steps = NULL;
    expect_manager_refused("lacks its steps");
    manager.n_steps = 1;
    expect_manager_refused("lacks its steps");
    manager.build_command = NULL;
    expect_manager_refused("'reserve', of process type 'Order' has a request");
    manager.update_state = NULL;
    expect_manager_refused("'reserve', of process type 'Order' has a reply");
    steps[0].name = "zero";
    expect_manager_refused("row 0 of the steps");
}

Test(manager_types, names_are_valid_and_unique)
{
    steps[SHIP].name = NULL;
    expect_manager_refused("step 4, '', of process type 'Order' has an invalid name");
    steps[SHIP].name = "ship#2";
    expect_manager_refused("has an invalid name");
    steps[SHIP].name = "create_state";
    expect_manager_refused("reserved for the record of create_state");
    steps[SHIP].name = "charge";
    expect_manager_refused("is defined twice");
}

Test(manager_types, a_step_sends_or_waits)
{
    steps[SHIP].command_type = NULL;
    expect_manager_refused("'ship', of process type 'Order' needs either command_type or response");
    steps[SHIP].response = "shipped";
    expect_manager_refused("needs either");
    steps[SHIP].command_type = "";
    expect_manager_refused("needs either");
    steps[APPROVE].domain = "fx";
    expect_manager_refused("has settings of a command");
    steps[SHIP].timeout_ms = -1;
    expect_manager_refused("has a negative number");
    steps[SHIP].domain = "";
    expect_manager_refused("has an empty domain");
    steps[SHIP] = (cb_manager_step){ "again", .response = "approval", .reply = steps[SHIP].reply };
    expect_manager_refused("another step takes as something else");
}

Test(manager_types, a_compensation_is_a_command_step_that_nothing_undoes)
{
    steps[SHIP].compensation = ORDER_STEPS;
    expect_manager_refused(
        "'ship', of process type 'Order' is compensated by a step that does not exist");
    steps[SHIP].compensation = -1;
    expect_manager_refused("a step that does not exist");
    steps[SHIP].compensation = SHIP;
    expect_manager_refused("a step that does not exist");
    steps[SHIP].compensation = APPROVE;
    expect_manager_refused("sends no command");
    steps[SHIP].compensation = CHARGE;
    expect_manager_refused("is compensated itself");
    steps[APPROVE].compensation = RELEASE;
    expect_manager_refused("nothing to compensate");
}

Test(manager_types, tables_of_fields_and_redacted_names_are_checked)
{
    static const cb_field wrong[] = { { .name = "id", .type = CB_INT, .size = 4 } };
    static const cb_fields fields = { "wrong", 8, wrong, 1 };
    static const char *const nameless[] = { "card", "", NULL };

    steps[CHARGE].reply = &fields;
    expect_manager_refused("checking step 'charge' of process type 'Order'");
    steps[CHARGE].request = &fields;
    expect_manager_refused("checking step 'charge' of process type 'Order'");
    type.redact = nameless;
    expect_manager_refused("redacts a field without a name");
}
