/* Durations as people write them: 500ms, 30s, 1.5h, 30d, or ISO 8601 (PT1H30M, P30D). */
#ifndef BASE_DURATION_H
#define BASE_DURATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DURATION_SIZE 32 /* room for any duration or interval below */

/* In milliseconds, rounded; at most a century. A number needs a unit, except 0, and where
 * bare_is_seconds says what it means. When false, *why says what to write instead (static storage)
 * and *ms is untouched. */
bool duration_parse(const char *text, bool bare_is_seconds, int64_t *ms, const char **why);

/* In the largest unit that leaves a whole number: "90s", "30d", "0s". Returns the buffer. */
const char *duration_format(int64_t ms, char *buffer, size_t size);

/* As a PostgreSQL interval. Returns the buffer. */
const char *duration_interval(int64_t ms, char *buffer, size_t size);

#endif
