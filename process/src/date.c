/* Calendar dates and moments, and both as fields: a moment is milliseconds since 1970 in the struct
 * and ISO 8601 on the wire. Computed here and not by the C library, which has no strict parser and
 * looks at the process's time zone. */
#include <commandbus/date.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "fields_types.h"

/* Days from 1970-01-01 in the Gregorian calendar, also before there was one. Years begin in March
 * here, so that the day of a leap year is the last one. */
static int64_t date_to_days(const cb_date *date)
{
    int64_t y = date->year - (date->month <= 2) + 400, era = y / 400, of_era = y % 400;
    int64_t of_year = (153 * (date->month + (date->month > 2 ? -3 : 9)) + 2) / 5 + date->day - 1;

    return (era - 1) * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static cb_date date_from_days(int64_t days)
{
    int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097, of_era = z - era * 146097;
    int64_t y = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * y + y / 4 - y / 100), m = (5 * of_year + 2) / 153;
    int month = (int)(m < 10 ? m + 3 : m - 9);

    return (cb_date){ .year = (int)(y + era * 400 + (month <= 2)),
                      .month = month,
                      .day = (int)(of_year - (153 * m + 2) / 5 + 1) };
}

static int days_in(int year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return days[month - 1] + (month == 2 && leap);
}

bool cb_date_is_valid(const cb_date *date)
{
    return date->year >= 1 && date->year <= 9999 && date->month >= 1 && date->month <= 12 &&
           date->day >= 1 && date->day <= days_in(date->year, date->month);
}

/* `n` digits and then `after` (NUL: nothing to look for). -1 when there is something else. */
static int date_take_number(const char **at, int n, char after)
{
    int number = 0;

    for (; n > 0; n--) {
        if (**at < '0' || **at > '9')
            return -1;
        number = number * 10 + (*(*at)++ - '0');
    }
    if (after && *(*at)++ != after) {
        (*at)--;
        return -1;
    }
    return number;
}

/* A date at the beginning of a text, and `after` behind it (NUL: nothing to look for). */
static bool date_take(const char **at, char after, cb_date *ret)
{
    cb_date date = { .year = date_take_number(at, 4, '-') };

    date.month = date.year < 0 ? -1 : date_take_number(at, 2, '-');
    date.day = date.month < 0 ? -1 : date_take_number(at, 2, after);
    if (!cb_date_is_valid(&date))
        return false;
    *ret = date;
    return true;
}

bool cb_date_parse(const char *text, cb_date *ret)
{
    cb_date date;

    if (!text || !date_take(&text, '\0', &date) || *text)
        return false;
    *ret = date;
    return true;
}

bool cb_date_print(const cb_date *date, char text[CB_DATE_TEXT])
{
    *text = '\0';
    if (!cb_date_is_valid(date))
        return false;
    /* In unsigned numbers of known width, so that compilers see that it fits. */
    snprintf(text, CB_DATE_TEXT, "%04u-%02u-%02u", (unsigned)date->year % 10000,
             (unsigned)date->month % 100, (unsigned)date->day % 100);
    return true;
}

int cb_date_compare(const cb_date *a, const cb_date *b)
{
    int years = (a->year > b->year) - (a->year < b->year);
    int months = (a->month > b->month) - (a->month < b->month);

    return years ? years : months ? months : (a->day > b->day) - (a->day < b->day);
}

/* ---- moments ---- */

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
        return "must lie in the years 1 to 9999";

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

/* ---- dates as fields ---- */

const char *field_date_write(field_place *at, const void *member, json_object **ret)
{
    const cb_date *date = member;
    char text[CB_DATE_TEXT];

    (void)at;
    if (date->year == 0 && date->month == 0 && date->day == 0)
        return NULL;
    if (!cb_date_print(date, text))
        return "is not a valid date of the years 1 to 9999";
    return field_string(text, ret);
}

const char *field_date_read(field_place *at, json_object *value, void *member)
{
    (void)at;
    if (value && !cb_date_parse(field_text_of(value), member))
        return "must be a date like 2026-01-31 or null";
    return NULL;
}
