/* Reading and writing durations, whatever the locale. */
#include "duration.h"

#include <stdio.h>
#include <string.h>

#define SECOND       INT64_C(1000)
#define MINUTE       (60 * SECOND)
#define HOUR         (60 * MINUTE)
#define DAY          (24 * HOUR)
#define COUNT(array) (sizeof(array) / sizeof *(array))

static const double longest_ms = 100.0 * 366 * DAY;

typedef struct {
    const char *name;
    int64_t ms;
} unit;

static const unit plain_units[] = {
    { "ms", 1 }, { "s", SECOND }, { "m", MINUTE }, { "h", HOUR }, { "d", DAY }
};
/* In the only order that ISO 8601 has for them. Months and years have no fixed length. */
static const unit iso_days[] = { { "W", 7 * DAY }, { "D", DAY } };
static const unit iso_times[] = { { "H", HOUR }, { "M", MINUTE }, { "S", SECOND } };

static const char no_duration[] = "use 500ms, 30s, 5m, 2h or 30d";
static const char no_unit[] = "add a unit: 500ms, 30s, 5m, 2h or 30d";
static const char no_fixed_length[] = "years and months have no fixed length, use days: 30d";
static const char too_long[] = "100 years at most";

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A number without sign or exponent, and how long it is; 0 when there is none. */
static size_t take_number(const char *text, double *value)
{
    const char *at = text;
    double place = 1;

    *value = 0;
    for (; is_digit(*at); at++)
        *value = *value * 10 + (*at - '0');
    if (at == text || *at != '.')
        return (size_t)(at - text);
    if (!is_digit(*++at))
        return 0;
    for (; is_digit(*at); at++)
        *value += (*at - '0') * (place /= 10);
    return (size_t)(at - text);
}

/* Parts like "1H30M", each unit at most once and in order. False at the first that does not fit. */
static bool take_parts(const char **at, const unit *units, size_t n, double *ms)
{
    size_t next = 0;

    while (**at && **at != 'T') {
        double value = 0;
        size_t length = take_number(*at, &value);
        while (next < n && (*at)[length] != *units[next].name)
            next++;
        if (length == 0 || next == n)
            return false;
        *ms += value * (double)units[next++].ms;
        *at += length + 1;
    }
    return true;
}

/* P[nW][nD][T[nH][nM][nS]] */
static bool parse_iso(const char *text, double *ms, const char **why)
{
    const char *at = text + 1, *time = strchr(text, 'T');
    size_t date = time ? (size_t)(time - text) : strlen(text);

    *why = memchr(text, 'Y', date) || memchr(text, 'M', date) ? no_fixed_length : no_duration;
    if (!*at || !take_parts(&at, iso_days, COUNT(iso_days), ms))
        return false;
    if (*at == 'T' && (!*++at || !take_parts(&at, iso_times, COUNT(iso_times), ms)))
        return false;
    return *at == '\0';
}

static bool parse_plain(const char *text, bool bare_is_seconds, double *ms, const char **why)
{
    double value = 0;
    size_t length = take_number(text, &value);

    *why = no_duration;
    if (length == 0)
        return false;
    if (!text[length]) {
        *why = no_unit;
        *ms = value * SECOND;
        return bare_is_seconds || value == 0;
    }
    for (size_t i = 0; i < COUNT(plain_units); i++) {
        if (strcmp(text + length, plain_units[i].name) == 0) {
            *ms = value * (double)plain_units[i].ms;
            return true;
        }
    }
    return false;
}

bool duration_parse(const char *text, bool bare_is_seconds, int64_t *ms, const char **why)
{
    double sum = 0;
    bool good =
        *text == 'P' ? parse_iso(text, &sum, why) : parse_plain(text, bare_is_seconds, &sum, why);

    if (good && !(sum <= longest_ms)) {
        *why = too_long;
        good = false;
    }
    if (good)
        *ms = (int64_t)(sum + 0.5);
    return good;
}

const char *duration_format(int64_t ms, char *buffer, size_t size)
{
    const unit *best = &plain_units[ms ? 0 : 1];

    for (size_t i = 0; ms && i < COUNT(plain_units); i++) {
        if (ms % plain_units[i].ms == 0)
            best = &plain_units[i];
    }
    snprintf(buffer, size, "%lld%s", (long long)(ms / best->ms), best->name);
    return buffer;
}

const char *duration_interval(int64_t ms, char *buffer, size_t size)
{
    if (ms && ms % DAY == 0)
        snprintf(buffer, size, "%lld days", (long long)(ms / DAY));
    else
        snprintf(buffer, size, "%lld.%03d seconds", (long long)(ms / SECOND), (int)(ms % SECOND));
    return buffer;
}
