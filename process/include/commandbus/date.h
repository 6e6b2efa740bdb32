/* Calendar dates: a day without a time and without a time zone. A value date is one; a moment is
 * not. */
#ifndef COMMANDBUS_DATE_H
#define COMMANDBUS_DATE_H

#include <commandbus/api.h>
#include <stdbool.h>

/* Of the Gregorian calendar, years 1 to 9999. All zeros: none. */
typedef struct {
    int year;
    int month; /* 1 to 12 */
    int day;   /* 1 to 31 */
} cb_date;

enum {
    CB_DATE_TEXT = 11 /* room for a date as text, with its NUL */
};

/* True for a day that there is; also false for none. */
CB_API bool cb_date_is_valid(const cb_date *date);
/* Reads "2026-01-31" and nothing else. False: *ret is untouched. NULL is fine. */
CB_API bool cb_date_parse(const char *text, cb_date *ret) CB_NODISCARD;
/* Writes the same. False when it is not valid: the text is then empty. */
CB_API bool cb_date_print(const cb_date *date, char text[CB_DATE_TEXT]);
/* Below 0, 0 or above 0: a is before b, the same day, after it. */
CB_API int cb_date_compare(const cb_date *a, const cb_date *b);

#endif
