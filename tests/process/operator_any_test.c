/* Whatever a step or a wait was parked for, an operator can end the process in every way.
 * STP.12. */
#include "tour.h"

/* Parks a process that has prepared, booked both and quoted, at finish or at the wait after it. */
typedef struct {
    const char *code;
    cb_outcome finish;
    bool dies;
} parked;

static const parked all[] = { { "PERMANENT_FAILURE", CB_PERMANENT, false },
                              { "RETRIES_EXHAUSTED", CB_TRANSIENT, false },
                              { "RETRIES_EXHAUSTED_CRASH_RECOVERY", CB_SUCCESS, true },
                              { "WAIT_TIMEOUT", CB_SUCCESS, false } };

static cb_uuid park(stage *s, const parked *how)
{
    cb_uuid id = tour_at_fx(s, "{\"wait_at_last\":true}");

    tour_plays.finish = how->finish;
    s->kit.durable = 0;
    s->kit.crash_after = how->dies ? 1 : 0;
    tour_book(s, "fx");
    stage_go(s);
    if (s->kit.crashed)
        stage_restart(s);
    stage_wait(s, 3601);
    stage_go(s);
    expect_value(bus.conn, how->code,
                 "SELECT error_code FROM commandbus.process WHERE process_id = $1", id.text);
    return id;
}

#define TRAIL \
    "SELECT replace(state ->> 'trail', ' finish', '') FROM commandbus.process WHERE process_id = $1"

Test(operator_any, cancel_undoes_everything) /* STP.12 */
{
    stage s = tour_open(&tour_type);

    for (size_t i = 0; i < CB_COUNT(all); i++) {
        cb_uuid id = park(&s, &all[i]);
        tour_cancel(id, true);
        stage_go(&s);
        stage_serve(&s, "risk", CB_SUCCESS, NULL, NULL);
        stage_go(&s);
        expect_status(&s, "CANCELED CANCELED", id);
        expect_value(bus.conn, "prepare risk quote fx undo_fx undo_quote undo_prepare canceled",
                     TRAIL, id.text);
    }
    stage_close(&s);
}

Test(operator_any, cancel_without_compensations_undoes_nothing) /* STP.12 */
{
    stage s = tour_open(&tour_type);

    for (size_t i = 0; i < CB_COUNT(all); i++) {
        cb_uuid id = park(&s, &all[i]);
        tour_cancel(id, false);
        stage_go(&s);
        expect_status(&s, "CANCELED CANCELED", id);
        expect_value(bus.conn, "prepare risk quote fx canceled", TRAIL, id.text);
    }
    stage_close(&s);
}

Test(operator_any, complete_ends_it_as_a_success) /* STP.12 */
{
    stage s = tour_open(&tour_type);

    for (size_t i = 0; i < CB_COUNT(all); i++) {
        cb_uuid id = park(&s, &all[i]);
        tour_complete(id, "{\"fx_id\":80}");
        stage_go(&s);
        expect_status(&s, "COMPLETED", id);
        expect_value(bus.conn, "prepare risk quote fx completed", TRAIL, id.text);
        expect_state(&s, "80", id, "fx_id");
    }
    stage_close(&s);
}
