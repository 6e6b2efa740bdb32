/* Durations as people write them: 500ms, 30s, 5m, 2h, 30d, or ISO 8601 (PT1H30M). */
#ifndef CLI_DURATION_H
#define CLI_DURATION_H

#include <commandbus/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fails with CB_MISUSE. */
bool duration_parse(const char *text, int64_t *ms, cb_error *e);

/* The shortest form without loss: "90s", "30d". Returns the buffer. */
const char *duration_format(int64_t ms, char *buffer, size_t size);

/* As a PostgreSQL interval. Returns the buffer. */
const char *duration_interval(int64_t ms, char *buffer, size_t size);

#endif
