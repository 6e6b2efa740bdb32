/* Moments: milliseconds since 1970 in the struct, ISO 8601 on the wire. And days. */
#include <stdio.h>
#include <string.h>

#include "date.h"
#include "fields_types.h"

enum {
    SECONDS_A_DAY = 86400
};

static const int64_t first_ms = -62135596800000; /* 0001-01-01T00:00:00.000Z */
static const int64_t last_ms = 253402300799999;  /* 9999-12-31T23:59:59.999Z */

const char *field_time_write(field_place *at, const void *member, json_object **ret)
{
    int64_t ms = *(const int64_t *)member;
    char text[80];

    (void)at;
    if (ms == 0)
        return NULL;
    if (ms < first_ms || ms > last_ms)
        return "is no time of the years 1 to 9999";

    int64_t days = ms / 1000 / SECONDS_A_DAY - 1; /* rounded down, also before 1970 */
    while (ms - days * SECONDS_A_DAY * 1000 >= (int64_t)SECONDS_A_DAY * 1000)
        days++;
    int of_day = (int)(ms - days * SECONDS_A_DAY * 1000), second = of_day / 1000;
    cb_date date = date_from_days(days);
    snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", date.year, date.month,
             date.day, second / 3600, second / 60 % 60, second % 60, of_day % 1000);
    return field_string(text, ret);
}

/* ".5" is 500; what is finer than a millisecond is cut off. */
static bool take_fraction(const char **at, int *ms)
{
    int weight = 100, digits = 0;

    *ms = 0;
    if (**at != '.')
        return true;
    for ((*at)++; **at >= '0' && **at <= '9'; (*at)++, digits++, weight /= 10)
        *ms += (**at - '0') * weight;
    return digits >= 1 && digits <= 9;
}

/* "Z", "+02:00" or "-02:00", up to the end. */
static bool take_zone(const char *at, int *minutes)
{
    *minutes = 0;
    if (strcmp(at, "Z") == 0)
        return true;
    if (*at != '+' && *at != '-')
        return false;

    int sign = *at++ == '-' ? -1 : 1, hour = date_take_number(&at, 2, ':');
    if (hour < 0 || hour > 23)
        return false;
    int minute = date_take_number(&at, 2, '\0');
    if (minute < 0 || minute > 59 || *at)
        return false;
    *minutes = sign * (hour * 60 + minute);
    return true;
}

static bool parse_time(const char *at, int64_t *ret)
{
    cb_date date;
    int ms, zone;

    if (!date_take(&at, 'T', &date))
        return false;
    int hour = date_take_number(&at, 2, ':'),
        minute = hour < 0 ? -1 : date_take_number(&at, 2, ':');
    int second = minute < 0 ? -1 : date_take_number(&at, 2, '\0');
    if (second < 0 || hour > 23 || minute > 59 || second > 59 || !take_fraction(&at, &ms) ||
        !take_zone(at, &zone))
        return false;
    *ret = ((date_to_days(&date) * 24 + hour) * 60 + minute - zone) * 60000 + second * 1000 + ms;
    return *ret >= first_ms && *ret <= last_ms;
}

const char *field_time_read(field_place *at, json_object *value, void *member)
{
    const char *text = field_text_of(value);

    (void)at;
    if (value && (!text || !parse_time(text, member)))
        return "must be a time like 2026-01-31T12:00:00.000Z or null";
    return NULL;
}

const char *field_date_write(field_place *at, const void *member, json_object **ret)
{
    const cb_date *date = member;
    char text[CB_DATE_TEXT];

    (void)at;
    if (date->year == 0 && date->month == 0 && date->day == 0)
        return NULL;
    if (!cb_date_print(date, text))
        return "is not a date of the calendar, years 1 to 9999";
    return field_string(text, ret);
}

const char *field_date_read(field_place *at, json_object *value, void *member)
{
    (void)at;
    if (value && !cb_date_parse(field_text_of(value), member))
        return "must be a date like 2026-01-31 or null";
    return NULL;
}
