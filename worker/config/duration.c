/* Durations and sizes as people write them. */
#include "duration.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS "0123456789"

typedef struct {
    const char *name;
    int64_t factor;
} unit;

static const unit plain_units[] = {
    { "ms", 1 }, { "s", 1000 }, { "m", 60 * 1000 }, { "h", 3600 * 1000 }, { "d", 86400 * 1000 }
};
/* In the only order that ISO 8601 has for them. Months and years have no fixed length. */
static const unit iso_days[] = { { "W", 7 * 86400 * (int64_t)1000 }, { "D", 86400 * 1000 } };
static const unit iso_times[] = { { "H", 3600 * 1000 }, { "M", 60 * 1000 }, { "S", 1000 } };
static const unit size_units[] = {
    { "", 1 }, { "KiB", 1024 }, { "MiB", 1024 * 1024 }, { "GiB", 1024 * 1024 * 1024 }
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char no_duration[] = "write 500ms, 30s, 5m, 2h, 30d or PT1H30M";
static const char no_unit[] = "add a unit, such as 500ms, 30s or 5m";
static const char no_fixed_length[] = "years and months have no fixed length: write days, as P30D";

/* A number without sign or exponent, and how long it is; 0 when there is none. */
static size_t take_number(const char *text, double *value)
{
    size_t whole = strspn(text, DIGITS), length = whole;

    if (whole == 0)
        return 0;
    if (text[whole] == '.') {
        size_t fraction = strspn(text + whole + 1, DIGITS);
        if (fraction == 0)
            return 0;
        length = whole + 1 + fraction;
    }
    *value = strtod(text, NULL);
    return length;
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
        *ms += value * (double)units[next++].factor;
        *at += length + 1;
    }
    return true;
}

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
        *ms = value * 1000;
        return bare_is_seconds || value == 0;
    }
    for (size_t i = 0; i < COUNT(plain_units); i++) {
        if (strcmp(text + length, plain_units[i].name) == 0) {
            *ms = value * (double)plain_units[i].factor;
            return true;
        }
    }
    return false;
}

bool duration_parse(const char *text, bool bare_is_seconds, double *seconds, const char **why)
{
    double ms = 0;
    bool good =
        *text == 'P' ? parse_iso(text, &ms, why) : parse_plain(text, bare_is_seconds, &ms, why);

    if (good)
        *seconds = ms / 1000;
    return good;
}

/* The largest unit that divides the value. */
static const unit *best_unit(int64_t value, const unit *units, size_t n)
{
    const unit *best = units;

    for (size_t i = 0; i < n; i++) {
        if (value % units[i].factor == 0)
            best = &units[i];
    }
    return best;
}

const char *duration_write(double seconds, char *out, size_t size)
{
    int64_t ms = (int64_t)(seconds * 1000 + 0.5);
    const unit *u = ms ? best_unit(ms, plain_units, COUNT(plain_units)) : &plain_units[1];

    snprintf(out, size, "%lld%s", (long long)(ms / u->factor), u->name);
    return out;
}

bool size_parse(const char *text, int64_t *bytes)
{
    char *end = NULL;

    if (!*text || !strchr(DIGITS, *text))
        return false;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    for (size_t i = 0; i < COUNT(size_units); i++) {
        if (strcmp(end, size_units[i].name) == 0) {
            if (errno || value > INT64_MAX / size_units[i].factor)
                return false;
            *bytes = (int64_t)value * size_units[i].factor;
            return true;
        }
    }
    return false;
}

const char *size_write(int64_t bytes, char *out, size_t size)
{
    const unit *u = bytes ? best_unit(bytes, size_units, COUNT(size_units)) : &size_units[0];

    snprintf(out, size, "%lld%s", (long long)(bytes / u->factor), u->name);
    return out;
}
