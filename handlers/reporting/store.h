/* Files under the output folder that are whole or not there.
 *
 * A file is written under a hidden name beside its place, brought to the disk, and only then given
 * its name: who reads sees all of it or none. What a killed worker has left half-written is removed
 * by the next run for the same file. Errors: CB_DATA when no retry helps (there is no such file, it
 * is too large), else CB_AGAIN. */
#ifndef REPORTING_STORE_H
#define REPORTING_STORE_H

#include "path.h"

#include <commandbus/error.h>

/* *ret tells whether the file is there, safely; what half-written attempts have left is then
 * gone. */
bool store_has(const file_path *path, bool *ret, cb_error *e) CB_NODISCARD;
bool store_write(const file_path *path, const char *bytes, size_t n, cb_error *e) CB_NODISCARD;
/* *ret ends with a NUL that *n does not count; the caller frees it. */
bool store_read(const file_path *path, char **ret, size_t *n, cb_error *e) CB_NODISCARD;
/* *removed is false when it was not there: fine, too. */
bool store_remove(const file_path *path, bool *removed, cb_error *e) CB_NODISCARD;

/* The outcome of a handler whose file could not be read or written. */
cb_outcome store_outcome(cb_context *ctx, const cb_error *e);

#endif
