/* An operator's retry, for every reason that a process waits for one. STP.12. Those of commands,
 * deadlines and compensations are in the tests of these. */
#include "tour.h"

Test(operator_retry, of_a_permanent_failure_runs_the_step_again) /* STP.12 PERMANENT_FAILURE */
{
    stage s = tour_open(&tour_type);
    tour_plays.prepare = CB_PERMANENT;
    cb_uuid id = tour_at_risk(&s, "{}");
    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);

    tour_plays.prepare = CB_SUCCESS;
    tour_retry(id);
    expect_status(&s, "PENDING", id); /* errors are cleared at once */
    stage_go(&s);

    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_record("COMPLETED 1", id, "STEP", "prepare", "status || ' ' || attempts");
    expect_history(&s, "STEP prepare COMPLETED, OPERATOR RETRY COMPLETED, COMMAND bookRisk WAITING",
                   id);
    expect_told("1", id, "TSQ_RETRY");
    stage_close(&s);
}

Test(operator_retry, counts_attempts_from_one_again) /* STP.12 RETRIES_EXHAUSTED */
{
    stage s = tour_open(&tour_type);
    tour_plays.prepare = CB_TRANSIENT;
    tour_plays.undo_attempts = 2;
    cb_uuid id = tour_at_risk(&s, "{}");
    stage_wait(&s, 11);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ RETRIES_EXHAUSTED", id);

    tour_retry(id);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_RETRY E_AGAIN", id);
    expect_record("1", id, "STEP", "prepare", "attempts::text");
    stage_wait(&s, 11);
    stage_go(&s);

    expect_status(&s, "WAITING_FOR_TSQ RETRIES_EXHAUSTED", id);
    cr_expect_str_eq(tour_calls, "prepare prepare prepare prepare");
    stage_close(&s);
}

Test(operator_retry, of_a_step_that_lost_its_worker_runs_it_again) /* STP.12 …_CRASH_RECOVERY */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = stage_start(&s, "Tour", "{}");
    s.kit.crash_after = 1;
    stage_go(&s);
    stage_restart(&s);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ RETRIES_EXHAUSTED_CRASH_RECOVERY", id);
    cr_expect_str_empty(tour_calls);

    tour_retry(id);
    stage_go(&s);

    expect_status(&s, "WAITING_FOR_ASYNC", id);
    cr_expect_str_eq(tour_calls, "prepare");
    stage_close(&s);
}

Test(operator_retry, of_a_wait_restarts_its_timer) /* STP.12 WAIT_TIMEOUT */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_fx(&s, "{\"wait_at_last\":true}");
    tour_book(&s, "fx");
    stage_go(&s);
    stage_wait(&s, 3601);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ WAIT_TIMEOUT", id);
    stage_respond(&s, id, "go", "{}"); /* resumes nothing by itself */
    cr_expect_eq(stage_go(&s), 0);
    test_exec(bus.conn, "DELETE FROM commandbus.process_inbox");

    tour_retry(id);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    stage_wait(&s, 3590);
    cr_expect_eq(stage_go(&s), 0);
    stage_respond(&s, id, "go", "{}");
    stage_go(&s);

    expect_status(&s, "COMPLETED", id);
    stage_close(&s);
}

Test(operator_retry, of_a_command_in_the_tsq_retries_that_command) /* STP.12 COMMAND_IN_TSQ */
{
    stage s = tour_open(&tour_type);
    cb_uuid id = tour_at_risk(&s, "{}");
    stage_serve(&s, "risk", CB_PERMANENT, NULL, "BROKEN");
    stage_go(&s);

    tour_retry(id);
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    expect_commands(&s, "risk/BookRisk PENDING", id);
    tour_book(&s, "risk");
    stage_go(&s);

    expect_process("bookFx", id, "current_wait");
    expect_record("1", id, "COMMAND", "bookRisk", "send_no::text"); /* the same command */
    stage_close(&s);
}

Test(operator_retry, clicked_twice_is_done_once) /* STP.12 */
{
    stage s = tour_open(&tour_type);
    tour_plays.prepare = CB_PERMANENT;
    cb_uuid id = tour_at_risk(&s, "{}");
    cb_error e = { 0 };

    tour_retry(id);
    cr_expect(!cb_process_retry(bus.db, id.text, "olaf", NULL, NULL, &e));
    cr_expect_eq(e.code, CB_INVALID_OPERATION);
    cr_expect(!cb_process_cancel(bus.db, id.text, "olaf", "no", true, &e));
    cr_expect_eq(e.code, CB_INVALID_OPERATION);
    stage_go(&s);

    cr_expect_str_eq(tour_calls, "prepare prepare");
    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);
    stage_close(&s);
}

/* A process whose code ends its worker before anything of the run is durable. */
static stage *doomed;

static cb_flow die_execute(cb_process *p, void *state)
{
    (void)p;
    (void)state;
    doomed->kit.crashed = true;
    return CB_DONE;
}

static const cb_process_type die = {
    .name = "Die", .domain = "payments", .state = &tour_fields, .execute = die_execute
};

/* Lives on until the process is parked; the number of workers that it took. */
static int workers_lost(stage *s)
{
    int lost = 0;

    for (; lost < 30; lost++) {
        stage_go(s);
        if (!s->kit.crashed)
            break;
        stage_restart(s);
    }
    return lost;
}

Test(operator_retry, of_what_ends_its_workers_does_not_do_so_for_ever) /* DESIGN 8.1, 8.7 */
{
    const cb_process_type *types[] = { &die };
    stage s = stage_open(types, 1, NULL, 0);
    cb_uuid id = stage_start(&s, "Die", "{}");
    doomed = &s;

    int first = workers_lost(&s);
    cr_expect_lt(first, 30);
    expect_status(&s, "WAITING_FOR_TSQ RETRIES_EXHAUSTED_CRASH_RECOVERY", id);
    tour_retry(id);
    cr_expect_eq(workers_lost(&s), first);

    expect_status(&s, "WAITING_FOR_TSQ RETRIES_EXHAUSTED_CRASH_RECOVERY", id);
    expect_value(bus.conn, "0", "SELECT count(*) FROM commandbus.process_inbox");
    stage_close(&s);
}
