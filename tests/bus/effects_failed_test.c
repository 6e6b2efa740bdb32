/* Effects that the database does not take: the command goes to the TSQ, and nothing else
 * happened. */
#include "booking.h"

/* What the handler wants done after booking, with this value (NULL: none). */
static const char *bad_statement, *bad_value;

static cb_outcome books_badly(cb_context *ctx, const cb_command *command, json_object **result)
{
    cb_outcome outcome = booking_handler(ctx, command, result);

    cr_assert(cb_context_effect(ctx, bad_statement, bad_value ? 1 : 0, &bad_value));
    return outcome;
}

static void expect_fails(const char *sql, const char *value, const char *message)
{
    booking b;
    booking_open(&b);
    test_exec(bus.conn, "CREATE VIEW public.total AS SELECT sum(amount) FROM public.ledger;"
                        "CREATE TABLE public.entry (account text REFERENCES public.account "
                        "DEFERRABLE INITIALLY DEFERRED)");
    bad_statement = sql;
    bad_value = value;
    booking_run(&b, books_badly);

    expect_settled(&b, CB_SETTLED);
    expect_effect_failed(&b, message);

    expect_settled(&b, CB_ALREADY); /* It stays what it became. */
    expect_effect_failed(&b, message);
    booking_close(&b);
}

Test(failed_effects, of_a_constraint_move_the_command_to_the_tsq) /* WRK.14 */
{
    expect_fails("INSERT INTO public.account VALUES ($1, 5)", "nostro",
                 "effect 3 of 3: 23505, duplicate key value violates unique constraint "
                 "\"account_pkey\"");
    expect_fails("INSERT INTO public.ledger VALUES (NULL, $1)", "1000",
                 "effect 3 of 3: 23514, new row for relation \"ledger\" violates check constraint "
                 "\"ledger_amount_check\"");
}

Test(failed_effects, of_a_constraint_checked_at_the_commit_do_too) /* WRK.14 */
{
    expect_fails("INSERT INTO public.entry VALUES ($1)", "nobody",
                 "the commit of the effects: 23503, insert or update on table \"entry\" violates "
                 "foreign key constraint \"entry_account_fkey\"");
}

Test(failed_effects, of_bad_values_do_too_and_do_not_repeat_them) /* WRK.14 */
{
    expect_fails("INSERT INTO public.ledger VALUES (NULL, $1)", "4012 8888 8888 1881",
                 "effect 3 of 3: 22P02, invalid input syntax for type integer: \"\"");
    expect_fails("INSERT INTO public.ledger VALUES (NULL, $1)", "99999999999",
                 "effect 3 of 3: 22003, value \"\" is out of range for type integer");
    expect_fails("SELECT 1 / ($1::integer - 7)", "7", "effect 3 of 3: 22012, division by zero");
    expect_fails("INSERT INTO public.account VALUES ($1, 0)", "caf\xe9",
                 "effect 3 of 3: 22021, invalid byte sequence for encoding \"\": 0xe9");
}

Test(failed_effects, that_are_not_valid_statements_do_too) /* WRK.14 */
{
    expect_fails("INSERT INTO public.nowhere VALUES ($1)", "1",
                 "effect 3 of 3: 42P01, relation \"public.nowhere\" does not exist");
    expect_fails("INSERT INTO public.ledger (nothing) VALUES ($1)", "1",
                 "effect 3 of 3: 42703, column \"nothing\" of relation \"ledger\" does not exist");
    expect_fails("SELECT public.nothing($1)", "1",
                 "effect 3 of 3: 42883, function public.nothing(unknown) does not exist");
    expect_fails("UPDATE public.total SET sum = 1", NULL,
                 "effect 3 of 3: 55000, cannot update view \"total\"");
}

Test(failed_effects, with_a_wrong_number_of_values_do_too) /* WRK.14 */
{
    expect_fails("INSERT INTO public.ledger VALUES ($1, $2)", "1",
                 "effect 3 of 3: 08P01, bind message supplies 1 parameters, but prepared statement "
                 "\"\" requires 2");
}

Test(failed_effects, of_several_statements_in_one_do_too) /* WRK.14 */
{
    expect_fails("INSERT INTO public.ledger VALUES (NULL, 1); COMMIT", NULL,
                 "effect 3 of 3: 42601, cannot insert multiple commands into a prepared statement");
}

Test(failed_effects, that_are_refused_by_the_bus_do_too) /* and not for the fence of this command */
{
    expect_fails("SELECT commandbus.send($1, 'Test')", "nowhere",
                 "effect 3 of 3: CB008, domain 'nowhere' is not registered");
    expect_fails("SELECT commandbus.hold_fence('fx', $1, 1)",
                 "00000000-0000-0000-0000-000000000000",
                 "effect 3 of 3: CBFNC, command 00000000-0000-0000-0000-000000000000 is not in "
                 "progress under lease 1");
}
