/* What a worker refuses before it claims anything. */
#include "embed.h"

TestSuite(open, .init = embed_open, .fini = embed_close);

static const cb_handler handlers[] = { { "Test", succeed } };
static const cb_module set = {
    .abi = CB_MODULE_ABI, .name = "one", .handlers = handlers, .n_handlers = 1
};
static const cb_module twin = {
    .abi = CB_MODULE_ABI, .name = "two", .handlers = handlers, .n_handlers = 1
};
static const cb_module *const sets[] = { &set, &twin };

/* The message with which a worker of that domain is refused, "" when it is not. Static storage. */
static const char *refusal(const cb_worker_domain_options *domain, size_t n)
{
    static cb_error e;
    OWNED(cb_worker) w = NULL;
    cb_worker_options options = { .url = "postgresql:///nowhere",
                                  .domains = domain,
                                  .n_domains = n };

    e = (cb_error){ 0 };
    if (cb_worker_open(&options, &w, &e))
        return "";
    cr_expect_null(w);
    cr_expect_eq(e.code, CB_MISUSE, "%s", cb_code_name(e.code));
    return e.message;
}

/* WRK.1, WRK.13, CFG.4 */
Test(open, refuses_settings_that_cannot_work_and_says_which)
{
    static const int negative = -1;
    static const struct {
        cb_worker_domain_options domain;
        const char *text;
    } cases[] = {
        { { .domain = NULL }, "a domain has no name" },
        { { .domain = "" }, "a domain has no name" },
        { { .domain = "fx", .concurrent_messages = -1 }, "'fx' has a negative setting" },
        { { .domain = "fx", .prefetch = -1 }, "'fx' has a negative setting" },
        { { .domain = "fx", .max_attempts = -1 }, "'fx' has a negative setting" },
        { { .domain = "fx", .handler_timeout_seconds = -1 }, "'fx' has a negative setting" },
        { { .domain = "fx", .fleet_limit = &negative }, "'fx' has a negative setting" },
        { { .domain = "fx", .visibility_timeout_seconds = 5, .handler_timeout_seconds = 6 },
          "a handler timeout of 6 s does not fit into a visibility timeout of 5 s" },
        { { .domain = "fx", .handler_timeout_seconds = 31 },
          "a handler timeout of 31 s does not fit into a visibility timeout of 30 s" },
        { { .domain = "fx", .sets = sets, .n_sets = 2 }, "Test" },
    };

    for (size_t i = 0; i < CB_COUNT(cases); i++)
        cr_expect(strstr(refusal(&cases[i].domain, 1), cases[i].text), "%s: '%s'", cases[i].text,
                  refusal(&cases[i].domain, 1));
    cr_expect(strstr(refusal(NULL, 0), "needs the URL of a database and a domain"));
    cr_expect_str_eq(refusal(&(cb_worker_domain_options){ .domain = "fx" }, 1), "");
}

Test(open, refuses_a_domain_that_is_there_twice)
{
    const cb_worker_domain_options domains[] = { { .domain = "fx" }, { .domain = "fx" } };

    cr_expect_str_eq(refusal(domains, 2), "duplicate domain 'fx'");
}

/* One type in two domains is not a duplicate. */
Test(open, takes_one_set_for_two_domains)
{
    const cb_worker_domain_options domains[] = { { .domain = "fx", .sets = sets, .n_sets = 1 },
                                                 { .domain = "risk", .sets = sets, .n_sets = 1 } };

    cr_expect_str_eq(refusal(domains, 2), "");
}

static cb_error start_error(const embed_options *options)
{
    cb_error e = { 0 };
    cb_worker *w = embed_worker_with(options);

    cr_assert(!cb_worker_start(w, &e));
    cr_expect(!cb_worker_is_running(w));
    cr_expect(cb_worker_stop(w, 0));
    return e;
}

/* WRK.10 */
Test(open, does_not_start_without_its_database)
{
    cb_error e =
        start_error(&(embed_options){ .worker.url = "postgresql://127.0.0.1:1/none?user=nobody" });
    cr_expect_eq(e.code, CB_LOST, "%s %s", cb_code_name(e.code), e.message);
}

/* And once the schema is there, the same worker starts. */
Test(open, does_not_start_without_its_schema_and_starts_when_it_is_there)
{
    char *conninfo = test_database_create();
    cb_migrate_report report;
    cb_error e = { 0 };
    cb_worker *w = embed_worker(.worker.url = conninfo);

    cr_assert(!cb_worker_start(w, &e));
    cr_expect(strstr(e.hint, "migrate"), "%s | %s", e.message, e.hint);
    OWNED(cb_db) db = test_bus_open(conninfo);
    cr_assert(cb_migrate(db, &report, &e), "%s", e.message);
    cr_expect(cb_worker_start(w, &e), "%s", e.message);

    embed_free(w);
    test_database_drop(conninfo);
}

/* CFG.4: nothing was claimed, nothing runs. */
Test(open, does_not_start_with_more_slots_than_the_machine_gives)
{
    cb_uuid id = test_send_one(bus.db, .domain = "fx");

    cb_error e = start_error(
        &(embed_options){ HANDLERS({ "Test", succeed }), .worker.stack_bytes = (size_t)1 << 46 });

    cr_expect_eq(e.code, CB_MEMORY, "%s", e.message);
    cr_expect(strstr(e.message, "could start only 0 of 5 slots"), "%s", e.message);
    cr_expect(strstr(e.hint, "concurrent-messages"), "%s", e.hint);
    expect_command("PENDING 0", id, "status, lease_no");
    await_value("0", "SELECT count(*) FROM commandbus.worker");
}

/* CONTRACT: queues exist because an enabled domain was registered at start. */
Test(open, registers_its_domains)
{
    embed_start(HANDLERS({ "Test", succeed }), .domain.domain = "loans");

    cb_uuid id = test_send_one(bus.db, .domain = "loans", .reply_to = "loans__replies");
    await_status("COMPLETED", id);
}

/* CONTRACT: and so are the targets of command steps, which some other worker serves. */
Test(open, registers_the_domains_that_are_sent_to)
{
    static const char *const others[] = { "loans", "cards" };
    cb_worker *w = embed_start(HANDLERS({ "Test", succeed }), .worker.sends_to = others,
                               .worker.n_sends_to = 2);

    test_send_one(bus.db, .domain = "loans");
    test_send_one(bus.db, .domain = "cards");
    cr_expect_eq(cb_worker_domain(w, 1), NULL);
}

Test(open, does_not_register_a_domain_with_a_name_that_cannot_be)
{
    cb_error e = start_error(&(embed_options){ .domain.domain = "No Name" });

    cr_expect(strstr(e.message, "No Name"), "%s", e.message);
}
