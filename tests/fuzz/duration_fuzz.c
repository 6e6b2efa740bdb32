/* Durations, rates and moments on the command line: refused, or within their limits and the same
 * again when printed. */
#include "fuzz.h"

#include <math.h>

#include "duration.h"
#include "figures.h"

static void check_duration(const char *text)
{
    char buffer[48], interval[48];
    int64_t ms = -1, again = -1;
    const char *why = NULL;

    if (!duration_parse(text, true, &ms, &why)) {
        FUZZ_CHECK(why && *why, "no reason");
        FUZZ_CHECK(ms == -1, "a refusal has changed its result");
        return;
    }
    FUZZ_CHECK(ms >= 0 && ms <= 100LL * 366 * 86400000, "%lld ms", (long long)ms);
    FUZZ_CHECK(duration_parse(duration_format(ms, buffer, sizeof buffer), false, &again, &why) &&
                   again == ms,
               "%s became %s", text, buffer);
    duration_interval(ms, interval, sizeof interval);
    FUZZ_CHECK(strstr(interval, " days") || strstr(interval, " seconds"), "%s", interval);
}

static void check_frequency(const char *text)
{
    double per_second = -1, again = -1;
    char buffer[48];
    cb_error e = { 0 };

    if (!frequency_parse(text, &per_second, &e)) {
        fuzz_refused(&e, CB_MISUSE);
        FUZZ_CHECK(per_second == -1, "a refusal has changed its result");
        return;
    }
    FUZZ_CHECK(per_second > 0 && per_second <= 1e6, "%g", per_second);
    frequency_format(per_second, buffer, sizeof buffer);
    FUZZ_CHECK(strlen(buffer) < 20, "%s", buffer);
    /* For people, with the digits that matter: two at least, unless it is next to nothing. */
    if (per_second > 0.1 / 86400)
        FUZZ_CHECK(frequency_parse(buffer, &again, &e) &&
                       fabs(again - per_second) <= 0.051 * per_second,
                   "%s became %s", text, buffer);
}

static void check_moment(const char *text)
{
    char small[8], large[64];
    double seconds = 0;

    if (moment_parse(text, &seconds))
        FUZZ_CHECK(isfinite(seconds), "%s is not finite", text);
    FUZZ_CHECK(strlen(moment_clock(text, small, sizeof small)) < sizeof small, "too long");
    FUZZ_CHECK(strlen(moment_clock(text, large, sizeof large)) < sizeof large, "too long");
    FUZZ_CHECK(strlen(moment_date(text, small, sizeof small)) < sizeof small, "too long");
    FUZZ_CHECK(strlen(moment_date(text, large, sizeof large)) < sizeof large, "too long");
    FUZZ_CHECK(strlen(moment_span(seconds, large, sizeof large)) < sizeof large, "too long");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FUZZ_TEXT(text, data, size);

    check_duration(text);
    check_frequency(text);
    check_moment(text);
    return 0;
}
