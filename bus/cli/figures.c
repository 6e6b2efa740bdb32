/* Moments, spans of time and rates: as the database prints them and as people write them. */
#include "figures.h"

#include "duration.h"
#include "text.h"

#include <commandbus/process_query.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    DATE = 10, /* characters of "2026-03-01" */
    TIME = 19, /* and with " 08:00:00" */
};

static const char digits[] = "0123456789";

/* "25" is a quarter; more than a double can tell is left out. */
static double moment_fraction(const char *text)
{
    double fraction = 0, weight = 0.1;

    for (int i = 0; i < 15 && *text >= '0' && *text <= '9'; i++, text++, weight /= 10)
        fraction += (*text - '0') * weight;
    return fraction;
}

bool moment_has_form(const char *text, const char *form)
{
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
    if (strlen(text) >= sizeof into->text || !moment_has_form(text, MOMENT_DATE))
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
        fraction = moment_fraction(rest + 1);
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
        zone += 1 + strspn(zone + 1, digits);
    snprintf(buffer, size, "%.10s %.8s%s", text, text + DATE + 1, zone);
    return buffer;
}

/* "3 min 20 s": two units, the smaller one only when there is some of it. */
static void moment_write_units(long long whole, long long unit, const char *name,
                               const char *smaller_name, char *buffer, size_t size)
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
        moment_write_units(whole, 60, "min", "s", buffer, size);
    else if (whole < 86400)
        moment_write_units(whole, 3600, "h", "min", buffer, size);
    else
        moment_write_units(whole, 86400, "d", "h", buffer, size);
    return buffer;
}

/* "+4h" */
static bool deadline_is_from_now(const char *text, int64_t *ms)
{
    const char *why = NULL;

    return *text == '+' && duration_parse(text + 1, false, ms, &why);
}

bool deadline_check(const char *text, cb_error *e)
{
    deadline_arg room;
    int64_t ms = 0;

    if (!text || deadline_is_from_now(text, &ms))
        return true;
    if (strlen(text) < sizeof room.text && moment_has_form(text, MOMENT_DATE))
        return true;
    return cb_fail(e, CB_MISUSE,
                   "--deadline must be a time such as 2026-03-01T08:00:00Z, or +4h from now; not "
                   "'%.40s'",
                   text);
}

bool deadline_of(cb_db *db, const char *text, deadline_arg *ret, cb_error *e)
{
    OWNED(cb_rows) rows = NULL;
    char interval[DURATION_SIZE];
    int64_t ms = 0;

    if (!deadline_check(text, e))
        return false;
    if (!text || !deadline_is_from_now(text, &ms)) {
        snprintf(ret->text, sizeof ret->text, "%s", text ? text : "");
        return true;
    }
    if (!cb_process_moment(db, duration_interval(ms, interval, sizeof interval), &rows, e))
        return false;
    snprintf(ret->text, sizeof ret->text, "%s", cb_rows_get(rows, 0, "moment"));
    return true;
}

static const double most_per_second = 1e6;

static const struct {
    const char *name;
    double seconds;
} frequency_units[] = { { "/s", 1 }, { "/m", 60 }, { "/h", 3600 }, { "/d", 86400 } };

enum {
    N_FREQUENCY_UNITS = sizeof frequency_units / sizeof *frequency_units
};

/* Digits and a point only: nothing negative, no exponents, neither nan nor infinity. */
static bool frequency_take_number(const char *text, const char **end, double *value)
{
    size_t length = strspn(text, "0123456789.");
    char *parsed = NULL;

    if (length == 0 || length > 20 || !isdigit((unsigned char)*text))
        return false;
    *value = strtod(text, &parsed);
    *end = text + length;
    return parsed == *end;
}

bool frequency_parse(const char *text, double *per_second, cb_error *e)
{
    const char *unit = "";
    double value = 0;

    if (frequency_take_number(text, &unit, &value)) {
        for (size_t i = 0; i < N_FREQUENCY_UNITS; i++) {
            double each_second = value / frequency_units[i].seconds;
            if (strcmp(unit, frequency_units[i].name) != 0)
                continue;
            if (each_second <= 0 || each_second > most_per_second)
                return cb_fail(e, CB_MISUSE,
                               "'%.40s' is too %s: more than 0, and 1000000/s at most", text,
                               each_second > 0 ? "much" : "little");
            *per_second = each_second;
            return true;
        }
    }
    return cb_fail(e, CB_MISUSE, "invalid rate '%.40s'; use 20/s, 90/m, 5000/h or 100000/d", text);
}

bool frequency_read(const char *text, void *per_second, cb_error *e)
{
    return frequency_parse(text, per_second, e);
}

const char *frequency_number(double value, char *buffer, size_t size)
{
    double magnitude = fabs(value);
    int decimals = magnitude >= 99.95 ? 0 : magnitude >= 9.995 ? 1 : magnitude >= 0.0995 ? 2 : 4;
    int length = snprintf(buffer, size, "%.*f", decimals, value);

    if (decimals == 0 || length < 0 || (size_t)length >= size)
        return buffer;
    while (length > 0 && buffer[length - 1] == '0')
        buffer[--length] = '\0';
    if (length > 0 && buffer[length - 1] == '.')
        buffer[--length] = '\0';
    if (strcmp(buffer, "-0") == 0)
        snprintf(buffer, size, "0");
    return buffer;
}

const char *frequency_format(double per_second, char *buffer, size_t size)
{
    size_t unit = 0;

    while (unit + 1 < N_FREQUENCY_UNITS && per_second * frequency_units[unit].seconds < 0.1 &&
           per_second > 0)
        unit++;
    frequency_number(per_second * frequency_units[unit].seconds, buffer, size);
    text_append(buffer, size, "%s", frequency_units[unit].name);
    return buffer;
}
