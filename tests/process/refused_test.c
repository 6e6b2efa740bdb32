/* What a run came to is refused by the database: the process waits for an operator, who can decide
 * again and again, and goes on where it was. DESIGN 8.4, 8.7. */
#include "tour.h"

/* Commands of the domain may have so many bytes. */
static void limit(const char *domain, const char *bytes)
{
    free(test_value(bus.conn,
                    "UPDATE commandbus.domain SET payload_limit = $2::integer WHERE domain = $1 "
                    "RETURNING 1",
                    domain, bytes, NULL));
}

Test(refused, each_decision_is_answered_so_that_there_can_be_another) /* STP.12, DESIGN 8.7 */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    limit("fx", "1");
    tour_book(&s, "risk");
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);

    tour_retry(id);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);
    limit("fx", "1000");
    tour_retry(id);
    stage_go(&s);

    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_process("bookFx", id, "current_wait");
    expect_state(&s, "7", id, "risk_id"); /* the reply that the refused runs had read */
    stage_close(&s);
}

Test(refused, a_step_that_ran_is_not_run_again_unasked) /* DESIGN 4: max_attempts 1 */
{
    stage s = tour_open(&tour_type);
    limit("risk", "3");
    cb_uuid id = tour_at_risk(&s, "{}"); /* prepare has run; its end went with what was refused */
    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);

    tour_retry(id);
    stage_go(&s);

    expect_status(&s, "WAITING_FOR_TSQ RETRIES_EXHAUSTED_CRASH_RECOVERY", id);
    cr_expect_str_eq(tour_calls, "prepare");
    stage_close(&s);
}

Test(refused,
     what_is_being_undone_is_undone_and_never_goes_forward) /* DESIGN 4: phase is one-way */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_fx(&s, "{}");
    stage_serve(&s, "fx", CB_PERMANENT, NULL, "BROKEN");
    stage_go(&s);
    limit("risk", "3");
    tour_cancel(id, true);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", id); /* ReleaseRisk is too long */
    expect_process("CANCELED", id, "leaving ->> 'end'");

    limit("risk", "1000");
    tour_retry(id);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ COMPENSATION_FAILED", id); /* has undo_quote run? */
    tour_retry(id);
    stage_go(&s);
    expect_status(&s, "COMPENSATING CANCELED", id);
    stage_serve(&s, "risk", CB_SUCCESS, NULL, NULL);
    stage_go(&s);

    expect_status(&s, "CANCELED CANCELED", id);
    cr_expect_str_eq(tour_calls, "prepare quote undo_quote undo_quote undo_prepare");
    stage_close(&s);
}
