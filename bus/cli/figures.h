/* Moments, spans of time and rates: as the database prints them and as people write them. */
#ifndef CLI_FIGURES_H
#define CLI_FIGURES_H

#include <commandbus/db.h>
#include <commandbus/error.h>
#include <stdbool.h>
#include <stddef.h>

#define MOMENT_DATE "dddd-dd-dd" /* whether there is such a day is for the database to say */

/* Whether it begins in this form, where a 'd' is a digit and all else itself. */
bool moment_has_form(const char *text, const char *form);

/* A moment as the library takes it: a date, or an interval before now. */
typedef struct {
    char text[48]; /* empty: none was given */
} moment_arg;

/* An arg_read_fn of a moment_arg: ISO 8601, or a duration before now. */
bool moment_read(const char *text, void *field, cb_error *e);

/* Seconds of a timestamp as PostgreSQL prints it, also in JSON, for differences; false when it
 * is none. */
bool moment_parse(const char *text, double *seconds);

/* Its time of day, "08:00:00.123", in the zone it was printed in. Returns the buffer. */
const char *moment_clock(const char *text, char *buffer, size_t size);

/* To the second with its zone, "2026-03-01 08:00:00+00". Returns the buffer. */
const char *moment_date(const char *text, char *buffer, size_t size);

/* How long: "4 ms", "2.5 s", "3 min 20 s", "2 h 5 min", "4 d 3 h". Returns the buffer. */
const char *moment_span(double seconds, char *buffer, size_t size);

/* A deadline as the library takes it: an ISO 8601 time as it is, "+4h" counted from now by the
 * database's clock. */
typedef struct {
    char text[64]; /* empty: none was given */
} deadline_arg;

/* Without a database: what is neither is refused, CB_MISUSE. */
bool deadline_check(const char *text, cb_error *e);
/* Of a checked text (NULL: none). */
bool deadline_of(cb_db *db, const char *text, deadline_arg *ret, cb_error *e);

/* How often: 20/s, 90/m, 5000/h, 1000000/d. More than nothing, at most a million a second. Fails
 * with CB_MISUSE. */
bool frequency_parse(const char *text, double *per_second, cb_error *e);
/* Same, as an arg_read_fn of a double. */
bool frequency_read(const char *text, void *per_second, cb_error *e);

/* With at most three digits that matter, in the first unit with something before the point: "20/s",
 * "2.5/s", "3/m". Returns the buffer. */
const char *frequency_format(double per_second, char *buffer, size_t size);

/* The number alone, as above: "20", "2.5", "0.03". Returns the buffer. */
const char *frequency_number(double value, char *buffer, size_t size);

#endif
