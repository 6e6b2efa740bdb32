/* Moments and spans of time as the database prints them and as people say them. */
#ifndef CLI_MOMENT_H
#define CLI_MOMENT_H

#include <commandbus/error.h>
#include <stdbool.h>
#include <stddef.h>

/* Whether it begins as dates do, "2026-03-01": whether there is such a day is for the database to say. */
bool moment_is_date(const char *text);

/* A moment as the library takes it: a date, or an interval before now. */
typedef struct {
    char text[48]; /* empty: none was given */
} moment_arg;

/* An arg_read_fn of a moment_arg: ISO 8601, or a duration before now. */
bool moment_read(const char *text, void *field, cb_error *e);

/* Seconds of a timestamp as PostgreSQL prints it, also in JSON, for differences; false when it is none. */
bool moment_parse(const char *text, double *seconds);

/* Its time of day, "08:00:00.123", in the zone it was printed in. Returns the buffer. */
const char *moment_clock(const char *text, char *buffer, size_t size);

/* To the second with its zone, "2026-03-01 08:00:00+00". Returns the buffer. */
const char *moment_date(const char *text, char *buffer, size_t size);

/* How long: "4 ms", "2.5 s", "3 min 20 s", "2 h 5 min", "4 d 3 h". Returns the buffer. */
const char *moment_span(double seconds, char *buffer, size_t size);

#endif
