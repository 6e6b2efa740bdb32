/* Process types: what is wrong with one is found when a program starts, not when a process runs. */
#include "tale.h"

static bool take_nothing(void *state, json_object *payload)
{
    (void)state;
    (void)payload;
    return true;
}

/* Opens the types; gives what is said about them, "" when nothing. */
static const char *said(const cb_process_type *const *types, size_t n)
{
    static cb_error e;
    OWNED(cb_process_types) all = NULL;

    e = (cb_error){ 0 };
    if (cb_process_types_open(types, n, NULL, 0, NULL, 0, &all, &e))
        return "";
    cr_expect_eq(e.code, CB_MISUSE);
    cr_expect_null(all);
    return e.message;
}

static void expect_type_refused(const char *why, cb_process_type type)
{
    const cb_process_type *one = &type;
    const char *found = said(&one, 1);

    cr_expect(strstr(found, why), "'%s' is not in '%s'", why, found);
}

Test(types, a_type_lacks_nothing) /* STP.1 */
{
    cb_process_type nameless = tale_type(NULL, stage_nothing, .version = 0),
                    homeless = tale_type("T", stage_nothing, .version = 0), stateless = homeless,
                    idle = homeless;
    char longest[102];

    homeless.domain = NULL;
    stateless.state = NULL;
    idle.execute = NULL;
    memset(longest, 'n', 101);
    longest[101] = 0;

    expect_type_refused("invalid name", nameless);
    expect_type_refused("invalid name",
                        (cb_process_type)tale_type("", stage_nothing, .version = 0));
    expect_type_refused("invalid name",
                        (cb_process_type)tale_type("1st", stage_nothing, .version = 0));
    expect_type_refused("invalid name",
                        (cb_process_type)tale_type("a b", stage_nothing, .version = 0));
    expect_type_refused("invalid name",
                        (cb_process_type)tale_type(longest, stage_nothing, .version = 0));
    expect_type_refused("'T' lacks its domain", homeless);
    expect_type_refused("'T' lacks its state", stateless);
    expect_type_refused("'T' lacks its execute", idle);
    expect_type_refused("version -1",
                        (cb_process_type)tale_type("T", stage_nothing, .version = -1));
    const cb_process_type *none = NULL;
    cr_expect(strstr(said(&none, 1), "invalid name"));
}

Test(types, a_table_of_fields_is_checked) /* STP.1 */
{
    static const cb_field wrong[] = {
        { .name = "count", .type = CB_INT, .offset = offsetof(tale, count), .size = 4 }
    };
    static const cb_fields fields = { "tale", sizeof(tale), wrong, 1 };
    cb_process_type type = tale_type("T", stage_nothing, .version = 0);

    type.state = &fields;

    expect_type_refused("checking the state of process type 'T'", type);
    expect_type_refused("count", type);
}

Test(types, a_table_of_responses_is_checked) /* STP.1 */
{
    static const cb_response twice[] = { { "L1", take_nothing }, { "L1", take_nothing } };
    static const cb_response nameless[] = { { "L1", take_nothing }, { "", take_nothing } };
    static const cb_response idle[] = { { "L1", NULL } };

    expect_type_refused(
        "has response 'L1' twice",
        (cb_process_type)tale_type("T", stage_nothing, .responses = twice, .n_responses = 2));
    expect_type_refused(
        "response 2 of process type 'T' lacks a name",
        (cb_process_type)tale_type("T", stage_nothing, .responses = nameless, .n_responses = 2));
    expect_type_refused(
        "response 1 of process type 'T' lacks a function",
        (cb_process_type)tale_type("T", stage_nothing, .responses = idle, .n_responses = 1));
    expect_type_refused("lacks its responses",
                        (cb_process_type)tale_type("T", stage_nothing, .n_responses = 1));
}

/* STP.25 */
Test(types, a_table_of_payloads_is_checked_and_registered_with_the_responses)
{
    static const cb_response responses[] = { { "L1", take_nothing }, { "L2", take_nothing } };
    static const cb_response_payload strange[] = { { "L3", &tale_fields, NULL } };
    static const cb_response_payload lacking[] = { { "L1", &tale_fields, "count nothing" } };
    static const cb_response_payload good[] = { { "L1", &tale_fields, "count" } };
    const cb_process_type type = tale_type("T", stage_nothing, .responses = responses,
                                           .n_responses = 2, .payloads = good, .n_payloads = 1);
    const cb_process_type *one = &type;
    OWNED(cb_process_types) all = NULL;
    cb_error e;

    expect_type_refused("payload 1 of process type 'T' lacks its response",
                        (cb_process_type)tale_type("T", stage_nothing, .responses = responses,
                                                   .n_responses = 2, .payloads = strange,
                                                   .n_payloads = 1));
    expect_type_refused("response 'L1' of process type 'T' needs a field that it does not have",
                        (cb_process_type)tale_type("T", stage_nothing, .responses = responses,
                                                   .n_responses = 2, .payloads = lacking,
                                                   .n_payloads = 1));

    cr_assert(cb_process_types_open(&one, 1, NULL, 0, NULL, 0, &all, &e), "%s", e.message);
    const char *said = cb_process_types_kinds(all)[0].responses;
    cr_expect(strstr(said, "\"L2\":{}"), "%s", said);
    cr_expect(strstr(said, "\"count\":\"integer\""), "%s", said);
    cr_expect(strstr(said, "\"needs\":[\"count\"]"), "%s", said);
}

Test(types, each_stands_once_and_is_registered_with_its_version) /* STP.1 */
{
    static const cb_process_type a = tale_type("A", stage_nothing, .version = 0),
                                 b = tale_type("B-2.x_", stage_nothing, .version = 7,
                                               .reply_queue = "b__replies");
    const cb_process_type *both[] = { &a, &b }, *twice[] = { &a, &b, &a };
    static const cb_type_setting settings[] = { { .process_type = "A",
                                                  .reply_queue = "a__replies" } };
    OWNED(cb_process_types) all = NULL;
    cb_error e;

    cr_expect(strstr(said(twice, 3), "'A' is defined twice"));

    cr_assert(cb_process_types_open(both, 2, NULL, 0, settings, 1, &all, &e));
    cr_assert_eq(cb_process_types_count(all), 2);
    const cb_process_kind *kinds = cb_process_types_kinds(all);
    cr_expect_str_eq(kinds[0].process_type, "A");
    cr_expect_eq(kinds[0].version, 1);
    cr_expect_str_eq(kinds[0].reply_queue, "a__replies");
    cr_expect_str_eq(kinds[1].domain, "payments");
    cr_expect_eq(kinds[1].version, 7);
    cr_expect_str_eq(kinds[1].reply_queue, "b__replies");
    cr_expect_eq(kinds[1].step_based, false);
}

static bool never(const void *state)
{
    (void)state;
    return false;
}

static cb_flow wait_forever(cb_process *p, void *state)
{
    (void)state;
    CB_DO(cb_wait(p, "go", never));
    return CB_DONE;
}

/* S0's global default-wait-timeout. */
Test(types, without_a_wait_timeout_have_that_of_all_types)
{
    static const cb_process_type a = tale_type("A", wait_forever, .version = 1),
                                 b = tale_type("B", wait_forever, .wait_timeout_ms = 7000),
                                 c = tale_type("C", wait_forever, .wait_timeout_ms = 7000);
    const cb_process_type *all[] = { &a, &b, &c };
    static const cb_type_setting settings[] = {
        { .process_type = "C", .wait_timeout_ms = 9000 },
        { .wait_timeout_ms = 5000 },
    };
    stage s = stage_open(all, 3, NULL, 0);
    cb_error e;

    cb_run_free(s.kit.run);
    cb_process_types_free(s.kit.types);
    cr_assert(cb_process_types_open(all, 3, NULL, 0, settings, 2, &s.kit.types, &e), "%s",
              e.message);
    cr_assert(cb_run_open(s.kit.types, &s.kit.run, &e), "%s", e.message);
    for (size_t i = 0; i < 3; i++)
        stage_start(&s, all[i]->name, "{}");
    stage_go(&s);

    expect_value(
        bus.conn, "A 00:00:05, B 00:00:07, C 00:00:09",
        "SELECT string_agg(concat_ws(' ', process_type, next_wait_timeout_at - updated_at), "
        "', ' ORDER BY process_type) FROM commandbus.process");
    stage_close(&s);
}
