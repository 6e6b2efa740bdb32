/* Durations as people write them. */
#include "duration.h"

#include <criterion/criterion.h>
#include <string.h>

static void expect_seconds(const char *text, double expected)
{
    const char *why = NULL;
    int64_t ms = -1;

    cr_assert(duration_parse(text, false, &ms, &why), "%s: %s", text, why);
    cr_expect_eq(ms, (int64_t)(expected * 1000 + 0.5), "%s is %lld ms", text, (long long)ms);
}

Test(duration, is_a_number_and_a_unit)
{
    expect_seconds("500ms", 0.5);
    expect_seconds("30s", 30);
    expect_seconds("1.5s", 1.5);
    expect_seconds("5m", 300);
    expect_seconds("2h", 7200);
    expect_seconds("30d", 30 * 86400);
    expect_seconds("0", 0);
    expect_seconds("0s", 0);
}

Test(duration, is_one_of_iso_8601)
{
    expect_seconds("PT1H", 3600);
    expect_seconds("PT1H30M", 5400);
    expect_seconds("PT0.5S", 0.5);
    expect_seconds("P30D", 30 * 86400);
    expect_seconds("P1W", 7 * 86400);
    expect_seconds("P1DT12H", 36 * 3600);
}

Test(duration, is_nothing_else)
{
    static const char *const bad[] = { "",     "s",      "30x",    "-30s",  "+30s",  "30 s",
                                       " 30s", "30S",    "1h30m",  "1e3s",  "0x10s", ".5s",
                                       "5.s",  "P",      "PT",     "P1",    "PT1",   "PT1X",
                                       "P1H",  "PT1M1H", "PT1S1S", "P1D1D", "PTT1S", "nan",
                                       "inf",  "1..5s",  "P1DT",   "PT1M1W" };
    const char *why = NULL;
    int64_t ms = 0;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        why = NULL;
        cr_expect(!duration_parse(bad[i], true, &ms, &why), "%s is %lld ms", bad[i], (long long)ms);
        cr_expect(why && *why);
    }
}

Test(duration, of_years_or_months_has_no_length)
{
    const char *why = NULL;
    int64_t ms = 0;

    cr_expect(!duration_parse("P1M", false, &ms, &why));
    cr_expect(strstr(why, "no fixed length"), "%s", why);
    cr_expect(!duration_parse("P1Y", false, &ms, &why));
    cr_expect(strstr(why, "no fixed length"), "%s", why);
}

Test(duration, without_a_unit_is_seconds_only_where_that_is_said)
{
    const char *why = NULL;
    int64_t ms = 0;

    cr_expect(duration_parse("10", true, &ms, &why));
    cr_expect_eq(ms, 10000);
    cr_expect(!duration_parse("10", false, &ms, &why));
    cr_expect(strstr(why, "add a unit"), "%s", why);
}

Test(duration, is_written_in_its_largest_unit)
{
    static const char *const texts[] = { "500ms", "30s", "90s", "5m", "2h", "30d", "1500ms", "0s" };
    char text[DURATION_SIZE];

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *why = NULL;
        int64_t ms = 0;
        cr_assert(duration_parse(texts[i], false, &ms, &why));
        cr_expect_str_eq(duration_format(ms, text, sizeof text), texts[i]);
    }
}

Test(duration, is_a_century_at_most)
{
    const char *why = NULL;
    int64_t ms = 7;

    cr_expect(duration_parse("36600d", false, &ms, &why));
    cr_expect_eq(ms, 36600 * INT64_C(86400000));
    cr_expect(!duration_parse("36601d", false, &ms, &why));
    cr_expect(strstr(why, "100 years"), "%s", why);
    cr_expect(!duration_parse("99999999999999999999999999999999999999d", false, &ms, &why));
    cr_expect_eq(ms, 36600 * INT64_C(86400000), "a refusal changes nothing");
}

Test(duration, is_rounded_to_milliseconds)
{
    expect_seconds("0.4ms", 0);
    expect_seconds("1.0005s", 1.001);
    expect_seconds("0.1s", 0.1);
    expect_seconds("PT0.0014S", 0.001);
}

Test(duration, is_an_interval_for_the_database)
{
    char text[DURATION_SIZE];

    cr_expect_str_eq(duration_interval(30 * INT64_C(86400000), text, sizeof text), "30 days");
    cr_expect_str_eq(duration_interval(90500, text, sizeof text), "90.500 seconds");
    cr_expect_str_eq(duration_interval(0, text, sizeof text), "0.000 seconds");
}
