/* What an SQLSTATE means to callers. */
#include "sqlstate.h"

#include <criterion/criterion.h>

Test(sqlstate, one_table_decides_what_the_caller_does_next)
{
    static const struct {
        const char *sqlstate;
        cb_code code;
    } expected[] = {
        { "08006", CB_LOST },
        { "08P01", CB_SERVER },
        { "CBFNC", CB_INVALID_OPERATION },
        { "40001", CB_AGAIN },
        { "40P01", CB_AGAIN },
        { "53300", CB_AGAIN },
        { "55P03", CB_AGAIN },
        { "57014", CB_AGAIN },
        { "58030", CB_AGAIN },
        { "22P02", CB_DATA },
        { "23505", CB_DATA },
        { "28P01", CB_DENIED },
        { "42501", CB_DENIED },
        { "42883", CB_SCHEMA },
        { "42601", CB_SERVER },
        { "P0001", CB_SERVER },
        { "", CB_SERVER },
        { "CB001", CB_DUPLICATE_COMMAND },
        { "CB007", CB_INVALID_OPERATION },
        { "CB013", CB_SCHEMA_TOO_NEW },
    };

    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        cr_assert_eq(sqlstate_code(expected[i].sqlstate), expected[i].code, "%s",
                     expected[i].sqlstate);
    cr_assert_eq(sqlstate_code(NULL), CB_SERVER);
}

Test(sqlstate, passes_when_nothing_is_wrong_with_the_call)
{
    static const char *const passing[] = { "08006", "08P01", "40001", "40P01",
                                           "53300", "55P03", "57P01", "58030" };
    static const char *const lasting[] = {
        "", "0A000", "22P02", "23505", "28P01", "42501", "CB001"
    };

    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
        cr_expect(sqlstate_passes(passing[i]), "%s", passing[i]);
    for (size_t i = 0; i < sizeof lasting / sizeof *lasting; i++)
        cr_expect(!sqlstate_passes(lasting[i]), "%s", lasting[i]);
    cr_expect(!sqlstate_passes(NULL));
}

Test(sqlstate, has_its_class_in_its_first_two_characters)
{
    cr_expect(sqlstate_is_class("53100", "53"));
    cr_expect(!sqlstate_is_class("57014", "53"));
    cr_expect(!sqlstate_is_class("", "53"));
    cr_expect(!sqlstate_is_class(NULL, "53"));
}
