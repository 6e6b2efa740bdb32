/* The audit trail: one row a transition, written once and never touched again. */
#include "expect.h"
#include "fixture.h"
#include "life.h"

#include <stdio.h>

TestSuite(audit, .init = bus_open, .fini = bus_close);

static const char *const trail_sql =
    "SELECT string_agg(format('%s attempt %s lease %s by %s at %s: %s', event_type, attempt, "
    "lease_no, coalesce(worker, operator, db_user), at, details), E'\\n' ORDER BY at, id) "
    "FROM commandbus.audit WHERE command_id = $1::uuid";

/* What was there is still there, unchanged, and `events` more rows are. Takes the place of
 * *trail. */
static void expect_grown(char **trail, const cb_uuid *id, int events)
{
    char *now = test_value(bus.conn, trail_sql, id->text, NULL);
    size_t old = strlen(*trail);
    int added = 0;

    cr_assert(strncmp(now, *trail, old) == 0, "was:\n%s\nis:\n%s", *trail, now);
    for (const char *c = now + old; *c; c++)
        added += *c == '\n';
    cr_assert_eq(added, events, "%d rows more:\n%s", added, now + old);
    free(*trail);
    *trail = now;
}

/* BUS.7 */
Test(audit, grows_by_what_each_transition_did_and_keeps_what_was_there)
{
    cb_error e = { 0 };
    cb_uuid id = life_send("max_attempts => 2");
    const cb_tsq_action action = {
        .domain = "fx", .command_id = id.text, .operator_name = "ann", .reason = "try again"
    };
    char *trail = test_value(bus.conn, trail_sql, id.text, NULL);

    life_receive();
    expect_grown(&trail, &id, 1);
    life_settle(&id, "TRANSIENT");
    expect_grown(&trail, &id, 2);
    life_receive();
    expect_grown(&trail, &id, 1);
    life_settle(&id, "TRANSIENT");
    expect_grown(&trail, &id, 1);
    expect_ok(cb_tsq_retry(bus.db, &action, &e), e);
    expect_grown(&trail, &id, 1);
    life_receive();
    expect_grown(&trail, &id, 1);
    life_settle(&id, "INTERRUPTED");
    expect_grown(&trail, &id, 1);
    life_receive();
    expect_grown(&trail, &id, 1);
    life_settle(&id, "SUCCESS");
    expect_grown(&trail, &id, 1);

    expect_trail("SENT RECEIVED FAILED RETRY_SCHEDULED RECEIVED MOVED_TO_TSQ OPERATOR_RETRY "
                 "RECEIVED RELEASED RECEIVED COMPLETED",
                 id);
    free(trail);
}

/* BUS.7 */
Test(audit, says_who_did_it_under_which_fence_in_which_attempt)
{
    cb_uuid id = life_send("max_attempts => 2");
    life_receive();
    life_settle(&id, "TRANSIENT");
    life_receive();
    life_settle(&id, "SUCCESS");

    expect_value(bus.conn,
                 "SENT - - - | RECEIVED 1 1 test | FAILED 1 1 test | RETRY_SCHEDULED 1 1 test | "
                 "RECEIVED 2 2 test | COMPLETED 2 2 test",
                 "SELECT string_agg(concat_ws(' ', event_type, coalesce(attempt::text, '-'), "
                 "coalesce(lease_no::text, '-'), coalesce(worker, '-')), ' | ' ORDER BY at, id) "
                 "FROM commandbus.audit WHERE command_id = $1::uuid",
                 id.text);
    expect_value(bus.conn, "t",
                 "SELECT details = '{\"error_type\": \"TRANSIENT\", \"error_code\": \"E_TEST\", "
                 "\"error_message\": \"it did not work\"}' FROM commandbus.audit "
                 "WHERE event_type = 'FAILED'");
    expect_value(bus.conn, "{\"rate\": \"1.1\"}",
                 "SELECT details FROM commandbus.audit WHERE event_type = 'COMPLETED'");
}

/* BUS.7, BUS.6: a business failure is not an error of the system */
Test(audit, of_a_business_failure_has_its_own_event)
{
    cb_uuid id = life_run("", "BUSINESS_RULE");

    expect_trail("SENT RECEIVED BUSINESS_RULE_FAILED", id);
}

/* BUS.7: a refused call leaves no trace */
Test(audit, has_no_row_of_what_was_refused_or_rolled_back)
{
    cb_uuid id = life_send("");
    char sql[256];

    snprintf(sql, sizeof sql, "SELECT commandbus.tsq_retry('fx', '%s', 'ann')", id.text);
    expect_sqlstate(bus.conn, "CB007", sql);
    snprintf(sql, sizeof sql, "SELECT commandbus.send('fx', 'BookFx', command_id => '%s')",
             id.text);
    expect_sqlstate(bus.conn, "CB001", sql);
    test_exec(bus.conn, "BEGIN; SELECT commandbus.receive('fx', 'w', 1); ROLLBACK");

    expect_trail("SENT", id);
    expect_number(bus.conn, 1, "SELECT count(*) FROM commandbus.audit");
}
