/* Looking up commands: by id, by filter, page by page, and their trail. */
#include "expect.h"
#include "fixture.h"
#include "life.h"

#include <stdio.h>

/* Created 1 to 6 hours ago. */
static cb_uuid waiting, running, completed, failed, stuck, other;

static void set_age(const cb_uuid *id, const char *age)
{
    char sql[256];

    snprintf(sql, sizeof sql,
             "UPDATE commandbus.command_metadata SET created_at = now() - interval '%s', "
             "tsq_at = tsq_at - interval '%s' WHERE command_id = '%s'",
             age, age, id->text);
    test_exec(bus.conn, sql);
}

static void open_with_lives(void)
{
    bus_open();
    completed = life_run("", "SUCCESS");
    failed = life_run("", "BUSINESS_RULE");
    stuck = life_into_tsq("");
    running = life_send("");
    cr_assert_eq(life_receive(), 1);
    waiting = life_send("data => '{\"card\": \"4929\"}'");
    char *text = test_value(bus.conn, "SELECT commandbus.send('risk', 'BookRisk')", NULL);
    cr_assert(cb_uuid_parse(text, &other));
    free(text);
    set_age(&waiting, "1 hour");
    set_age(&running, "2 hours");
    set_age(&completed, "3 hours");
    set_age(&failed, "4 hours");
    set_age(&stuck, "5 hours");
    set_age(&other, "6 hours");
}

TestSuite(query, .init = open_with_lives, .fini = bus_close);

/* The ids of the list are these, in this order; NULL ends them. */
static void expect_list(cb_command_filter filter, const cb_uuid *const *expected)
{
    OWNED(cb_rows) rows = NULL;
    cb_error e = { 0 };
    size_t n = 0;

    expect_ok(cb_command_list(bus.db, &filter, &rows, &e), e);
    for (; expected[n]; n++)
        cr_assert_str_eq(cb_rows_get(rows, n, "command_id") ? cb_rows_get(rows, n, "command_id")
                                                            : "no row",
                         expected[n]->text, "at %zu of %zu", n, cb_rows_count(rows));
    cr_assert_eq(cb_rows_count(rows), n, "%zu rows, not %zu", cb_rows_count(rows), n);
}

#define IDS(...) ((const cb_uuid *const[]){ __VA_ARGS__, NULL })
#define NONE     ((const cb_uuid *const[]){ NULL })

/* BUS.8 */
Test(query, lists_the_newest_first)
{
    expect_list((cb_command_filter){ 0 },
                IDS(&waiting, &running, &completed, &failed, &stuck, &other));
}

/* BUS.8 */
Test(query, filters_by_domain_type_status_error_and_id)
{
    expect_list((cb_command_filter){ .domain = "risk" }, IDS(&other));
    expect_list((cb_command_filter){ .domain = "fy" }, NONE);
    expect_list((cb_command_filter){ .command_type = "BookRisk" }, IDS(&other));
    expect_list((cb_command_filter){ .status = "PENDING" }, IDS(&waiting, &other));
    expect_list((cb_command_filter){ .status = "PENDING", .domain = "fx" }, IDS(&waiting));
    expect_list((cb_command_filter){ .status = "IN_PROGRESS" }, IDS(&running));
    expect_list((cb_command_filter){ .status = "COMPLETED" }, IDS(&completed));
    expect_list((cb_command_filter){ .status = "FAILED" }, IDS(&failed));
    expect_list((cb_command_filter){ .status = "IN_TROUBLESHOOTING_QUEUE" }, IDS(&stuck));
    expect_list((cb_command_filter){ .status = "CANCELED" }, NONE);
    expect_list((cb_command_filter){ .error_code = "E_TEST" }, IDS(&failed, &stuck));
    expect_list((cb_command_filter){ .command_id = failed.text }, IDS(&failed));
}

/* BUS.8 */
Test(query, filters_by_a_range_of_time)
{
    char *then = test_value(bus.conn, "SELECT now() - interval '210 minutes'", NULL);

    expect_list((cb_command_filter){ .created_from = "150 minutes" }, IDS(&waiting, &running));
    expect_list((cb_command_filter){ .created_to = "270 minutes" }, IDS(&stuck, &other));
    expect_list((cb_command_filter){ .created_from = "270 minutes", .created_to = "90 minutes" },
                IDS(&running, &completed, &failed));
    expect_list((cb_command_filter){ .created_from = then }, IDS(&waiting, &running, &completed));
    expect_list((cb_command_filter){ .created_to = then }, IDS(&failed, &stuck, &other));
    free(then);
}

/* BUS.8 */
Test(query, goes_page_by_page)
{
    expect_list((cb_command_filter){ .limit = 2 }, IDS(&waiting, &running));
    expect_list((cb_command_filter){ .limit = 2, .offset = 2 }, IDS(&completed, &failed));
    expect_list((cb_command_filter){ .limit = 4, .offset = 4 }, IDS(&stuck, &other));
    expect_list((cb_command_filter){ .offset = 6 }, NONE);
}

/* BUS.8 */
Test(query, shows_fifty_unless_asked_for_more)
{
    OWNED(cb_rows) rows = NULL;
    OWNED(cb_rows) all = NULL;
    cb_error e = { 0 };
    test_exec(bus.conn, "SELECT commandbus.send('fx', 'BookFx') FROM generate_series(1, 60)");

    expect_ok(cb_command_list(bus.db, NULL, &rows, &e), e);
    expect_ok(cb_command_list(bus.db, &(cb_command_filter){ .limit = 1000 }, &all, &e), e);

    cr_assert_eq(cb_rows_count(rows), 50);
    cr_assert_eq(cb_rows_count(all), 66);
}

/* BUS.8: payloads of payments do not belong in a list */
Test(query, lists_no_payloads)
{
    OWNED(cb_rows) rows = NULL;
    cb_error e = { 0 };

    expect_ok(cb_command_list(bus.db, NULL, &rows, &e), e);

    for (size_t c = 0; c < cb_rows_columns(rows); c++) {
        const char *name = cb_rows_column_name(rows, c);
        cr_assert(strcmp(name, "data") != 0 && strcmp(name, "result") != 0, "%s", name);
        for (size_t r = 0; r < cb_rows_count(rows); r++) {
            const char *value = cb_rows_value(rows, r, c);
            cr_assert(!value || !strstr(value, "4929"), "%s is %s", name, value);
        }
    }
}

/* BUS.8 */
Test(query, refuses_a_filter_that_means_nothing)
{
    cb_rows *rows = NULL;
    cb_error e = { 0 };

    expect_error(CB_INVALID_DATA,
                 cb_command_list(bus.db, &(cb_command_filter){ .status = "LOST" }, &rows, &e), e);
    expect_error(CB_INVALID_DATA,
                 cb_command_list(bus.db, &(cb_command_filter){ .command_id = "x" }, &rows, &e), e);
    cr_assert_not(
        cb_command_list(bus.db, &(cb_command_filter){ .created_from = "yesterdayish" }, &rows, &e));
    cr_assert_null(rows);
}

/* BUS.8 */
Test(query, shows_one_command_in_full)
{
    OWNED(cb_rows) rows = NULL;
    OWNED(cb_rows) none = NULL;
    cb_error e = { 0 };

    expect_ok(cb_command_show(bus.db, NULL, waiting.text, &rows, &e), e);
    expect_ok(cb_command_show(bus.db, "risk", waiting.text, &none, &e), e);

    cr_assert_eq(cb_rows_count(rows), 1);
    cr_assert_str_eq(cb_rows_get(rows, 0, "command_id"), waiting.text);
    cr_assert_str_eq(cb_rows_get(rows, 0, "data"), "{\"card\": \"4929\"}");
    cr_assert_str_eq(cb_rows_get(rows, 0, "status"), "PENDING");
    cr_assert_null(cb_rows_get(rows, 0, "completed_at"));
    cr_assert_eq(cb_rows_count(none), 0);
}

/* BUS.8 */
Test(query, shows_the_trail_of_a_command_from_the_beginning)
{
    OWNED(cb_rows) rows = NULL;
    cb_error e = { 0 };
    static const char *const events[] = { "SENT", "RECEIVED", "MOVED_TO_TSQ" };

    expect_ok(cb_command_trail(bus.db, "fx", stuck.text, &rows, &e), e);

    cr_assert_eq(cb_rows_count(rows), 3);
    for (size_t i = 0; i < 3; i++)
        cr_assert_str_eq(cb_rows_get(rows, i, "event_type"), events[i]);
    cr_assert_str_eq(cb_rows_get(rows, 1, "worker"), "test");
}

/* BUS.6 */
Test(query, lists_and_counts_the_troubleshooting_queue_by_domain_type_code_and_age)
{
    static const struct {
        cb_command_filter filter;
        size_t found;
    } cases[] = {
        { { 0 }, 2 },
        { { .domain = "fx" }, 2 },
        { { .domain = "risk" }, 0 },
        { { .command_type = "BookFx" }, 2 },
        { { .error_code = "E_TEST" }, 2 },
        { { .error_code = "E_OTHER" }, 0 },
        { { .older_than = "4 hours" }, 1 },
        { { .older_than = "6 hours" }, 0 },
        { { .limit = 1 }, 1 },
    };
    cb_error e = { 0 };
    test_exec(bus.conn, "UPDATE pgmq.q_fx__commands SET vt = now() + interval '1 hour'");
    cb_uuid fresh = life_into_tsq("");

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        OWNED(cb_rows) rows = NULL;
        expect_ok(cb_tsq_list(bus.db, &cases[i].filter, &rows, &e), e);
        cr_assert_eq(cb_rows_count(rows), cases[i].found, "case %zu: %zu rows", i,
                     cb_rows_count(rows));
        if (cases[i].found)
            cr_assert_str_eq(cb_rows_get(rows, 0, "command_id"), stuck.text, "oldest first");
        if (cases[i].found == 2)
            cr_assert_str_eq(cb_rows_get(rows, 1, "command_id"), fresh.text);
    }
    OWNED(cb_rows) counts = NULL;
    expect_ok(cb_tsq_counts(bus.db, &(cb_command_filter){ 0 }, &counts, &e), e);
    cr_assert_eq(cb_rows_count(counts), 1);
    cr_assert_str_eq(cb_rows_get(counts, 0, "domain"), "fx");
    cr_assert_str_eq(cb_rows_get(counts, 0, "error_code"), "E_TEST");
    cr_assert_str_eq(cb_rows_get(counts, 0, "commands"), "2");
}

/* BUS.8 */
Test(query, lists_batches_and_their_members)
{
    OWNED(cb_rows) list = NULL;
    OWNED(cb_rows) show = NULL;
    cb_error e = { 0 };
    cb_uuid first, second;
    const cb_send book = { .command_type = "BookFx" };
    const cb_batch_options fx = { .domain = "fx", .custom_data = "{\"run\": 7}" };
    expect_ok(cb_batch_create(bus.db, &fx, &book, 1, &first, &e), e);
    expect_ok(cb_batch_create(bus.db, &fx, &book, 1, &second, &e), e);

    expect_ok(cb_batch_list(bus.db, "fx", "PENDING", 0, 0, &list, &e), e);
    expect_ok(cb_batch_show(bus.db, first.text, &show, &e), e);

    cr_assert_eq(cb_rows_count(list), 2);
    cr_assert_str_eq(cb_rows_get(list, 0, "batch_id"), second.text);
    cr_assert_eq(cb_rows_count(show), 1);
    cr_assert_str_eq(cb_rows_get(show, 0, "custom_data"), "{\"run\": 7}");
    cr_assert_str_eq(cb_rows_get(show, 0, "pending"), "1");
    char *id = test_value(bus.conn,
                          "SELECT command_id FROM commandbus.command_metadata "
                          "WHERE batch_id = $1::uuid",
                          first.text, NULL);
    cb_uuid only;
    cr_assert(cb_uuid_parse(id, &only));
    expect_list((cb_command_filter){ .batch_id = first.text }, IDS(&only));
    free(id);
}
