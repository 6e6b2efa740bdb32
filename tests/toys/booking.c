/* A command whose handler books in a ledger. */
#include "booking.h"

static const char ledger[] =
    "CREATE TABLE public.ledger (command_id uuid, amount integer NOT NULL CHECK (amount < 1000));"
    "CREATE TABLE public.account (name text PRIMARY KEY, balance integer NOT NULL);"
    "INSERT INTO public.account VALUES ('nostro', 0)";

void booking_claim(booking *b)
{
    cb_context_free(b->ctx);
    cb_claim_free(b->claim);
    b->claim = test_claim(b->db, "w", 1, 60);
    cr_assert_eq(cb_claim_count(b->claim), 1);
    cr_assert(cb_context_open(cb_claim_at(b->claim, 0), NULL, NULL, &b->ctx, &b->e), "%s",
              b->e.message);
}

void booking_open(booking *b)
{
    bus_open();
    *b = (booking){ 0 };
    test_exec(bus.conn, ledger);
    b->proxy = test_proxy_start(bus.conninfo);
    b->db = test_bus_open(test_proxy_conninfo(b->proxy));
    test_send_one(bus.db, .reply_to = "payments__replies");
    booking_claim(b);
}

void booking_close(booking *b)
{
    cb_context_free(b->ctx);
    cb_claim_free(b->claim);
    cb_db_free(b->db);
    test_proxy_stop(b->proxy);
    bus_close();
}

cb_outcome booking_handler(cb_context *ctx, const cb_command *command, json_object **result)
{
    const char *const entry[] = { command->command_id.text, "10" };
    const char *const balance[] = { "10", "nostro" };

    cr_assert(cb_context_effect(ctx, "INSERT INTO public.ledger VALUES ($1, $2)", 2, entry));
    cr_assert(cb_context_effect(
        ctx, "UPDATE public.account SET balance = balance + $1 WHERE name = $2", 2, balance));
    *result = json_object_new_string("booked");
    return CB_SUCCESS;
}

void booking_run(booking *b, cb_handler_fn *handler)
{
    cb_context_run(b->ctx, handler, 0, &b->item);
    cr_assert_eq(b->item.outcome, CB_SUCCESS, "%s", b->item.error_message);
}

bool booking_settle(booking *b, double lock_timeout_seconds)
{
    b->e = (cb_error){ 0 };
    return cb_settle_with_effects(b->db, "w", &b->item, b->ctx, lock_timeout_seconds, &b->e);
}

void expect_effect_failed(booking *b, const char *message)
{
    cr_expect_eq(b->item.outcome, CB_PERMANENT);
    cr_expect_str_eq(b->item.error_code, "EFFECT_FAILED");
    cr_expect_str_eq(b->item.error_message, message, "%s", b->item.error_message);
    expect_ledger("0 entries, 0 balance");
    expect_command("IN_TROUBLESHOOTING_QUEUE EFFECT_FAILED", b->item.command_id,
                   "status, error_code");
    expect_value(bus.conn, message,
                 "SELECT error_message FROM commandbus.command_metadata WHERE command_id = $1",
                 b->item.command_id.text);
    expect_trail("SENT RECEIVED MOVED_TO_TSQ", b->item.command_id);
    expect_messages("0 queued, 1 archived, 1 replied", b->item.command_id);
}
