/* Moments as the database prints them and as people write them. */
#include <criterion/criterion.h>

#include "args.h"
#include "figures.h"

Test(moment, is_read_with_its_fraction_and_its_zone)
{
    double zulu = 0, east = 0;

    cr_expect(moment_parse("2026-03-01T08:00:00.25Z", &zulu));
    cr_expect(moment_parse("2026-03-01 13:30:00.25+05:30", &east));
    cr_expect_eq(zulu, 1772352000.25);
    cr_expect_eq(east, zulu);
}

/* Found by fuzz_duration. */
Test(moment, a_year_that_no_calendar_has_overflows_nothing)
{
    double seconds = 0;

    cr_expect(!moment_parse("-2147483648--2147483648-1T99999999:1:1", &seconds));
    cr_expect(!moment_parse("infinity", &seconds));
    cr_expect(moment_parse("294276-12-31 23:59:59.999999+00", &seconds));
}

/* Found by fuzz_args. */
Test(moment, an_option_for_a_time_takes_dates_and_ages_only)
{
    static const char *const bad[] = { "2026--0--08x", "+026-03-01", "2026-3-01", " 026-03-01",
                                       "20260301",     "2026",       "yesterday" };
    static const char *const good[] = { "2026-03-01T08:00:00Z", "2026-03-01", "2h", "PT1H30M" };
    static const arg_spec specs[] = { { "since", ARG_OTHER, .value = "T", .read = moment_read },
                                      { 0 } };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char *argv[] = { "--since", (char *)bad[i] };
        moment_arg into = { "" };
        cb_error e = { 0 };
        cr_expect(!args_parse(2, argv, &(arg_target){ .specs = specs, .into = &into }, 1, &e), "%s",
                  bad[i]);
        cr_expect_eq(e.code, CB_MISUSE);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char *argv[] = { "--since", (char *)good[i] };
        moment_arg into = { "" };
        cb_error e = { 0 };
        cr_expect(args_parse(2, argv, &(arg_target){ .specs = specs, .into = &into }, 1, &e), "%s",
                  e.message);
    }
}
