/* How often, as people write it: 20/s, 90/m, 5000/h, 1000000/d. */
#ifndef CLI_FREQUENCY_H
#define CLI_FREQUENCY_H

#include <commandbus/error.h>
#include <stdbool.h>
#include <stddef.h>

/* More than nothing, at most a million a second. Fails with CB_MISUSE. */
bool frequency_parse(const char *text, double *per_second, cb_error *e);
/* Same, as an arg_read_fn of a double. */
bool frequency_read(const char *text, void *per_second, cb_error *e);

/* With at most three digits that matter, in the first unit with something before the point: "20/s",
 * "2.5/s", "3/m". Returns the buffer. */
const char *frequency_format(double per_second, char *buffer, size_t size);

/* The number alone, as above: "20", "2.5", "0.03". Returns the buffer. */
const char *frequency_number(double value, char *buffer, size_t size);

#endif
