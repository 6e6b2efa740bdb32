/* How often, as people write it. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "figures.h"

Test(frequency, is_a_number_and_a_unit) /* RL.6 */
{
    static const struct {
        const char *text;
        double per_second;
    } good[] = {
        { "20/s", 20 },     { "0.5/s", 0.5 },     { "90/m", 1.5 },       { "5400/h", 1.5 },
        { "43200/d", 0.5 }, { "1000000/s", 1e6 }, { "60000000/m", 1e6 },
    };
    double found = 0;
    cb_error e = { 0 };

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        cr_expect(frequency_parse(good[i].text, &found, &e), "%s", good[i].text);
        cr_expect_lt(fabs(found - good[i].per_second), 1e-9, "%s is %g", good[i].text, found);
    }
}

Test(frequency, anything_else_is_refused_with_what_to_write) /* RL.6 */
{
    static const char *const bad[] = { "20",    "/s",     "20/x",  "20s",
                                       "20 /s", "20/sec", "-1/s",  "+1/s",
                                       "1e3/s", "nan/s",  "inf/s", "0x5/s",
                                       ".5/s",  "1..5/s", "1/s/s", "",
                                       "20/S",  "20/ms",  "1,5/s", "100000000000000000000000/s" };
    double found = 7;
    cb_error e = { 0 };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_expect(!frequency_parse(bad[i], &found, &e), "%s was taken", bad[i]);
        cr_expect_eq(e.code, CB_MISUSE);
        cr_expect(strstr(e.message, "use 20/s"), "%s", e.message);
    }
    cr_expect_eq(found, 7);
}

Test(frequency, nothing_at_all_and_more_than_a_million_a_second_are_refused) /* RL.6 */
{
    static const char *const bad[] = { "0/s", "0.0/h", "1000001/s", "99999999999999999/d" };
    double found = 7;
    cb_error e = { 0 };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_expect(!frequency_parse(bad[i], &found, &e), "%s was taken", bad[i]);
        cr_expect(strstr(e.message, "1000000/s at most"), "%s", e.message);
    }
}

Test(frequency, is_written_with_three_digits_in_the_unit_that_fits)
{
    static const struct {
        double per_second;
        const char *text;
    } known[] = {
        { 20, "20/s" },         { 2.5, "2.5/s" },         { 0.5, "0.5/s" },
        { 1.0 / 3, "0.33/s" },  { 12.345, "12.3/s" },     { 1234.5, "1234/s" },
        { 1.0 / 60, "1/m" },    { 1.0 / 3600, "1/h" },    { 0, "0/s" },
        { 1.0 / 86400, "1/d" }, { 1000000, "1000000/s" },
    };
    char text[32];

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        cr_expect_str_eq(frequency_format(known[i].per_second, text, sizeof text), known[i].text);
}
