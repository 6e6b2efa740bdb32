/* (domain, command type) → handler. */
#include "registry.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static cb_outcome first_handler(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)ctx, (void)command, (void)result;
    return CB_SUCCESS;
}

static cb_outcome second_handler(cb_context *ctx, const cb_command *command, json_object **result)
{
    (void)ctx, (void)command, (void)result;
    return CB_TRANSIENT;
}

static const cb_handler fx_handlers[] = { { "ReleaseFx", second_handler },
                                          { "BookFx", first_handler } };
static const cb_module fx = {
    .abi = CB_MODULE_ABI, .name = "fx", .handlers = fx_handlers, .n_handlers = 2
};

static const cb_handler risk_handlers[] = { { "BookRisk", first_handler } };
static const cb_module risk = {
    .abi = CB_MODULE_ABI, .name = "risk", .handlers = risk_handlers, .n_handlers = 1
};

#define expect_registry_refused(text, ...)                                                  \
    do {                                                                                    \
        const cb_module *sets_[] = { __VA_ARGS__ };                                         \
        registry r_;                                                                        \
        cb_error e_ = { 0 };                                                                \
        cr_assert(!registry_init(&r_, "money", sets_, sizeof sets_ / sizeof *sets_, &e_));  \
        cr_expect_eq(e_.code, CB_MISUSE);                                                   \
        cr_expect(strstr(e_.message, (text)), "'%s' is not in: %s", (text), e_.message);    \
        cr_expect_null(r_.entries);                                                         \
        cr_expect(!registry_init(&r_, "money", sets_, sizeof sets_ / sizeof *sets_, NULL)); \
    } while (0)

/* WRK.13 */
Test(registry, finds_the_handlers_of_every_set_of_its_domain)
{
    const cb_module *sets[] = { &fx, &risk };
    cb_error e = { 0 };
    registry r;

    cr_assert(registry_init(&r, "money", sets, 2, &e), "%s", e.message);

    cr_assert_eq(r.n, 3);
    cr_expect_eq(r.entries[registry_find(&r, "BookFx")].run, first_handler);
    cr_expect_eq(r.entries[registry_find(&r, "ReleaseFx")].run, second_handler);
    cr_expect_eq(r.entries[registry_find(&r, "BookRisk")].set, &risk);
    registry_done(&r);
}

Test(registry, does_not_find_what_only_looks_like_a_type)
{
    static const char *const strangers[] = { "", "BookF", "BookFx ", "bookfx", "Zzz", "Aaa" };
    const cb_module *sets[] = { &fx, &risk };
    registry r;
    cr_assert(registry_init(&r, "money", sets, 2, NULL));

    for (size_t i = 0; i < CB_COUNT(strangers); i++)
        cr_expect_eq(registry_find(&r, strangers[i]), -1, "'%s'", strangers[i]);
    registry_done(&r);
}

Test(registry, of_no_set_finds_nothing)
{
    registry r;

    cr_assert(registry_init(&r, "money", NULL, 0, NULL));

    cr_expect_eq(r.n, 0);
    cr_expect_eq(registry_find(&r, "BookFx"), -1);
    registry_done(&r);
    registry_done(&r);
}

Test(registry, finds_each_of_many_types)
{
    enum {
        MANY = 1000
    };
    static char names[MANY][16];
    static cb_handler handlers[MANY];
    const cb_module many = {
        .abi = CB_MODULE_ABI, .name = "many", .handlers = handlers, .n_handlers = MANY
    };
    const cb_module *sets[] = { &many };
    registry r;
    for (size_t i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "Type%zu", i * 7919 % MANY);
        handlers[i] = (cb_handler){ names[i], first_handler };
    }

    cr_assert(registry_init(&r, "money", sets, 1, NULL));

    for (size_t i = 0; i < MANY; i++) {
        int at = registry_find(&r, names[i]);
        cr_assert(at >= 0 && strcmp(r.entries[at].command_type, names[i]) == 0, "%s", names[i]);
    }
    registry_done(&r);
}

/* WRK.13 */
Test(registry, refuses_a_type_that_two_sets_offer_and_names_both)
{
    static const cb_handler again[] = { { "Unwind", second_handler },
                                        { "BookFx", second_handler } };
    const cb_module other = {
        .abi = CB_MODULE_ABI, .name = "other", .handlers = again, .n_handlers = 2
    };

    expect_registry_refused("domain 'money'", &risk, &fx, &other);
    expect_registry_refused("'fx'", &risk, &fx, &other);
    expect_registry_refused("'other'", &risk, &fx, &other);
    expect_registry_refused("'BookFx'", &risk, &fx, &other);
}

Test(registry, refuses_a_set_given_twice)
{
    expect_registry_refused("set 'risk' offers command type 'BookRisk' twice", &risk, &fx, &risk);
}

/* Sets that a program brings itself were not checked by a loader. */
Test(registry, refuses_manifests_that_a_worker_cannot_trust)
{
    static const cb_handler hollow[] = { { "Hollow", NULL } };
    const cb_module newer = {
        .abi = CB_MODULE_ABI + 1, .name = (const char *)1, .handlers = NULL, .n_handlers = 9
    };
    const cb_module nameless = {
        .abi = CB_MODULE_ABI, .name = NULL, .handlers = fx_handlers, .n_handlers = 2
    };
    const cb_module empty = {
        .abi = CB_MODULE_ABI, .name = "empty", .handlers = NULL, .n_handlers = 0
    };
    const cb_module no_function = {
        .abi = CB_MODULE_ABI, .name = "hollow", .handlers = hollow, .n_handlers = 1
    };

    expect_registry_refused("ABI 7", &fx, &newer);
    expect_registry_refused("calls itself ''", &nameless);
    expect_registry_refused("no handlers", &empty);
    expect_registry_refused("'Hollow'", &no_function);
    expect_registry_refused("NULL", &fx, NULL);
}
