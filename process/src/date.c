/* Calendar dates. Computed here and not by the C library, which has no strict parser and looks
 * at the process's time zone. */
#include "date.h"

#include <stdio.h>

/* Years begin in March here, so that the day of a leap year is the last one. */
int64_t date_to_days(const cb_date *date)
{
    int64_t y = date->year - (date->month <= 2) + 400, era = y / 400, of_era = y % 400;
    int64_t of_year = (153 * (date->month + (date->month > 2 ? -3 : 9)) + 2) / 5 + date->day - 1;

    return (era - 1) * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

cb_date date_from_days(int64_t days)
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

int date_take_number(const char **at, int n, char after)
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

bool date_take(const char **at, char after, cb_date *ret)
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
