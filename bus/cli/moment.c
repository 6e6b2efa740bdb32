/* Moments and spans of time as the database prints them and as people say them. */
#include "moment.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "duration.h"

enum {
    DATE = 10, /* characters of "2026-03-01" */
    TIME = 19, /* and with " 08:00:00" */
};

static const char digits[] = "0123456789";

/* "25" is a quarter; more than a double can tell is left out. */
static double fraction_of(const char *text)
{
    double fraction = 0, weight = 0.1;

    for (int i = 0; i < 15 && *text >= '0' && *text <= '9'; i++, text++, weight /= 10)
        fraction += (*text - '0') * weight;
    return fraction;
}

bool moment_is_date(const char *text)
{
    static const char form[] = "dddd-dd-dd";

    for (size_t i = 0; form[i]; i++) {
        if (form[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
            return false;
    }
    return true;
}

bool moment_read(const char *text, void *field, cb_error *e)
{
    moment_arg *into = field;
    int64_t ms = 0;
    const char *why = NULL;

    if (duration_parse(text, false, &ms, &why)) {
        duration_interval(ms, into->text, sizeof into->text);
        return true;
    }
    if (strlen(text) >= sizeof into->text || !moment_is_date(text))
        return cb_fail(e, CB_MISUSE,
                       "invalid time '%.40s'; use 2026-03-01T08:00:00Z, or an age such as 2h",
                       text);
    snprintf(into->text, sizeof into->text, "%s", text);
    return true;
}

bool moment_parse(const char *text, double *seconds)
{
    struct tm tm = { 0 };
    int end = 0, zone_hours = 0, zone_minutes = 0;
    double fraction = 0;
    char separator;

    /* The widest year that PostgreSQL has is 294276: nothing overflows. */
    if (!text || sscanf(text, "%6d-%2d-%2d%c%2d:%2d:%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
                        &separator, &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &end) != 7)
        return false;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    const char *rest = text + end;
    if (*rest == '.') {
        fraction = fraction_of(rest + 1);
        rest += 1 + strspn(rest + 1, digits);
    }
    if (*rest == '+' || *rest == '-')
        sscanf(rest + 1, "%2d:%2d", &zone_hours, &zone_minutes);
    int zone = (zone_hours * 60 + zone_minutes) * 60;
    *seconds = (double)timegm(&tm) + fraction - (*rest == '-' ? -zone : zone);
    return true;
}

const char *moment_clock(const char *text, char *buffer, size_t size)
{
    size_t length = text ? strlen(text) : 0;
    size_t known = length > TIME && text[TIME] == '.' ? strspn(text + TIME + 1, digits) : 0;

    if (length < TIME)
        snprintf(buffer, size, "%s", text ? text : "-");
    else
        snprintf(buffer, size, "%.8s.%.*s%s", text + DATE + 1, known < 3 ? (int)known : 3,
                 known ? text + TIME + 1 : "", &"000"[known < 3 ? known : 3]);
    return buffer;
}

const char *moment_date(const char *text, char *buffer, size_t size)
{
    if (!text || strlen(text) < TIME) {
        snprintf(buffer, size, "%s", text ? text : "-");
        return buffer;
    }
    const char *zone = text + TIME;
    if (*zone == '.')
        zone += 1 + strspn(zone + 1, "0123456789");
    snprintf(buffer, size, "%.10s %.8s%s", text, text + DATE + 1, zone);
    return buffer;
}

/* "3 min 20 s": two units, the smaller one only when there is some of it. */
static void write_units(long long whole, long long unit, const char *name, const char *smaller_name,
                        char *buffer, size_t size)
{
    long long smaller = unit == 86400 ? 3600 : unit / 60;
    long long large = whole / unit, small = whole % unit / smaller;

    if (small)
        snprintf(buffer, size, "%lld %s %lld %s", large, name, small, smaller_name);
    else
        snprintf(buffer, size, "%lld %s", large, name);
}

const char *moment_span(double seconds, char *buffer, size_t size)
{
    long long whole = (long long)(seconds + 0.5);

    if (seconds < 0.9995)
        snprintf(buffer, size, "%.0f ms", seconds > 0 ? seconds * 1000 : 0);
    else if (seconds < 59.95)
        snprintf(buffer, size, "%.1f s", seconds);
    else if (whole < 3600)
        write_units(whole, 60, "min", "s", buffer, size);
    else if (whole < 86400)
        write_units(whole, 3600, "h", "min", buffer, size);
    else
        write_units(whole, 86400, "d", "h", buffer, size);
    return buffer;
}
