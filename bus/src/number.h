/* Where a number of JSON text fits. */
#ifndef CB_NUMBER_H
#define CB_NUMBER_H

#include <stdbool.h>
#include <stddef.h>

/* `token` is a number as JSON writes it, `length` bytes of a longer text that ends in a NUL. */

/* Is it finite as a double, whatever the locale? */
bool number_is_finite(const char *token, size_t length);

/* True also for what is no integer by its form (1.0, 1e2). */
bool number_fits_64_bits(const char *token, size_t length);

#endif
