/* Errors are values: what they say, and which SQLSTATE means what. */
#include <commandbus/error.h>
#include <criterion/criterion.h>
#include <string.h>

#include "fail.h"
#include "utf8.h"

Test(error, failing_returns_false_and_fills_the_value)
{
    cb_error e = { .sqlstate = "40P01", .hint = "an old one" };

    cr_assert_not(cb_fail(&e, CB_MISUSE, "%d is too many", 7));

    cr_assert_eq(e.code, CB_MISUSE);
    cr_assert_str_eq(e.message, "7 is too many");
    cr_assert_str_empty(e.sqlstate);
    cr_assert_str_empty(e.hint);
}

Test(error, a_caller_may_pass_no_error)
{
    cr_assert_not(cb_fail(NULL, CB_DATA, "unheard"));
    cr_assert_not(cb_fail_while(NULL, "sleeping"));
    cr_assert_not(fail_hint(NULL, "nothing"));
}

Test(error, context_is_put_before_the_message_and_keeps_code_and_hint)
{
    cb_error e = { 0 };

    cb_fail(&e, CB_DATA, "no");
    fail_hint(&e, "say yes");
    cr_assert_not(cb_fail_while(&e, "asking '%s'", "fx"));

    cr_assert_str_eq(e.message, "while asking 'fx': no");
    cr_assert_str_eq(e.hint, "say yes");
    cr_assert_eq(e.code, CB_DATA);
}

Test(error, a_message_may_be_made_of_the_one_before)
{
    cb_error e = { 0 };

    cb_fail(&e, CB_DATA, "inner");
    cb_fail(&e, CB_SERVER, "outer (%s)", e.message);

    cr_assert_str_eq(e.message, "outer (inner)");
}

Test(error, a_long_message_is_cut_between_characters)
{
    cb_error e = { 0 };
    char euros[900] = "x";

    for (int i = 0; i < 250; i++)
        strcat(euros, "€");
    cb_fail(&e, CB_DATA, "%s", euros);

    cr_assert(utf8_is_valid(e.message), "cut inside a character");
    cr_assert_gt(strlen(e.message), 500);
}

Test(error, every_code_has_the_name_of_the_contract)
{
    cr_assert_str_eq(cb_code_name(CB_LOST), "LOST");
    cr_assert_str_eq(cb_code_name(CB_DUPLICATE_COMMAND), "DUPLICATE_COMMAND");
    for (int code = CB_OK; code <= CB_SCHEMA_TOO_NEW; code++)
        cr_assert_not_null(cb_code_name((cb_code)code), "code %d", code);
}

Test(error, only_codes_of_the_bus_are_refusals)
{
    cr_assert(cb_code_is_refusal(CB_DUPLICATE_COMMAND));
    cr_assert(cb_code_is_refusal(CB_SCHEMA_TOO_NEW));
    cr_assert_not(cb_code_is_refusal(CB_SCHEMA));
    cr_assert_not(cb_code_is_refusal(CB_OK));
}
