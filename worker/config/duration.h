/* Durations and sizes as people write them. */
#ifndef APP_DURATION_H
#define APP_DURATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DURATION_SIZE 32

/* 500ms, 30s, 5m, 2h, 30d, PT1H30M, P30D, 0; "30" only where a bare number means seconds. When false,
 * *why says what is wrong (static storage). */
bool duration_parse(const char *text, bool bare_is_seconds, double *seconds, const char **why);
/* In the largest unit that leaves a whole number. Returns out. */
const char *duration_write(double seconds, char *out, size_t size);

/* 1048576, 512KiB, 1MiB, 1GiB. */
bool size_parse(const char *text, int64_t *bytes);
const char *size_write(int64_t bytes, char *out, size_t size);

#endif
