/* Reading processes without claiming them: what a replay looks at. */
#include "expect.h"
#include "fixture.h"
#include "pay.h"

TestSuite(process_read, .init = pay_open, .fini = bus_close);

Test(process_read, gives_a_process_as_it_is_and_changes_nothing) /* DESIGN 4 --replay */
{
    cb_uuid id = pay_start_with(bus.db, .leased_by = "me");
    OWNED(cb_process_claim) found = NULL;
    cb_error e = { 0 };

    expect_ok(cb_process_respond(bus.db, id.text, "L1", NULL, NULL, NULL, &e), e);
    char *before = bus_contents();
    expect_ok(cb_process_read(bus.db, id.text, &found, &e), e);

    cr_assert_eq(cb_process_claim_count(found), 1);
    const cb_process_row *row = cb_process_claim_at(found, 0);
    cr_expect_str_eq(row->process_id.text, id.text);
    cr_expect_str_eq(row->status, "EXECUTING");
    cr_expect_eq(row->lease_no, 1);
    cr_expect_str_eq(row->inbox, "[[1,\"RESPONSE\",\"L1\",null,{}]]");
    expect_unchanged(before, bus_contents());
}

Test(process_read, says_when_there_is_none) /* CONTRACT refusals */
{
    OWNED(cb_process_claim) found = NULL;
    cb_error e = { 0 };

    expect_error(CB_PROCESS_NOT_FOUND, cb_process_read(bus.db, cb_uuid_new().text, &found, &e), e);
    expect_error(CB_INVALID_DATA, cb_process_read(bus.db, "x", &found, &e), e);
}

Test(process_read, lists_what_has_not_ended_in_pages) /* DESIGN 4 --replay --all-running */
{
    cb_process_kind other = { .process_type = "Other", .domain = "payments", .version = 1 };
    cb_uuid ids[4], found[3];
    cb_error e = { 0 };
    size_t n = 0;

    expect_ok(cb_process_register(bus.db, &other, 1, &e), e);
    expect_ok(cb_process_request_start(bus.db, "Other", "{}", NULL, &ids[0], &e), e);
    for (int i = 1; i < 4; i++)
        ids[i] = pay_start(bus.db);
    pay_suspend(bus.conn, ids[2], "COMPENSATED");

    expect_ok(cb_process_running(bus.db, NULL, NULL, found, 2, &n, &e), e);
    cr_assert_eq(n, 2);
    cr_expect_str_eq(found[0].text, ids[0].text);
    cr_expect_str_eq(found[1].text, ids[1].text);
    expect_ok(cb_process_running(bus.db, NULL, found[1].text, found, 3, &n, &e), e);
    cr_assert_eq(n, 1);
    cr_expect_str_eq(found[0].text, ids[3].text);
    expect_ok(cb_process_running(bus.db, "Other", NULL, found, 3, &n, &e), e);
    cr_expect_eq(n, 1);
}
