/* How large a process may become: it is parked at the record that is too much, and not when it is
 * settled. DESIGN 8.10, STP.22. */
#include <sys/resource.h>

#include "tale.h"

static long peak_mib(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
}

static char *megabyte(void)
{
    char *text = malloc(1000001);

    cr_assert(text);
    memset(text, 'm', 1000000);
    text[1000000] = 0;
    return text;
}

static int steps;

/* The note grows by so much at each step. */
static size_t growth = 100000;

static cb_outcome grow(cb_context *ctx, void *state)
{
    tale *t = state;
    size_t has = t->note ? strlen(t->note) : 0;
    char *longer = realloc(t->note, has + growth + 1);

    (void)ctx;
    cr_assert(longer);
    memset(longer + has, 'g', growth);
    longer[has + growth] = 0;
    t->note = longer;
    steps++;
    return CB_SUCCESS;
}

static cb_flow grows(cb_process *p, void *state)
{
    char name[20];

    (void)state;
    for (int i = 0; i < 900; i++) {
        snprintf(name, sizeof name, "grow-%d", i);
        CB_DO(cb_step(p, name, grow, .local = true));
    }
    return CB_DONE;
}

static const cb_process_type growing = tale_type("Growing", grows, .version = 1);

/* It took 1.4 GiB and 98 s until this was parked. */
Test(size, a_state_that_grows_and_grows_is_parked_at_once) /* DESIGN 8.10 */
{
    stage s = tale_open(&growing);
    cb_uuid id = stage_start(&s, "Growing", "{}");

    growth = 300000;
    cr_expect_eq(stage_go(&s), 1);
    expect_status(&s, "WAITING_FOR_TSQ PROCESS_TOO_LARGE", id);
    expect_message("keep large things elsewhere", id);
    cr_expect_leq(steps, 7, "it went on for %d steps", steps);
    expect_value(bus.conn, "t",
                 "SELECT octet_length(state::text) <= 2 * 1024 * 1024 FROM commandbus.process");
    cr_expect_leq(peak_mib(), 200);

    /* Once more, and it is parked again, where it stands. */
    tale_retry(id);
    cr_expect_eq(stage_go(&s), 1);
    expect_status(&s, "WAITING_FOR_TSQ PROCESS_TOO_LARGE", id);
    stage_close(&s);
}

/* Each record has the whole note: they come to much before the state does. */
Test(size, records_that_come_to_too_much_park_it_at_once) /* DESIGN 8.10 */
{
    stage s = tale_open(&growing);
    cb_uuid id = stage_start(&s, "Growing", "{}");

    growth = 50000;
    cr_expect_eq(stage_go(&s), 1);
    expect_status(&s, "WAITING_FOR_TSQ PROCESS_TOO_LARGE", id);
    expect_message("make fewer or smaller records", id);
    cr_expect_leq(steps, 20, "it went on for %d steps", steps);
    cr_expect_leq(peak_mib(), 200);
    stage_close(&s);
}

/* ---- responses ---- */

static bool say_note(void *state, json_object *payload)
{
    tale *t = state;
    json_object *note = NULL;

    if (!json_object_object_get_ex(payload, "note", &note))
        return false;
    tale_say(t, json_object_get_string(note));
    return true;
}

static const cb_response responses[] = { { "note", say_note }, { "approve", tale_approve } };

static cb_flow wait_an_hour(cb_process *p, void *state)
{
    (void)state;
    CB_DO(cb_wait(p, "approval", tale_is_approved, .timeout_ms = 3600000));
    return CB_DONE;
}

static const cb_process_type waiting =
    tale_type("Waiting", wait_an_hour, .responses = responses, .n_responses = CB_COUNT(responses));

static void respond_note(stage *s, cb_uuid id)
{
    char *text = megabyte(), *payload = NULL;

    cr_assert(asprintf(&payload, "{\"note\":\"%s\"}", text) > 0);
    stage_respond(s, id, "note", payload);
    free(payload);
    free(text);
}

/* The trail has all notes: with the third it is more than a state may have. */
Test(size, a_response_that_makes_the_state_too_large_parks_the_process) /* DESIGN 8.10 */
{
    stage s = tale_open(&waiting);
    cb_uuid id = stage_start(&s, "Waiting", "{}");

    for (int i = 0; i < 3; i++)
        respond_note(&s, id);
    cr_expect_eq(stage_go(&s), 1);
    expect_status(&s, "WAITING_FOR_TSQ PROCESS_TOO_LARGE", id);
    /* The two that it took are recorded, the other one is still there. */
    expect_history(&s, "RESPONSE note COMPLETED, RESPONSE note COMPLETED", id);
    expect_value(bus.conn, "1", "SELECT count(*) FROM commandbus.process_inbox");
    expect_value(bus.conn, "2000001", "SELECT length(state ->> 'trail') FROM commandbus.process");
    stage_close(&s);
}

/* At its end there is nothing to be parked: it is recorded, and not applied. */
Test(size, a_late_response_that_is_too_large_changes_nothing) /* STP.11 */
{
    stage s = tale_open(&waiting);
    cb_uuid id = stage_start(&s, "Waiting", "{}");

    stage_respond(&s, id, "approve", "{}");
    cr_expect_eq(stage_go(&s), 1);
    expect_status(&s, "COMPLETED", id);
    for (int i = 0; i < 3; i++)
        respond_note(&s, id);
    cr_expect_geq(stage_go(&s), 1);
    expect_status(&s, "COMPLETED", id);
    expect_value(bus.conn, "0", "SELECT count(*) FROM commandbus.process_inbox");
    expect_value(bus.conn, "COMPLETED COMPLETED FAILED",
                 "SELECT string_agg(status::text, ' ' ORDER BY ordinal) "
                 "FROM commandbus.process_history WHERE name = 'note'");
    stage_close(&s);
}

/* ---- what must not be read ---- */

/* A megabyte of text that would be 200 in memory. */
static void respond_objects(void)
{
    free(test_value(bus.conn,
                    "SELECT commandbus.respond(process_id, 'approve', jsonb_build_object('x', "
                    "(SELECT jsonb_agg('{}'::jsonb) FROM generate_series(1, 250000)))) "
                    "FROM commandbus.process",
                    NULL, NULL));
}

Test(size, text_that_would_grow_in_memory_is_not_read) /* DESIGN 8.10 */
{
    stage s = tale_open(&waiting);
    cb_uuid id = stage_start(&s, "Waiting", "{}");
    cb_error e = { 0 };

    respond_objects();
    cr_expect_eq(stage_go(&s), 1);
    expect_status(&s, "WAITING_FOR_TSQ PROCESS_TOO_LARGE", id);
    expect_message("too many small values", id);
    cr_expect_leq(peak_mib(), 100);

    /* A decision in the same inbox is found all the same. */
    tale_retry(id);
    cr_expect_eq(stage_go(&s), 1);
    expect_status(&s, "WAITING_FOR_TSQ PROCESS_TOO_LARGE", id);
    cr_assert(cb_process_cancel(bus.db, id.text, "ann", "too large", false, &e), "%s", e.message);
    cr_expect_eq(stage_go(&s), 1);
    expect_status(&s, "CANCELED CANCELED", id);
    cr_expect_leq(peak_mib(), 100);
    stage_close(&s);
}

Test(size, as_many_numbers_as_a_payload_holds_are_read) /* CONTRACT: limits.payload */
{
    stage s = tale_open(&waiting);
    cb_uuid id = stage_start(&s, "Waiting", "{}");

    free(test_value(
        bus.conn,
        "SELECT commandbus.respond(process_id, 'approve', jsonb_build_object('x', "
        "(SELECT jsonb_agg(1) FROM generate_series(1, 340000)))) FROM commandbus.process",
        NULL, NULL));
    cr_expect_eq(stage_go(&s), 1);
    expect_status(&s, "COMPLETED", id);
    stage_close(&s);
}
