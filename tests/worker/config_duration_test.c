/* Durations and sizes as people write them. */
#include "duration.h"

#include <criterion/criterion.h>
#include <string.h>

static void expect_seconds(const char *text, double expected)
{
    const char *why = NULL;
    double seconds = -1;

    cr_assert(duration_parse(text, false, &seconds, &why), "%s: %s", text, why);
    cr_expect_float_eq(seconds, expected, 1e-9, "%s is %f", text, seconds);
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
                                       "inf",  "1..5s",  "P1DT" };
    const char *why = NULL;
    double seconds = 0;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        why = NULL;
        cr_expect(!duration_parse(bad[i], true, &seconds, &why), "%s is %f", bad[i], seconds);
        cr_expect(why && *why);
    }
}

Test(duration, of_years_or_months_has_no_length)
{
    const char *why = NULL;
    double seconds = 0;

    cr_expect(!duration_parse("P1M", false, &seconds, &why));
    cr_expect(strstr(why, "no fixed length"), "%s", why);
    cr_expect(!duration_parse("P1Y", false, &seconds, &why));
    cr_expect(strstr(why, "no fixed length"), "%s", why);
}

Test(duration, without_a_unit_is_seconds_only_where_that_is_said)
{
    const char *why = NULL;
    double seconds = 0;

    cr_expect(duration_parse("10", true, &seconds, &why));
    cr_expect_eq(seconds, 10);
    cr_expect(!duration_parse("10", false, &seconds, &why));
    cr_expect(strstr(why, "add a unit"), "%s", why);
}

Test(duration, is_written_in_its_largest_unit)
{
    static const char *const texts[] = { "500ms", "30s", "90s", "5m", "2h", "30d", "1500ms", "0s" };
    char text[DURATION_SIZE];

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *why = NULL;
        double seconds = 0;
        cr_assert(duration_parse(texts[i], false, &seconds, &why));
        cr_expect_str_eq(duration_write(seconds, text, sizeof text), texts[i]);
    }
}

Test(size, is_bytes_or_has_a_binary_unit)
{
    static const struct {
        const char *text;
        int64_t bytes;
    } good[] = { { "0", 0 },
                 { "1048576", 1048576 },
                 { "512KiB", 524288 },
                 { "1MiB", 1048576 },
                 { "2GiB", 2147483648 } };
    static const char *const bad[] = { "",
                                       "-1",
                                       "1MB",
                                       "1.5MiB",
                                       "KiB",
                                       "1 MiB",
                                       "0x10",
                                       "1mib",
                                       "9223372036854775807KiB",
                                       "99999999999999999999" };
    int64_t bytes = 0;
    char text[DURATION_SIZE];

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        cr_assert(size_parse(good[i].text, &bytes), "%s", good[i].text);
        cr_expect_eq(bytes, good[i].bytes);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_expect(!size_parse(bad[i], &bytes), "%s", bad[i]);
    cr_expect_str_eq(size_write(1048576, text, sizeof text), "1MiB");
    cr_expect_str_eq(size_write(1000, text, sizeof text), "1000");
}
