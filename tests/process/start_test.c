/* Starting processes from a program: run at once by the caller, or left to the workers. */
#include <sys/wait.h>
#include <unistd.h>

#include "tale.h"

static int ran;
static bool fails, dies;
static stage *here;

static cb_outcome work_or_die(cb_context *ctx, void *state)
{
    ran++;
    if (dies && ran == 2)
        _exit(7);           /* the caller, in the middle of a step */
    if (here && ran == 2) { /* how long the caller has got for this step */
        expect_value(bus.conn, "t",
                     "SELECT lease_until > now() + interval '100 s' FROM commandbus.process");
    }
    ((tale *)state)->count++;
    return fails ? cb_permanent(ctx, "E", "no") : CB_SUCCESS;
}

static const cb_response responses[] = { { "go", tale_approve } };

static cb_flow works(cb_process *p, void *state)
{
    (void)state;
    CB_DO(cb_step(p, "before", work_or_die, .local = true));
    CB_DO(cb_step(p, "work", work_or_die, .max_attempts = 2, .timeout_ms = 120000));
    CB_DO(cb_wait(p, "go", tale_is_approved, .timeout_ms = 0));
    return CB_DONE;
}

static const cb_process_type type =
    tale_type("Works", works, .responses = responses, .n_responses = 1, .version = 3);

/* A stage whose type nobody has registered yet. */
static stage open_unregistered(void)
{
    stage s = tale_open(&type);

    test_exec(bus.conn, "DELETE FROM commandbus.process_type");
    return s;
}

Test(start, runs_in_the_caller_until_it_ends) /* STP.3 */
{
    stage s = open_unregistered();
    tale t = { .count = 5, .approved = true };
    const char *status = NULL;
    cb_uuid id;
    cb_error e;

    cr_assert(
        cb_process_start(bus.db, s.kit.types, "Works", &t, &id, &status, &e, .deferred = false),
        "%s", e.message);

    cr_expect_str_eq(status, "COMPLETED");
    cr_expect_eq(ran, 2);
    cr_expect_eq(t.count, 5, "the caller's own struct is not touched");
    expect_status(&s, "COMPLETED", id);
    expect_state(&s, "7", id, "count");
    expect_process("t", id, "lease_owner IS NULL AND wake_at IS NULL AND version = 3");
    expect_value(bus.conn, "3 payments PROCESS_STEP payments__replies",
                 "SELECT concat_ws(' ', version, domain, execution_model, reply_queue) FROM "
                 "commandbus.process_type");
    cr_expect_eq(stage_go(&s), 0);
    stage_close(&s);
}

Test(start, runs_in_the_caller_until_it_suspends_and_workers_go_on) /* STP.3 */
{
    stage s = tale_open(&type);
    tale t = { 0 };
    const char *status = NULL;
    cb_uuid id;
    cb_error e;

    cr_assert(
        cb_process_start(bus.db, s.kit.types, "Works", &t, &id, &status, &e, .deferred = false));
    cr_expect_str_eq(status, "WAITING_FOR_ASYNC");
    expect_status(&s, "WAITING_FOR_ASYNC", id);
    stage_respond(&s, id, "go", "{}");
    cr_expect_eq(stage_go(&s), 1);

    expect_status(&s, "COMPLETED", id);
    cr_expect_eq(ran, 2);
    stage_close(&s);
}

Test(start, an_outcome_is_persisted_and_not_thrown) /* STP.3 */
{
    stage s = tale_open(&type);
    tale t = { 0 };
    const char *status = NULL;
    cb_uuid id;
    cb_error e;

    fails = true;
    cr_assert(
        cb_process_start(bus.db, s.kit.types, "Works", &t, &id, &status, &e, .deferred = false));

    cr_expect_str_eq(status, "WAITING_FOR_TSQ");
    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", id);
    stage_close(&s);
}

Test(start, deferred_leaves_it_to_the_workers) /* STP.3 */
{
    stage s = open_unregistered();
    tale t = { .approved = true };
    const char *status = NULL;
    cb_uuid id;

    cr_assert(
        cb_process_start(bus.db, s.kit.types, "Works", &t, &id, &status, NULL, .deferred = true));
    cr_expect_str_eq(status, "PENDING");
    cr_expect_eq(ran, 0);
    expect_status(&s, "PENDING", id);
    stage_go(&s);

    expect_status(&s, "COMPLETED", id);
    cr_expect_eq(ran, 2);
    stage_close(&s);
}

Test(start, a_process_id_is_given_once) /* STP.3 */
{
    static const char id_text[] = "0b6f6b57-2f41-4d0f-9d5f-6a1f0a1d7a01";
    stage s = tale_open(&type);
    tale t = { .approved = true };
    cb_uuid id;
    cb_error e;

    cr_assert(
        cb_process_start(bus.db, s.kit.types, "Works", &t, &id, NULL, &e, .process_id = id_text));
    cr_expect_str_eq(id.text, id_text);
    for (int deferred = 0; deferred < 2; deferred++) {
        e = (cb_error){ 0 };
        cr_expect_not(cb_process_start(bus.db, s.kit.types, "Works", &t, &id, NULL, &e,
                                       .process_id = id_text, .deferred = deferred));
        cr_expect_eq(e.code, CB_INVALID_OPERATION);
    }

    cr_expect_eq(ran, 2);
    expect_status(&s, "COMPLETED", id);
    stage_close(&s);
}

Test(start, what_cannot_be_started_says_why) /* STP.3 */
{
    stage s = tale_open(&type);
    tale t = { .ratio = NAN };
    cb_uuid id;
    cb_error e;

    cr_expect_not(
        cb_process_start(bus.db, s.kit.types, "Unknown", &t, &id, NULL, &e, .deferred = true));
    cr_expect_eq(e.code, CB_UNKNOWN_PROCESS_TYPE);
    cr_expect_not(
        cb_process_start(bus.db, s.kit.types, "Works", &t, &id, NULL, &e, .deferred = true));
    cr_expect_eq(e.code, CB_INVALID_DATA);
    cr_expect(strstr(e.message, "ratio"), "%s", e.message);
    stage_close(&s);
}

Test(start, nothing_runs_before_the_callers_own_transaction_is_committed) /* STP.3, DESIGN 8.3 */
{
    stage s = tale_open(&type);
    tale t = { .approved = true };
    cb_uuid id;
    cb_error e;

    cr_assert(cb_db_begin(bus.db, &e));
    cr_expect_not(
        cb_process_start(bus.db, s.kit.types, "Works", &t, &id, NULL, &e, .deferred = false));
    cr_expect_eq(e.code, CB_MISUSE);
    cr_expect(strstr(e.message, ".deferred"), "%s", e.message);
    cr_expect_eq(ran, 0);
    cr_expect(cb_process_start(bus.db, s.kit.types, "Works", &t, &id, NULL, &e, .deferred = true));
    cr_assert(cb_db_commit(bus.db, &e));
    stage_go(&s);

    expect_status(&s, "COMPLETED", id);
    stage_close(&s);
}

Test(start, a_step_has_its_lease_for_as_long_as_it_may_take) /* STP.4, DESIGN 2: leases */
{
    stage s = tale_open(&type);
    tale t = { .approved = true };
    const char *status = NULL;
    cb_uuid id;
    cb_error e;

    here = &s;
    cr_assert(
        cb_process_start(bus.db, s.kit.types, "Works", &t, &id, &status, &e, .lease_seconds = 20));

    cr_expect_str_eq(status, "COMPLETED");
    stage_close(&s);
}

/* ---- trouble ---- */

/* Holds the row of the process for a moment, from a process of its own. */
static pid_t lock_rows(const char *conninfo, int *ready)
{
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    pid_t child = fork();

    if (child == 0) {
        PGconn *conn = PQconnectdb(conninfo);
        PQclear(PQexec(conn, "BEGIN; SELECT FROM commandbus.process FOR UPDATE"));
        (void)!write(ends[1], "x", 1);
        PQclear(PQexec(conn, "SELECT pg_sleep(0.3); COMMIT"));
        _exit(0);
    }
    *ready = ends[0];
    return child;
}

static pid_t locker;
static const char *conninfo;

static cb_outcome work_while_locked(cb_context *ctx, void *state)
{
    char byte;
    int ready;

    (void)ctx;
    (void)state;
    locker = lock_rows(conninfo, &ready);
    cr_assert_eq(read(ready, &byte, 1), 1);
    close(ready);
    return CB_SUCCESS;
}

static cb_flow locked(cb_process *p, void *state)
{
    (void)state;
    CB_DO(cb_step(p, "one", work_while_locked, .max_attempts = 1));
    CB_DO(cb_step(p, "two", work_or_die, .max_attempts = 1));
    CB_DO(cb_step(p, "three", work_while_locked, .max_attempts = 1));
    return CB_DONE;
}

Test(start, a_row_that_somebody_has_locked_for_a_moment_is_waited_for) /* STP.3, DESIGN 2: BUSY */
{
    static const cb_process_type busy = tale_type("Busy", locked, .version = 1);
    stage s = tale_open(&busy);
    tale t = { 0 };
    const char *status = NULL;
    cb_uuid id;
    cb_error e;

    conninfo = bus.conninfo;
    cr_assert(
        cb_process_start(bus.db, s.kit.types, "Busy", &t, &id, &status, &e, .deferred = false));
    while (wait(NULL) > 0)
        continue;

    cr_expect_str_eq(status, "COMPLETED");
    expect_status(&s, "COMPLETED", id);
    cr_expect_eq(ran, 1);
    stage_close(&s);
}

Test(start, when_the_caller_dies_the_workers_take_it_up) /* STP.3, STP.9 */
{
    stage s = tale_open(&type);
    tale t = { .approved = true };
    int ended = 0;

    pid_t caller = fork();
    if (caller == 0) {
        OWNED(cb_db) db = NULL;
        cb_uuid id;
        cb_error e;
        dies = true;
        if (cb_db_open(bus.conninfo, &db, &e))
            (void)!cb_process_start(db, s.kit.types, "Works", &t, &id, NULL, &e, .deferred = false);
        _exit(1);
    }
    cr_assert_eq(waitpid(caller, &ended, 0), caller);
    cr_assert(WIFEXITED(ended) && WEXITSTATUS(ended) == 7, "%d", ended);

    expect_value(bus.conn, "EXECUTING before COMPLETED, work STARTED",
                 "SELECT min(p.status::text) || ' ' || string_agg(concat_ws(' ', name, h.status), "
                 "', ' ORDER BY ordinal) FROM commandbus.process p JOIN commandbus.process_history "
                 "h USING (process_id)");
    cr_expect_eq(stage_go(&s), 0, "its lease lasts");
    stage_restart(&s);
    stage_go(&s);
    expect_value(bus.conn, "COMPLETED 2",
                 "SELECT concat_ws(' ', status, state ->> 'count') FROM commandbus.process");
    stage_close(&s);
}

Test(start, a_batch_is_left_to_the_workers_and_ends_once) /* STP.3 start batch, BUS.5 */
{
    stage s = open_unregistered();
    tale states[] = { { .count = 1, .approved = true }, { .count = 20, .approved = true } };
    cb_uuid id;
    cb_error e;

    cr_assert(cb_process_start_batch(bus.db, s.kit.types, "Works", states, 2, &id, &e,
                                     .name = "both", .reply_to = "fx__replies"),
              "%s", e.message);
    cr_expect_eq(ran, 0);
    cr_expect_eq(stage_go(&s), 2);

    expect_value(bus.conn, "both COMPLETED 2 2",
                 "SELECT concat_ws(' ', name, status, total, completed) FROM "
                 "commandbus.batch_status WHERE batch_id = $1",
                 id.text);
    expect_value(
        bus.conn, "3 22",
        "SELECT string_agg(state ->> 'count', ' ' ORDER BY length(state ->> 'count')) FROM "
        "commandbus.process");
    expect_value(bus.conn, id.text, "SELECT message ->> 'batch_id' FROM pgmq.q_fx__replies");
    stage_close(&s);
}

Test(start, a_batch_with_a_state_that_is_not_valid_starts_nothing) /* STP.3 start batch */
{
    stage s = tale_open(&type);
    tale states[] = { { .count = 1 }, { .ratio = NAN } };
    cb_uuid id;
    cb_error e;

    cr_assert_not(
        cb_process_start_batch(bus.db, s.kit.types, "Works", states, 2, &id, &e, .name = "both"));
    cr_expect(strstr(e.message, "state 2 of 2"), "%s", e.message);
    cr_assert_not(
        cb_process_start_batch_with(bus.db, s.kit.types, "Wroks", states, 1, NULL, &id, &e));
    cr_expect_eq(e.code, CB_UNKNOWN_PROCESS_TYPE);

    expect_value(bus.conn, "0 0",
                 "SELECT (SELECT count(*) FROM commandbus.process) || ' ' || (SELECT count(*) FROM "
                 "commandbus.batch)");
    stage_close(&s);
}
