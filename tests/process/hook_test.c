/* Hooks at the end of a process: they are told its id, and may send a command in the transaction
 * that ends it. STP.18. */
#include "dying.h"
#include "tale.h"

static int hooked;
static bool spoil;

static void tell(cb_process *p, tale *t, const char *end)
{
    json_object *data = json_object_new_object();

    hooked++;
    json_object_object_add(data, "end", json_object_new_string(end));
    json_object_object_add(data, "process", json_object_new_string(cb_process_id(p)));
    cr_expect(cb_hook_send(p, "risk", "Tell", data));
    cr_expect(cb_hook_send(p, "fx", "Tell", NULL));
    json_object_put(data);
    cb_text_set(&t->note, end);
    if (spoil)
        t->ratio = NAN;
}

static void completed(cb_process *p, void *state)
{
    tell(p, state, "completed");
}

static void canceled(cb_process *p, void *state)
{
    tell(p, state, "canceled");
}

static void compensated(cb_process *p, void *state)
{
    tell(p, state, "compensated");
}

static cb_outcome fails(cb_context *ctx, void *state)
{
    (void)state;
    return cb_permanent(ctx, "BROKEN", "as told");
}

static cb_flow ends(cb_process *p, void *state)
{
    const tale *t = state;

    if (t->count == 1)
        return cb_business_failure(p, "NO", "as told");
    if (t->count == 2)
        CB_DO(cb_step(p, "fail", fails, .local = true));
    cr_expect_not(cb_hook_send(p, "risk", "Tell", NULL), "execute() sends by a command step");
    return CB_DONE;
}

static const cb_process_type type =
    tale_type("Ends", ends, .on_completed = completed, .on_canceled = canceled,
              .on_compensated = compensated);

/* The end, and what was told of it. */
static void expect_told_of(stage *s, const char *status, const char *end, cb_uuid id)
{
    expect_status(s, status, id);
    expect_state(s, end, id, "note");
    expect_value(bus.conn, "fx/Tell PENDING, risk/Tell PENDING",
                 "SELECT string_agg(domain || '/' || command_type || ' ' || status, ', ' ORDER BY "
                 "domain) FROM commandbus.command_metadata WHERE correlation_id = $1",
                 id.text);
    expect_value(bus.conn, end,
                 "SELECT data ->> 'end' FROM commandbus.command_metadata WHERE domain = 'risk' AND "
                 "data ->> 'process' = $1 AND correlation_id = $1::uuid AND reply_to IS NULL",
                 id.text);
    /* The record is whole: it has commands that no step sent, too. */
    expect_value(
        bus.conn, end,
        "SELECT a.command_data ->> 'end' FROM commandbus.process_audit a "
        "JOIN commandbus.command_metadata c USING (command_id, command_type) "
        "WHERE a.process_id = $1 AND a.event = 'COMMAND_SENT' AND a.entry_type = 'COMMAND' "
        "AND c.domain = 'risk' AND a.sent_at IS NOT NULL AND a.received_at IS NULL "
        "AND a.step_name = 'on_' || (c.data ->> 'end')",
        id.text);
    expect_value(bus.conn, "2",
                 "SELECT count(*) FROM commandbus.process_audit WHERE process_id = $1 AND event = "
                 "'COMMAND_SENT'",
                 id.text);
}

Test(hook, of_each_end_is_told_the_id_and_sends_in_its_transaction)
{
    stage s = tale_open(&type);
    cb_error e;

    cb_uuid done = stage_start(&s, "Ends", "{}");
    cb_uuid undone = stage_start(&s, "Ends", "{\"count\":1}");
    cb_uuid ended = stage_start(&s, "Ends", "{\"count\":2}");
    stage_go(&s);
    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", ended);
    cr_assert(cb_process_cancel(bus.db, ended.text, "ann", "withdrawn", true, &e), "%s", e.message);
    stage_go(&s);

    expect_told_of(&s, "COMPLETED", "completed", done);
    expect_told_of(&s, "COMPENSATED NO", "compensated", undone);
    expect_told_of(&s, "CANCELED CANCELED", "canceled", ended);
    stage_close(&s);
}

Test(hook, of_a_worker_that_dies_sends_once)
{
    stage s = tale_open(&type);
    cb_uuid id = stage_start(&s, "Ends", "{}");
    dying d = { .stage = &s, .die_at = 1 };

    cr_expect_not(dying_step(&d));
    expect_commands(&s, "", id);
    stage_go(&s);

    expect_told_of(&s, "COMPLETED", "completed", id);
    cr_expect_eq(hooked, 2);
    stage_close(&s);
}

Test(hook, that_spoils_the_state_sends_nothing)
{
    stage s = tale_open(&type);

    spoil = true;
    cb_uuid id = stage_start(&s, "Ends", "{}");
    stage_go(&s);
    expect_status(&s, "COMPLETED", id);
    expect_commands(&s, "", id);
    expect_value(bus.conn, "0",
                 "SELECT count(*) FROM commandbus.process_audit WHERE process_id = $1 AND event = "
                 "'COMMAND_SENT'",
                 id.text);
    stage_close(&s);
}
