/* Process types that a worker does not take. */
#include "embed.h"

#include "trip.h"

static cb_flow open_execute(cb_process *p, void *state)
{
    (void)p, (void)state;
    return CB_DONE;
}
TRIP_TYPE(Walk, open_execute, .version = 1);
static const cb_process_type elsewhere = {
    .name = "Swim", .domain = "risk", .state = &trip_fields, .execute = open_execute
};
static const cb_process_type *const walk[] = { &Walk }, *const swim[] = { &elsewhere };

static void expect_open_refused(const cb_module *const *sets, size_t n, const char *text)
{
    cb_worker_domain_options fx = { .domain = "fx", .sets = sets, .n_sets = n };
    cb_worker_options o = { .url = "postgresql://nowhere/none", .domains = &fx, .n_domains = 1 };
    cb_worker *w = NULL;
    cb_error e = { 0 };

    cr_assert_not(cb_worker_open(&o, &w, &e));
    cr_expect_eq(e.code, CB_MISUSE);
    cr_expect_not_null(strstr(e.message, text), "'%s' is not in: %s", text, e.message);
}

/* WRK.13 for process types. */
Test(process_open, a_type_that_two_sets_offer_is_refused_with_both_named)
{
    const cb_module one = {
        .abi = CB_MODULE_ABI, .name = "one", .processes = walk, .n_processes = 1
    };
    const cb_module two = {
        .abi = CB_MODULE_ABI, .name = "two", .processes = walk, .n_processes = 1
    };

    expect_open_refused((const cb_module *const[]){ &one, &two }, 2,
                        "sets 'one' and 'two' both offer process type 'Walk'");
}

Test(process_open, a_type_of_another_domain_is_refused_with_both_named)
{
    const cb_module set = {
        .abi = CB_MODULE_ABI, .name = "sea", .processes = swim, .n_processes = 1
    };

    expect_open_refused((const cb_module *const[]){ &set }, 1,
                        "'Swim' of set 'sea' belongs to domain 'risk', not to 'fx'");
}

Test(process_open, a_set_may_have_processes_and_no_handlers)
{
    const cb_module set = {
        .abi = CB_MODULE_ABI, .name = "one", .processes = walk, .n_processes = 1
    };
    const cb_module *sets[] = { &set };
    cb_worker_domain_options fx = { .domain = "fx", .sets = sets, .n_sets = 1 };
    cb_worker_options o = { .url = "postgresql://nowhere/none", .domains = &fx, .n_domains = 1 };
    OWNED(cb_worker) w = NULL;
    cb_error e = { 0 };

    cr_assert(cb_worker_open(&o, &w, &e), "%s", e.message);
}
