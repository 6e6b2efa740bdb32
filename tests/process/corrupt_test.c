/* What cannot be read: that process is parked and says why, the others go on. */
#include "tale.h"

static const cb_response responses[] = { { "go", tale_approve } };

static cb_flow corrupt_works(cb_process *p, void *state)
{
    cb_uuid uuid;

    (void)state;
    CB_DO(cb_step(p, "work", tale_count, .local = true));
    (void)cb_version(p, "change", 1, 1);
    CB_DO(cb_side_effect_uuid(p, "uuid", &uuid));
    CB_DO(cb_wait(p, "go", tale_is_approved, .timeout_ms = 0));
    return CB_DONE;
}

static const cb_process_type type =
    tale_type("Corrupt", corrupt_works, .responses = responses, .n_responses = 1);

/* A process that waits, spoiled by the statement and woken, and beside it one that is fine. Then
 * repaired. */
static void expect_corrupt(stage *s, const char *spoil, const char *code, const char *why,
                           const char *mend)
{
    cb_uuid bad = stage_start(s, "Corrupt", "{}");

    stage_go(s);
    test_exec(bus.conn, spoil);
    stage_respond(s, bad, "go", "{}");
    cb_uuid good = stage_start(s, "Corrupt", "{\"approved\":true}");
    cr_expect(stage_go(s) <= 3, "it does not loop");

    expect_process(code, bad, "error_code");
    expect_process("WAITING_FOR_TSQ", bad, "status");
    expect_message(why, bad);
    expect_status(s, "COMPLETED", good);

    tale_retry(bad); /* too early */
    stage_go(s);
    expect_process("WAITING_FOR_TSQ", bad, "status");
    test_exec(bus.conn, mend);
    tale_retry(bad);
    stage_go(s);
    expect_status(s, "COMPLETED", bad);
    test_exec(bus.conn, "DELETE FROM commandbus.process_history; DELETE FROM commandbus.process");
}

Test(corrupt, a_state_that_does_not_parse_parks_its_process_only) /* STP.13 */
{
    stage s = tale_open(&type);

    expect_corrupt(&s, "UPDATE commandbus.process SET state = state || '{\"count\":\"many\"}'",
                   "PERMANENT_FAILURE", "count",
                   "UPDATE commandbus.process SET state = state || '{\"count\":1}'");
    expect_corrupt(&s, "UPDATE commandbus.process SET state = '[1]'", "PERMANENT_FAILURE",
                   "it cannot be read", "UPDATE commandbus.process SET state = '{}'");
    expect_corrupt(&s, "UPDATE commandbus.process SET initial_state = '{\"approved\":7}'",
                   "PERMANENT_FAILURE", "approved",
                   "UPDATE commandbus.process SET initial_state = '{}'");
    stage_close(&s);
}

#define OF(ordinal) " WHERE ordinal = " #ordinal
#define HISTORY     "UPDATE commandbus.process_history SET "

Test(corrupt, nor_does_a_history_that_is_not_ours_harm_others) /* STP.13 */
{
    stage s = tale_open(&type);

    expect_corrupt(&s, HISTORY "ordinal = 9" OF(4), "PERMANENT_FAILURE",
                   "record 4 of its history is invalid", HISTORY "ordinal = 4" OF(9));
    expect_corrupt(&s, HISTORY "patch = '5'" OF(1), "NON_DETERMINISTIC",
                   "a record does not fit the state", HISTORY "patch = '{\"count\":1}'" OF(1));
    expect_corrupt(&s, HISTORY "patch = '{\"count\":[]}'" OF(1), "NON_DETERMINISTIC", "count",
                   HISTORY "patch = NULL" OF(1));
    expect_corrupt(&s, HISTORY "opening = '\"x\"'" OF(4), "NON_DETERMINISTIC",
                   "a record does not fit the state", HISTORY "opening = NULL" OF(4));
    expect_corrupt(&s, HISTORY "result = '{}'" OF(2), "NON_DETERMINISTIC", "was recorded as 0",
                   HISTORY "result = '1'" OF(2));
    expect_corrupt(&s, HISTORY "result = '\"no uuid\"'" OF(3), "NON_DETERMINISTIC",
                   "something other than a UUID",
                   HISTORY "result = '\"0b6f6b57-2f41-4d0f-9d5f-6a1f0a1d7a01\"'" OF(3));
    expect_corrupt(&s, HISTORY "result = NULL" OF(3), "NON_DETERMINISTIC",
                   "something other than a UUID",
                   HISTORY "result = '\"0b6f6b57-2f41-4d0f-9d5f-6a1f0a1d7a01\"'" OF(3));
    stage_close(&s);
}

/* Found by fuzz_process: it ended the worker. */
Test(corrupt, nor_does_a_way_out_that_leads_nowhere) /* STP.13, DESIGN 8.7 */
{
    stage s = tale_open(&type);

    expect_corrupt(&s, "UPDATE commandbus.process SET leaving = '{\"asked\":true}'",
                   "PERMANENT_FAILURE", "its 'leaving' does not parse",
                   "UPDATE commandbus.process SET leaving = NULL");
    expect_corrupt(&s, "UPDATE commandbus.process SET leaving = '{\"to\":\"END\"}'",
                   "PERMANENT_FAILURE", "its 'leaving' does not parse",
                   "UPDATE commandbus.process SET leaving = NULL");
    stage_close(&s);
}

/* Somebody must be able to end what nobody can read. */
Test(corrupt, what_cannot_be_read_can_be_canceled_without_compensations) /* STP.12, STP.13 */
{
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Corrupt", "{}");
    cb_error e;

    stage_go(&s);
    test_exec(bus.conn, "UPDATE commandbus.process SET state = '[1]'");
    stage_respond(&s, id, "go", "{}");
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);
    cr_assert(cb_process_cancel(bus.db, id.text, "ann", "beyond repair", false, &e), "%s",
              e.message);
    stage_go(&s);

    expect_status(&s, "CANCELED CANCELED", id);
    expect_message("beyond repair", id);
    stage_close(&s);
}

Test(corrupt, at_its_end_it_stays_at_its_end) /* STP.11, STP.13 */
{
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Corrupt", "{\"approved\":true}");

    stage_go(&s);
    test_exec(bus.conn, "UPDATE commandbus.process SET state = '[]'");
    stage_respond(&s, id, "go", "{}");
    cr_expect_eq(stage_go(&s), 1);

    expect_status(&s, "COMPLETED", id);
    expect_process("t", id, "wake_at IS NULL");
    stage_close(&s);
}

Test(corrupt, a_type_that_this_worker_does_not_have_waits_for_one_that_has) /* STP.13 */
{
    static const cb_process_type other = tale_type("Other", corrupt_works, .version = 1);
    const cb_process_type *both[] = { &type, &other };
    stage s = stage_open(both, 2, NULL, 0);
    cb_uuid id = stage_start(&s, "Other", "{\"approved\":true}");

    tale_release(&s, &type);
    cb_uuid mine = stage_start(&s, "Corrupt", "{\"approved\":true}");
    cr_expect_eq(stage_go(&s), 1);
    expect_status(&s, "COMPLETED", mine);
    expect_status(&s, "PENDING", id);
    tale_release(&s, &other);
    stage_go(&s);

    expect_status(&s, "COMPLETED", id);
    stage_close(&s);
}
