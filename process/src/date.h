/* The calendar from inside: days are counted from 1970-01-01. */
#ifndef PROCESS_DATE_H
#define PROCESS_DATE_H

#include <commandbus/date.h>
#include <stdint.h>

/* In the Gregorian calendar, also before there was one. */
int64_t date_to_days(const cb_date *date);
cb_date date_from_days(int64_t days);

/* `n` digits and then `after` (NUL: nothing to look for). -1 when there is something else. */
int date_take_number(const char **at, int n, char after);
/* A date at the beginning of a text, and `after` behind it (NUL: nothing to look for). */
bool date_take(const char **at, char after, cb_date *ret);

#endif
