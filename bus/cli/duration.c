/* Durations as people write them. */
#include "duration.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY_MS 86400000LL
static const double longest_ms = 100.0 * 366 * DAY_MS; /* a century */

typedef struct {
    const char *name;
    int64_t ms;
} unit;

static const unit plain[] = { { "ms", 1 },      { "s", 1000 },   { "m", 60000 },
                              { "h", 3600000 }, { "d", DAY_MS }, { NULL, 0 } };
static const unit iso_date[] = { { "W", 7 * DAY_MS }, { "D", DAY_MS }, { NULL, 0 } };
static const unit iso_time[] = { { "H", 3600000 }, { "M", 60000 }, { "S", 1000 }, { NULL, 0 } };

/* One "12.5s" at *at, which moves behind it. */
static bool take_part(const char **at, const unit *units, double *ms)
{
    const char *number = *at, *end = number + strspn(number, "0123456789.");
    char *parsed = NULL;
    size_t letters = 0;

    if (end == number || !isdigit((unsigned char)*number))
        return false;
    double value = strtod(number, &parsed);
    if (parsed != end)
        return false;
    while (isalpha((unsigned char)end[letters]) && (units == plain || letters < 1))
        letters++;
    for (const unit *u = units; u->name; u++) {
        if (strlen(u->name) == letters && strncmp(u->name, end, letters) == 0) {
            *ms += value * (double)u->ms;
            *at = end + letters;
            return true;
        }
    }
    return false;
}

/* P[nW][nD][T[nH][nM][nS]]; months and years have no fixed length and are refused. */
static bool take_iso(const char *at, double *ms)
{
    bool any = false;

    for (; *at && *at != 'T'; any = true) {
        if (!take_part(&at, iso_date, ms))
            return false;
    }
    if (*at == 'T') {
        at++;
        for (any = *at; *at;) {
            if (!take_part(&at, iso_time, ms))
                return false;
        }
    }
    return any;
}

bool duration_parse(const char *text, int64_t *ms, cb_error *e)
{
    double sum = 0;
    const char *at = text;
    bool good = *text == 'P' ? take_iso(text + 1, &sum) : take_part(&at, plain, &sum) && !*at;

    if (!good || sum > longest_ms)
        return cb_fail(e, CB_MISUSE,
                       "'%.40s' is no duration: write 500ms, 30s, 5m, 2h, 30d or PT1H30M", text);
    *ms = (int64_t)(sum + 0.5);
    return true;
}

const char *duration_format(int64_t ms, char *buffer, size_t size)
{
    const unit *best = &plain[0];

    for (const unit *u = plain; u->name; u++) {
        if (ms && ms % u->ms == 0)
            best = u;
    }
    if (ms == 0)
        best = &plain[1];
    snprintf(buffer, size, "%lld%s", (long long)(ms / best->ms), best->name);
    return buffer;
}

const char *duration_interval(int64_t ms, char *buffer, size_t size)
{
    if (ms && ms % DAY_MS == 0)
        snprintf(buffer, size, "%lld days", (long long)(ms / DAY_MS));
    else
        snprintf(buffer, size, "%lld.%03d seconds", (long long)(ms / 1000), (int)(ms % 1000));
    return buffer;
}
