/* An operator may end a process before everything is undone. */
#include "stage.h"

typedef struct {
    bool booked;
} deal;

CB_FIELDS(deal_fields, deal, CB_FIELD(deal, booked, CB_BOOL));

static bool take_booked(void *state, json_object *result)
{
    (void)result;
    ((deal *)state)->booked = true;
    return true;
}

static cb_flow deal_execute(cb_process *p, void *state)
{
    (void)state;
    CB_DO(cb_command_step(p, "book", NULL, take_booked, .domain = "fx", .command_type = "Book",
                          .compensate_command = "Release"));
    return cb_business_failure(p, "NO", "never");
}

static const cb_process_type type = {
    .name = "Deal", .domain = "payments", .state = &deal_fields, .execute = deal_execute
};
static const cb_process_type *const types[] = { &type };

/* DESIGN 4, 8.6: the final reply of a compensation that was given up is late, not left in the
 * inbox */
Test(compensation_abandoned,
     a_compensation_that_was_given_up_is_abandoned_and_its_reply_is_recorded_as_late)
{
    stage s = stage_open(types, 1, NULL, 0);
    cb_uuid id = stage_start(&s, "Deal", "{}");
    cb_error e;

    stage_go(&s);
    stage_serve(&s, "fx", CB_SUCCESS, "{}", NULL);
    stage_go(&s);
    stage_serve(&s, "fx", CB_PERMANENT, NULL, "BROKEN");
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ COMPENSATION_FAILED", id);

    cr_assert(cb_process_cancel(bus.db, id.text, "olga", "enough", false, &e), "%s", e.message);
    stage_go(&s);

    expect_status(&s, "CANCELED CANCELED", id);
    expect_history(
        &s, "COMMAND book COMPLETED, COMPENSATION book ABANDONED, OPERATOR CANCEL COMPLETED", id);
    expect_value(bus.conn, "0",
                 "SELECT count(*) FROM commandbus.process_inbox WHERE process_id = $1", id.text);
    expect_commands(&s, "fx/Book COMPLETED, fx/Release CANCELED", id);
    stage_close(&s);
}
