/* Errors with what to do about them. */
#include "fail.h"

#include <criterion/criterion.h>
#include <string.h>

#include "utf8.h"

Test(fail, misuse_says_what_is_wrong_and_what_to_do)
{
    cb_error e = { 0 };

    cr_expect(!fail_misuse(&e, "See --help.", "unknown option '%s'", "--x"));
    cr_expect_eq(e.code, CB_MISUSE);
    cr_expect_str_eq(e.message, "unknown option '--x'");
    cr_expect_str_eq(e.hint, "See --help.");
}

Test(fail, memory_has_one_message)
{
    cb_error e = { .hint = "of an error before" };

    cr_expect(!fail_memory(&e));
    cr_expect_eq(e.code, CB_MEMORY);
    cr_expect_str_eq(e.message, "out of memory");
    cr_expect_str_eq(e.hint, "");
}

Test(fail, a_long_hint_is_cut_between_characters)
{
    char euros[400] = "x";
    cb_error e = { 0 };

    for (int i = 0; i < 120; i++)
        strcat(euros, "\xE2\x82\xAC");
    cr_expect(!fail_hint(&e, "%s", euros));
    cr_expect(utf8_is_valid(e.hint));
    cr_expect_gt(strlen(e.hint), 250);
}

Test(fail, a_caller_may_pass_no_error)
{
    cr_expect(!fail_hint(NULL, "x"));
    cr_expect(!fail_misuse(NULL, "x", "y"));
    cr_expect(!fail_memory(NULL));
}
